//! Sets entries of maps: what labels and annotations have in common.

use std::collections::BTreeMap;

use crate::{
    Error,
    fieldspec::{Create, FieldSpec},
    resmap::ResMap,
    resource::{Resource, Shared},
    transform::{Scene, Transformer, set},
};

/// Sets strings in maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pairs {
    pub(super) pairs: BTreeMap<String, String>,
    pub(super) specs: Vec<FieldSpec>,
}

impl Pairs {
    fn apply(&self, resource: &mut Resource, scene: &Scene<'_>) -> Result<(), Error> {
        let mut added = vec![Vec::new(); self.pairs.len()];
        for spec in &self.specs {
            set::visit(resource, spec, Create::Map, &mut |node| {
                for ((key, text), added) in self.pairs.iter().zip(&mut added) {
                    if set::entry(node, key, text)? {
                        scene.grow(key)?;
                        scene.grow(text)?;
                        added.push(spec.path.clone());
                    }
                }
                Ok(())
            })?;
        }
        resource.settle();
        for ((key, text), mut paths) in self.pairs.iter().zip(added) {
            if paths.len() > 1 {
                paths.dedup();
                resource.history.shared.push(Shared::new(key, text, paths));
            }
        }
        Ok(())
    }
}

impl Transformer for Pairs {
    fn transform(&self, resources: &mut ResMap, scene: &Scene<'_>) -> Result<(), Error> {
        if self.pairs.is_empty() {
            return Ok(());
        }
        for resource in resources.iter_mut() {
            scene.step(self.pairs.len() + self.specs.len())?;
            self.apply(resource, scene)?;
        }
        Ok(())
    }
}
