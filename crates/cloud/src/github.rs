//! Tokens of GitHub Apps: a token that the App signs is exchanged for an installation's token.

use api::Secret;
use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};
use url::Url;

use crate::{Error, http, http::Client, jwt};

const SERVICE: &str = "GitHub";
const WHAT: &str = "GitHub App";
const API: &str = "https://api.github.com/";
const SKEW: i64 = 30;
const LIFETIME: i64 = 120;
/// Default lifetime of an installation's token, in seconds.
const DEFAULT_LIFETIME: i64 = 3600;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Installation {
    Id(String),
    Owner(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct App {
    id: String,
    installation: Installation,
    key: Secret<String>,
    base: Url,
}

#[derive(Debug, Clone)]
pub struct InstallationToken {
    pub token: Secret<String>,
    /// Expiry, in seconds since 1970.
    pub expires: i64,
}

#[derive(Deserialize)]
struct TokenAnswer {
    token: Secret<String>,
    expires_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct InstallationAnswer {
    id: u64,
}

impl App {
    /// Returns an App with its RSA key (PEM). `base` is the API of a GitHub Enterprise Server, such as
    /// `https://ghe.example.com/api/v3`.
    ///
    /// # Errors
    /// Fails when the ID, the installation, the base or the key is invalid.
    pub fn new(
        id: &str,
        installation: Installation,
        key: Secret<String>,
        base: Option<&str>,
    ) -> Result<Self, Error> {
        let invalid = |why: &str| Error::credentials(WHAT, why);
        let (Installation::Id(name) | Installation::Owner(name)) = &installation;
        if !is_name(id) || !is_name(name) {
            return Err(invalid(
                "its ID and its installation have letters, digits, '-', '_' and '.' only",
            ));
        }
        let base = base.map_or_else(
            || API.to_owned(),
            |base| format!("{}/", base.trim().trim_end_matches('/')),
        );
        let base = Url::parse(&base).map_err(|_| invalid("its base URL is not a URL"))?;
        let plain = base.query().is_none() && base.fragment().is_none() && base.username().is_empty();
        if !matches!(base.scheme(), "http" | "https") || !plain || base.password().is_some() {
            return Err(invalid("its base URL is http or https, without user and query"));
        }
        jwt::key(WHAT, key.expose()).map_err(|_| invalid("Key must be a PEM encoded PKCS1 or PKCS8 key"))?;
        Ok(Self {
            id: id.to_owned(),
            installation,
            key,
            base,
        })
    }

    pub async fn token(&self, client: &Client, now: Timestamp) -> Result<InstallationToken, Error> {
        let now = now.as_second();
        let claims = serde_json::json!({"iat": now - SKEW, "exp": now + LIFETIME, "iss": self.id});
        let signed = format!("Bearer {}", jwt::rs256(WHAT, &claims, self.key.expose())?);
        let installation = match &self.installation {
            Installation::Id(id) => id.clone(),
            Installation::Owner(owner) => self.find(client, &signed, owner).await?,
        };
        let path = format!("app/installations/{installation}/access_tokens");
        let answer: TokenAnswer = self.ask(client, "POST", &path, &signed).await?.ok_or_else(|| {
            Error::credentials(
                WHAT,
                format!("GitHub knows no installation '{installation}' of it"),
            )
        })?;
        let expires = answer.expires_at.map(Timestamp::as_second);
        Ok(InstallationToken {
            token: answer.token,
            expires: expires.unwrap_or(now + DEFAULT_LIFETIME),
        })
    }

    async fn find(&self, client: &Client, signed: &str, owner: &str) -> Result<String, Error> {
        for kind in ["orgs", "users"] {
            let path = format!("{kind}/{owner}/installation");
            let found: Option<InstallationAnswer> = self.ask(client, "GET", &path, signed).await?;
            if let Some(found) = found {
                return Ok(found.id.to_string());
            }
        }
        Err(Error::credentials(
            WHAT,
            format!("it is not installed for '{owner}'"),
        ))
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        client: &Client,
        method: &str,
        path: &str,
        signed: &str,
    ) -> Result<Option<T>, Error> {
        let url = self
            .base
            .join(path)
            .map_err(|_| Error::credentials(WHAT, "its base URL is no base"))?;
        let headers = [
            ("authorization", signed),
            ("accept", "application/vnd.github+json"),
            ("x-github-api-version", "2022-11-28"),
        ];
        let request = http::Request {
            method,
            url: &url,
            headers: &headers,
            body: &[],
        };
        let answer = client.send(request).await?;
        match answer.status {
            200..=299 => {}
            404 => return Ok(None),
            401 | 403 => {
                let why = format!(
                    "GitHub refused it with status {}: check the ID and the key",
                    answer.status
                );
                return Err(Error::credentials(WHAT, why));
            }
            status => {
                let why = format!("it answered with status {status}");
                return Err(Error::Unreachable {
                    url: http::safe_url(&url),
                    why,
                });
            }
        }
        let parsed = serde_json::from_slice(&answer.body);
        parsed.map(Some).map_err(|_| Error::Answer {
            service: SERVICE,
            why: "it is no JSON object of this request",
        })
    }
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.len() <= 100 && text.chars().all(plain) && !text.chars().all(|c| c == '.')
}
