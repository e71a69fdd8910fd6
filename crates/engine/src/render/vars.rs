//! Reads variables from the environment, the cluster, HTTP servers and stores of secrets.

use std::{sync::OnceLock, time::Duration};

use cluster::{Cluster, ResourceKind};
use kluctl::{HttpAnswer, HttpRequest, ObjectQuery, ObjectSelection, SecretQuery, VarsError, VarsSources};
use net::AddressPolicy;
use objects::{ObjectRef, meta};
use secrets::RoleError;
use stores::{Ambient, Client, Request, Settings};
use tree::Budget;
use url::Url;
use yaml::Value;

use remote::service_account::{MISSING_ROLE, trusted_token};

use super::{blocking::BlockingContext, external::ExternalAccess};

const KINDS_AGE: Duration = Duration::from_secs(10);
/// Maximum number of objects that are searched for labels.
const MAX_LISTED: usize = 5_000;

pub(crate) struct VarsReader {
    cluster: Option<Cluster>,
    external: ExternalAccess,
    blocking: BlockingContext,
    http: OnceLock<Client>,
    stores: OnceLock<Client>,
}

impl VarsReader {
    pub(crate) fn new(
        cluster: Option<Cluster>,
        external: &ExternalAccess,
        blocking: BlockingContext,
    ) -> Self {
        Self {
            cluster,
            external: external.clone(),
            blocking,
            http: OnceLock::new(),
            stores: OnceLock::new(),
        }
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, VarsError>>) -> Result<T, VarsError> {
        self.blocking
            .block_on(work)
            .map_err(|error| VarsError::Failed(error.to_string()))?
    }

    /// Reads an object by its name, and notes its version.
    fn named(&self, cluster: &Cluster, query: &ObjectQuery, name: &str) -> Result<Vec<Value>, VarsError> {
        let read = async {
            let kind = kind(cluster, query).await?;
            let reference = ObjectRef {
                namespace: namespace(query, &kind).map(str::to_owned),
                group: kind.group,
                version: kind.version,
                kind: kind.kind,
                name: name.to_owned(),
            };
            let found = cluster.get(&reference).await.map_err(|error| refused(&error))?;
            Ok((reference, found))
        };
        let read = self.blocking.unnoted().block_on(read);
        let (reference, found) = read.map_err(|error| VarsError::Failed(error.to_string()))??;
        let version = found.as_ref().and_then(meta::resource_version);
        self.blocking.note_object(reference, version.map(str::to_owned));
        Ok(found.into_iter().collect())
    }
}

fn client<'a>(
    created: &'a OnceLock<Client>,
    addresses: &AddressPolicy,
    budget: &Budget,
) -> Result<&'a Client, VarsError> {
    if let Some(client) = created.get() {
        return Ok(client);
    }
    let settings = Settings {
        addresses: addresses.clone(),
        answer_bytes: budget.limits().file_bytes,
        ..Settings::default()
    };
    let client = Client::new(settings).map_err(failed)?;
    Ok(created.get_or_init(|| client))
}

fn denied(error: impl Into<stores::Error>) -> VarsError {
    failed(error.into())
}

fn failed(error: stores::Error) -> VarsError {
    match error {
        stores::Error::Missing(words) => VarsError::Missing(words),
        error => VarsError::Failed(error.to_string()),
    }
}

impl VarsSources for VarsReader {
    fn environment(&self, name: &str) -> Result<Option<String>, VarsError> {
        self.external
            .environment
            .get(name)
            .map_err(|error| VarsError::Failed(error.to_string()))
    }

    fn objects(&self, query: &ObjectQuery, budget: &Budget) -> Result<Vec<Value>, VarsError> {
        budget
            .check()
            .map_err(|error| VarsError::Failed(error.to_string()))?;
        let Some(cluster) = &self.cluster else {
            return Err(VarsError::Failed(
                "loading vars from cluster is disabled".to_owned(),
            ));
        };
        match &query.which {
            ObjectSelection::Name(name) => self.named(cluster, query, name),
            ObjectSelection::Labels(labels) => self.wait(labelled(cluster, query, labels)),
        }
    }

    fn http(&self, request: &HttpRequest, budget: &Budget) -> Result<HttpAnswer, VarsError> {
        budget
            .check()
            .map_err(|error| VarsError::Failed(error.to_string()))?;
        let url = Url::parse(&request.url);
        let url = url.map_err(|_| {
            VarsError::Failed(format!("{} is not a valid URL", Client::safe_url(&request.url)))
        })?;
        let headers: Vec<(&str, &str)> = request
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let client = client(&self.http, &self.external.vars_addresses, budget)?;
        let answer = async {
            let asked = Request {
                method: &request.method,
                url: &url,
                headers: &headers,
                body: request.body.as_deref().unwrap_or_default().as_bytes(),
            };
            client.send(asked).await.map_err(failed)
        };
        let answer = self.wait(answer)?;
        Ok(HttpAnswer {
            status: answer.status,
            body: answer.body.to_vec().into(),
        })
    }

