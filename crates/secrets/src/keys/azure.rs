//! Azure Key Vault.

mod config;

pub(super) use config::parse;

use api::Secret;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use cloud::{
    Token,
    azure::{Client, SERVICE, vault_scope},
};
use jiff::Timestamp;
use serde_json::json;
use url::Url;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::service::{Ask, Http, bearer, form};

const API: &str = "7.4";
/// An application, and where vaults are asked instead of their usual addresses.
#[derive(Debug, Clone)]
pub(super) struct Azure {
    pub(super) client: Client,
    pub(super) endpoint: Option<Url>,
}

impl Azure {
    pub(super) async fn open(
        &self,
        http: &Http,
        (vault, name, version): (&str, &str, &str),
        enc: &str,
    ) -> Result<Zeroizing<Vec<u8>>, String> {
        let vault = Url::parse(vault).map_err(|_| "its vault is no URL")?;
        let scope = vault_scope(&vault).ok_or("its vault is no host of Azure Key Vault")?;
        let plain = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if name.is_empty() || !plain(name) || !plain(version) {
            return Err("its name or version is none of Azure Key Vault".to_owned());
        }
        let id = Uuid::new_v4().to_string();
        let request = self
            .client
            .request(scope, Timestamp::now(), &id)
            .map_err(|error| error.to_string())?;
        let answer = http.post(form(&request)?).await?;
        let token: Secret<String> = Token::from_answer(SERVICE, &answer.body)
            .map_err(|error| error.to_string())?
            .access;
        let server = self.endpoint.as_ref().unwrap_or(&vault).as_str();
        let url = format!(
            "{}/keys/{name}/{version}/decrypt?api-version={API}",
            server.trim_end_matches('/')
        );
        let url = Url::parse(&url).map_err(|_| "its vault makes no address")?;
        let answer = http
            .post(Ask {
                url: &url,
                headers: bearer(&token)?,
                body: Zeroizing::new(json!({"alg": "RSA-OAEP-256", "value": enc}).to_string()),
            })
            .await?;
        let key = BASE64_URL_SAFE_NO_PAD.decode(answer.text("/value")?.trim_end_matches('='));
        key.map(Zeroizing::new)
            .map_err(|_| "the service's key is no base64".to_owned())
    }
}
