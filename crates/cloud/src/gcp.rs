//! GCP: access tokens for keys of service accounts, and for users.

use std::fmt;

use api::Secret;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use crate::{Error, Token, TokenRequest, http::Client, jwt};

/// Scope of everything that the account may do.
pub const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

pub const STORAGE_SCOPE: &str = "https://www.googleapis.com/auth/devstorage.read_only";

pub const PUBSUB_SCOPE: &str = "https://www.googleapis.com/auth/pubsub";

/// Returns true if a URL leads to Pub/Sub, which may get tokens of workloads.
#[must_use]
pub fn is_pubsub(url: &Url) -> bool {
    let is_host = |host: &str| host == "pubsub.googleapis.com" || host.ends_with("-pubsub.googleapis.com");
    url.scheme() == "https" && url.host_str().is_some_and(is_host)
}

/// Returns true if a host is a registry of Google Cloud, which may get tokens of workloads.
#[must_use]
pub fn is_registry(host: &str) -> bool {
    host == "gcr.io" || host.ends_with(".gcr.io") || host.ends_with("-docker.pkg.dev")
}

pub const SERVICE: &str = "Google's token service";

const TOKENS: &str = "https://oauth2.googleapis.com/token";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Lifetime of an assertion in seconds: the maximum that is accepted.
const LIFETIME: i64 = 3600;

/// Credentials as `gcloud` and the console write them.
#[derive(Clone, Deserialize)]
#[serde(tag = "type")]
pub enum Credentials {
    #[serde(rename = "service_account")]
    ServiceAccount {
        client_email: String,
        private_key: Secret<String>,
        private_key_id: Option<String>,
        token_uri: Option<String>,
    },
    #[serde(rename = "authorized_user")]
    User {
        client_id: String,
        client_secret: Secret<String>,
        refresh_token: Secret<String>,
        token_uri: Option<String>,
    },
}

#[derive(Deserialize)]
struct CredentialsKind {
    r#type: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServiceAccount { client_email, .. } => write!(f, "ServiceAccount({client_email})"),
            Self::User { client_id, .. } => write!(f, "User({client_id})"),
        }
    }
}

impl Credentials {
    /// Parses a file of credentials.
    ///
    /// # Errors
    /// Fails when the file is not JSON, incomplete, or of another kind (which may run programs or use other hosts).
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        const WHAT: &str = "Google credentials";
        let kind: CredentialsKind =
            serde_json::from_slice(text).map_err(|_| Error::credentials(WHAT, "they are no JSON object"))?;
        match kind.r#type.as_deref() {
            Some("service_account" | "authorized_user") => {}
            Some(other) => {
                let why = format!("type {other:?} is not supported, service_account and authorized_user are");
                return Err(Error::credentials(WHAT, crate::token::shortened(&why)));
            }
            None => return Err(Error::credentials(WHAT, "they have no type")),
        }
        // Errors of serde may repeat values.
        serde_json::from_slice(text)
            .map_err(|_| Error::credentials(WHAT, "a field of their type is missing or no text"))
    }

    pub async fn token(&self, client: &Client) -> Result<Token, Error> {
        self.token_for(client, SCOPE).await
    }

    pub async fn token_for(&self, client: &Client, scope: &str) -> Result<Token, Error> {
        let form = self.request(scope, Timestamp::now())?;
        client.token(SERVICE, &form).await
    }

    /// Returns the form to send for an access token.
    pub fn request(&self, scope: &str, now: Timestamp) -> Result<TokenRequest, Error> {
        match self {
            Self::ServiceAccount {
                client_email,
                private_key,
                private_key_id,
                token_uri,
            } => {
                const WHAT: &str = "key of the Google service account";
                let url = tokens(token_uri.as_deref())?;
                let key = jwt::key(WHAT, private_key.expose())?;
                let mut header = json!({"alg": "RS256", "typ": "JWT"});
                if let (Some(id), Some(header)) = (private_key_id, header.as_object_mut()) {
                    header.insert("kid".to_owned(), json!(id));
                }
                let issued = now.as_second();
                let claims = json!({
                    "iss": client_email,
                    "scope": scope,
                    "aud": url.as_str(),
                    "iat": issued,
                    "exp": issued.saturating_add(LIFETIME),
                });
                let assertion = jwt::signed(WHAT, &header, &claims, &key)?;
                let fields = [("grant_type", GRANT), ("assertion", &assertion)];
                Ok(TokenRequest::new(url, &fields))
            }
            Self::User {
                client_id,
                client_secret,
                refresh_token,
                token_uri,
            } => Ok(TokenRequest::new(
                tokens(token_uri.as_deref())?,
                &[
                    ("grant_type", "refresh_token"),
                    ("client_id", client_id),
                    ("client_secret", client_secret.expose()),
                    ("refresh_token", refresh_token.expose()),
                ],
            )),
        }
    }
}