    fn secret(&self, query: &SecretQuery, budget: &Budget) -> Result<String, VarsError> {
        budget
            .check()
            .map_err(|error| VarsError::Failed(error.to_string()))?;
        let nobody = Ambient::default();
        let ambient = match (&self.external.stores, query) {
            (Some(ambient), _) => ambient,
            // The ServiceAccount's identity, which the deploying identity may impersonate by a token.
            (
                None,
                SecretQuery::Aws {
                    service_account: Some(_),
                    ..
                },
            ) => &nobody,
            (None, _) => {
                return Err(VarsError::Failed(format!(
                    "{} is not available: its secrets would be readable by every author of a project",
                    query.store()
                )));
            }
        };
        let client = client(&self.stores, &self.external.servers.addresses, budget)?;
        self.wait(secret(client, ambient, self.cluster.as_ref(), query))
    }
}

async fn secret(
    client: &Client,
    ambient: &Ambient,
    cluster: Option<&Cluster>,
    query: &SecretQuery,
) -> Result<String, VarsError> {
    let words = |error: RoleError| VarsError::Failed(error.to_string());
    let found = match query {
        SecretQuery::Vault { address, path } => {
            let token = ambient.vault(address).map_err(denied)?;
            client.vault(address, path, &token).await
        }
        SecretQuery::Aws {
            name,
            region,
            profile,
            service_account,
        } => {
            let token = match service_account {
                Some((namespace, name)) => Some(trusted(cluster, namespace, name).await.map_err(words)?),
                None => None,
            };
            let credentials = ambient
                .aws(client.http(), profile.as_deref(), token.as_ref())
                .await;
            let credentials = credentials.map_err(denied)?;
            let at = ambient.aws_secrets().map_err(denied)?;
            client
                .aws(&credentials, region.as_deref(), name, at.as_ref())
                .await
        }
        SecretQuery::Gcp { name } => {
            let token = ambient.gcp(client.http()).await.map_err(denied)?;
            client.gcp(&token, name, None).await
        }
        SecretQuery::Azure { vault, name } => {
            let scope = Client::azure_scope(vault).map_err(failed)?;
            let id = uuid::Uuid::new_v4().to_string();
            let token = ambient.azure(client.http(), scope, &id).await.map_err(denied)?;
            client.azure(&token, vault, name, None).await
        }
    };
    found.map_err(failed)
}

async fn trusted(
    cluster: Option<&Cluster>,
    namespace: &str,
    name: &str,
) -> Result<stores::TrustedToken, RoleError> {
    let about = |words: &str| RoleError(format!("service account {namespace}/{name}: {words}"));
    let cluster = cluster.ok_or_else(|| about("no cluster is configured that could issue a token"))?;
    let found = trusted_token(cluster, namespace, name).await?;
    found.ok_or_else(|| about(MISSING_ROLE))
}

async fn labelled(
    cluster: &Cluster,
    query: &ObjectQuery,
    labels: &[(String, String)],
) -> Result<Vec<Value>, VarsError> {
    let kind = kind(cluster, query).await?;
    let list = cluster.list(&kind, namespace(query, &kind), MAX_LISTED).await;
    let list = list.map_err(|error| refused(&error))?;
    let items = list.get("items").and_then(Value::as_seq).unwrap_or_default();
    let matches = |item: &&Value| {
        labels
            .iter()
            .all(|(key, value)| meta::label(item, key) == Some(value))
    };
    Ok(items.iter().filter(matches).cloned().collect())
}

/// Returns the namespace of a query; `None` for kinds without one, and for all namespaces.
fn namespace<'q>(query: &'q ObjectQuery, kind: &ResourceKind) -> Option<&'q str> {
    let namespace = query.namespace.as_deref();
    namespace.filter(|namespace| kind.namespaced && !namespace.is_empty())
}

fn refused(error: &cluster::Error) -> VarsError {
    VarsError::Failed(error.to_string())
}

/// Returns the kind of a query. Without a version, the kind's name must be unique in the cluster.
async fn kind(cluster: &Cluster, query: &ObjectQuery) -> Result<ResourceKind, VarsError> {
    if let Some(api_version) = &query.api_version {
        let (group, version) = objects::split_api_version(api_version);
        return cluster
            .kind(group, version, &query.kind)
            .await
            .map_err(|error| refused(&error));
    }
    let snapshot = cluster
        .recent_snapshot(KINDS_AGE)
        .await
        .map_err(|error| refused(&error))?;
    let mut found = snapshot.listable().filter(|kind| kind.kind == query.kind);
    match (found.next(), found.next()) {
        (Some(kind), None) => Ok(kind.clone()),
        (None, _) => Err(VarsError::Failed(format!(
            "no matching resource found for kind {}",
            query.kind
        ))),
        (Some(_), Some(_)) => Err(VarsError::Failed(format!(
            "more then one matching resources found for kind {}, consider also specifying apiVersion",
            query.kind
        ))),
    }
}
