//! Azure Key Vault.

use cloud::azure::{Client as Application, SERVICE, VAULT_SCOPE};
use jiff::Timestamp;

use crate::{Client, Error, Request, client::address};

const STORE: &str = "Azure Key Vault";
const VERSION: &str = "7.4";

impl Client {
    /// The text of a secret. `id` names the assertion of an application that proves itself by a certificate.
    ///
    /// # Errors
    /// When there is no such secret, or the service refuses or gives no answer.
    pub async fn azure(
        &self,
        application: &Application,
        vault: &str,
        name: &str,
        id: &str,
    ) -> Result<String, Error> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(Error::Request {
                url: STORE.to_owned(),
                why: format!("{name:?} is no name of a secret"),
            });
        }
        let base = vault.trim_end_matches('/');
        let url = address(&format!("{base}/secrets/{name}?api-version={VERSION}"))?;
        let form = application.request(VAULT_SCOPE, Timestamp::now(), id)?;
        let token = self.token(SERVICE, &form).await?;
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
            _ => return Err(answer.refused(STORE, &["/error/message"])),
        }
        let json = answer.json(STORE)?;
        let value = json.get("value").and_then(serde_json::Value::as_str);
        let value = value.filter(|value| !value.is_empty());
        value.map(str::to_owned).ok_or_else(missing)
    }
}
