//! Does replacement.

use crate::{
    Error,
    resmap::ResMap,
    transform::{Scene, Transformer},
};

/// Does replacement.
pub(crate) struct Replacements;

impl Transformer for Replacements {
    fn transform(&self, _resources: &mut ResMap, _scene: &Scene<'_>) -> Result<(), Error> {
        Err(Error::new(crate::Step::Transformer, "stub"))
    }
}
