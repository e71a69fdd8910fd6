//! Sets the number of replicas of workloads.

use std::collections::HashMap;

use serde::Deserialize;
use yaml::node::Tag;

use super::{decode, set};
use crate::{
    Error,
    error::Step,
    fieldspec::{Create, FieldSpec},
    id::Gvk,
    model::{Field, Replica, configs},
    resmap::ResMap,
    resource::Resource,
    transform::{PluginContext, Transformer},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replicas {
    replicas: Vec<Replica>,
    specs: Vec<FieldSpec>,
}

impl Replicas {
    /// Makes the transformer of `replicas`, or of one entry of it.
    pub(crate) fn new(replicas: &[Replica], specs: &[FieldSpec]) -> Self {
        Self {
            replicas: replicas.to_vec(),
            specs: specs.to_vec(),
        }
    }

    /// Reads a `ReplicaCountTransformer`.
    pub(crate) fn from_config(config: &yaml::Value) -> Result<Self, Error> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Settings {
            replica: Replica,
            field_specs: Vec<Field>,
        }
        let settings: Settings = decode::config(config, &configs::REPLICAS)?;
        Ok(Self {
            replicas: vec![settings.replica],
            specs: settings.field_specs.into_iter().map(FieldSpec::from).collect(),
        })
    }

    fn apply(&self, replica: &Replica, resource: &mut Resource) -> Result<bool, Error> {
        let count = replica.count.to_string();
        let mut found = false;
        for spec in &self.specs {
            if !was(resource, &replica.name, &spec.gvk) {
                continue;
            }
            found = true;
            set::visit(resource, spec, Create::Scalar(Some(Tag::Int)), &mut |node| {
                set::scalar(node, &count, Some(Tag::Int))
            })?;
        }
        Ok(found)
    }

    fn not_found(&self, replica: &Replica) -> Error {
        let kinds: Vec<_> = self.specs.iter().map(|spec| spec.gvk.to_string()).collect();
        let problem = format!(
            "resource with name {} does not match a config with the following GVK [{}]",
            replica.name,
            kinds.join(" ")
        );
        Error::new(Step::Transformer, problem)
    }
}

/// Returns true if an object has or had a name while it was of a kind.
fn was(resource: &Resource, name: &str, kind: &Gvk) -> bool {
    let is = |id_name: &str, gvk: &Gvk| id_name == name && gvk.is_selected_by(kind);
    is(resource.name(), resource.gvk()) || resource.previous_ids().any(|id| is(&id.name, &id.gvk))
}

impl Transformer for Replicas {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        if self.replicas.is_empty() {
            return Ok(());
        }
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, replica) in self.replicas.iter().enumerate() {
            by_name.entry(&replica.name).or_default().push(index);
        }
        let mut found = vec![false; self.replicas.len()];
        for resource in resources.iter_mut() {
            ctx.step(self.specs.len())?;
            let previous = resource
                .history
                .previous
                .iter()
                .map(|previous| previous.name.as_str());
            let names = previous.chain([resource.name()]);
            let mut wanted: Vec<usize> = names
                .filter_map(|name| by_name.get(name))
                .flatten()
                .copied()
                .collect();
            wanted.sort_unstable();
            wanted.dedup();
            for index in wanted {
                if let (Some(replica), Some(found)) = (self.replicas.get(index), found.get_mut(index)) {
                    *found |= self.apply(replica, resource)?;
                }
            }
        }
        match self.replicas.iter().zip(&found).find(|(_, found)| !**found) {
            Some((replica, _)) => Err(self.not_found(replica)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::{
        affix::{Affix, Side},
        testing::{self, transformed, transformed_all},
    };

    fn replicas(counts: &[(&str, i64)]) -> Replicas {
        let replica = |(name, count): &(&str, i64)| Replica {
            name: (*name).to_owned(),
            count: *count,
        };
        let rows =
            ["Deployment", "StatefulSet"].map(|kind| FieldSpec::row("", "", kind, "spec/replicas", true));
        Replicas::new(&counts.iter().map(replica).collect::<Vec<_>>(), &rows)
    }

    const OBJECTS: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 1}}\n---\n\
        {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}}\n---\n\
        {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}, spec: {replicas: '2'}}\n---\n\
        {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n";

    fn counts(resources: &ResMap) -> Vec<String> {
        let count = |resource: &Resource| {
            let count = resource.node().pointer(&["spec", "replicas"])?;
            Some(yaml::print::json(&count.to_value().unwrap()))
        };
        resources.iter().filter_map(count).collect()
    }

    #[test]
    fn replicas_are_set_by_name() {
        let resources = transformed_all(OBJECTS, &[&replicas(&[("a", 5), ("b", 7), ("a", 6)])]).unwrap();
        // Quoted scalars stay quoted.
        assert_eq!(counts(&resources), ["6", "6", "\"7\""]);
    }

    #[test]
    fn replicas_match_earlier_names() {
        let prefix = Affix::new(Side::Prefix, "p-", &[testing::row("metadata/name", false)]);
        let resources = transformed_all(OBJECTS, &[&prefix, &replicas(&[("a", 3), ("p-b", 4)])]).unwrap();
        assert_eq!(counts(&resources), ["3", "3", "\"4\""]);
    }

    #[test]
    fn replica_entry_without_a_match_is_refused() {
        for name in ["c", "d"] {
            assert_eq!(
                transformed(OBJECTS, &replicas(&[("a", 1), (name, 1)])),
                format!(
                    "resource with name {name} does not match a config with the following GVK \
                     [Deployment.[noVer].[noGrp] StatefulSet.[noVer].[noGrp]]"
                )
            );
        }
        assert!(transformed(OBJECTS, &replicas(&[])).contains("replicas: 1\n"));
    }

    #[test]
    fn a_configuration_is_one_entry_with_its_fields() {
        let config =
            testing::config("{replica: {name: c, count: 2}, fieldSpecs: [{path: spec/count, create: true}]}");
        let replicas = Replicas::from_config(&config).unwrap();
        assert!(transformed(OBJECTS, &replicas).ends_with("name: c\nspec:\n  count: 2\n"));
    }
}
