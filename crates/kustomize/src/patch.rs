//! Does patch.

use crate::{
    Error,
    resmap::ResMap,
    transform::{Scene, Transformer},
};

/// Does patch.
pub(crate) struct Patches;

impl Transformer for Patches {
    fn transform(&self, _resources: &mut ResMap, _scene: &Scene<'_>) -> Result<(), Error> {
        Err(Error::new(crate::Step::Transformer, "stub"))
    }
}
