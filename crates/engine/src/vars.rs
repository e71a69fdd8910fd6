//! Reads variables from the environment, the cluster, servers and stores of secrets.

use std::{sync::OnceLock, time::Duration};

use cluster::{Cluster, Kind};
use kluctl::{HttpAnswer, HttpRequest, Lookup, ObjectQuery, SecretQuery, VarsSources, Which};
use objects::{ObjectRef, meta};
use stores::{Ambient, Client, Request, Settings, TrustedToken};
use tree::Budget;
use url::Url;
use yaml::Value;

use crate::{Outside, waiting::Waiting};

/// How old the list of kinds may be.
const KINDS_AGE: Duration = Duration::from_secs(10);
/// The annotation of service accounts that names their role at AWS.
const ROLE: &str = "eks.amazonaws.com/role-arn";
/// Whom tokens for AWS are for.
const AUDIENCE: &str = "sts.amazonaws.com";
/// How long such a token holds: the shortest that there is.
const TOKEN_AGE: Duration = Duration::from_secs(600);
/// How many objects are looked through for labels.
const MAX_LISTED: usize = 5_000;

/// Reads for one render, from the thread of that, under the identity that deploys.
pub(crate) struct Reader {
    cluster: Option<Cluster>,
    outside: Outside,
    waiting: Waiting,
    client: OnceLock<Client>,
}

impl Reader {
    /// Who reads for a render.
    pub(crate) fn new(cluster: Option<Cluster>, outside: &Outside, waiting: Waiting) -> Self {
        Self {
            cluster,
            outside: outside.clone(),
            waiting,
            client: OnceLock::new(),
        }
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, Lookup>>) -> Result<T, Lookup> {
        self.waiting.on(work).map_err(Lookup::Failed)?
    }

    /// The client for servers and stores, made when the first of them is asked.
    fn client(&self, budget: &Budget) -> Result<&Client, Lookup> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let settings = Settings {
            refused_hosts: self.outside.refused_hosts.clone(),
            answer_bytes: budget.limits().file_bytes,
        };
        let made = Client::new(settings).map_err(failed)?;
        Ok(self.client.get_or_init(|| made))
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
        let nobody = Ambient::default();
        let ambient = match (&self.outside.stores, query) {
            (Some(ambient), _) => ambient,
            // Who asks is the service account, which whoever deploys may be.
            (
                None,
                SecretQuery::Aws {
                    service_account: Some(_),
                    ..
                },
            ) => &nobody,
            (None, _) => {
                return Err(Lookup::Failed(format!(
                    "{} is not asked here: whoever writes a project could read what this program may read",
                    query.store()
                )));
            }
        };
        let client = self.client(budget)?;
        self.wait(secret(client, ambient, self.cluster.as_ref(), query))
    }
}

async fn secret(
    client: &Client,
    ambient: &Ambient,
    cluster: Option<&Cluster>,
    query: &SecretQuery,
) -> Result<String, Lookup> {
    let found = match query {
        SecretQuery::Vault { address, path } => {
            let token = ambient.vault(address).map_err(failed)?;
            client.vault(address, path, &token).await
        }
        SecretQuery::Aws {
            name,
            region,
            profile,
            service_account,
        } => {
            let token = match service_account {
                Some((namespace, name)) => Some(trusted(cluster, namespace, name).await?),
                None => None,
            };
            let credentials = ambient.aws(client, profile.as_deref(), token.as_ref()).await;
            let credentials = credentials.map_err(failed)?;
            let at = ambient.aws_secrets().map_err(failed)?;
            client
                .aws(&credentials, region.as_deref(), name, at.as_ref())
                .await
        }
        SecretQuery::Gcp { name } => {
            let token = ambient.gcp(client).await.map_err(failed)?;
            client.gcp(&token, name, None).await
        }
        SecretQuery::Azure { vault, name } => {
            let scope = Client::azure_scope(vault).map_err(failed)?;
            let id = uuid::Uuid::new_v4().to_string();
            let token = ambient.azure(client, scope, &id).await.map_err(failed)?;
            client.azure(&token, vault, name, None).await
        }
    };
    found.map_err(failed)
}

/// The role of a service account, and a token by which AWS knows it.
async fn trusted(cluster: Option<&Cluster>, namespace: &str, name: &str) -> Result<TrustedToken, Lookup> {
    let about = |words: &str| Lookup::Failed(format!("service account {namespace}/{name}: {words}"));
    let Some(cluster) = cluster else {
        return Err(about("there is no cluster to get a token from"));
    };
    let reference = ObjectRef {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ServiceAccount".to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    };
    let found = cluster.get(&reference).await;
    let found = found.map_err(|error| about(&error.to_string()))?;
    let account = found.ok_or_else(|| about("there is none of that name"))?;
    let role = account
        .pointer(&["metadata", "annotations", ROLE])
        .and_then(Value::as_str);
    let role = role.filter(|role| !role.is_empty());
    let role = role.ok_or_else(|| about(&format!("it names no role: set its annotation {ROLE}")))?;
    let token = cluster
        .service_account_token(&reference, AUDIENCE, TOKEN_AGE)
        .await
        .map_err(|error| about(&error.to_string()))?;
    Ok(TrustedToken {
        role_arn: role.to_owned(),
        token,
    })
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
