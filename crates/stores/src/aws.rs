//! AWS Secrets Manager.

use cloud::{
    aws::{Credentials, endpoint, region_of_arn},
    http::Request,
};
use url::Url;

use crate::{
    Client, Error,
    client::{json, member, refusal},
};

const STORE: &str = "AWS Secrets Manager";

impl Client {
    /// Returns a secret. `at` replaces the endpoint of the region, for tests.
    pub async fn aws(
        &self,
        credentials: &Credentials,
        region: Option<&str>,
        name: &str,
        at: Option<&Url>,
    ) -> Result<String, Error> {
        let region = region
            .or_else(|| region_of_arn(name, "secretsmanager"))
            .ok_or_else(|| cloud::Error::Request {
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
        let request = Request {
            method: "POST",
            url: &url,
            headers: &own,
            body: body.as_bytes(),
        };
        let http = self.http();
        let answer = http
            .send_signed(request, credentials, region, "secretsmanager")
            .await?;
        if answer.status == 200 {
            let json = json(&answer, STORE)?;
            return match json.get("SecretString").and_then(serde_json::Value::as_str) {
                Some(text) => Ok(text.to_owned()),
                None => Err(cloud::Error::Answer {
                    service: STORE,
                    why: "the secret is not a string",
                }
                .into()),
            };
        }
        let is_missing =
            member(&answer, &["/__type"]).is_some_and(|kind| kind.ends_with("ResourceNotFoundException"));
        if is_missing {
            return Err(Error::Missing(format!("the AWS secret {name} was not found")));
        }
        Err(refusal(&answer, STORE, &["/message", "/Message", "/__type"]))
    }
}
