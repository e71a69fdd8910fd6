//! URLs that are printed without their credentials.

use std::{fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use url::Url;

/// Error about a string that isn't a URL. The message has no part of the string that may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid URL '{text}': {reason}")]
pub struct InvalidUrl {
    text: String,
    reason: String,
}

/// A parsed URL whose `Display` and `Debug` never print user, password, query or fragment.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SafeUrl(Url);

impl SafeUrl {
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        let fail = |reason: String| InvalidUrl {
            text: redact_whole(text),
            reason,
        };
        let url = Url::parse(text).map_err(|error| fail(error.to_string()))?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(fail("it has no host".to_owned()));
        }
        Ok(Self(url))
    }

    /// Returns the whole URL, for the code that connects.
    #[must_use]
    pub const fn expose(&self) -> &Url {
        &self.0
    }

    #[must_use]
    pub fn into_inner(self) -> Url {
        self.0
    }

    #[must_use]
    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Returns the port, or the default port of the scheme.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.0.port_or_known_default()
    }

    #[must_use]
    pub fn path(&self) -> &str {
        self.0.path()
    }
}

impl fmt::Display for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.0.scheme(), self.host())?;
        if let Some(port) = self.0.port() {
            write!(f, ":{port}")?;
        }
        f.write_str(self.0.path())
    }
}

impl fmt::Debug for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl FromStr for SafeUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl From<Url> for SafeUrl {
    fn from(url: Url) -> Self {
        Self(url)
    }
}

/// A URL as the user wrote it, not yet parsed; printed without its credentials.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UrlText(String);

impl UrlText {
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn parse(&self) -> Result<SafeUrl, InvalidUrl> {
        SafeUrl::parse(&self.0)
    }
}

impl From<&str> for UrlText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for UrlText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for UrlText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact_whole(&self.0))
    }
}

impl fmt::Debug for UrlText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", redact_whole(&self.0))
    }
}

impl JsonSchema for UrlText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UrlText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Removes user, password, query and fragment of all URLs in a string, such as the error of a library, and everything else that may
/// be secret.
#[must_use]
pub fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = begin_of_url(rest) {
        let (before, after) = rest.split_at(begin);
        out.push_str(before);
        let (url, tail) = after.split_at(after.find(ends_url).unwrap_or(after.len()));
        redact_one(url, &mut out);
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// Does the same as [`redact`] for a string that is one URL, so that no blank or quote in a password ends it.
fn redact_whole(url: &str) -> String {
    let scheme = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    };
    let (before, after) = match url.split_once(':') {
        Some((before, after)) if scheme(before) => match after.strip_prefix("//") {
            Some(after) => (format!("{before}://"), after),
            None => (format!("{before}:"), after),
        },
        _ => (String::new(), url),
    };
    let mut out = before;
    redact_one(after, &mut out);
    out
}

fn ends_url(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '"' | '<' | '>' | '`')
}

/// Finds the position behind the scheme of the next URL. `http` and `https` need no slashes.
fn begin_of_url(text: &str) -> Option<usize> {
    text.match_indices(':').find_map(|(at, _)| {
        let (before, after) = (text.get(..at)?, text.get(at + 1..)?);
        let web = ["http", "https"].iter().any(|scheme| {
            let begin = before.len().checked_sub(scheme.len());
            begin
                .and_then(|begin| before.get(begin..))
                .is_some_and(|end| end.eq_ignore_ascii_case(scheme))
        });
        match after.strip_prefix("//") {
            Some(_) => Some(at + 3),
            None if web => Some(at + 1),
            None => None,
        }
    })
}

/// Appends the parts of a URL that may be shown; its scheme is already written.
fn redact_one(url: &str, out: &mut String) {
    // Punctuation of the sentence around the URL is kept, or a closing quote would go with the query.
    let body = url.trim_end_matches(['\'', '"', ')', ']', '}', ',', '.', ':', ';', '!']);
    let sentence = url.strip_prefix(body).unwrap_or_default();
    // Any number of slashes may stand before an authority.
    let bare = body.trim_start_matches(['/', '\\']);
    let authority = bare.split(['/', '?', '#']).next().unwrap_or_default();
    let shown = match bare.rfind('@') {
        // A colon may begin a password that itself holds a slash, so that only the last @ ends it for sure. It may begin a
        // port, too, but then at most a path that holds an @ is lost.
        Some(at) if authority.contains('@') || after_brackets(authority).contains(':') => {
            let (before, after) = bare.split_at(at);
            // Either the password holds a ?, or the query an @.
            if before.contains(['?', '#']) {
                ""
            } else {
                after.trim_start_matches('@')
            }
        }
        None if !port_like(authority) => "",
        _ => body,
    };
    let shown = shown.split(['?', '#']).next().unwrap_or_default();
    // Another URL in the path may have secrets of its own.
    out.push_str(shown.split("://").next().unwrap_or_default());
    out.push_str(sentence);
}

