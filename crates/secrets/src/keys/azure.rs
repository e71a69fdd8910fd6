//! Azure Key Vault.

mod config;

pub(super) use config::parse;

use api::Secret;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use cloud::{
    Token,
    azure::{Client, SERVICE},
};
use jiff::Timestamp;
use serde_json::json;
use url::Url;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::service::{Ask, Http, bearer, form};

const API: &str = "7.4";
/// The clouds' names of vaults, and what tokens for them are asked for.
const CLOUDS: &[(&str, &str)] = &[
    (".vault.azure.net", "https://vault.azure.net/.default"),
    (".managedhsm.azure.net", "https://managedhsm.azure.net/.default"),
    (".vault.azure.cn", "https://vault.azure.cn/.default"),
    (
        ".vault.usgovcloudapi.net",
        "https://vault.usgovcloudapi.net/.default",
    ),
];

/// An application, and where vaults are asked instead of their usual addresses.
#[derive(Debug, Clone)]
pub(super) struct Azure {
    pub(super) client: Client,
    pub(super) endpoint: Option<Url>,
}

/// What tokens for a vault are asked for. A vault elsewhere would get a token that opens others.
fn scope(vault: &Url) -> Option<&'static str> {
    let host = vault.host_str().filter(|_| vault.scheme() == "https")?;
    let cloud = CLOUDS.iter().find(|(end, _)| host.ends_with(end));
    cloud.map(|(_, scope)| *scope)
}

impl Azure {
    pub(super) async fn open(
        &self,
        http: &Http,
        (vault, name, version): (&str, &str, &str),
        enc: &str,
    ) -> Result<Zeroizing<Vec<u8>>, String> {
        let vault = Url::parse(vault).map_err(|_| "its vault is no URL")?;
        let scope = scope(&vault).ok_or("its vault is no host of Azure Key Vault")?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_to_vaults_of_azure_alone() {
        for (vault, found) in [
            ("https://v.vault.azure.net", true),
            ("https://v.vault.azure.net:443/", true),
            ("https://hsm.managedhsm.azure.net", true),
            ("http://v.vault.azure.net", false),
            ("https://vault.azure.net.evil.example", false),
            ("https://evilvault.azure.net", false),
        ] {
            assert_eq!(scope(&Url::parse(vault).unwrap()).is_some(), found, "{vault}");
        }
    }
}
