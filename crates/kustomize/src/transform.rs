//! What changes the objects of a build: one file a transformer.
//!
//! A transformer is made from a field of a kustomization, or from a configuration that `transformers` names; it is the same
//! one. The order in which those of a kustomization run is in [`crate::accumulate`].

pub(crate) mod affix;
pub(crate) mod annotations;
pub(crate) mod images;
pub(crate) mod labels;
pub(crate) mod namespace;
pub(crate) mod replicas;
pub(crate) mod value_add;

use crate::{Error, loader::Loader, options::Run, resmap::ResMap};

/// Where a transformer, generator or validator runs.
pub(crate) struct Scene<'a> {
    /// Reads the files that the kustomization names.
    pub(crate) loader: &'a Loader<'a>,
    /// What all parts of the build share.
    pub(crate) run: &'a Run<'a>,
}

/// Changes the objects of a build.
pub(crate) trait Transformer {
    /// Changes the objects. Objects of which nothing is left are dropped afterwards.
    ///
    /// # Errors
    /// When it does not fit the objects.
    fn transform(&self, resources: &mut ResMap, scene: &Scene<'_>) -> Result<(), Error>;
}