/// Returns the authority without an IPv6 address in brackets, whose colons begin no port.
fn after_brackets(authority: &str) -> &str {
    if authority.starts_with('[') {
        authority.split_once(']').map_or(authority, |(_, rest)| rest)
    } else {
        authority
    }
}

/// Returns true if the part after the colon of an authority can be a port.
fn port_like(authority: &str) -> bool {
    after_brackets(authority)
        .split_once(':')
        .is_none_or(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_url_prints_without_secrets() {
        let url = SafeUrl::parse("https://me:s3cret@Example.com:8443/a/b?token=t0p#frag").unwrap();
        assert_eq!(url.to_string(), "https://example.com:8443/a/b");
        assert_eq!(format!("{url:?}"), "\"https://example.com:8443/a/b\"");
        assert_eq!(url.expose().password(), Some("s3cret"));
        assert_eq!(
            (url.scheme(), url.host(), url.port(), url.path()),
            ("https", "example.com", Some(8443), "/a/b")
        );
    }

    #[test]
    fn parse_error_prints_without_secrets() {
        let error = SafeUrl::parse("https://me:s3/cret@host/x?token=t0p")
            .unwrap_err()
            .to_string();
        assert!(
            !error.contains("s3") && !error.contains("cret") && !error.contains("t0p"),
            "{error}"
        );
        assert!(
            SafeUrl::parse("data:text/plain,x")
                .unwrap_err()
                .to_string()
                .contains("it has no host")
        );
        assert!(SafeUrl::parse("not a url").is_err());
    }

    #[track_caller]
    fn assert_redacts(text: &str, expected: &str) {
        assert_eq!(redact(text), expected);
    }

    #[test]
    fn redact_removes_secrets_of_urls() {
        assert_redacts("plain text", "plain text");
        assert_redacts("GET https://host/a?x=1 failed", "GET https://host/a failed");
        assert_redacts(
            "cannot fetch 'https://u:p@host/a': 401",
            "cannot fetch 'https://host/a': 401",
        );
        assert_redacts("'https://host/a?token=x': no", "'https://host/a': no");
        assert_redacts(
            "(http://u@h:80/x#f), http://[::1]:9/y",
            "(http://h:80/x), http://[::1]:9/y",
        );
        assert_redacts("https://host/pkg@1.2", "https://host/pkg@1.2");
        assert_redacts("https://u:p/w@host/x", "https://host/x");
        assert_redacts("https://u:p?w#z@host/x", "https://");
        assert_redacts("https://u:p@host/x?y=@z", "https://");
        assert_redacts("https://u:p@q@host/x", "https://host/x");
        assert_redacts("https://u:]p/w@host/x", "https://host/x");
        assert_redacts("https://u:12/34@host/x", "https://host/x");
        assert_redacts("http://[::1]/pkg@1.2", "http://[::1]/pkg@1.2");
        assert_redacts("https://u:pass", "https://");
        assert_redacts("a://u:p@h/ b://v:q@i/", "a://h/ b://i/");
        assert_redacts("error at ://", "error at ://");
        assert_redacts("https:///u:p@host/x", "https://host/x");
        assert_redacts("https:u:p@host/x HTTP:/v@i", "https:host/x HTTP:i");
        assert_redacts("no http: refused", "no http: refused");
        assert_redacts("file:///tmp/x", "file:///tmp/x");
        assert_redacts("https://proxy/https://u:p@host/x", "https://proxy/https");
    }

    #[test]
    fn url_text_prints_redacted_and_serializes_whole() {
        let text = UrlText::from("https://u:p@host/x?y");
        assert_eq!(format!("{text} {text:?}"), "https://host/x \"https://host/x\"");
        assert_eq!(serde_json::to_string(&text).unwrap(), "\"https://u:p@host/x?y\"");
        assert_eq!(text.parse().unwrap().to_string(), "https://host/x");
        for (text, shown) in [
            ("https://u:p w\"x@host/x", "https://host/x"),
            ("u:p@host", "u:host"),
            ("token@host/x", "host/x"),
            ("git@host:org/repo", "host:org/repo"),
            ("host:8080/x", "host:8080/x"),
            ("ssh:u:p@host", "ssh:host"),
            ("", ""),
        ] {
            assert_eq!(UrlText::from(text).to_string(), shown);
        }
    }
}
