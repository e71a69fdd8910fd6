//! The clusters that objects deploy to, and the identities that they deploy with.

mod admission;
mod config_map;
mod id;

use std::{sync::Arc, time::Duration};

use api::{Fault, KubeConfig, Reason, is_object_name};
use cluster::{
    Cluster, Settings,
    access::{self, KubeconfigRules},
};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::{Api, Config, ResourceExt};
use limits::{ByteBudget, TenantCache};
use parking_lot::Mutex;
use runtime::{
    Context,
    client::{BearerTokens, describe},
};

pub use config_map::ClusterMap;
use config_map::MapVersion;
pub use id::{OwnClusterId, RemoteDenials};

use crate::Consumer;

/// Bytes of memory for answers of clusters, in a process without a ledger.
const ANSWERS: u64 = 256 << 20;
/// Time for which passes use the rules of webhooks and policies that another pass of the same identity read, while no watch tells of changes.
const ADMISSION_AGE: Duration = Duration::from_secs(30);

/// Maximum number of cached connections to remote clusters, of kubeconfigs and of ConfigMaps each.
const MAX_CONNECTIONS: usize = 64;
/// Keys of a Secret that may hold a kubeconfig, if the reference names none.
const DEFAULT_KEYS: [&str; 2] = ["value", "value.yaml"];

/// Tells clusters apart: two of these may be one cluster if they have the same address, or certificates of the same
/// authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterIdentity {
    pub(crate) server: String,
    pub(crate) authority: Option<Vec<Vec<u8>>>,
}

impl ClusterIdentity {
    fn new(config: &Config) -> Self {
        Self {
            server: config.cluster_url.to_string(),
            authority: config.root_cert.clone(),
        }
    }

    /// Returns true if both may be one cluster.
    #[must_use]
    pub fn may_be(&self, other: &Self) -> bool {
        self.server == other.server || (self.authority.is_some() && self.authority == other.authority)
    }
}

/// An error about the kubeconfig of an object. Messages name the Secret and hold nothing of its contents.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    #[error("{0:?} is not a valid name of a Secret or ServiceAccount")]
    Name(String),
    #[error("unable to read KubeConfig secret '{secret}' error: {why}")]
    Unreadable { secret: String, why: String },
    #[error("unable to read KubeConfig secret '{secret}' error: {why}")]
    NotFound { secret: String, why: String },
    #[error("KubeConfig secret '{secret}' does not contain a '{key}' key with a kubeconfig")]
    MissingKey { secret: String, key: String },
    #[error("KubeConfig secret '{secret}': {error}")]
    Invalid { secret: String, error: cluster::Error },
    #[error("unable to read KubeConfig ConfigMap '{map}' error: {why}")]
    UnreadableMap { map: String, why: String },
    #[error("unable to read KubeConfig ConfigMap '{map}' error: {why}")]
    MissingMap { map: String, why: String },
    #[error("KubeConfig ConfigMap '{map}': {why}")]
    InvalidMap { map: String, why: String },
    #[error("cannot create a token of {account} for the cluster of spec.kubeConfig.configMapRef: {why}")]
    NoToken { account: String, why: String },
}

impl KubeconfigError {
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Invalid {
                error: cluster::Error::KubeconfigRefused(_),
                ..
            } => Reason::AccessDenied,
            _ => Reason::PrepareFailed,
        }
    }

    /// Returns true if the Secret or the ConfigMap doesn't exist.
    #[must_use]
    pub const fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::MissingMap { .. })
    }
}

#[derive(Debug, Clone)]
struct Connection {
    cluster: Cluster,
    identity: Arc<ClusterIdentity>,
}

/// A cluster, accessed with the identity that an object deploys with.
#[derive(Debug, Clone)]
pub struct TargetCluster {
    pub cluster: Cluster,
    /// Tells it apart from others.
    pub identity: Arc<ClusterIdentity>,
}

/// One version of the contents of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SecretVersion {
    uid: String,
    resource_version: String,
    key: Option<String>,
}

