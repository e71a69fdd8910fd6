//! Keys and credentials that objects name, read live from Secrets in the namespace of the object.
//!
//! They are read with the rights of the controller, as kubeconfigs are, and never from another namespace: nobody gets more than who may
//! create objects in the namespace of the Secret.

mod cache;
mod identities;

use std::{fmt, sync::Arc, time::Duration};

use api::{Fault, Reason};
use futures::{FutureExt as _, future::BoxFuture};
use kube::{Client, Config};
use remote::{ReadSecret, SecretEntries, ServiceAccountRole, UrlCredentials};
use runtime::{
    Context,
    client::describe,
    secret::{self, SecretData},
};
use secrets::Keys as DecryptionKeys;

use crate::{Clusters, KubeconfigError};

pub use cache::{SecretCache, SecretError};
pub use identities::{DecryptionIdentities, DecryptionIdentity};

/// Reader of the Secrets of one object.
#[derive(Clone, Copy)]
pub struct Secrets<'a> {
    /// The client with the rights of the controller.
    pub client: &'a Client,
    pub namespace: &'a str,
    /// Delay before the next attempt after a failure.
    pub retry: Duration,
}

impl fmt::Debug for Secrets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.namespace)
    }
}

impl Secrets<'_> {
    pub async fn read(&self, name: &str) -> Result<SecretData, Fault> {
        let found = secret::read(self.client, self.namespace, name).await;
        found.map_err(|fault| self.fault(fault.message))
    }

    fn fault(&self, message: String) -> Fault {
        Fault::wait(self.retry, Reason::PrepareFailed, message)
    }

    fn invalid(&self, secret: &SecretData, why: &impl fmt::Display) -> Fault {
        self.fault(format!("secret '{}' {why}", secret.name()))
    }

    /// Returns the keys of SOPS in a Secret. Entries with names that mean no key are left out, as in the original.
    ///
    /// # Errors
    /// If the Secret is missing, or an entry of it cannot be used.
    pub async fn decryption_keys(&self, name: Option<&str>) -> Result<DecryptionKeys, Fault> {
        let mut keys = DecryptionKeys::new();
        let Some(name) = name else { return Ok(keys) };
        let secret = self.read(name).await?;
        for (key, value) in secret.entries() {
            keys.add_entry(key, value)
                .map_err(|error| self.invalid(&secret, &format_args!("cannot be used: {key}: {error}")))?;
        }
        Ok(keys)
    }

    pub async fn helm_credentials<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<UrlCredentials, Fault> {
        let mut credentials = UrlCredentials::default();
        for name in names {
            let secret = self.read(name).await?;
            credentials
                .add_helm(|key| secret.bytes(&[key]))
                .map_err(|error| self.invalid(&secret, &error))?;
        }
        Ok(credentials)
    }
}

/// Returns the ServiceAccount whose AWS role may use KMS keys of SOPS: the account of the decryption, else the one that deploys, else the default
/// one; `None` if there is none. It is read in the cluster of the Secrets with the identity that deploys, which needs the right to
/// request a token.
///
/// # Errors
/// If the identity that deploys is invalid.
pub async fn kms_role(
    clusters: &Clusters,
    namespace: &str,
    decryption: Option<&str>,
    deploying: Option<&str>,
    default: &str,
) -> Result<Option<Arc<ServiceAccountRole>>, KubeconfigError> {
    let accounts = [decryption, deploying, Some(default)];
    let Some(account) = accounts.into_iter().flatten().find(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let home = clusters.of(namespace, None, deploying).await?;
    Ok(Some(Arc::new(ServiceAccountRole {
        cluster: home.cluster,
        namespace: namespace.to_owned(),
        name: account.to_owned(),
    })))
}

/// The Secret of a GitRepository, whose credentials are reused for repositories that a project includes. It is read when such a repository
/// needs it.
pub struct GitSecret {
    pub ctx: Context,
    pub namespace: String,
    pub name: String,
    /// The user to read it as; the controller if absent.
    pub user: Option<String>,
}

impl fmt::Debug for GitSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GitSecret({}/{})", self.namespace, self.name)
    }
}

impl GitSecret {
    fn client(&self) -> Result<Client, runtime::Error> {
        let Some(user) = &self.user else {
            return Ok(self.ctx.client().clone());
        };
        let mut config: Config = self.ctx.config().clone();
        config.auth_info.impersonate = Some(user.clone());
        self.ctx.client_for(&config)
    }

    async fn entries(&self) -> Result<Option<SecretEntries>, remote::Error> {
        let failed = |why: String| {
            let (namespace, name) = (&self.namespace, &self.name);
            remote::Error::Credentials(format!("failed to get secret '{namespace}/{name}': {why}"))
        };
        let client = self.client().map_err(|error| failed(error.to_string()))?;
        let found = secret::find(&client, &self.namespace, &self.name).await;
        let found = found.map_err(|error| failed(describe(&error)))?;
        let entry = |(key, value): (&str, &[u8])| (key.to_owned(), api::Secret::new(value.to_vec()));
        Ok(found.map(|found| found.entries().map(entry).collect()))
    }
}

impl ReadSecret for GitSecret {
    fn read(&self) -> BoxFuture<'_, Result<Option<SecretEntries>, remote::Error>> {
        self.entries().boxed()
    }
}
