//! Azure Key Vault.

use cloud::{
    Token,
    azure::vault_scope,
    http::{Request, address, safe_url},
};

use crate::{
    Client, Error,
    client::{json, refusal},
};

const STORE: &str = "Azure Key Vault";
const VERSION: &str = "7.4";

impl Client {
    /// Returns the scope of tokens for a vault.
    ///
    /// # Errors
    /// Fails when the address is invalid or outside Azure Key Vault: it would get a token that opens other vaults.
    pub fn azure_scope(vault: &str) -> Result<&'static str, Error> {
        let url = address(vault)?;
        let refused = || cloud::Error::Address {
            url: safe_url(&url),
            why: "it is no host of Azure Key Vault, and tokens are sent to those alone".to_owned(),
        };
        Ok(vault_scope(&url).ok_or_else(refused)?)
    }

    /// Returns a secret. `at` replaces the vault's address, for tests.
    pub async fn azure(
        &self,
        token: &Token,
        vault: &str,
        name: &str,
        at: Option<&str>,
    ) -> Result<String, Error> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(cloud::Error::Request {
                url: STORE.to_owned(),
                why: format!("{name:?} is no name of a secret"),
            }
            .into());
        }
        Self::azure_scope(vault)?;
        let base = at.unwrap_or(vault).trim_end_matches('/');
        let url = address(&format!("{base}/secrets/{name}?api-version={VERSION}"))?;
        let authorization = format!("Bearer {}", token.access.expose());
        let answer = self
            .send(Request {
                method: "GET",
                url: &url,
                headers: &[("authorization", &authorization)],
                body: b"",
            })
            .await?;
        let missing = || Error::Missing("the specified azure-key-vault secret was not found".to_owned());
        match answer.status {
            200 => {}
            404 => return Err(missing()),
            _ => return Err(refusal(&answer, STORE, &["/error/message"])),
        }
        let json = json(&answer, STORE)?;
        let value = json.get("value").and_then(serde_json::Value::as_str);
        let value = value.filter(|value| !value.is_empty());
        value.map(str::to_owned).ok_or_else(missing)
    }
}
