//! Sets affix.

use crate::{
    Error,
    resmap::ResMap,
    transform::{Scene, Transformer},
};

/// Sets affix.
pub(crate) struct Affix;

impl Transformer for Affix {
    fn transform(&self, _resources: &mut ResMap, _scene: &Scene<'_>) -> Result<(), Error> {
        Err(Error::new(crate::Step::Transformer, "stub"))
    }
}