/// All clusters that this process deploys to. Connections to remote clusters are cached until their Secret changes, by namespace.
#[derive(Debug)]
pub struct Clusters {
    ctx: Context,
    default_service_account: String,
    kubeconfigs: KubeconfigRules,
    local: Connection,
    remote: Mutex<TenantCache<SecretVersion, Connection>>,
    by_map: Mutex<TenantCache<MapVersion, Connection>>,
}

impl Clusters {
    /// Starts with the cluster of the process, and watches its webhooks and policies while their rules are used.
    #[must_use]
    pub fn new(ctx: &Context, kubeconfigs: KubeconfigRules) -> Self {
        let local = Connection {
            cluster: Cluster::with_settings(ctx.client().clone(), settings(ctx.config())),
            identity: Arc::new(ClusterIdentity::new(ctx.config())),
        };
        admission::spawn_watch(ctx, local.cluster.clone());
        Self {
            ctx: ctx.clone(),
            default_service_account: ctx.flags().default_service_account.clone(),
            kubeconfigs,
            local,
            remote: Mutex::new(TenantCache::new(MAX_CONNECTIONS)),
            by_map: Mutex::new(TenantCache::new(MAX_CONNECTIONS)),
        }
    }

    /// Returns the cluster of the process, with its own identity.
    #[must_use]
    pub fn local(&self) -> Cluster {
        self.local.cluster.clone()
    }

    /// Connects to the cluster of an object, with the identity that it deploys with.
    pub(crate) async fn target<C: Consumer>(&self, object: &C::Object) -> Result<TargetCluster, Fault> {
        let namespace = C::key(object).namespace;
        self.of(
            &namespace,
            C::kube_config(object),
            C::service_account_name(object),
        )
        .await
        .map_err(|error| Fault::wait(C::retry_interval(object), error.reason(), error.to_string()))
    }

    /// Connects to the cluster that an object of `namespace` with this kubeconfig and ServiceAccount deploys to, with the
    /// identity that it deploys with: the ServiceAccount, otherwise the default one, otherwise the user of the kubeconfig, or the
    /// process itself.
    ///
    /// # Errors
    /// If its kubeconfig is missing, invalid or refused, or a name is invalid.
    pub async fn of(
        &self,
        namespace: &str,
        kube_config: Option<&KubeConfig>,
        service_account: Option<&str>,
    ) -> Result<TargetCluster, KubeconfigError> {
        let account = service_account.filter(|name| !name.is_empty());
        let secret = kube_config.map(|config| config.secret_ref.name.as_str());
        // They become parts of URLs and user names.
        if let Some(name) = secret
            .into_iter()
            .chain(account)
            .find(|name| !is_object_name(name))
        {
            return Err(KubeconfigError::Name(name.to_owned()));
        }
        let connection = self.connection(namespace, kube_config).await?;
        Ok(self.with_identity(connection, namespace, service_account))
    }

    fn with_identity(
        &self,
        connection: Connection,
        namespace: &str,
        service_account: Option<&str>,
    ) -> TargetCluster {
        let cluster = connection.cluster.of_tenant(namespace);
        let cluster = match self.user(namespace, service_account) {
            Some(user) => cluster.impersonate(&user),
            None => cluster,
        };
        TargetCluster {
            cluster,
            identity: connection.identity,
        }
    }

    fn user(&self, namespace: &str, service_account: Option<&str>) -> Option<String> {
        let name = self.account(service_account);
        (!name.is_empty()).then(|| access::service_account(namespace, name))
    }

    /// Returns the name of the ServiceAccount that objects deploy with; empty for the process itself.
    fn account<'a>(&'a self, service_account: Option<&'a str>) -> &'a str {
        let own = service_account.filter(|name| !name.is_empty());
        own.unwrap_or(&self.default_service_account)
    }

