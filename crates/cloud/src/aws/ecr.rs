//! Elastic Container Registry: the password of a registry for credentials of AWS.

use api::Secret;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use url::Url;

use super::{Credentials, endpoint, is_region};
use crate::{
    Error,
    http::{Client, Request},
    token::shortened,
};

const SERVICE: &str = "Amazon ECR";
const PUBLIC: &str = "public.ecr.aws";
const PUBLIC_REGION: &str = "us-east-1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ecr {
    pub region: String,
    is_public: bool,
    is_fips: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub username: String,
    /// Lasts for 12 hours.
    pub password: Secret<String>,
}

impl Ecr {
    /// Returns the registry of a host, as in `123456789012.dkr.ecr.eu-west-1.amazonaws.com` or `public.ecr.aws`.
    #[must_use]
    pub fn parse(host: &str) -> Option<Self> {
        if host == PUBLIC {
            return Some(Self {
                region: PUBLIC_REGION.to_owned(),
                is_public: true,
                is_fips: false,
            });
        }
        let domains = [".amazonaws.com", ".amazonaws.com.cn"];
        let rest = domains.iter().find_map(|domain| host.strip_suffix(domain))?;
        let labels: Vec<&str> = rest.split('.').collect();
        let [account, "dkr", kind @ ("ecr" | "ecr-fips"), region] = labels.as_slice() else {
            return None;
        };
        let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        (is_account && is_region(region)).then(|| Self {
            region: (*region).to_owned(),
            is_public: false,
            is_fips: *kind == "ecr-fips",
        })
    }

    pub async fn login(
        &self,
        client: &Client,
        credentials: &Credentials,
        at: Option<Url>,
    ) -> Result<Login, Error> {
        let (name, target, signed) = match (self.is_public, self.is_fips) {
            (true, _) => ("api.ecr-public", "SpencerFrontendService", "ecr-public"),
            (false, true) => ("ecr-fips", "AmazonEC2ContainerRegistry_V20150921", "ecr"),
            (false, false) => ("api.ecr", "AmazonEC2ContainerRegistry_V20150921", "ecr"),
        };
        let url = at.map_or_else(|| endpoint(name, &self.region), Ok)?;
        let target = format!("{target}.GetAuthorizationToken");
        let request = Request {
            method: "POST",
            url: &url,
            headers: &[
                ("content-type", "application/x-amz-json-1.1"),
                ("x-amz-target", &target),
            ],
            body: b"{}",
        };
        let answer = client
            .send_signed(request, credentials, &self.region, signed)
            .await?;
        login(&answer.body)
    }
}

/// Reads the answer, whatever its status.
fn login(body: &[u8]) -> Result<Login, Error> {
    let answer: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |path: &str| answer.pointer(path).and_then(serde_json::Value::as_str);
    // The public registry answers with one, the others with a list.
    let token = text("/authorizationData/0/authorizationToken")
        .or_else(|| text("/authorizationData/authorizationToken"));
    let Some(token) = token else {
        let code = text("/__type").unwrap_or("it gives no password");
        let message = text("/message").unwrap_or_default();
        return Err(Error::Refused {
            service: SERVICE,
            why: shortened(format!("{code}: {message}").trim_end_matches([':', ' '])),
        });
    };
    let pair = BASE64_STANDARD
        .decode(token)
        .ok()
        .and_then(|pair| String::from_utf8(pair).ok());
    let pair = pair.as_deref().and_then(|pair| pair.split_once(':'));
    let (username, password) = pair.ok_or(Error::Answer {
        service: SERVICE,
        why: "its token is no user and password",
    })?;
    Ok(Login {
        username: username.to_owned(),
        password: Secret::new(password.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_registries_have_a_region() {
        for (host, region) in [
            ("123456789012.dkr.ecr.eu-west-1.amazonaws.com", Some("eu-west-1")),
            (
                "123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com",
                Some("us-gov-west-1"),
            ),
            (
                "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn",
                Some("cn-north-1"),
            ),
            ("public.ecr.aws", Some("us-east-1")),
            ("123456789012.dkr.ecr.eu-west-1.amazonaws.com.evil.test", None),
            ("x.dkr.ecr.eu-west-1.amazonaws.com", None),
            ("123456789012.dkr.ecr.x.execute-api.amazonaws.com", None),
            ("ghcr.io", None),
        ] {
            assert_eq!(
                Ecr::parse(host).map(|ecr| ecr.region).as_deref(),
                region,
                "{host}"
            );
        }
    }

    #[test]
    fn answers_are_a_password_or_say_why_not() {
        let token = BASE64_STANDARD.encode("AWS:pw:x");
        for body in [
            format!(r#"{{"authorizationData":[{{"authorizationToken":"{token}"}}]}}"#),
            format!(r#"{{"authorizationData":{{"authorizationToken":"{token}"}}}}"#),
        ] {
            let found = login(body.as_bytes()).unwrap();
            assert_eq!(
                (found.username.as_str(), found.password.expose().as_str()),
                ("AWS", "pw:x")
            );
        }
        for (body, expected) in [
            (
                r#"{"__type":"AccessDeniedException","message":"no"}"#,
                "AccessDeniedException: no",
            ),
            ("<html>", "it gives no password"),
            (
                r#"{"authorizationData":[{"authorizationToken":"!"}]}"#,
                "no user and password",
            ),
        ] {
            let error = login(body.as_bytes()).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }
}
