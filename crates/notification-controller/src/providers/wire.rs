//! Shared parts of requests: addresses, credentials, encodings and the names of objects.

use api::{Event, Secret, Severity};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::{Map, Value};
use url::Url;

use super::interface::{Check, Config, Request};
use crate::error::Error;

impl Config {
    /// Returns the address as a URL to post to.
    /// Fails when it is missing, or is not an http or https URL with a host.
    pub fn url(&self) -> Result<Secret<Url>, Error> {
        let url = Url::parse(self.address()?).map_err(|_| Error::BadAddress)?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(Error::BadAddress);
        }
        Ok(Secret::new(url))
    }

    /// Returns the address as it is written; fails when it is missing.
    pub fn address(&self) -> Result<&str, Error> {
        Ok(self.address.as_ref().ok_or(Error::NoAddress)?.expose())
    }

    pub(super) fn token(&self) -> Option<&str> {
        let token = self.token.as_ref().map(|token| token.expose().as_str());
        token.filter(|token| !token.is_empty())
    }

    pub(super) fn required_token(&self) -> Result<&str, Error> {
        self.token().ok_or(Error::Config(
            "no token: set the key token in the Secret of spec.secretRef",
        ))
    }

    /// Returns true if spec and Secret have credentials, so that no identity is used.
    pub(crate) fn has_credentials(&self) -> bool {
        let key = |address: &Secret<String>| address.expose().contains("SharedAccessKey");
        self.token().is_some() || self.address.as_ref().is_some_and(key)
    }

    /// Returns the access token of an identity, unless `may_get` refuses to send it to the URL; `None` if no identity is used.
    pub(super) fn identity_for(&self, url: &Url, may_get: fn(&Url) -> bool) -> Result<Option<String>, Error> {
        match &self.identity {
            None => Ok(None),
            Some(_) if !may_get(url) => Err(Error::Config(
                "the address is no service of the cloud, so that it gets no token of an identity: set the key token in the Secret of \
                 spec.secretRef",
            )),
            Some(token) => Ok(Some(format!("Bearer {}", token.expose()))),
        }
    }

    pub(super) fn token_or_password(&self) -> Result<&str, Error> {
        let password = self.password.as_ref().map(|password| password.expose().as_str());
        self.token().or(password).ok_or(Error::Config(
            "no token: set the key token or password in the Secret of spec.secretRef",
        ))
    }

    /// Returns name and password if both are set.
    pub(super) fn login(&self) -> Option<(&str, &str)> {
        Some((self.username.as_deref()?, self.password.as_ref()?.expose()))
    }

    pub(super) fn required_channel(&self) -> Result<&str, Error> {
        match self.channel.as_str() {
            "" => Err(Error::Config("no channel: set spec.channel")),
            channel => Ok(channel),
        }
    }
}

/// Returns a POST of JSON with the headers of the type alone.
pub(super) fn post(address: Secret<Url>, body: Bytes) -> Request {
    let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Request {
        method: Method::POST,
        address,
        headers: HeaderMap::from_iter([json]),
        body,
        check: Check::Status,
    }
}

pub(super) fn json(address: Secret<Url>, value: &Value) -> Result<Request, Error> {
    let body = serde_json::to_vec(value).map_err(|_| Error::Encoding)?;
    Ok(post(address, body.into()))
}

pub(super) fn get(address: Secret<Url>) -> Request {
    Request {
        method: Method::GET,
        headers: HeaderMap::new(),
        ..post(address, Bytes::new())
    }
}

/// Returns the headers of a JSON body, overridden by the headers of the user.
pub(super) fn json_headers(config: &Config) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in &config.headers {
        headers.insert(name.clone(), value.clone());
    }
    headers
}

/// Sets a header that is never printed; fails when the value has characters that are invalid in a header.
pub(super) fn secret_header(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), Error> {
    let mut value = HeaderValue::from_str(value).map_err(|_| Error::BadToken)?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

/// Sets the bearer token, if there is a token; fails when it has characters that are invalid in a header.
pub(super) fn bearer(headers: &mut HeaderMap, config: &Config) -> Result<(), Error> {
    match config.token() {
        Some(token) => secret_header(headers, header::AUTHORIZATION, &format!("Bearer {token}")),
        None => Ok(()),
    }
}

pub(super) fn basic(headers: &mut HeaderMap, user: &str, password: &str) -> Result<(), Error> {
    let login = STANDARD.encode(format!("{user}:{password}"));
    secret_header(headers, header::AUTHORIZATION, &format!("Basic {login}"))
}

/// Sets name and password or, without them, the bearer token; fails when it has characters that are invalid in a header.
pub(super) fn bearer_or_basic(headers: &mut HeaderMap, config: &Config) -> Result<(), Error> {
    bearer(headers, config)?;
    match config.login() {
        Some((user, password)) => basic(headers, user, password),
        None => Ok(()),
    }
}

/// Returns the URL with this path instead of its own, each segment escaped, and without a query.
pub(super) fn at<'a>(base: &Url, segments: impl IntoIterator<Item = &'a str>) -> Result<Url, Error> {
    let mut url = base.clone();
    url.set_query(None);
    url.set_fragment(None);
    let segments = segments.into_iter().filter(|segment| !segment.is_empty());
    // A dot alone would be taken for a directory.
    let segments: Vec<_> = segments
        .filter(|segment| !matches!(*segment, "." | ".."))
        .collect();
    url.path_segments_mut()
        .map_err(|()| Error::BadAddress)?
        .clear()
        .extend(segments);
    Ok(url)
}

