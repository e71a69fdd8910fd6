//! The result of a render.

use std::sync::Arc;

use objects::rules::Rules;
use sha2::{Digest as _, Sha256};
use tree::{Mem, TreePath};
use yaml::{Map, Value};

use crate::{Outline, RequestedImage};

/// A project rendered for one target.
#[derive(Debug, Clone, Default)]
pub struct Rendered {
    /// The target that was rendered.
    pub target: Target,
    /// The items, in the order of deployment.
    pub items: Vec<Item>,
    /// The files of the project, and the items that they became.
    pub outline: Outline,
    /// The images that templates asked for.
    pub images: Vec<RequestedImage>,
    /// The rendered files, when they were asked for: those of each source in a directory with its number. The objects of an
    /// item are in `.rendered.yml` beside its files.
    pub files: Option<Arc<Mem>>,
    /// Warnings of a successful render.
    pub warnings: Vec<String>,
}

impl Rendered {
    /// All objects in the order of deployment.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.items.iter().flat_map(|item| &item.objects)
    }

    /// The deployment as results tell it, with the objects as they are now.
    #[must_use]
    pub fn deployment(&self) -> Value {
        self.outline.to_value(&self.items)
    }
}

/// The target that was rendered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Target {
    /// Its name; empty in projects without targets.
    pub name: String,
    /// The kube context that it is deployed to; none without a cluster.
    pub context: Option<String>,
    /// Discriminator of its objects.
    pub discriminator: Option<String>,
    /// Its own arguments, without defaults and arguments from outside.
    pub args: Map,
    /// AWS settings of the target.
    pub aws: Map,
    /// The images that it uses in place of others, as they are written.
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

/// A deployment item with its objects.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Item {
    /// Its directory; none for an item that only is a barrier.
    pub dir: Option<TreePath>,
    /// Its tags, inherited ones first.
    pub tags: Vec<String>,
    /// True if everything up to this item must be finished before the next item starts.
    pub barrier: bool,
    /// True if its objects must be ready before the item is finished.
    pub wait_readiness: bool,
    /// Message that is shown while the barrier waits.
    pub message: Option<String>,
    /// Objects that are deleted before the item is applied.
    pub delete_objects: Vec<ObjectSelector>,
    /// Further objects that must be ready before the item is finished.
    pub wait_readiness_objects: Vec<ObjectSelector>,
    /// Rules of its projects for conflicts and ignored differences.
    pub rules: Arc<Rules>,
    /// Its `helm-chart.yaml`, rendered, if it has one.
    pub chart: Option<Value>,
    /// Its objects in the order of deployment: labelled and annotated, but with namespaces as they were written.
    pub objects: Vec<Value>,
}

/// Objects that an item names without bringing them: those of all kinds that match. Group or kind is there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectSelector {
    /// API group; any group if absent.
    pub group: Option<String>,
    /// Kind; any kind if absent.
    pub kind: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Namespace; the default one if absent.
    pub namespace: Option<String>,
}

/// A checksum of objects and their order, in hex.
#[must_use]
pub fn objects_hash<'a>(objects: impl Iterator<Item = &'a Value>) -> String {
    let mut all = Sha256::new();
    for object in objects {
        all.update(Sha256::digest(yaml::print::json_sorted(object)));
    }
    hex::encode(all.finalize())
}
