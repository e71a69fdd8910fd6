//! The size of a load, and the kind of its deployments.

use std::str::FromStr;

use anyhow::{Context as _, Result};
use api::{condition_type, conditions};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::json;

use super::project;
use crate::cluster::{CONTROLLERS, NAMESPACE, TestCluster};

/// The kind that deploys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deployer {
    KluctlDeployment,
    Kustomization,
}

impl Deployer {
    /// Returns group, version and kind.
    pub(crate) fn kind(self) -> [&'static str; 3] {
        match self {
            Self::KluctlDeployment => ["flux.kluctl.io", "v1alpha1", "KluctlDeployment"],
            Self::Kustomization => ["kustomize.toolkit.fluxcd.io", "v1", "Kustomization"],
        }
    }

    pub(crate) fn controller(self) -> &'static str {
        match self {
            Self::KluctlDeployment => "kluctl-controller",
            Self::Kustomization => "kustomize-controller",
        }
    }

    /// Returns the controllers that take part.
    pub(super) fn controllers(self) -> &'static [&'static str] {
        match self {
            Self::KluctlDeployment => CONTROLLERS,
            Self::Kustomization => &[
                "notification-controller",
                "source-controller",
                "kustomize-controller",
            ],
        }
    }

    pub(crate) fn api(self, cluster: &TestCluster) -> Api<DynamicObject> {
        let [group, version, kind] = self.kind();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(cluster.client.clone(), NAMESPACE, &resource)
    }

    /// Returns true if the object was deployed from this commit.
    pub(crate) fn is_at(self, object: &DynamicObject, commit: &str) -> bool {
        let field = match self {
            Self::KluctlDeployment => "lastAttemptedRevision",
            Self::Kustomization => "lastAppliedRevision",
        };
        let revision = object.data["status"][field].as_str();
        revision.is_some_and(|revision| revision.ends_with(commit))
    }
}

/// Returns true if the newest generation is Ready.
pub(crate) fn is_ready(object: &DynamicObject) -> bool {
    let status = &object.data["status"];
    let conditions: Vec<api::Condition> =
        serde_json::from_value(status["conditions"].clone()).unwrap_or_default();
    status["observedGeneration"].as_i64() == object.metadata.generation
        && conditions::is_true(&conditions, condition_type::READY)
}

/// The number of pairs, and of objects of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    pub pairs: usize,
    pub objects: usize,
    pub deployer: Deployer,
    /// True if all deployments follow one source.
    pub one_source: bool,
}

impl Load {
    #[must_use]
    pub fn kluctl(pairs: usize, objects: usize) -> Self {
        Self {
            pairs,
            objects,
            deployer: Deployer::KluctlDeployment,
            one_source: false,
        }
    }

    /// Parses a load of Kustomizations: `50`, `1x100` (objects of each), or `200@1` (on one source).
    ///
    /// # Errors
    /// If it isn't of one of these forms.
    pub fn kustomizations(text: &str) -> Result<Self> {
        let (rest, one_source) = text.strip_suffix("@1").map_or((text, false), |rest| (rest, true));
        let load: Self = rest
            .parse()
            .with_context(|| format!("{text} isn't PAIRS, PAIRSxOBJECTS or PAIRS@1"))?;
        Ok(Self {
            deployer: Deployer::Kustomization,
            one_source,
            ..load
        })
    }

    pub(super) fn sources(self) -> usize {
        if self.one_source { 1 } else { self.pairs }
    }

    /// Returns the index of the source of a deployment.
    pub(super) fn source_of(self, index: usize) -> usize {
        if self.one_source { 0 } else { index }
    }

    /// Applies a deployment.
    pub(super) async fn apply(self, cluster: &TestCluster, index: usize) -> Result<()> {
        let (name, source) = (project::name(index), project::name(self.source_of(index)));
        match self.deployer {
            Deployer::KluctlDeployment => {
                let spec = json!({"interval": "1h", "target": "only"});
                cluster.apply_deployment(&name, &source, spec).await
            }
            Deployer::Kustomization => {
                let spec = json!({"interval": "1h", "path": self.directory(index)});
                cluster.apply_kustomization(&name, &source, spec).await
            }
        }
    }

    /// Returns the directory of a deployment's objects.
    pub(super) fn directory(self, index: usize) -> String {
        match self.one_source {
            true => project::name(index),
            false => "app".to_owned(),
        }
    }
}

impl FromStr for Load {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (pairs, objects) = text.split_once('x').unwrap_or((text, "1"));
        Ok(Self::kluctl(pairs.parse()?, objects.parse()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_a_number_of_pairs_and_of_objects() {
        let load = Load::kluctl;
        assert_eq!("50".parse(), Ok(load(50, 1)));
        assert_eq!("1x300".parse(), Ok(load(1, 300)));
        assert!("x3".parse::<Load>().is_err() && "a".parse::<Load>().is_err());
        assert_eq!(project::objects(load(1, 3), 0, 1).len(), 3);
        assert_eq!(project::objects(load(1, 300), 0, 1).len(), 300);
    }

    #[test]
    fn kustomizations_may_share_a_source() {
        let load = Load::kustomizations("200@1").expect("a load");
        assert_eq!((load.pairs, load.sources(), load.source_of(7)), (200, 1, 0));
        assert_eq!(load.directory(7), "pair-7");
        let pairs = Load::kustomizations("50").expect("a load");
        assert_eq!((pairs.sources(), pairs.source_of(7)), (50, 7));
        assert!(Load::kustomizations("200@2").is_err());
    }
}
