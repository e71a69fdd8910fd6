//! Credentials of a role for a user of `aws sso login`.

use api::Secret;
use jiff::Timestamp;
use serde::Deserialize;
use sha1::{Digest as _, Sha1};
use url::Url;

use super::{Credentials, endpoint};
use crate::{Error, token::shortened};

const SERVICE: &str = "AWS SSO";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sso {
    pub account: String,
    pub role: String,
    pub region: String,
    /// Key of the login in the cache: the name of the session, or the start URL.
    pub login: String,
}

#[derive(Debug)]
pub struct SsoRequest {
    pub url: Url,
    pub token: Secret<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Login {
    access_token: Secret<String>,
    expires_at: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    role_credentials: Option<Role>,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Role {
    access_key_id: String,
    secret_access_key: Secret<String>,
    session_token: Option<Secret<String>>,
}

impl Sso {
    /// Returns the file name of the login in `~/.aws/sso/cache`.
    #[must_use]
    pub fn file(&self) -> String {
        format!("{}.json", hex::encode(Sha1::digest(self.login.as_bytes())))
    }

    /// Builds the request with the cached login, for `at` or for the region's endpoint.
    pub fn request(&self, login: &[u8], now: Timestamp, at: Option<Url>) -> Result<SsoRequest, Error> {
        const WHAT: &str = "login of AWS SSO";
        let login: Login = serde_json::from_slice(login)
            .map_err(|_| Error::credentials(WHAT, "log in with 'aws sso login': the file holds no token"))?;
        // The oldest programs wrote UTC instead of Z.
        let until: Option<Timestamp> = login.expires_at.replace("UTC", "Z").parse().ok();
        if until.is_none_or(|until| until <= now) {
            return Err(Error::credentials(
                WHAT,
                "it is over: log in again with 'aws sso login'",
            ));
        }
        let base = at.map_or_else(|| endpoint("portal.sso", &self.region), Ok)?;
        let mut url = base.join("federation/credentials").map_err(|_| Error::Endpoint {
            url: api::SafeUrl::from(base).to_string(),
            why: "it is no address of a server",
        })?;
        url.query_pairs_mut()
            .append_pair("account_id", &self.account)
            .append_pair("role_name", &self.role);
        let token = login.access_token;
        Ok(SsoRequest { url, token })
    }
}

impl Credentials {
    /// Reads the answer to an [`SsoRequest`], whatever its status.
    pub fn from_sso(body: &[u8]) -> Result<Self, Error> {
        let unknown = || Error::Answer {
            service: SERVICE,
            why: "it holds no credentials",
        };
        let answer: Answer = serde_json::from_slice(body).map_err(|_| unknown())?;
        match (answer.role_credentials, answer.message) {
            (Some(role), _) => Ok(Self {
                access_key_id: role.access_key_id,
                secret_access_key: role.secret_access_key,
                session_token: role.session_token,
            }),
            (None, Some(message)) => Err(Error::Refused {
                service: SERVICE,
                why: shortened(&message),
            }),
            (None, None) => Err(unknown()),
        }
    }

    /// Parses the credentials that a metadata service of a machine or a container returns.
    pub fn from_metadata(body: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Found {
            access_key_id: String,
            secret_access_key: Secret<String>,
            token: Option<Secret<String>>,
        }
        let found: Found = serde_json::from_slice(body).map_err(|_| Error::Answer {
            service: "the machine's own service of AWS",
            why: "it holds no credentials",
        })?;
        Ok(Self {
            access_key_id: found.access_key_id,
            secret_access_key: found.secret_access_key,
            session_token: found.token,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sso() -> Sso {
        Sso {
            account: "1 2".to_owned(),
            role: "dev".to_owned(),
            region: "eu-west-1".to_owned(),
            login: "https://d-abc123.awsapps.com/start".to_owned(),
        }
    }

    #[test]
    fn logins_are_used_while_they_last() {
        assert_eq!(sso().file(), "40a89917e3175433e361b710a9d43528d7f1890a.json");
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let login = |until: &str| format!("{{\"accessToken\": \"s3cret\", \"expiresAt\": \"{until}\"}}");
        for until in ["2026-01-01T00:00:01Z", "2026-01-01T00:00:01UTC"] {
            let asked = sso().request(login(until).as_bytes(), now, None).unwrap();
            let expected = "https://portal.sso.eu-west-1.amazonaws.com/federation/credentials?account_id=1+2&role_name=dev";
            assert_eq!(
                (asked.url.as_str(), asked.token.expose().as_str()),
                (expected, "s3cret")
            );
            assert!(!format!("{asked:?}").contains("s3cret"));
        }
        for (text, why) in [
            (login("2026-01-01T00:00:00Z"), "log in again"),
            (login("soon"), "log in again"),
            ("{}".to_owned(), "holds no token"),
        ] {
            let error = sso().request(text.as_bytes(), now, None).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn answers_hold_credentials_or_say_why_not() {
        let body = br#"{"roleCredentials": {"accessKeyId": "A", "secretAccessKey": "s", "sessionToken": "t", "expiration": 1}}"#;
        assert_eq!(Credentials::from_sso(body).unwrap().access_key_id, "A");
        let refused = Credentials::from_sso(br#"{"message": "No access", "__type": "x"}"#).unwrap_err();
        assert_eq!(refused.to_string(), "AWS SSO refused the credentials: No access");
        assert!(Credentials::from_sso(b"x").is_err() && Credentials::from_sso(b"{}").is_err());
        let body = br#"{"Code": "Success", "AccessKeyId": "A", "SecretAccessKey": "s", "Token": "t"}"#;
        assert_eq!(
            Credentials::from_metadata(body).unwrap().session_token,
            Some("t".to_owned().into())
        );
        assert!(Credentials::from_metadata(b"{\"Code\": \"Failed\"}").is_err());
    }
}
