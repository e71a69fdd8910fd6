//! Identities at clouds for key services, of ServiceAccounts or of the controller.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use limits::CacheBounds;
use runtime::{Context, accounts::AccountTokens, client::describe};
use secrets::{Ambient, Cloud, CloudAccount, Keys, RoleError, Workload};

/// Tokens of ServiceAccounts that are cached, and how long at most.
const TOKENS: CacheBounds = CacheBounds {
    max_entries: 100,
    max_age: Duration::from_secs(3600),
};

/// The identity that uses key services without given credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecryptionIdentity<'a> {
    /// A ServiceAccount in the namespace of the object.
    Account(&'a str),
    /// The environment of the controller.
    Controller,
    Nobody,
}

/// The identities of the decryptions of a process. Tokens of ServiceAccounts are created with the rights of the controller.
#[derive(Clone)]
pub struct DecryptionIdentities {
    client: Client,
    environment: Arc<Ambient>,
    tokens: Arc<AccountTokens>,
}

impl fmt::Debug for DecryptionIdentities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecryptionIdentities")
    }
}

impl DecryptionIdentities {
    /// Reads the environment of the process, and allows the metadata service of its machine.
    #[must_use]
    pub fn new(ctx: &Context) -> Self {
        Self {
            client: ctx.client().clone(),
            environment: Arc::new(Ambient::new(std::env::vars()).with_instance()),
            tokens: Arc::new(AccountTokens::new(TOKENS)),
        }
    }

    /// Lets keys use an identity for an object of `namespace`. Nothing is asked before a file needs it.
    pub fn add_to(&self, keys: &mut Keys, namespace: &str, identity: DecryptionIdentity<'_>) {
        match identity {
            DecryptionIdentity::Account(name) => {
                let account = DecryptionAccount {
                    identities: self.clone(),
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                };
                keys.set_cloud_account(Arc::new(account), Arc::clone(&self.environment));
            }
            DecryptionIdentity::Controller => keys.set_cloud_environment(Arc::clone(&self.environment)),
            DecryptionIdentity::Nobody => {}
        }
    }
}

#[derive(Debug)]
struct DecryptionAccount {
    identities: DecryptionIdentities,
    namespace: String,
    name: String,
}

impl DecryptionAccount {
    async fn workload(&self, cloud: Cloud) -> Result<Workload, RoleError> {
        let account = format!("{}/{}", self.namespace, self.name);
        if !api::is_object_name(&self.name) {
            return Err(RoleError(format!(
                "{:?} is not the name of a service account",
                self.name
            )));
        }
        let api: Api<ServiceAccount> = Api::namespaced(self.identities.client.clone(), &self.namespace);
        let found = api.get(&self.name).await;
        let found =
            found.map_err(|error| RoleError(format!("service account {account}: {}", describe(&error))))?;
        let (tokens, environment) = (&self.identities.tokens, &self.identities.environment);
        let login = tokens.login(&api, &found, cloud, environment).await;
        let login =
            login.map_err(|error| RoleError(format!("cannot get {} {account}: {error}", error.what())))?;
        Ok(login.workload().clone())
    }
}

impl CloudAccount for DecryptionAccount {
    fn login(&self, cloud: Cloud) -> Pin<Box<dyn Future<Output = Result<Workload, RoleError>> + Send + '_>> {
        Box::pin(self.workload(cloud))
    }
}
