//! Remote clusters that a ConfigMap describes, and that are accessed with tokens of a ServiceAccount or of a cloud.

mod described;
mod tokens;

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use cloud::Location;
use cluster::access::{self, KubeconfigServer};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _};
use runtime::client::describe;
use serde_json::json;

use super::{Clusters, Connection, KubeconfigError, TargetCluster};
use described::{Access, Description, server};
use tokens::ClusterTokens;

/// A ConfigMap that describes a remote cluster.
#[derive(Debug, Clone, Copy)]
pub struct ClusterMap<'a> {
    pub name: &'a str,
    /// ServiceAccount of maps that name none; empty for none.
    pub default_account: &'a str,
}

/// One version of a ConfigMap, with the ServiceAccount whose tokens are used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct MapVersion {
    uid: String,
    resource_version: String,
    account: Option<String>,
}

impl Clusters {
    /// Connects to the cluster that a ConfigMap of `namespace` describes, with tokens of the ServiceAccount that it names. On that cluster, the
    /// ServiceAccount of the object is impersonated, or else the default one, as with a kubeconfig.
    ///
    /// # Errors
    /// If the ConfigMap is missing or invalid, its cluster isn't found, or no token can be created.
    pub async fn of_map(
        &self,
        namespace: &str,
        map: ClusterMap<'_>,
        service_account: Option<&str>,
    ) -> Result<TargetCluster, KubeconfigError> {
        let account = service_account.filter(|name| !name.is_empty());
        let mut names = [Some(map.name), account].into_iter().flatten();
        if let Some(name) = names.find(|name| !api::is_object_name(name)) {
            return Err(KubeconfigError::Name(name.to_owned()));
        }
        let connection = self.map_connection(namespace, map).await?;
        Ok(self.with_identity(connection, namespace, service_account))
    }

    async fn map_connection(
        &self,
        namespace: &str,
        map: ClusterMap<'_>,
    ) -> Result<Connection, KubeconfigError> {
        let id = format!("{namespace}/{}", map.name);
        let api: Api<ConfigMap> = Api::namespaced(self.ctx.client().clone(), namespace);
        let found = api.get(map.name).await;
        let found = found.map_err(|error| {
            let (map, why) = (id.clone(), describe(&error));
            match error {
                kube::Error::Api(status) if status.code == 404 => KubeconfigError::MissingMap { map, why },
                _ => KubeconfigError::UnreadableMap { map, why },
            }
        })?;
        let invalid = |why: String| KubeconfigError::InvalidMap { map: id.clone(), why };
        let data = found.data.clone().unwrap_or_default();
        // Where objects may deploy as the controller, whoever creates one has its identity already.
        let may_be_controller = self.default_service_account.is_empty();
        let described = Description::read(&data, map.default_account, may_be_controller);
        let described = described.map_err(invalid)?;
        let version = MapVersion {
            uid: found.uid().unwrap_or_default(),
            resource_version: found.resource_version().unwrap_or_default(),
            account: described.account.clone(),
        };
        let known = self.by_map.lock().get(&version).cloned();
        if let Some(connection) = known {
            return Ok(connection);
        }
        let tokens = ClusterTokens::new(&self.ctx, namespace, &described).map_err(invalid)?;
        let first = tokens.first().await;
        first.map_err(|why| KubeconfigError::NoToken {
            account: match &described.account {
                Some(name) => format!("ServiceAccount '{namespace}/{name}'"),
                None => "the controller".to_owned(),
            },
            why,
        })?;
        let server = locate(&described, &tokens).await.map_err(invalid)?;
        let kubeconfig = kubeconfig(&server);
        let connection = self.connect_with(kubeconfig.as_bytes(), Some(Arc::new(tokens)));
        let connection = connection.await.map_err(|error| invalid(error.to_string()))?;
        let mut known = self.by_map.lock();
        known.retain(|other, _| other.uid != version.uid);
        known.insert(namespace, version, connection.clone(), 1);
        Ok(connection)
    }
}

/// Returns the address and the certificates of the API server. The cloud is asked for the one that the ConfigMap leaves out. The error is in words.
async fn locate(described: &Description, tokens: &ClusterTokens) -> Result<KubeconfigServer, String> {
    let given = described
        .authority
        .as_ref()
        .map(|pem| BASE64_STANDARD.encode(pem));
    let cluster = match &described.access {
        Access::Cloud(cluster) if described.server.is_none() || given.is_none() => cluster,
        _ => {
            return Ok(KubeconfigServer {
                address: described.server.clone().unwrap_or_default(),
                authority: given,
            });
        }
    };
    let found = tokens.locate(cluster).await;
    let found = match found.map_err(|error| format!("the cluster cannot be looked up: {error}"))? {
        Location::Endpoint { address, authority } => KubeconfigServer {
            address: server(&address)?,
            authority: Some(authority),
        },
        Location::Kubeconfigs(all) => {
            let all = all.iter().map(|one| access::server_of(one.expose()));
            let all: Result<Vec<_>, _> = all.collect();
            let all = all.map_err(|error| format!("a kubeconfig of the cluster: {error}"))?;
            at_address(all, described.server.as_deref())?
        }
    };
    Ok(KubeconfigServer {
        address: described.server.clone().unwrap_or(found.address),
        authority: given.or(found.authority),
    })
}

/// Returns the server with an address, or the first one without it. The error is in words.
fn at_address(all: Vec<KubeconfigServer>, wanted: Option<&str>) -> Result<KubeconfigServer, String> {
    let mut addresses = Vec::new();
    for found in all {
        let address = server(&found.address)?;
        if wanted.is_none_or(|wanted| wanted == address) {
            return Ok(KubeconfigServer { address, ..found });
        }
        addresses.push(format!("'{address}'"));
    }
    Err(match wanted {
        Some(wanted) => format!(
            "the cluster has no address '{wanted}', but {}",
            addresses.join(", ")
        ),
        None => "the cluster has no kubeconfig for its users".to_owned(),
    })
}

/// Returns the kubeconfig of a server, so that it obeys the rules of users' kubeconfigs.
fn kubeconfig(server: &KubeconfigServer) -> String {
    let name = access::DEFAULT_CONTEXT;
    let address = &server.address;
    let cluster = match &server.authority {
        Some(authority) => json!({ "server": address, "certificate-authority-data": authority }),
        None => json!({ "server": address }),
    };
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{ "name": name, "cluster": cluster }],
        "users": [{ "name": name, "user": {} }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> KubeconfigServer {
        KubeconfigServer {
            address: address.to_owned(),
            authority: None,
        }
    }

    #[tokio::test]
    async fn kubeconfigs_of_servers_are_valid() {
        let server = at("https://api.example.com:443");
        let config = access::user_config(kubeconfig(&server).as_bytes()).await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://api.example.com:443/");
    }

    #[test]
    fn server_of_a_wanted_address_is_found() {
        let all = || vec![at("https://A.test"), at("https://b.test:443")];
        assert_eq!(at_address(all(), None).unwrap(), at("https://a.test:443"));
        let wanted = at_address(all(), Some("https://b.test:443"));
        assert_eq!(wanted.unwrap(), at("https://b.test:443"));
        assert_eq!(
            at_address(all(), Some("https://c.test:443")).unwrap_err(),
            "the cluster has no address 'https://c.test:443', but 'https://a.test:443', 'https://b.test:443'"
        );
        assert!(at_address(Vec::new(), None).is_err());
    }
}
