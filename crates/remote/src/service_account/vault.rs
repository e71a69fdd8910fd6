//! Logins of a ServiceAccount to Vault.

use std::{collections::BTreeMap, pin::Pin, time::Duration};

use cluster::Cluster;
use objects::ObjectRef;
use secrets::{RoleError, VaultAccount, VaultLogin};

/// Lifetime of the token of a login: the minimum that the API server accepts.
const TOKEN_AGE: Duration = Duration::from_secs(600);

/// A ServiceAccount that may log in to the servers of Vault that an administrator lists. Its role has the name `NAMESPACE_NAME`, and its
/// token the address of the server as audience, as in the original.
#[derive(Debug, Clone)]
pub struct ServiceAccountVault {
    /// The cluster of the ServiceAccount, with the identity that requests the token.
    pub cluster: Cluster,
    pub namespace: String,
    pub name: String,
    /// The paths of the logins, by the addresses of their servers.
    pub servers: BTreeMap<String, String>,
    /// Name of the list, for messages.
    pub list: String,
}

impl ServiceAccountVault {
    async fn find(&self, address: &str) -> Result<VaultLogin, RoleError> {
        let path = self.servers.get(address).filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| {
            let list = &self.list;
            RoleError(format!(
                "no login path for the address '{address}' is configured in {list}"
            ))
        })?;
        let (namespace, name) = (&self.namespace, &self.name);
        let account: ObjectRef = ObjectRef::core("ServiceAccount", namespace, name);
        let token = self.cluster.service_account_token(&account, address, TOKEN_AGE);
        let token = token.await;
        Ok(VaultLogin {
            path: path.clone(),
            role: format!("{namespace}_{name}"),
            token: token
                .map_err(|error| RoleError(format!("service account {namespace}/{name}: {error}")))?,
        })
    }
}

impl VaultAccount for ServiceAccountVault {
    fn login<'a>(
        &'a self,
        address: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<VaultLogin, RoleError>> + Send + 'a>> {
        Box::pin(self.find(address))
    }
}
