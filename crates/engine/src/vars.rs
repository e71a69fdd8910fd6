//! Reads variables from the environment, the cluster, servers and stores of secrets.

use std::time::Duration;

use cluster::{Cluster, Kind};
use kluctl::{HttpAnswer, HttpRequest, Lookup, ObjectQuery, SecretQuery, VarsSources, Which};
use objects::{ObjectRef, meta};
use stores::{Ambient, Client, Request, Settings};
use tokio::runtime::Handle;
use tree::Budget;
use url::Url;
use yaml::Value;

use crate::Outside;

/// How old the list of kinds may be.
const KINDS_AGE: Duration = Duration::from_secs(10);
/// How many objects are looked through for labels.
const MAX_LISTED: usize = 5_000;

/// Reads for one render, from the thread of that, under the identity that deploys.
pub(crate) struct Reader {
    cluster: Option<Cluster>,
    outside: Outside,
    runtime: Handle,
}

impl Reader {
    /// Who reads for a render. Cancelling the cluster's work ends this, too.
    pub(crate) fn new(cluster: Option<Cluster>, outside: &Outside) -> Self {
        Self {
            cluster,
            outside: outside.clone(),
            runtime: Handle::current(),
        }
    }

    /// Waits for something of the network, as long as somebody waits for the render.
    fn wait<T>(&self, work: impl Future<Output = Result<T, Lookup>>) -> Result<T, Lookup> {
        let done = async {
            match &self.cluster {
                Some(cluster) => cluster.cancellation().run_until_cancelled(work).await,
                None => Some(work.await),
            }
        };
        self.runtime
            .block_on(done)
            .unwrap_or_else(|| Err(Lookup::Failed("cancelled".to_owned())))
    }

    fn client(&self, budget: &Budget) -> Result<Client, Lookup> {
        let settings = Settings {
            refused_hosts: self.outside.refused_hosts.clone(),
            answer_bytes: budget.limits().file_bytes,
        };
        Client::new(settings).map_err(failed)
    }
}

fn failed(error: stores::Error) -> Lookup {
    match error {
        stores::Error::Missing(words) => Lookup::Missing(words),
        error => Lookup::Failed(error.to_string()),
    }
}

impl VarsSources for Reader {
    fn environment(&self, name: &str) -> Result<Option<String>, Lookup> {
        self.outside.environment.get(name).map_err(Lookup::Failed)
    }

    fn objects(&self, query: &ObjectQuery, budget: &Budget) -> Result<Vec<Value>, Lookup> {
        budget
            .check()
            .map_err(|error| Lookup::Failed(error.to_string()))?;
        match &self.cluster {
            Some(cluster) => self.wait(find(cluster, query)),
            None => Err(Lookup::Failed("loading vars from cluster is disabled".to_owned())),
        }
    }

    fn http(&self, request: &HttpRequest, budget: &Budget) -> Result<HttpAnswer, Lookup> {
        budget
            .check()
            .map_err(|error| Lookup::Failed(error.to_string()))?;
        let url = Url::parse(&request.url);
        let url =
            url.map_err(|_| Lookup::Failed(format!("{} is no address", Client::shown(&request.url))))?;
        let headers: Vec<(&str, &str)> = request
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let client = self.client(budget)?;
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
            body: answer.body,
        })
    }

    fn secret(&self, query: &SecretQuery, budget: &Budget) -> Result<String, Lookup> {
        budget
            .check()
            .map_err(|error| Lookup::Failed(error.to_string()))?;
        let Some(ambient) = &self.outside.stores else {
            return Err(Lookup::Failed(format!(
                "{} is not asked here: whoever writes a project could read what this program may read",
                query.store()
            )));
        };
        let client = self.client(budget)?;
        self.wait(async { secret(&client, ambient, query).await })
    }
}

async fn secret(client: &Client, ambient: &Ambient, query: &SecretQuery) -> Result<String, Lookup> {
    let found = match query {
        SecretQuery::Vault { address, path } => {
            let token = ambient.vault().map_err(failed)?;
            client.vault(address, path, &token).await
        }
        SecretQuery::Aws {
            service_account: Some(_),
            ..
        } => {
            let problem =
                "aws.serviceAccount of a target is not supported yet: use a profile or the environment";
            return Err(Lookup::Failed(problem.to_owned()));
        }
        SecretQuery::Aws {
            name,
            region,
            profile,
            ..
        } => {
            let credentials = ambient.aws(client, profile.as_deref()).await.map_err(failed)?;
            client.aws(&credentials, region.as_deref(), name, None).await
        }
        SecretQuery::Gcp { name } => {
            let credentials = ambient.gcp().map_err(failed)?;
            client.gcp(&credentials, name, None).await
        }
        SecretQuery::Azure { vault, name } => {
            let application = ambient.azure().map_err(failed)?;
            let mut id = [0; 16];
            getrandom::fill(&mut id).map_err(|error| Lookup::Failed(error.to_string()))?;
            let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            client.azure(&application, vault, name, &id).await
        }
    };
    found.map_err(failed)
}

/// The objects of a query.
async fn find(cluster: &Cluster, query: &ObjectQuery) -> Result<Vec<Value>, Lookup> {
    let words = |error: cluster::Error| Lookup::Failed(error.to_string());
    let kind = kind(cluster, query).await?;
    let namespace = query.namespace.as_deref();
    let namespace = namespace.filter(|namespace| kind.namespaced && !namespace.is_empty());
    match &query.which {
        Which::Name(name) => {
            let reference = ObjectRef {
                group: kind.group.clone(),
                version: kind.version.clone(),
                kind: kind.kind.clone(),
                namespace: namespace.map(str::to_owned),
                name: name.clone(),
            };
            Ok(cluster
                .get(&reference)
                .await
                .map_err(words)?
                .into_iter()
                .collect())
        }
        Which::Labels(labels) => {
            let list = cluster.list(&kind, namespace, MAX_LISTED).await.map_err(words)?;
            let items = list.get("items").and_then(Value::as_seq).unwrap_or_default();
            let matches = |item: &&Value| {
                labels
                    .iter()
                    .all(|(key, value)| meta::label(item, key) == Some(value))
            };
            Ok(items.iter().filter(matches).cloned().collect())
        }
    }
}

/// The kind of a query; without a version, the only one of that name.
async fn kind(cluster: &Cluster, query: &ObjectQuery) -> Result<Kind, Lookup> {
    let words = |error: cluster::Error| Lookup::Failed(error.to_string());
    if let Some(api_version) = &query.api_version {
        let (group, version) = objects::split_api_version(api_version);
        return cluster.kind(group, version, &query.kind).await.map_err(words);
    }
    let snapshot = cluster.recent_snapshot(KINDS_AGE).await.map_err(words)?;
    let mut found = snapshot.listable().filter(|kind| kind.kind == query.kind);
    match (found.next(), found.next()) {
        (Some(kind), None) => Ok(kind.clone()),
        (None, _) => Err(Lookup::Failed(format!(
            "no matching resource found for kind {}",
            query.kind
        ))),
        (Some(_), Some(_)) => Err(Lookup::Failed(format!(
            "more then one matching resources found for kind {}, consider also specifying apiVersion",
            query.kind
        ))),
    }
}
