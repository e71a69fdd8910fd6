//! Sets annotations.

use crate::{
    Error,
    resmap::ResMap,
    transform::{Scene, Transformer},
};

/// Sets annotations.
pub(crate) struct Annotations;

impl Transformer for Annotations {
    fn transform(&self, _resources: &mut ResMap, _scene: &Scene<'_>) -> Result<(), Error> {
        Err(Error::new(crate::Step::Transformer, "stub"))
    }
}
