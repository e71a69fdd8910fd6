//! The cluster that an object deploys to, and who deploys there.

use std::{collections::HashMap, sync::Arc};

use api::{Fault, Reason, group, kluctl::KluctlDeployment};
use cluster::{Cluster, access};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Config, ResourceExt};
use runtime::{Context, client::describe};
use tokio::sync::Mutex;

use super::{observe, spec};

/// Connections to remote clusters that are kept; more are made anew each time.
const KEPT: usize = 64;
/// Keys of a Secret that may hold a kubeconfig, where none is named.
const KEYS: [&str; 2] = ["value", "value.yaml"];

/// Which cluster something is: two of them are the same if they answer at one address, or show the certificates of one
/// authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    server: String,
    authority: Option<Vec<Vec<u8>>>,
}

impl Identity {
    fn of(config: &Config) -> Self {
        Self {
            server: config.cluster_url.to_string(),
            authority: config.root_cert.clone(),
        }
    }

    /// Whether both may be one cluster.
    pub(crate) fn may_be(&self, other: &Self) -> bool {
        self.server == other.server || (self.authority.is_some() && self.authority == other.authority)
    }
}

/// A way to a cluster.
#[derive(Debug, Clone)]
struct Way {
    cluster: Cluster,
    identity: Arc<Identity>,
}

/// A cluster under the identity that an object deploys with.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The cluster.
    pub(crate) cluster: Cluster,
    /// Which cluster it is.
    pub(crate) identity: Arc<Identity>,
}

/// The content of a Secret at a moment, by name and version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Version {
    uid: String,
    resource_version: String,
    key: Option<String>,
}

/// All clusters that this process deploys to.
#[derive(Debug)]
pub(crate) struct Targets {
    ctx: Context,
    default_service_account: String,
    home: Way,
    remote: Mutex<HashMap<Version, Way>>,
}

impl Targets {
    /// Begins with the cluster of the process.
    pub(crate) fn new(ctx: &Context) -> Self {
        let identity = Arc::new(Identity::of(ctx.config()));
        let home = Way {
            cluster: Cluster::new(ctx.client().clone()),
            identity,
        };
        let default_service_account = ctx.flags().default_service_account.clone();
        Self {
            ctx: ctx.clone(),
            default_service_account,
            home,
            remote: Mutex::default(),
        }
    }

    /// The cluster of an object, under the identity that it deploys with.
    pub(crate) async fn of(&self, object: &KluctlDeployment) -> Result<Target, Fault> {
        let way = self.way(object).await?;
        let cluster = match self.user(object) {
            Some(user) => way.cluster.impersonate(&user),
            None => way.cluster,
        };
        Ok(Target {
            cluster,
            identity: way.identity,
        })
    }

    /// The user in whose name an object deploys; nobody but the process itself if there is none.
    fn user(&self, object: &KluctlDeployment) -> Option<String> {
        let own = object
            .spec
            .service_account_name
            .as_deref()
            .filter(|name| !name.is_empty());
        let name = own.unwrap_or(&self.default_service_account);
        (!name.is_empty()).then(|| access::service_account(&object.namespace().unwrap_or_default(), name))
    }

    async fn way(&self, object: &KluctlDeployment) -> Result<Way, Fault> {
        let Some(config) = &object.spec.kube_config else {
            return Ok(self.home.clone());
        };
        let retry = spec::retry_interval(&object.spec);
        let fault = |reason, message| Fault::wait(retry, reason, message);
        let namespace = object.namespace().unwrap_or_default();
        let named = format!("'{namespace}/{}'", config.secret_ref.name);
        let api: Api<Secret> = Api::namespaced(self.ctx.client().clone(), &namespace);
        let secret = api.get(&config.secret_ref.name).await.map_err(|error| {
            fault(
                Reason::PrepareFailed,
                format!(
                    "unable to read KubeConfig secret {named} error: {}",
                    describe(&error)
                ),
            )
        })?;
        let version = Version {
            uid: secret.uid().unwrap_or_default(),
            resource_version: secret.resource_version().unwrap_or_default(),
            key: config.secret_ref.key.clone(),
        };
        if let Some(way) = self.remote.lock().await.get(&version) {
            return Ok(way.clone());
        }
        let kubeconfig = kubeconfig_in(&secret, config.secret_ref.key.as_deref()).map_err(|key| {
            let message =
                format!("KubeConfig secret {named} does not contain a '{key}' key with a kubeconfig");
            fault(Reason::PrepareFailed, message)
        })?;
        let way = self.connect(kubeconfig).await.map_err(|error| {
            let reason = match error {
                cluster::Error::KubeconfigRefused(_) => Reason::AccessDenied,
                _ => Reason::PrepareFailed,
            };
            fault(reason, format!("KubeConfig secret {named}: {error}"))
        })?;
        self.keep(version, &way).await;
        Ok(way)
    }

    async fn connect(&self, kubeconfig: &[u8]) -> Result<Way, cluster::Error> {
        let config = access::user_config(kubeconfig).await?;
        let identity = Arc::new(Identity::of(&config));
        // Through the process, so that nothing is written once the lease is over.
        let client = self
            .ctx
            .client_for(config)
            .map_err(|error| cluster::Error::Kubeconfig(error.to_string()))?;
        Ok(Way {
            cluster: Cluster::new(client),
            identity,
        })
    }

    async fn keep(&self, version: Version, way: &Way) {
        let mut remote = self.remote.lock().await;
        remote.retain(|kept, _| kept.uid != version.uid || kept.key != version.key);
        if remote.len() >= KEPT {
            remote.clear();
        }
        remote.insert(version, way.clone());
    }