pub(super) fn is_error(event: &Event) -> bool {
    event.severity == Severity::Error
}

pub(super) fn is_progressing(event: &Event) -> bool {
    event.reason == "Progressing"
}

/// Returns kind, namespace and name of the object.
pub(super) fn object(event: &Event) -> (&str, &str, &str) {
    let object = &event.involved_object;
    (
        object.kind.as_deref().unwrap_or_default(),
        object.namespace.as_deref().unwrap_or_default(),
        object.name.as_deref().unwrap_or_default(),
    )
}

/// Returns the name of the object in messages: `kind/name.namespace`, the kind in lower case.
pub(super) fn title(event: &Event) -> String {
    let (kind, namespace, name) = object(event);
    format!("{}/{name}.{namespace}", kind.to_lowercase())
}

/// Returns the full name of the object: `Kind/namespace/name`.
pub(super) fn full_name(event: &Event) -> String {
    let (kind, namespace, name) = object(event);
    format!("{kind}/{namespace}/{name}")
}

/// Returns the short name of the object: `kind/name` in lower case.
pub(super) fn short_name(event: &Event) -> String {
    let (kind, _, name) = object(event);
    format!("{kind}/{name}").to_lowercase()
}

/// Returns the reason in words: `ReconciliationSucceeded` is `reconciliation succeeded`. As in the original, several capitals in a
/// row (`OCIFailed`) are one word.
pub(super) fn description(event: &Event) -> String {
    let mut words = String::with_capacity(event.reason.len() + 8);
    let letters: Vec<char> = event.reason.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                !before.is_uppercase() || letters.get(at + 1).is_some_and(|next| next.is_lowercase())
            });
        if begins {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// Returns the time of the event as RFC 3339 in whole seconds.
pub(super) fn timestamp(event: &Event) -> String {
    let at = time(event);
    jiff::Timestamp::from_second(at.as_second()).map_or_else(|_| String::new(), |at| at.to_string())
}

/// Returns the time of the event, or the zero of Unix time if it has none.
pub(super) fn time(event: &Event) -> jiff::Timestamp {
    let at = event.timestamp.as_ref().map(|time| time.0.as_second());
    jiff::Timestamp::from_second(at.unwrap_or_default()).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

pub(super) fn metadata(event: &Event) -> Map<String, Value> {
    let all = event.metadata.iter();
    all.map(|(key, value)| (key.clone(), value.clone().into()))
        .collect()
}

pub(super) fn set(map: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(map) = map.as_object_mut() {
        map.insert(field.to_owned(), value.into());
    }
}

/// Returns the notification in Markdown for commits, changes and topics.
pub(super) fn markdown(event: &Event) -> String {
    let sign = if is_error(event) { "⚠️" } else { "ℹ️" };
    let mut text = format!(
        "## Flux Status\n\n{sign} {}\n\n{}\n",
        full_name(event),
        event.message
    );
    let shown = event.metadata.iter().filter(|(key, _)| *key != "change_request");
    let lines: Vec<_> = shown
        .map(|(key, value)| format!("* `{key}`: {value}\n"))
        .collect();
    if !lines.is_empty() {
        text.push_str("\nMetadata:\n");
        text.extend(lines);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_splits_a_reason_into_words() {
        for (reason, words) in [
            ("ReconciliationSucceeded", "reconciliation succeeded"),
            ("OCIArtifactFailed", "oci artifact failed"),
            ("Progressing", "progressing"),
            ("", ""),
        ] {
            let event = Event {
                reason: reason.into(),
                ..Event::default()
            };
            assert_eq!(description(&event), words);
        }
    }

    #[test]
    fn path_segments_are_escaped() {
        let base = Url::parse("https://h.example/a?b=c").unwrap();
        let url = at(&base, ["x", "..", "o/r", "?q#f"]).unwrap();
        assert_eq!(url.as_str(), "https://h.example/x/o%2Fr/%3Fq%23f");
    }
}
