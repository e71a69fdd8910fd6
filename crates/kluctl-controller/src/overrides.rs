//! Local sources: the server that command lines connect to, and the questions to them for files that replace a source.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use api::kluctl::gitops::SourceOverride;
use bytes::Bytes;
use deployer::objects;
use engine::{RemoteFiles, RemoteOverride};
use futures::future::BoxFuture;
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kluctl::CallbackError;
use kube::{Api, api::PostParams};
use net::AddressPolicy;
use overrides::{Answer, CA, CONFIG_MAP, Error, Material, OverrideUrl, SECRET, Server, Sessions};
use runtime::{Context, client::describe};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};

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

#[derive(Debug, thiserror::Error)]
enum MaterialError {
    #[error("cannot read or create the Secret {SECRET} or the ConfigMap {CONFIG_MAP}: {0}")]
    Cluster(String),
    #[error("the Secret {SECRET} has an {0}: delete it, and a new one is made")]
    Unusable(#[from] Error),
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

/// Waits for the content of the Secret. The leader makes it if there is none.
async fn found(ctx: &Context) -> Material {
    let (mut leads, mut told) = (false, String::new());
    loop {
        match in_cluster(ctx, leads).await {
            Ok(Some(material)) => return material,
            Ok(None) => {}
            Err(error) => {
                let error = error.to_string();
                if error != told {
                    tracing::warn!(error, "local sources are off for now");
                    told = error;
                }
            }
        }
        match leads {
            true => tokio::time::sleep(AGAIN).await,
            false => leads = matches!(timeout(AGAIN, ctx.leader()).await, Ok(Ok(()))),
        }
    }
}

/// Reads the Secret; `None` if there is none and `makes` is false.
async fn in_cluster(ctx: &Context, makes: bool) -> Result<Option<Material>, MaterialError> {
    let namespace = match ctx.flags().runtime_namespace.as_str() {
        "" => NAMESPACE,
        namespace => namespace,
    };
    let failed = |error: kube::Error| MaterialError::Cluster(describe(&error));
    let secrets: Api<Secret> = Api::namespaced(ctx.client().clone(), namespace);
    let material = match objects::found(secrets.get(SECRET).await).map_err(failed)? {
        Some(secret) => {
            let values = secret.data.unwrap_or_default().into_iter();
            Material::read(&values.map(|(key, value)| (key, value.0)).collect())?
        }
        None if makes => {
            let material = Material::generate()?;
            let values = material.values().into_iter();
            let values = values.map(|(key, value)| (key.to_owned(), ByteString(value.into_inner())));
            let mut secret = Secret {
                data: Some(values.collect()),
                ..Secret::default()
            };
            secret.metadata.name = Some(SECRET.to_owned());
            let created = secrets.create(&PostParams::default(), &secret).await;
            created.map_err(failed)?;
            material
        }
        None => return Ok(None),
    };
    if makes {
        publish(ctx, namespace, &material.ca).await.map_err(failed)?;
    }
    Ok(Some(material))
}

/// Lets command lines know the authority.
async fn publish(ctx: &Context, namespace: &str, ca: &str) -> Result<(), kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(ctx.client().clone(), namespace);
    let mut map = objects::found(maps.get(CONFIG_MAP).await)?.unwrap_or_default();
    let published = map.data.as_ref().and_then(|data| data.get(CA));
    if published.is_some_and(|published| published == ca) {
        return Ok(());
    }
    map.data = Some(BTreeMap::from([(CA.to_owned(), ca.to_owned())]));
    if map.metadata.name.is_some() {
        maps.replace(CONFIG_MAP, &PostParams::default(), &map).await?;
    } else {
        map.metadata.name = Some(CONFIG_MAP.to_owned());
        maps.create(&PostParams::default(), &map).await?;
    }
    Ok(())
}
