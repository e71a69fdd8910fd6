//! Sets entries of maps: what labels and annotations have in common.

use std::collections::BTreeMap;

use crate::{
    Error,
    fieldspec::{Create, FieldSpec},
    resmap::ResMap,
    transform::{Scene, Transformer, set},
};

/// Sets strings in maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pairs {
    pub(super) pairs: BTreeMap<String, String>,
    pub(super) specs: Vec<FieldSpec>,
}

impl Transformer for Pairs {
    fn transform(&self, resources: &mut ResMap, scene: &Scene<'_>) -> Result<(), Error> {
        if self.pairs.is_empty() {
            return Ok(());
        }
        for resource in resources.iter_mut() {
            scene.step()?;
            for spec in &self.specs {
                set::visit(resource, spec, Create::Map, &mut |node| {
                    self.pairs
                        .iter()
                        .try_for_each(|(key, text)| set::entry(node, key, text))
                })?;
            }
        }
        Ok(())
    }
}
