//! Google Secret Manager.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cloud::{
    Token,
    http::{Request, address},
};

use crate::{
    Client, Error,
    client::{json, refusal},
};

const STORE: &str = "Google Secret Manager";
const ENDPOINT: &str = "https://secretmanager.googleapis.com";

impl Client {
    /// Returns a version of a secret, `projects/x/secrets/y/versions/z`. `at` replaces the endpoint, for tests.
    pub async fn gcp(&self, token: &Token, name: &str, at: Option<&str>) -> Result<String, Error> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_/.".contains(c);
        if !name.starts_with("projects/") || !name.chars().all(plain) || name.contains("..") {
            return Err(cloud::Error::Request {
                url: STORE.to_owned(),
                why: format!("{name:?} is not projects/x/secrets/y/versions/z"),
            }
            .into());
        }
        let base = at.unwrap_or(ENDPOINT).trim_end_matches('/');
        let url = address(&format!("{base}/v1/{name}:access"))?;
        let authorization = format!("Bearer {}", token.access.expose());
        let answer = self
            .send(Request {
                method: "GET",
                url: &url,
                headers: &[("authorization", &authorization)],
                body: b"",
            })
            .await?;
        match answer.status {
            200 => {}
            404 => return Err(Error::Missing(format!("the GCP secret {name} was not found"))),
            _ => return Err(refusal(&answer, STORE, &["/error/message"])),
        }
        let json = json(&answer, STORE)?;
        let data = json.pointer("/payload/data").and_then(serde_json::Value::as_str);
        let bytes = data.and_then(|data| STANDARD.decode(data).ok());
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(text.ok_or(cloud::Error::Answer {
            service: STORE,
            why: "the secret is not a string",
        })?)
    }
}