fn tokens(given: Option<&str>) -> Result<Url, Error> {
    let text = given.unwrap_or(TOKENS);
    Url::parse(text).map_err(|_| Error::credentials("Google credentials", "their token_uri is no URL"))
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

    use super::*;

    const KEY: &str = include_str!("../fixtures/rsa.pem");

    fn account(uri: Option<&str>) -> Credentials {
        let mut text = json!({
            "type": "service_account", "project_id": "p", "private_key_id": "k1",
            "client_email": "weir@p.iam.gserviceaccount.com", "private_key": KEY,
        });
        if let Some(uri) = uri {
            text["token_uri"] = json!(uri);
        }
        Credentials::parse(text.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn assertions_are_signed_with_the_account_s_key() {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let request = account(None).request(SCOPE, now).unwrap();
        assert_eq!(request.url.as_str(), TOKENS);
        let body = request.body.expose();
        let assertion = body.rsplit_once('=').unwrap().1;
        let parts: Vec<&str> = assertion.split('.').collect();
        let decoded = |part: &str| String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        assert_eq!(decoded(parts[0]), r#"{"alg":"RS256","typ":"JWT","kid":"k1"}"#);
        assert_eq!(
            decoded(parts[1]),
            r#"{"iss":"weir@p.iam.gserviceaccount.com","scope":"https://www.googleapis.com/auth/cloud-platform","aud":"https://oauth2.googleapis.com/token","iat":1767323045,"exp":1767326645}"#
        );
        assert_eq!(parts[2], include_str!("../fixtures/gcp.signature").trim());
        assert!(
            body.starts_with("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=")
        );
    }

    #[test]
    fn users_refresh_their_token() {
        let text = br#"{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r"}"#;
        let request = Credentials::parse(text)
            .unwrap()
            .request(SCOPE, Timestamp::UNIX_EPOCH)
            .unwrap();
        assert_eq!(
            request.body.expose(),
            "grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r"
        );
    }

    #[test]
    fn service_account_key_may_name_its_token_service() {
        let request = account(Some("http://127.0.0.1:1/t"))
            .request(SCOPE, Timestamp::UNIX_EPOCH)
            .unwrap();
        assert_eq!(request.url.as_str(), "http://127.0.0.1:1/t");
    }

    #[test]
    fn other_credentials_are_refused_without_their_words() {
        for (text, message) in [
            (
                "nope",
                "the Google credentials cannot be used: they are no JSON object",
            ),
            ("{}", "the Google credentials cannot be used: they have no type"),
            (
                r#"{"type":"external_account","private_key":"hunter2"}"#,
                "the Google credentials cannot be used: type \"external_account\" is not supported, service_account \
                 and authorized_user are",
            ),
            (
                r#"{"type":"service_account","private_key":"hunter2"}"#,
                "the Google credentials cannot be used: a field of their type is missing or no text",
            ),
        ] {
            assert_eq!(
                Credentials::parse(text.as_bytes()).unwrap_err().to_string(),
                message
            );
        }
        let text = r#"{"type":"service_account","client_email":"e","private_key":"hunter2"}"#;
        let credentials = Credentials::parse(text.as_bytes()).unwrap();
        assert!(!format!("{credentials:?}").contains("hunter2"));
        assert_eq!(
            credentials
                .request(SCOPE, Timestamp::UNIX_EPOCH)
                .unwrap_err()
                .to_string(),
            "the key of the Google service account cannot be used: it holds no private key in PEM"
        );
    }
}
