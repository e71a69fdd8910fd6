//! Authentication challenges of registries.

use api::Secret;
use reqwest::{Url, header::HeaderValue};
use serde::Deserialize;

use crate::access::secret_header;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    Basic,
    Bearer(Bearer),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Bearer {
    realm: String,
    service: String,
    scope: String,
}

#[derive(Deserialize)]
pub(super) struct Token {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
}

impl Token {
    /// Returns the header with the token; `None` if there is none that a header can contain.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let token = [&self.token, &self.access_token]
            .into_iter()
            .find(|token| !token.is_empty())?;
        secret_header(&format!("Bearer {token}"))
    }
}

impl Challenge {
    /// Parses a `WWW-Authenticate` header; `None` for an unknown scheme.
    pub(crate) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let mut bearer = Bearer::default();
        for (key, value) in parameters(rest) {
            match key.to_ascii_lowercase().as_str() {
                "realm" => bearer.realm = value,
                "service" => bearer.service = value,
                "scope" => bearer.scope = value,
                _ => {}
            }
        }
        (!bearer.realm.is_empty()).then_some(Self::Bearer(bearer))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenServiceError {
    #[error(
        "the registry names an invalid URL for its token service ({0}): check the authentication settings of the registry"
    )]
    InvalidUrl(String),
    #[error(
        "the registry uses https, but its token service {0} does not, so no credentials are sent: configure the registry \
         with an https URL for the token service"
    )]
    Unencrypted(String),
}

impl Bearer {
    /// Returns the address of the token service. It must use https if the registry does.
    fn service_address(&self, registry: &Url) -> Result<Url, TokenServiceError> {
        let invalid = |_| TokenServiceError::InvalidUrl(api::redact(&self.realm));
        let url = Url::parse(&self.realm).map_err(invalid)?;
        match registry.scheme() == "https" && url.scheme() != "https" {
            true => Err(TokenServiceError::Unencrypted(
                url.host_str().unwrap_or_default().to_owned(),
            )),
            false => Ok(url),
        }
    }

    /// Returns the address and the form for exchanging an identity token for an access token.
    pub(super) fn exchange(
        &self,
        registry: &Url,
        scope: &str,
        identity: &Secret<String>,
    ) -> Result<(Url, String), TokenServiceError> {
        let scope = if self.scope.is_empty() { scope } else { &self.scope };
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "refresh_token")
            .append_pair("service", &self.service)
            .append_pair("scope", scope)
            .append_pair("client_id", "weir")
            .append_pair("refresh_token", identity.expose())
            .finish();
        Ok((self.service_address(registry)?, form))
    }

    /// Returns the address to request a token from. `scope` is used if the registry names no scope.
    pub(super) fn address(&self, registry: &Url, scope: &str) -> Result<Url, TokenServiceError> {
        let mut url = self.service_address(registry)?;
        let scope = if self.scope.is_empty() { scope } else { &self.scope };
        let mut query = url.query_pairs_mut();
        if !self.service.is_empty() {
            query.append_pair("service", &self.service);
        }
        query.append_pair("scope", scope);
        drop(query);
        Ok(url)
    }
}

/// Parses comma-separated pairs `key="value"` or `key=value`.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((key, after)) = rest.split_once('=') {
        let key = key
            .trim_matches(|c: char| c == ',' || c.is_whitespace())
            .to_owned();
        let value = match after.strip_prefix('"') {
            Some(quoted) => {
                let (value, behind) = unquoted(quoted);
                rest = behind;
                value
            }
            None => {
                let (plain, behind) = after.split_once(',').unwrap_or((after, ""));
                rest = behind;
                plain.trim().to_owned()
            }
        };
        found.push((key, value));
    }
    found
}

/// Returns the string up to its closing quote, and the rest.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => value.extend(chars.next()),
            c => value.push(c),
        }
    }
    (value, chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let bearer = |realm: &str, service: &str, scope: &str| {
            Some(Challenge::Bearer(Bearer {
                realm: realm.to_owned(),
                service: service.to_owned(),
                scope: scope.to_owned(),
            }))
        };
        for (header, expected) in [
            ("Basic realm=\"x\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                "Bearer realm=\"https://a/t\",service=\"r\",scope=\"repository:a:pull,push\"",
                bearer("https://a/t", "r", "repository:a:pull,push"),
            ),
            (
                "bearer Service=r , realm=\"https://a/\\\"t\"",
                bearer("https://a/\"t", "r", ""),
            ),
            ("Bearer service=\"r\"", None),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(Challenge::parse(header), expected, "{header}");
        }
    }

    #[test]
    fn token_service_without_tls_is_refused() {
        let bearer = Bearer {
            realm: "http://a/t?x=1".to_owned(),
            service: "r s".to_owned(),
            scope: String::new(),
        };
        let https = Url::parse("https://h/").unwrap();
        let http = Url::parse("http://h/").unwrap();
        let error = bearer.address(&https, "s").unwrap_err().to_string();
        assert!(
            error.contains("its token service a does not") && !error.contains("x=1"),
            "{error}"
        );
        let invalid = Bearer {
            realm: "a/t".to_owned(),
            ..bearer.clone()
        };
        let error = invalid.address(&https, "s").unwrap_err().to_string();
        assert!(
            error.contains("invalid URL for its token service (a/t)"),
            "{error}"
        );
        let found = bearer.address(&http, "repository:a:pull").unwrap();
        assert_eq!(
            found.as_str(),
            "http://a/t?x=1&service=r+s&scope=repository%3Aa%3Apull"
        );
    }

    #[test]
    fn tokens_come_under_two_names() {
        let header = |text: &str| {
            let token: Token = serde_json::from_str(text).unwrap();
            token.header().map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(header("{\"token\": \"a\"}"), Some("Bearer a".to_owned()));
        assert_eq!(
            header("{\"access_token\": \"b\", \"x\": 1}"),
            Some("Bearer b".to_owned())
        );
        assert_eq!(header("{}"), None);
    }
}
