//! AWS Secrets Manager.

use cloud::aws::{Credentials, Request as Signed, endpoint, sign};
use jiff::Timestamp;
use url::Url;

use crate::{Client, Error, Request};

const STORE: &str = "AWS Secrets Manager";

impl Client {
    /// The text of a secret. `at` is another address than that of the region, as tests have it.
    ///
    /// # Errors
    /// When there is no such secret, or the service refuses or gives no answer.
    pub async fn aws(
        &self,
        credentials: &Credentials,
        region: Option<&str>,
        name: &str,
        at: Option<&Url>,
    ) -> Result<String, Error> {
        let region = region.or_else(|| region_of(name)).ok_or_else(|| Error::Request {
            url: STORE.to_owned(),
            why: "when omitting the AWS region, the secret name must be a valid ARN".to_owned(),
        })?;
        let url = match at {
            Some(at) => at.clone(),
            None => endpoint("secretsmanager", region)?,
        };
        let body = serde_json::json!({ "SecretId": name }).to_string();
        let own = [
            ("content-type", "application/x-amz-json-1.1"),
            ("x-amz-target", "secretsmanager.GetSecretValue"),
        ];
        let request = Signed {
            method: "POST",
            url: &url,
            headers: &own,
            body: body.as_bytes(),
        };
        let added = sign(request, credentials, region, "secretsmanager", Timestamp::now())?;
        let added = added.iter().map(|(name, value)| (*name, value.expose().as_str()));
        let headers: Vec<(&str, &str)> = own.into_iter().chain(added).collect();
        let answer = self
            .send(Request {
                method: "POST",
                url: &url,
                headers: &headers,
                body: body.as_bytes(),
            })
            .await?;
        if answer.status == 200 {
            let json = answer.json(STORE)?;
            return match json.get("SecretString").and_then(serde_json::Value::as_str) {
                Some(text) => Ok(text.to_owned()),
                None => Err(Error::Unknown {
                    store: STORE,
                    why: "the secret is no text",
                }),
            };
        }
        let is_missing = answer
            .said(&["/__type"])
            .is_some_and(|kind| kind.ends_with("ResourceNotFoundException"));
        if is_missing {
            return Err(Error::Missing(format!("the AWS secret {name} was not found")));
        }
        Err(answer.refused(STORE, &["/message", "/Message", "/__type"]))
    }
}

/// The region in an ARN.
fn region_of(name: &str) -> Option<&str> {
    let mut parts = name.split(':');
    let region = match (parts.next()?, parts.next()?, parts.next()?) {
        ("arn", _, "secretsmanager") => parts.next()?,
        _ => return None,
    };
    Some(region).filter(|region| !region.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_name_their_region() {
        let arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:a-b";
        assert_eq!(region_of(arn), Some("eu-central-1"));
        for other in ["a", "arn:aws:s3:eu-central-1:1:x", "arn:aws:secretsmanager::1:x"] {
            assert_eq!(region_of(other), None, "{other}");
        }
    }
}