    /// The others that deploy with this discriminator to this cluster, of whichever group, by name. Read live: what belongs to somebody
    /// else must not be deleted.
    pub(crate) async fn sharers(
        &self,
        object: &KluctlDeployment,
        discriminator: &str,
        own: &Identity,
    ) -> Result<Vec<String>, Fault> {
        let unknown = |error: kube::Error| {
            let message = format!(
                "cannot look for others with the discriminator '{discriminator}': {}",
                describe(&error)
            );
            Fault::retry(Reason::Failed, message)
        };
        let (client, namespace) = (self.ctx.client(), self.ctx.flags().watch_namespace());
        let all = observe::all(client, namespace).await.map_err(unknown)?;
        let mut sharers = Vec::new();
        for other in all.iter().filter(|other| shares(object, other, discriminator)) {
            // Where it deploys to is not known as long as its kubeconfig can't be read: it may well be here.
            if self.way(other).await.is_ok_and(|way| !way.identity.may_be(own)) {
                continue;
            }
            sharers.push(format!("KluctlDeployment {}", spec::key(other)));
        }
        let successors = observe::claiming_successors(client, namespace, discriminator)
            .await
            .map_err(unknown)?;
        let name = |key| format!("KluctlDeployment.{} {key}", group::GITOPS_KLUCTL);
        sharers.extend(successors.iter().map(name));
        Ok(sharers)
    }
}

/// Whether another object claims the same discriminator. One that is just being removed together with all that it
/// deployed has no claim any more.
fn shares(object: &KluctlDeployment, other: &KluctlDeployment, discriminator: &str) -> bool {
    let claims = other
        .status
        .as_ref()
        .and_then(|status| status.discriminator.as_deref())
        == Some(discriminator);
    let spec = &other.spec;
    let going =
        other.metadata.deletion_timestamp.is_some() && spec.delete.unwrap_or(spec.prune) && !spec.suspend;
    claims && !going && spec::key(other) != spec::key(object)
}

/// Finds the kubeconfig in a Secret; otherwise gives back the key that it should be under.
fn kubeconfig_in<'a>(secret: &'a Secret, key: Option<&'a str>) -> Result<&'a [u8], &'a str> {
    let data = |key: &str| {
        secret
            .data
            .as_ref()?
            .get(key)
            .map(|bytes| bytes.0.as_slice())
            .filter(|b| !b.is_empty())
    };
    match key.filter(|key| !key.is_empty()) {
        Some(key) => data(key).ok_or(key),
        None => KEYS.into_iter().find_map(data).ok_or("value"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::ByteString;
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str, change: impl FnOnce(&mut Value)) -> KluctlDeployment {
        let mut object = json!({
            "apiVersion": "flux.kluctl.io/v1alpha1",
            "kind": "KluctlDeployment",
            "metadata": { "name": name, "namespace": "apps" },
            "spec": { "interval": "5m", "prune": true },
            "status": { "discriminator": "shop" },
        });
        change(&mut object);
        serde_json::from_value(object).expect("decodes")
    }

    #[test]
    fn claims_of_others_count_until_they_are_removed_with_their_objects() {
        let own = object("a", |_| {});
        let removed = |o: &mut Value| o["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let cases: Vec<(&str, KluctlDeployment, bool)> = vec![
            ("itself", object("a", |_| {}), false),
            ("another", object("b", |_| {}), true),
            (
                "suspended",
                object("b", |o| o["spec"]["suspend"] = json!(true)),
                true,
            ),
            (
                "other discriminator",
                object("b", |o| o["status"]["discriminator"] = json!("x")),
                false,
            ),
            ("never deployed", object("b", |o| o["status"] = json!({})), false),
            ("removed with its objects", object("b", removed), false),
            (
                "removed without its objects",
                object("b", |o| {
                    removed(o);
                    o["spec"]["delete"] = json!(false);
                }),
                true,
            ),
        ];
        for (name, other, want) in cases {
            assert_eq!(shares(&own, &other, "shop"), want, "{name}");
        }
    }

    #[test]
    fn a_cluster_is_known_by_its_address_or_its_authority() {
        let identity = |server: &str, authority: Option<&[u8]>| Identity {
            server: server.to_owned(),
            authority: authority.map(|bytes| vec![bytes.to_vec()]),
        };
        let home = identity("https://10.0.0.1", Some(b"ca"));
        assert!(home.may_be(&identity("https://10.0.0.1", None)));
        assert!(home.may_be(&identity("https://api.example.com", Some(b"ca"))));
        assert!(!home.may_be(&identity("https://api.example.com", Some(b"other"))));
        assert!(!identity("https://a", None).may_be(&identity("https://b", None)));
    }

    #[test]
    fn a_kubeconfig_is_found_under_its_key() {
        let secret = |pairs: &[(&str, &str)]| Secret {
            data: Some(
                pairs
                    .iter()
                    .map(|(k, v)| ((*k).to_owned(), ByteString(v.as_bytes().to_vec())))
                    .collect::<BTreeMap<_, _>>(),
            ),
            ..Secret::default()
        };
        let both = secret(&[("value", "a"), ("value.yaml", "b"), ("own", "c"), ("empty", "")]);
        assert_eq!(kubeconfig_in(&both, None), Ok(&b"a"[..]));
        assert_eq!(kubeconfig_in(&both, Some("")), Ok(&b"a"[..]));
        assert_eq!(kubeconfig_in(&both, Some("own")), Ok(&b"c"[..]));
        assert_eq!(kubeconfig_in(&both, Some("empty")), Err("empty"));
        assert_eq!(
            kubeconfig_in(&secret(&[("value.yaml", "b")]), None),
            Ok(&b"b"[..])
        );
        assert_eq!(kubeconfig_in(&secret(&[]), None), Err("value"));
    }
}
