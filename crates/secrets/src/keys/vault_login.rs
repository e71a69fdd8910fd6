//! Logins to Vault with tokens of an identity provider, such as Kubernetes.

use std::{collections::BTreeMap, fmt, pin::Pin};

use api::Secret;
use cloud::http::Client;
use serde_json::json;
use tokio::sync::Mutex;
use url::Url;

use super::{
    OpenError,
    role::RoleError,
    service::{post, text},
    vault::{Vault, api_url},
};

/// A login of an identity to one server.
#[derive(Debug, Clone)]
pub struct VaultLogin {
    /// Path of the login below `/v1/`, as in `auth/kubernetes/login`.
    pub path: String,
    pub role: String,
    /// Token of the identity, for this server.
    pub token: Secret<String>,
}

/// Finds the login of an identity to a server of Vault.
pub trait VaultAccount: fmt::Debug + Send + Sync {
    /// Returns the login to the server at an address, as a file names it.
    fn login<'a>(
        &'a self,
        address: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<VaultLogin, RoleError>> + Send + 'a>>;
}

/// The tokens of an account, by the addresses of their servers. Each login is made once.
#[derive(Debug, Default)]
pub(super) struct Logins(Mutex<BTreeMap<String, Vault>>);

impl Logins {
    /// Returns a token for the server at an address.
    pub(super) async fn at(
        &self,
        http: &Client,
        account: &dyn VaultAccount,
        address: &str,
    ) -> Result<Vault, OpenError> {
        let mut known = self.0.lock().await;
        if let Some(vault) = known.get(address) {
            return Ok(vault.clone());
        }
        let login = account.login(address).await.map_err(OpenError::Role)?;
        let url = api_url(address, &login.path, &[]);
        let url = url.ok_or(OpenError::InvalidMaster(
            "its address or the path of its login is invalid",
        ))?;
        let body = json!({ "role": login.role, "jwt": login.token.expose() });
        let answer = post(http, &url, ("x-vault-request", "true"), &body).await?;
        let token = text(&answer, "/auth/client_token")?;
        let vault = Vault {
            token: Secret::new(token.to_string()),
            server: Url::parse(address).ok(),
        };
        known.insert(address.to_owned(), vault.clone());
        Ok(vault)
    }
}
