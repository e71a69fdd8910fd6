//! The fixture of the tests: a cluster, a namespace and a discriminator for each, and ways to act as another
//! client.

use std::time::Duration;

use anyhow::{Context as _, Result};
use cluster::{Cluster, access};
use engine::{DeployOptions, RemoveOptions};
use kluctl::{Item, Rendered, Target};
use objects::ObjectRef;
use results::CommandResult;
use serde_json::{Value as Json, json};
use testkit::ControlPlane;
use tree::TreePath;
use yaml::Value;

/// Timeout that suffices on a busy machine.
pub(crate) const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

pub(crate) struct Fixture {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) cluster: Cluster,
    /// A namespace that exists; its name is the discriminator too.
    pub(crate) namespace: String,
}

impl Fixture {
    pub(crate) async fn new(name: &str) -> Result<Self> {
        let plane = ControlPlane::shared().await?;
        let namespace = plane.namespace(name).await?;
        Ok(Self {
            plane,
            cluster: connect(plane.kubeconfig()).await?,
            namespace,
        })
    }

    pub(crate) fn config_map(&self, name: &str, data: Json) -> Json {
        self.object("v1", "ConfigMap", name, json!({"data": data}))
    }

    pub(crate) fn object(&self, api_version: &str, kind: &str, name: &str, rest: Json) -> Json {
        let mut object = json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace}});
        object
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        object
    }

    pub(crate) fn rendered(&self, objects: Vec<Json>) -> Rendered {
        self.items(vec![objects])
    }

    /// Items with these objects, labelled and annotated as rendering does it, with a barrier after each.
    pub(crate) fn items(&self, items: Vec<Vec<Json>>) -> Rendered {
        let items = items.into_iter().enumerate().map(|(i, objects)| {
            let label = |mut object: Json| {
                object["metadata"]["labels"]["kluctl.io/discriminator"] = json!(self.namespace);
                object["metadata"]["annotations"]["kluctl.io/deployment-item-dir"] =
                    json!(format!("item-{i}"));
                Value::from_json(object)
            };
            Item {
                dir: TreePath::parse(&format!("item-{i}")).ok(),
                barrier: true,
                objects: objects.into_iter().map(label).collect(),
                ..Item::default()
            }
        });
        let target = Target {
            discriminator: Some(self.namespace.clone()),
            ..Target::default()
        };
        Rendered {
            target,
            items: items.collect(),
            ..Rendered::default()
        }
    }

    pub(crate) async fn deploy(&self, rendered: &Rendered) -> Result<CommandResult> {
        Ok(engine::deploy(&self.cluster, rendered, &DeployOptions::default()).await?)
    }

    pub(crate) async fn deploy_well(&self, rendered: &Rendered) -> Result<CommandResult> {
        let result = self.deploy(rendered).await?;
        anyhow::ensure!(result.errors.is_empty(), "{:?}", result.errors);
        Ok(result)
    }

    pub(crate) async fn prune(&self, rendered: &Rendered) -> Result<Vec<String>> {
        let options = RemoveOptions {
            wait: Some(TIMEOUT),
            ..RemoveOptions::default()
        };
        let result = engine::prune(&self.cluster, rendered, &options).await?;
        anyhow::ensure!(result.errors.is_empty(), "{:?}", result.errors);
        Ok(deleted(&result))
    }

    pub(crate) fn reference(&self, api_version: &str, kind: &str, name: &str) -> ObjectRef {
        ObjectRef::of(&Value::from_json(self.object(api_version, kind, name, json!({})))).unwrap()
    }

    pub(crate) async fn live(&self, name: &str) -> Result<Option<Json>> {
        let live = self.cluster.get(&self.reference("v1", "ConfigMap", name)).await?;
        Ok(live.map(|object| object.to_json()))
    }

    pub(crate) async fn data(&self, name: &str) -> Result<Json> {
        Ok(self
            .live(name)
            .await?
            .with_context(|| format!("{name} is gone"))?["data"]
            .clone())
    }

    pub(crate) async fn patch_as(&self, manager: &str, what: &str, patch: Json) -> Result<()> {
        let (patch, manager) = (patch.to_string(), format!("--field-manager={manager}"));
        let args = [
            "patch",
            what,
            "-n",
            &self.namespace,
            "--type=merge",
            "-p",
            &patch,
            &manager,
        ];
        self.plane.kubectl(&args).await.map(|_| ())
    }
}

pub(crate) async fn client(kubeconfig: &std::path::Path) -> Result<kube::Client> {
    let config = access::user_config(&std::fs::read(kubeconfig)?).await?;
    Ok(access::client(config)?)
}

pub(crate) async fn connect(kubeconfig: &std::path::Path) -> Result<Cluster> {
    Ok(Cluster::new(client(kubeconfig).await?))
}

pub(crate) fn deleted(result: &CommandResult) -> Vec<String> {
    let deleted = result.objects.iter().filter(|object| object.deleted);
    deleted.map(|object| object.reference.name.clone()).collect()
}
