//! Local sources: the server that command lines connect to, and the questions to them for files that replace a source.

mod store;

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use api::kluctl::gitops::SourceOverride;
use bytes::Bytes;
use engine::{RemoteFiles, RemoteOverride};
use futures::future::BoxFuture;
use kluctl::CallbackError;
use net::AddressPolicy;
use overrides::{Answer, CONFIG_MAP, Material, OverrideUrl, SECRET, Server, Sessions};
use runtime::{Context, client::describe};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};

use store::{Store, StoreError};

/// Namespace of the controller if no flag names one, as in kluctl.
const NAMESPACE: &str = "kluctl-system";
/// Pause between two looks for the Secret.
const AGAIN: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(10);

/// The command lines that are connected to this controller, or to another one of its namespace; clones share them.
#[derive(Debug, Clone)]
pub struct SourceOverrides {
    sessions: Sessions,
    material: Arc<OnceLock<Material>>,
    addresses: AddressPolicy,
}

impl SourceOverrides {
    /// Listens on the address of the flag; `None` if it is off.
    ///
    /// # Errors
    /// Fails when the address is invalid or taken.
    pub async fn start(ctx: &Context, address: Option<&str>) -> Result<Option<Self>, runtime::Error> {
        let Some(address) = address.filter(|address| !matches!(*address, "" | "0")) else {
            return Ok(None);
        };
        let listener = runtime::http::listen(address).await?;
        let overrides = Self {
            sessions: Sessions::default(),
            material: Arc::default(),
            addresses: ctx.addresses().clone(),
        };
        tokio::spawn(overrides.clone().serve(ctx.clone(), listener));
        Ok(Some(overrides))
    }

    async fn serve(self, ctx: Context, listener: TcpListener) {
        let shutdown = ctx.shutdown().clone();
        let Some(material) = shutdown.run_until_cancelled(found(&ctx)).await else {
            return;
        };
        let address = listener.local_addr().map(|address| address.to_string());
        match Server::new(self.sessions.clone(), &material) {
            Ok(server) => {
                let _ = self.material.set(material);
                tracing::info!(
                    address = address.unwrap_or_default(),
                    "listening for local sources"
                );
                server.serve(listener, shutdown).await;
            }
            Err(error) => tracing::error!(%error, "local sources are off"),
        }
    }

    /// Returns the overrides of a spec, whose URLs and keys are valid.
    #[must_use]
    pub fn of(&self, spec: &[SourceOverride]) -> Vec<RemoteOverride> {
        let one = |one: &SourceOverride| {
            let (scheme, key) = one.repo_key.split_once("://")?;
            let files = Files {
                overrides: self.clone(),
                url: OverrideUrl::parse(one.url.expose()).ok()?,
            };
            Some(RemoteOverride {
                oci: scheme == "oci",
                group: one.is_group.unwrap_or_default(),
                key: key.to_owned(),
                files: Arc::new(files),
            })
        };
        spec.iter().filter_map(one).collect()
    }

    async fn ask(&self, url: &OverrideUrl, repo_key: &str) -> Result<Answer, CallbackError> {
        let asked = self.sessions.ask(&url.id, repo_key).await;
        if let Some(answer) = asked.map_err(CallbackError::from_display)? {
            return Ok(answer);
        }
        let gone = || CallbackError::new("the command line is not connected any more");
        // Command lines name the address of the Pod that they are connected to.
        let (Ok(address), Some(material)) = (url.host.parse::<IpAddr>(), self.material.get()) else {
            return Err(gone());
        };
        let allowed = self.addresses.check_address(address, Some(url.port));
        allowed.map_err(CallbackError::from_display)?;
        let connecting = timeout(CONNECT, TcpStream::connect((address, url.port))).await;
        let Ok(Ok(stream)) = connecting else {
            return Err(gone());
        };
        let asked = overrides::ask(stream, material, url, repo_key).await;
        asked.map_err(CallbackError::from_display)
    }
}

#[derive(Debug)]
struct Files {
    overrides: SourceOverrides,
    url: OverrideUrl,
}

impl RemoteFiles for Files {
    fn fetch(&self, repo_key: String) -> BoxFuture<'_, Result<Option<Bytes>, CallbackError>> {
        Box::pin(async move {
            let answer = self.overrides.ask(&self.url, &repo_key).await?;
            match answer.error {
                Some(error) => Err(CallbackError::new(error.chars().take(1000).collect::<String>())),
                None => Ok(answer.artifact),
            }
        })
    }
}

/// Waits for the content of the Secret. The leader creates it if there is none.
async fn found(ctx: &Context) -> Material {
    let namespace = match ctx.flags().runtime_namespace.as_str() {
        "" => NAMESPACE,
        namespace => namespace,
    };
    let store = Store::new(ctx.client(), namespace);
    let (mut leads, mut logged) = (false, String::new());
    loop {
        let material = match leads {
            true => store.read_or_create().await.map(Some),
            false => store.read().await,
        };
        match material {
            Ok(Some(material)) => return material,
            Ok(None) => {}
            Err(error) => {
                let error = match error {
                    StoreError::Cluster(error) => unreachable_store(&error),
                    error @ StoreError::Unusable(_) => error.to_string(),
                };
                if error != logged {
                    tracing::warn!(error, "local sources are off for now");
                    logged = error;
                }
            }
        }
        match leads {
            true => tokio::time::sleep(AGAIN).await,
            false => leads = matches!(timeout(AGAIN, ctx.leader()).await, Ok(Ok(()))),
        }
    }
}

fn unreachable_store(error: &kube::Error) -> String {
    let error = describe(error);
    format!("cannot read or create the Secret {SECRET} or the ConfigMap {CONFIG_MAP}: {error}")
}
