//! The result of a render.

use std::sync::Arc;

use objects::rules::Rules;
use sha2::{Digest as _, Sha256};
use tree::{Mem, TreePath};
use yaml::{Map, Value};

use crate::{Outline, RequestedImage};

#[derive(Debug, Clone, Default)]
pub struct Rendered {
    pub target: Target,
    /// In the order of deployment.
    pub items: Vec<Item>,
    pub outline: Outline,
    pub images: Vec<RequestedImage>,
    /// The rendered files, if requested: each source in a directory with its number. The objects of an item are in
    /// `.rendered.yml` next to its files.
    pub files: Option<Arc<Mem>>,
    pub warnings: Vec<String>,
}

impl Rendered {
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.items.iter().flat_map(|item| &item.objects)
    }

    /// Returns the deployment in the form of results, with the current objects.
    #[must_use]
    pub fn deployment(&self) -> Value {
        self.outline.to_value(&self.items)
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Target {
    /// Empty in projects without targets.
    pub name: String,
    /// The kube context; `None` without a cluster.
    pub context: Option<String>,
    pub discriminator: Option<String>,
    /// The target's own, without defaults and the request's arguments.
    pub args: Map,
    pub aws: Map,
    /// As written.
    pub images: Vec<Value>,
    /// The cluster that it names, in projects that describe clusters.
    pub cluster: Option<String>,
    /// The branch or tag that it was made for.
    pub reference: Option<String>,
}

impl Target {
    /// Returns the target in the form that templates and results see.
    #[must_use]
    pub fn to_map(&self) -> Map {
        let mut map = Map::new();
        map.insert("name", self.name.as_str());
        map.insert("context", self.context.as_deref().unwrap_or_default());
        if !self.args.is_empty() {
            map.insert("args", self.args.clone());
        }
        map.insert("aws", self.aws.clone());
        if !self.images.is_empty() {
            map.insert("images", self.images.clone());
        }
        if let Some(discriminator) = &self.discriminator {
            map.insert("discriminator", discriminator.as_str());
        }
        if let Some(cluster) = &self.cluster {
            map.insert("cluster", cluster.as_str());
        }
        if let Some(reference) = &self.reference {
            map.insert("targetConfig", crate::legacy::target_config(reference));
        }
        map
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Item {
    /// `None` for an item that only is a barrier.
    pub dir: Option<TreePath>,
    pub tags: Vec<String>,
    /// Everything up to this item must be finished before the next item starts.
    pub barrier: bool,
    /// Its objects must be ready before the item is finished.
    pub wait_readiness: bool,
    /// Printed while the barrier waits.
    pub message: Option<String>,
    /// Deleted before the item is applied.
    pub delete_objects: Vec<ObjectSelector>,
    /// Further objects that must be ready before the item is finished.
    pub wait_readiness_objects: Vec<ObjectSelector>,
    /// Rules of its projects for conflicts and ignored differences.
    pub rules: Arc<Rules>,
    /// Its rendered `helm-chart.yaml`.
    pub chart: Option<Value>,
    /// In the order of deployment: labelled and annotated, but with namespaces as written.
    pub objects: Vec<Value>,
}

/// Selects objects that an item deletes or waits for. At least one of group and kind is set; absent fields match any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectSelector {
    pub group: Option<String>,
    pub kind: Option<String>,
    pub name: String,
    /// The default one if absent.
    pub namespace: Option<String>,
}

/// Returns a checksum of objects and their order, in hex.
#[must_use]
pub fn objects_hash<'a>(objects: impl Iterator<Item = &'a Value>) -> String {
    let mut all = Sha256::new();
    for object in objects {
        all.update(Sha256::digest(yaml::print::json_sorted(object)));
    }
    hex::encode(all.finalize())
}
