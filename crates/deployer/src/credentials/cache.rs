//! The Secrets that a pass reads, each once.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use remote::{CredentialEntry, SecretEntries};
use runtime::client::describe;
use secrets::Keys as DecryptionKeys;

use crate::objects::found;

/// A Secret that is missing, unreadable or invalid.
#[derive(Debug, thiserror::Error)]
#[error("failed to get secret '{name}': {why}")]
pub struct SecretError {
    pub name: String,
    pub why: String,
}

/// The Secrets of a namespace, read live with the rights of the controller.
#[derive(Debug)]
pub struct SecretCache {
    api: Api<Secret>,
    read: HashMap<String, SecretEntries>,
}

impl SecretCache {
    #[must_use]
    pub fn new(client: &Client, namespace: &str) -> Self {
        Self {
            api: Api::namespaced(client.clone(), namespace),
            read: HashMap::new(),
        }
    }

    /// Returns the entries of a Secret.
    ///
    /// # Errors
    /// If it is missing or cannot be read.
    pub async fn get(&mut self, name: &str) -> Result<SecretEntries, SecretError> {
        if let Some(entries) = self.read.get(name) {
            return Ok(entries.clone());
        }
        let failed = |why: String| SecretError {
            name: name.to_owned(),
            why,
        };
        if !api::is_object_name(name) {
            return Err(failed("it is not a valid name of a Secret".to_owned()));
        }
        let secret = found(self.api.get(name).await).map_err(|error| failed(describe(&error)))?;
        let secret = secret.ok_or_else(|| failed(format!("secrets \"{name}\" not found")))?;
        let data = secret.data.unwrap_or_default().into_iter();
        let entries: SecretEntries = data
            .map(|(key, value)| (key, api::Secret::new(value.0)))
            .collect();
        self.read.insert(name.to_owned(), entries.clone());
        Ok(entries)
    }

    /// Returns credentials for hosts, paths on them, and names of Secrets.
    ///
    /// # Errors
    /// As [`SecretCache::get`].
    pub async fn credentials<'a>(
        &mut self,
        list: impl Iterator<Item = (&'a str, Option<&'a str>, &'a str)>,
    ) -> Result<Vec<CredentialEntry>, SecretError> {
        let mut entries = Vec::new();
        for (host, path, secret) in list {
            entries.push(CredentialEntry {
                host: host.to_owned(),
                path: path.map(str::to_owned),
                values: self.get(secret).await?,
            });
        }
        Ok(entries)
    }

    /// Returns the keys of SOPS in a Secret, if one is named.
    ///
    /// # Errors
    /// As [`SecretCache::get`], and if an entry cannot be used.
    pub async fn decryption_keys(&mut self, name: Option<&str>) -> Result<DecryptionKeys, SecretError> {
        let mut keys = DecryptionKeys::new();
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Ok(keys);
        };
        for (key, value) in &self.get(name).await? {
            keys.add_entry(key, value.expose()).map_err(|error| SecretError {
                name: name.to_owned(),
                why: format!("{key}: {error}"),
            })?;
        }
        Ok(keys)
    }
}
