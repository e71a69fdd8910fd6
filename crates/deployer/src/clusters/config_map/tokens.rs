//! Tokens for a cluster that a ConfigMap describes. They are renewed while the connection is used.

use std::time::Duration;

use api::Secret;
use cloud::{
    Ambient, Error, Identity, Location, ManagedCluster, Workload, WorkloadIdentity,
    http::{Client, Settings},
};
use futures::{FutureExt as _, future::BoxFuture};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, ResourceExt as _};
use runtime::{
    Context,
    accounts::create_token,
    client::{BearerTokens, describe},
};
use tokio::sync::Mutex;

use super::described::{Access, Description};

/// Maximum size of an answer of a cloud in bytes.
const ANSWER: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(15);

/// Creates tokens for one cluster.
#[derive(Debug)]
pub(super) struct ClusterTokens {
    accounts: Api<ServiceAccount>,
    account: Option<String>,
    access: Access,
    client: Client,
    ambient: Ambient,
    last: Mutex<Option<RenewedToken>>,
}

#[derive(Debug)]
struct RenewedToken {
    token: Secret<String>,
    /// Seconds of Unix from which on another token is created, although this one is still valid.
    renewed: i64,
}

impl ClusterTokens {
    /// Creates no token yet. The error is in words.
    pub(super) fn new(ctx: &Context, namespace: &str, described: &Description) -> Result<Self, String> {
        let client = Client::new(Settings {
            addresses: ctx.addresses().clone(),
            answer_bytes: ANSWER,
            timeout: TIMEOUT,
            ..Settings::default()
        });
        Ok(Self {
            accounts: Api::namespaced(ctx.client().clone(), namespace),
            account: described.account.clone(),
            access: described.access.clone(),
            client: client.map_err(|error| error.to_string())?,
            ambient: Ambient::new(std::env::vars()).with_instance(),
            last: Mutex::default(),
        })
    }

    /// Creates the first token. The error is in words.
    pub(super) async fn first(&self) -> Result<(), String> {
        self.current().await.map(drop)
    }

    /// Asks the cloud for the server of a cluster. The error is in words.
    pub(super) async fn locate(&self, cluster: &ManagedCluster) -> Result<Location, String> {
        let workload = self.workload(cluster).await?;
        let found = cluster.locate(&self.client, self.identity(workload.as_ref()));
        found.await.map_err(|error| error.to_string())
    }

    fn identity<'a>(&'a self, workload: Option<&'a Workload>) -> Identity<'a> {
        Identity {
            ambient: &self.ambient,
            workload,
        }
    }

    async fn current(&self) -> Result<Secret<String>, String> {
        // Those who come meanwhile get the same token.
        let mut last = self.last.lock().await;
        let now = Timestamp::now().as_second();
        if let Some(last) = last.as_ref().filter(|last| now < last.renewed) {
            return Ok(last.token.clone());
        }
        let (token, lifetime) = self.create(now).await?;
        *last = Some(RenewedToken {
            token: token.clone(),
            renewed: now.saturating_add(lifetime.saturating_mul(2) / 3),
        });
        Ok(token)
    }

    /// Returns a token with its lifetime in seconds. The error is in words.
    async fn create(&self, now: i64) -> Result<(Secret<String>, i64), String> {
        match &self.access {
            Access::Tokens { audiences } => {
                let account = self.account.as_deref().unwrap_or_default();
                let created = create_token(&self.accounts, account, audiences.clone()).await;
                let created = created.map_err(|error| describe(&error))?;
                Ok((created.token, created.ends.saturating_sub(now)))
            }
            Access::Cloud(cluster) => {
                let workload = self.workload(cluster).await?;
                let token = cluster.token(&self.client, self.identity(workload.as_ref()));
                let token = token.await.map_err(|error| error.to_string())?;
                Ok((token.access, i64::try_from(token.expires_in).unwrap_or_default()))
            }
        }
    }

    /// Returns the identity of the ServiceAccount, with a new token of it; `None` for the identity of the controller. The error is in words.
    async fn workload(&self, cluster: &ManagedCluster) -> Result<Option<Workload>, String> {
        let Some(name) = &self.account else {
            return Ok(None);
        };
        let account = self.accounts.get(name).await.map_err(|error| describe(&error))?;
        let identity = WorkloadIdentity::read(cluster.cloud(), account.annotations(), &self.ambient);
        let identity = identity.await.map_err(|error: Error| error.to_string())?;
        let token = create_token(&self.accounts, name, vec![identity.audience().to_owned()]).await;
        let token = token.map_err(|error| describe(&error))?;
        Ok(Some(identity.with_token(token.token)))
    }
}

impl BearerTokens for ClusterTokens {
    fn token(&self) -> BoxFuture<'_, Result<Secret<String>, String>> {
        self.current().boxed()
    }
}
