//! Azure Key Vault.

mod config;

pub(super) use config::parse;

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use cloud::{
    Ambient, Token,
    azure::{Client, vault_scope},
    http,
};
use serde_json::json;
use url::Url;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{
    CloudLogin, OpenError,
    service::{bearer, failed, post, text},
};

const API: &str = "7.4";

/// Credentials, and the address that replaces the vaults'.
#[derive(Debug, Clone)]
pub(super) struct Azure {
    pub(super) access: Access,
    pub(super) endpoint: Option<Url>,
}

#[derive(Debug, Clone)]
pub(super) enum Access {
    Application(Client),
    Ambient(Arc<Ambient>),
    Login(Arc<CloudLogin>),
}

impl Access {
    pub(super) async fn token(&self, http: &http::Client, scope: &str, id: &str) -> Result<Token, OpenError> {
        let token = match self {
            Self::Application(client) => client.token(http, scope, id).await,
            Self::Ambient(ambient) => ambient.azure(http, scope, id).await,
            Self::Login(login) => return login.azure(http, scope).await,
        };
        token.map_err(failed)
    }
}

impl Azure {
    pub(super) async fn open(
        &self,
        http: &http::Client,
        (vault, name, version): (&str, &str, &str),
        enc: &str,
    ) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let vault = Url::parse(vault).map_err(|_| OpenError::InvalidMaster("its vault is no URL"))?;
        let scope = vault_scope(&vault).ok_or(OpenError::InvalidMaster(
            "its vault is no host of Azure Key Vault",
        ))?;
        let plain = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if name.is_empty() || !plain(name) || !plain(version) {
            return Err(OpenError::InvalidMaster(
                "its name or version is none of Azure Key Vault",
            ));
        }
        let id = Uuid::new_v4().to_string();
        let token = self.access.token(http, scope, &id).await?;
        let server = self.endpoint.as_ref().unwrap_or(&vault).as_str();
        let url = format!(
            "{}/keys/{name}/{version}/decrypt?api-version={API}",
            server.trim_end_matches('/')
        );
        let url = Url::parse(&url).map_err(|_| OpenError::InvalidMaster("its vault makes no address"))?;
        let authorization = bearer(&token.access);
        let body = json!({"alg": "RSA-OAEP-256", "value": enc});
        let answer = post(http, &url, ("authorization", &authorization), &body).await?;
        let key = BASE64_URL_SAFE_NO_PAD.decode(text(&answer, "/value")?.trim_end_matches('='));
        key.map(Zeroizing::new)
            .map_err(|_| OpenError::InvalidAnswer("the service's key is not base64"))
    }
}
