//! Clients of the administrator.

use std::{collections::HashMap, fmt, path::Path};

use anyhow::{Context as _, Result};
use kube::{
    Client, Config,
    api::ApiResource,
    config::{KubeConfigOptions, Kubeconfig},
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};
use parking_lot::Mutex;
use tokio::runtime::{Handle, Id};

/// Makes a client of a kubeconfig.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let read =
        Kubeconfig::read_from(kubeconfig).with_context(|| format!("can't read {}", kubeconfig.display()))?;
    Ok(Client::try_from(
        Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?,
    )?)
}

/// The clients of one control plane, one for each async runtime, because connections end with the runtime that opened them; and the
/// kinds that were discovered.
#[derive(Default)]
pub(super) struct Clients {
    clients: Mutex<HashMap<Id, Client>>,
    kinds: Mutex<HashMap<GroupVersionKind, (ApiResource, Scope)>>,
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

impl Clients {
    /// Returns the client of the current runtime.
    pub(super) async fn get(&self, kubeconfig: &Path) -> Result<Client> {
        let runtime = Handle::current().id();
        let known = self.clients.lock().get(&runtime).cloned();
        if let Some(client) = known {
            return Ok(client);
        }
        let client = client(kubeconfig).await?;
        self.clients.lock().insert(runtime, client.clone());
        Ok(client)
    }

    /// Returns the resource and the scope of a kind. Fails if the API server doesn't serve it.
    pub(super) async fn discover(
        &self,
        client: &Client,
        kind: &GroupVersionKind,
    ) -> Result<(ApiResource, Scope)> {
        let known = self.kinds.lock().get(kind).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = pinned_kind(client, kind).await;
        let (resource, capabilities) = found.with_context(|| {
            format!(
                "the API server doesn't know {} of {}",
                kind.kind,
                kind.api_version()
            )
        })?;
        let found = (resource, capabilities.scope);
        self.kinds.lock().insert(kind.clone(), found.clone());
        Ok(found)
    }
}
