//! The Secret with which the cluster reads the repository.

use anyhow::Result;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use git::SshKeyPair;
use tokio::runtime::Handle;
use yaml::{Map, Value};

use super::credentials::Credentials;
use crate::commands::flux::ssh_key::host_key;

/// A Secret that is to be applied, and the public key that the repository has to accept.
pub(super) struct SyncSecret {
    pub(super) object: Value,
    pub(super) public_key: Option<String>,
}

impl SyncSecret {
    /// Makes the Secret, with a new key if the user gave none. An SSH server is asked for its host key.
    pub(super) fn new(
        credentials: &Credentials,
        runtime: &Handle,
        namespace: &str,
        name: &str,
    ) -> Result<Self> {
        let mut data: Vec<(&str, String)> = Vec::new();
        let mut public_key = None;
        let password = credentials.password.expose();
        if credentials.sync_url.starts_with("ssh://") {
            let generated;
            let pair = match &credentials.key {
                Some(pair) => pair,
                None => {
                    generated = SshKeyPair::generate(credentials.algorithm)?;
                    &generated
                }
            };
            data.push(("identity", pair.private.expose().clone()));
            data.push(("identity.pub", pair.public.clone()));
            data.push(("known_hosts", host_key(runtime, &credentials.sync_url)?));
            if credentials.key.is_some() && !password.is_empty() {
                data.push(("password", password.clone()));
            }
            public_key = Some(pair.public.trim_end().to_owned());
        } else if credentials.is_bearer {
            data.push(("bearerToken", password.clone()));
            data.extend(credentials.ca.clone().map(|ca| ("ca.crt", ca)));
        } else {
            data.push(("username", credentials.username.clone()));
            data.push(("password", password.clone()));
            data.extend(credentials.ca.clone().map(|ca| ("ca.crt", ca)));
        }
        let data: Map = data
            .into_iter()
            .map(|(key, value)| (key, STANDARD.encode(value)))
            .collect();
        let metadata = Map::from([("name", name), ("namespace", namespace)]);
        let object = Value::Map(Map::from([
            ("apiVersion", Value::from("v1")),
            ("kind", Value::from("Secret")),
            ("metadata", metadata.into()),
            ("data", data.into()),
        ]));
        Ok(Self { object, public_key })
    }
}
