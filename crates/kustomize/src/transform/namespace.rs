//! Sets namespace.

use crate::{
    Error,
    resmap::ResMap,
    transform::{Scene, Transformer},
};

/// Sets namespace.
pub(crate) struct Namespace;

impl Transformer for Namespace {
    fn transform(&self, _resources: &mut ResMap, _scene: &Scene<'_>) -> Result<(), Error> {
        Err(Error::new(crate::Step::Transformer, "stub"))
    }
}
