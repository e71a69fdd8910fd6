//! AWS KMS.

use api::Secret;
use base64::{Engine, prelude::BASE64_STANDARD};
use cloud::aws::{Assume, Credentials, Request, endpoint, sign};
use jiff::Timestamp;
use serde_json::json;
use url::Url;
use zeroize::Zeroizing;

use super::service::{Answer, Ask, Http, headers};
use crate::{Error, metadata::Kind};

const JSON: &str = "application/x-amz-json-1.1";
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
/// What sessions of assumed roles are called in the logs of AWS.
const SESSION: &str = "sops@weir";

/// Credentials, and where the services are asked instead of their usual addresses.
#[derive(Debug, Clone)]
pub(super) struct Aws {
    pub(super) credentials: Credentials,
    pub(super) endpoint: Option<Url>,
    pub(super) sts: Option<Url>,
}

/// Credentials out of a Secret: YAML with these keys.
pub(super) fn parse(text: &str) -> Result<Credentials, Error> {
    const WHAT: &str = "sops.aws-kms";
    let budget = tree::Budget::default();
    // The reader's message may repeat a word of the text.
    let document = yaml::read::goyaml(text, &budget).map_err(|_| Error::key(WHAT, "it is no YAML"))?;
    let field = |name: &str| {
        let text = document.value.get(name).and_then(yaml::Value::as_str)?;
        Some(text.to_owned()).filter(|text| !text.is_empty())
    };
    match (field("aws_access_key_id"), field("aws_secret_access_key")) {
        (Some(access_key_id), Some(secret)) => Ok(Credentials {
            access_key_id,
            secret_access_key: Secret::new(secret),
            session_token: field("aws_session_token").map(Secret::new),
        }),
        _ => Err(Error::key(
            WHAT,
            "it needs aws_access_key_id and aws_secret_access_key",
        )),
    }
}

/// The region that a key's name holds: `arn:aws:kms:REGION:ACCOUNT:key/ID`.
fn region(arn: &str) -> Option<&str> {
    let mut parts = arn.split(':');
    let is_kms = parts.next() == Some("arn")
        && parts.next().is_some_and(|partition| partition.starts_with("aws"))
        && parts.next() == Some("kms");
    let region = parts.next().filter(|_| is_kms)?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let known = !region.is_empty() && region.chars().all(plain);
    let rest = parts.next().is_some() && parts.next().is_some();
    Some(region).filter(|_| known && rest)
}

impl Aws {
    pub(super) async fn open(
        &self,
        http: &Http,
        kind: &Kind,
        enc: &str,
    ) -> Result<Zeroizing<Vec<u8>>, String> {
        let Kind::Aws {
            arn, role, context, ..
        } = kind
        else {
            return Err("it is no key of AWS".to_owned());
        };
        let region = region(arn).ok_or("its ARN is none of a KMS key")?;
        BASE64_STANDARD
            .decode(enc)
            .map_err(|_| "its encrypted key is no base64")?;
        let assumed;
        let credentials = if role.is_empty() {
            &self.credentials
        } else {
            assumed = self.assume(http, role, region).await?;
            &assumed
        };
        let mut body = json!({"KeyId": arn, "CiphertextBlob": enc});
        if !context.is_empty()
            && let Some(body) = body.as_object_mut()
        {
            body.insert("EncryptionContext".to_owned(), json!(context));
        }
        let call = Call {
            url: match &self.endpoint {
                Some(url) => url.clone(),
                None => endpoint("kms", region).map_err(|error| error.to_string())?,
            },
            headers: vec![("content-type", JSON), ("x-amz-target", "TrentService.Decrypt")],
            body: body.to_string(),
            region,
            service: "kms",
        };
        let answer = send(http, call, credentials).await?;
        let key = answer.text("/Plaintext")?;
        let key = BASE64_STANDARD.decode(&*key);
        key.map(Zeroizing::new)
            .map_err(|_| "the service's key is no base64".to_owned())
    }

    async fn assume(&self, http: &Http, role: &str, region: &str) -> Result<Credentials, String> {
        let assume = Assume {
            role_arn: role.to_owned(),
            session: SESSION.to_owned(),
            external_id: None,
        };
        let request = assume
            .request(region, self.sts.clone())
            .map_err(|error| error.to_string())?;
        let call = Call {
            url: request.url,
            headers: vec![("content-type", FORM)],
            body: request.body.into_inner(),
            region,
            service: "sts",
        };
        let answer = send(http, call, &self.credentials).await?;
        Credentials::from_answer(&answer.body).map_err(|error| error.to_string())
    }
}

/// A call that is to be signed.
struct Call<'a> {
    url: Url,
    headers: Vec<(&'static str, &'static str)>,
    body: String,
    region: &'a str,
    service: &'a str,
}

async fn send(http: &Http, call: Call<'_>, credentials: &Credentials) -> Result<Answer, String> {
    let request = Request {
        method: "POST",
        url: &call.url,
        headers: &call.headers,
        body: call.body.as_bytes(),
    };
    let signed = sign(request, credentials, call.region, call.service, Timestamp::now());
    let signed = signed.map_err(|error| error.to_string())?;
    let own = call.headers.iter().copied();
    let added = signed
        .iter()
        .map(|(name, value)| (*name, value.expose().as_str()));
    let headers = headers(own.chain(added))?;
    let body = Zeroizing::new(call.body);
    http.post(Ask {
        url: &call.url,
        headers,
        body,
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_those_of_kms_keys() {
        for (arn, found) in [
            ("arn:aws:kms:eu-central-1:1:key/2", Some("eu-central-1")),
            ("arn:aws-cn:kms:cn-north-1:1:alias/a", Some("cn-north-1")),
            ("arn:aws:s3:eu-central-1:1:key/2", None),
            ("arn:aws:kms:evil.example/:1:key/2", None),
            ("arn:aws:kms::1:key/2", None),
            ("arn:aws:kms:eu-central-1", None),
        ] {
            assert_eq!(region(arn), found, "{arn}");
        }
    }

    #[test]
    fn credentials_are_yaml() {
        let text = "aws_access_key_id: a\naws_secret_access_key: s\naws_session_token: t\n";
        let found = parse(text).unwrap();
        assert_eq!(found.access_key_id, "a");
        assert_eq!(found.session_token, Some(Secret::new("t".to_owned())));
        for text in ["aws_access_key_id: a", "hunter2: [", "hunter2"] {
            let message = parse(text).unwrap_err().to_string();
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
