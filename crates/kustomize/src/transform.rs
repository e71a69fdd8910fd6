//! The transformers, which change the objects of a build: one file each. A transformer is made from a field of a
//! kustomization, or from a configuration that `transformers` names. [`crate::accumulate`] has their order.

pub(crate) mod affix;
pub(crate) mod annotations;
pub(crate) mod decode;
pub(crate) mod images;
pub(crate) mod labels;
pub(crate) mod namespace;
mod pairs;
pub(crate) mod replicas;
pub(crate) mod set;
pub(crate) mod value_add;

#[cfg(test)]
pub(crate) mod testing;

use crate::{Error, loader::Loader, resmap::ResMap, run::Run};

/// The context in which a transformer, generator or validator runs.
pub(crate) struct PluginContext<'a> {
    pub(crate) loader: &'a Loader<'a>,
    pub(crate) run: &'a Run<'a>,
}

/// Changes the objects of a build.
pub(crate) trait Transformer {
    /// Changes the objects. Empty objects are dropped afterwards.
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error>;
}

impl PluginContext<'_> {
    /// Counts the entries or fields that are compared with one object.
    pub(crate) fn step(&self, entries: usize) -> Result<(), Error> {
        self.run.step(1 + entries as u64, self.loader.root())
    }

    /// Counts a string that is set in a field.
    pub(crate) fn grow(&self, text: &str) -> Result<(), Error> {
        self.run.grow(text.len(), self.loader.root())
    }
}

impl Transformer for Box<dyn Transformer> {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        self.as_ref().transform(resources, ctx)
    }
}
