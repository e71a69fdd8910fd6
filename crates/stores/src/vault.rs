//! HashiCorp's Vault.

use api::Secret;
use cloud::http::{Request, address, safe_url};

use crate::{
    Client, Error,
    client::{json, refusal},
};

const STORE: &str = "Vault";

impl Client {
    /// Returns the `data` of a secret as JSON.
    pub async fn vault(&self, at: &str, path: &str, token: &Secret<String>) -> Result<String, Error> {
        let base = at.trim_end_matches('/');
        let url = address(&format!("{base}/v1/{}", path.trim_start_matches('/')))?;
        let headers = [
            ("x-vault-token", token.expose().as_str()),
            ("x-vault-request", "true"),
        ];
        let answer = self
            .send(Request {
                method: "GET",
                url: &url,
                headers: &headers,
                body: b"",
            })
            .await?;
        let missing = || Error::Missing("the specified vault secret was not found".to_owned());
        match answer.status {
            200 => {}
            404 => return Err(missing()),
            _ => return Err(refusal(&answer, STORE, &["/errors/0"])),
        }
        let json = json(&answer, STORE)?;
        // Version 2 of the key-value engine has its values below another `data`.
        let data = json.pointer("/data/data").filter(|data| !data.is_null());
        data.map(serde_json::Value::to_string)
            .ok_or_else(|| match json.get("data") {
                Some(data) if !data.is_null() => cloud::Error::Answer {
                    service: STORE,
                    why: "the secret has no data: only the version 2 of key/value secrets is read",
                }
                .into(),
                _ => missing(),
            })
    }

    #[must_use]
    pub fn safe_url(url: &str) -> String {
        address(url).map_or_else(|_| "an address that is none".to_owned(), |url| safe_url(&url))
    }
}
