//! Keys and credentials that objects name, read live from Secrets in the namespace of the object.
//!
//! They are read with the rights of the controller, as kubeconfigs are, and never from another namespace: nobody gets more than who may
//! create objects in the namespace of the Secret.

use std::{sync::Arc, time::Duration};

use api::{Fault, Reason};
use engine::{DecryptionKeys, UrlCredentials};
use kube::Client;
use runtime::secret::{self, SecretData};

/// Reader of the Secrets of one object.
pub(crate) struct Secrets<'a> {
    /// The client with the rights of the controller.
    pub(crate) client: &'a Client,
    /// Namespace of the object.
    pub(crate) namespace: &'a str,
    /// Delay before the next attempt after a failure.
    pub(crate) retry: Duration,
}

impl Secrets<'_> {
    /// Reads a Secret.
    pub(crate) async fn read(&self, name: &str) -> Result<SecretData, Fault> {
        let found = secret::read(self.client, self.namespace, name).await;
        found.map_err(|fault| self.fault(fault.message))
    }

    fn fault(&self, message: String) -> Fault {
        Fault::wait(self.retry, Reason::PrepareFailed, message)
    }

    fn invalid(&self, secret: &SecretData, why: &impl std::fmt::Display) -> Fault {
        self.fault(format!("secret '{}' {why}", secret.name()))
    }

    /// Returns the keys of SOPS in a Secret. Entries with names that mean no key are left out, as in the original.
    pub(crate) async fn decryption_keys(&self, name: Option<&str>) -> Result<DecryptionKeys, Fault> {
        let mut keys = DecryptionKeys::new();
        let Some(name) = name else { return Ok(keys) };
        let secret = self.read(name).await?;
        for (key, value) in secret.entries() {
            keys.add_entry(key, value)
                .map_err(|error| self.invalid(&secret, &format_args!("cannot be used: {key}: {error}")))?;
        }
        Ok(keys)
    }

    /// Returns the credentials of Helm repositories in Secrets.
    pub(crate) async fn helm_credentials<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Arc<UrlCredentials>, Fault> {
        let mut credentials = UrlCredentials::default();
        for name in names {
            let secret = self.read(name).await?;
            credentials
                .add_helm(|key| secret.bytes(&[key]))
                .map_err(|error| self.invalid(&secret, &error))?;
        }
        Ok(Arc::new(credentials))
    }
}
