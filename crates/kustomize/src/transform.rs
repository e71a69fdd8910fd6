//! The transformers, which change the objects of a build: one file each.
//!
//! A transformer is made from a field of a kustomization, or from a configuration that `transformers` names; it is the same
//! one. The order in which those of a kustomization run is in [`crate::accumulate`].

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
    /// Reads the files that the kustomization names.
    pub(crate) loader: &'a Loader<'a>,
    /// The state that all parts of the build share.
    pub(crate) run: &'a Run<'a>,
}

/// Changes the objects of a build.
pub(crate) trait Transformer {
    /// Changes the objects. Objects of which nothing is left are dropped afterwards.
    ///
    /// # Errors
    /// Fails if it does not fit the objects.
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error>;
}

impl PluginContext<'_> {
    /// Counts the work on one object: each of so many entries and fields is looked at. Ends it when the budget does.
    pub(crate) fn step(&self, entries: usize) -> Result<(), Error> {
        self.run.step(1 + entries as u64, self.loader.root())
    }

    /// Counts a text that is set in a field.
    pub(crate) fn grow(&self, text: &str) -> Result<(), Error> {
        self.run.grow(text.len(), self.loader.root())
    }
}

impl Transformer for Box<dyn Transformer> {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        self.as_ref().transform(resources, ctx)
    }
}
