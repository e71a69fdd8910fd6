//! Secrets that objects name, read live, and the keys that several kinds share.

use std::collections::BTreeMap;

use api::{Fault, Reason, Secret as Masked};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, Client};

use crate::names::is_object_name;

pub struct SecretData {
    name: String,
    data: BTreeMap<String, ByteString>,
}

pub struct BasicAuth {
    /// Never the empty string.
    pub username: String,
    pub password: Masked<String>,
}

/// A client certificate and its private key, both as PEM.
pub type ClientIdentity<'a> = (&'a [u8], Masked<Vec<u8>>);

/// Reads a Secret. Fails with the reason `AuthenticationFailed` when the Secret is missing or can't be read.
pub async fn read(client: &Client, namespace: &str, name: &str) -> Result<SecretData, Fault> {
    let full_name = format!("{namespace}/{name}");
    let failed = |why: String| {
        Fault::retry(
            Reason::AuthenticationFailed,
            format!("failed to get secret '{full_name}': {why}"),
        )
    };
    if !is_object_name(name) {
        return Err(failed("it is not a valid name".to_owned()));
    }
    let found = get(client, namespace, name).await;
    found.map_err(|error| failed(crate::client::describe(&error)))
}

/// Reads a Secret; returns `None` if it is missing or forbidden.
pub async fn find(client: &Client, namespace: &str, name: &str) -> Result<Option<SecretData>, kube::Error> {
    if !is_object_name(name) {
        return Ok(None);
    }
    match get(client, namespace, name).await {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
            tracing::info!(
                secret = format!("{namespace}/{name}"),
                reason = status.reason,
                "there are no credentials"
            );
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Reads a Secret, whose name must be valid ([`is_object_name`]).
pub async fn get(client: &Client, namespace: &str, name: &str) -> Result<SecretData, kube::Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    Ok(SecretData {
        name: format!("{namespace}/{name}"),
        data: api.get(name).await?.data.unwrap_or_default(),
    })
}

impl SecretData {
    #[must_use]
    pub fn of(name: &str, pairs: &[(&str, &[u8])]) -> Self {
        let data = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString(value.to_vec())));
        Self {
            name: name.to_owned(),
            data: data.collect(),
        }
    }

    /// Refuses the Secret if it has one of `keys`, pairs of a key and its meaning: ignoring them could mean less security than the user
    /// asked for. `instead` says what to use. Fails with a fault that names the key.
    pub fn refuse(&self, keys: &[(&str, &str)], instead: &str) -> Result<(), Fault> {
        let found = keys.iter().find(|(key, _)| self.data.contains_key(*key));
        found.map_or(Ok(()), |(key, what)| {
            let name = &self.name;
            let message = format!("secret '{name}': {key}: {what} is not supported yet: use {instead}");
            Err(Fault::retry(Reason::UnsupportedField, message))
        })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn entries(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.data
            .iter()
            .map(|(key, ByteString(bytes))| (key.as_str(), bytes.as_slice()))
    }

    #[must_use]
    pub fn bytes(&self, keys: &[&str]) -> Option<&[u8]> {
        let found = keys.iter().find_map(|key| self.data.get(*key));
        found.map(|ByteString(bytes)| bytes.as_slice())
    }

    /// Returns the string at `key`; `None` if it is missing or empty. Fails when it is not UTF-8.
    pub fn string(&self, key: &str) -> Result<Option<String>, Fault> {
        match self.bytes(&[key]).map(std::str::from_utf8) {
            None => Ok(None),
            Some(Ok(string)) => Ok(Some(string.to_owned()).filter(|string| !string.is_empty())),
            Some(Err(_)) => Err(self.invalid(&format!("{key} is not UTF-8"))),
        }
    }

    /// Returns the keys `username` and `password`; `None` without a username. Fails when there is a password without a username, or a value
    /// is not UTF-8.
    pub fn basic_auth(&self) -> Result<Option<BasicAuth>, Fault> {
        match (self.string("username")?, self.string("password")?) {
            (Some(username), password) => Ok(Some(BasicAuth {
                username,
                password: Masked::new(password.unwrap_or_default()),
            })),
            (None, Some(_)) => Err(self.invalid("a password needs a username")),
            (None, None) => Ok(None),
        }
    }

    #[must_use]
    pub fn ca(&self) -> Option<&[u8]> {
        self.bytes(&["ca.crt", "caFile"])
    }

    /// Returns the client certificate and its private key, both as PEM; `None` if there is neither. Fails when one of the two is missing.
    pub fn identity(&self) -> Result<Option<ClientIdentity<'_>>, Fault> {
        match (
            self.bytes(&["tls.crt", "certFile"]),
            self.bytes(&["tls.key", "keyFile"]),
        ) {
            (Some(certificate), Some(key)) => Ok(Some((certificate, Masked::new(key.to_vec())))),
            (None, None) => Ok(None),
            _ => Err(self.invalid("a client certificate needs both 'tls.crt' and 'tls.key'")),
        }
    }

    #[must_use]
    pub fn invalid(&self, why: &str) -> Fault {
        let name = &self.name;
        let message = format!("failed to configure authentication options: secret '{name}': {why}");
        Fault::retry(Reason::AuthenticationFailed, message)
    }
}