    /// Returns false if the ServiceAccount that objects of `namespace` deploy with does not exist. True if it may exist, or it is the process.
    pub(crate) async fn has_account(&self, namespace: &str, service_account: Option<&str>) -> bool {
        let name = self.account(service_account);
        if name.is_empty() {
            return true;
        }
        let api: Api<ServiceAccount> = Api::namespaced(self.ctx.client().clone(), namespace);
        match api.get_metadata(name).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if status.code == 404 => false,
            Err(error) => {
                let error = describe(&error);
                tracing::info!(
                    namespace,
                    name,
                    error,
                    "cannot read a ServiceAccount: it is taken to exist"
                );
                true
            }
        }
    }

    async fn connection(
        &self,
        namespace: &str,
        kube_config: Option<&KubeConfig>,
    ) -> Result<Connection, KubeconfigError> {
        let Some(KubeConfig { secret_ref }) = kube_config else {
            return Ok(self.local.clone());
        };
        let name = || format!("{namespace}/{}", secret_ref.name);
        let api: Api<Secret> = Api::namespaced(self.ctx.client().clone(), namespace);
        let secret = api.get(&secret_ref.name).await.map_err(|error| {
            let (secret, why) = (name(), describe(&error));
            match error {
                kube::Error::Api(status) if status.code == 404 => KubeconfigError::NotFound {
                    secret,
                    why: format!("Secret {:?} not found", secret_ref.name),
                },
                _ => KubeconfigError::Unreadable { secret, why },
            }
        })?;
        let version = SecretVersion {
            uid: secret.uid().unwrap_or_default(),
            resource_version: secret.resource_version().unwrap_or_default(),
            key: secret_ref.key.clone(),
        };
        let known = self.remote.lock().get(&version).cloned();
        if let Some(connection) = known {
            return Ok(connection);
        }
        let kubeconfig = kubeconfig_in(&secret, secret_ref.key.as_deref()).map_err(|key| {
            let key = key.to_owned();
            KubeconfigError::MissingKey { secret: name(), key }
        })?;
        let connection = self
            .connect(kubeconfig)
            .await
            .map_err(|error| KubeconfigError::Invalid {
                secret: name(),
                error,
            })?;
        let mut remote = self.remote.lock();
        remote.retain(|other, _| other.uid != version.uid || other.key != version.key);
        remote.insert(namespace, version, connection.clone(), 1);
        Ok(connection)
    }

    async fn connect(&self, kubeconfig: &[u8]) -> Result<Connection, cluster::Error> {
        self.connect_with(kubeconfig, None).await
    }

    /// Connects with the credentials of a kubeconfig, and with tokens if there are any.
    async fn connect_with(
        &self,
        kubeconfig: &[u8],
        tokens: Option<Arc<dyn BearerTokens>>,
    ) -> Result<Connection, cluster::Error> {
        let config = access::user_config_with(kubeconfig, self.kubeconfigs).await?;
        let identity = Arc::new(ClusterIdentity::new(&config));
        // Through the process, so that nothing is written once the lease is over.
        let client = self
            .ctx
            .client_with(&config, tokens)
            .map_err(|error| cluster::Error::Kubeconfig(error.to_string()))?;
        let settings = Settings {
            held: Duration::ZERO,
            ..settings(&config)
        };
        Ok(Connection {
            cluster: Cluster::with_settings(client, settings),
            identity,
        })
    }
}

fn settings(config: &Config) -> Settings {
    let server = config.cluster_url.to_string();
    Settings {
        server: server.trim_end_matches('/').to_owned(),
        memory: limits::process_memory().unwrap_or_else(|| ByteBudget::new(ANSWERS)),
        admission_age: ADMISSION_AGE,
        ..Settings::default()
    }
}

/// Finds the kubeconfig in a Secret. The error is the missing key.
pub(crate) fn kubeconfig_in<'a>(secret: &'a Secret, key: Option<&'a str>) -> Result<&'a [u8], &'a str> {
    let data = |key: &str| {
        let bytes = &secret.data.as_ref()?.get(key)?.0;
        (!bytes.is_empty()).then_some(bytes.as_slice())
    };
    match key.filter(|key| !key.is_empty()) {
        Some(key) => data(key).ok_or(key),
        None => DEFAULT_KEYS.into_iter().find_map(data).ok_or("value"),
    }
}
