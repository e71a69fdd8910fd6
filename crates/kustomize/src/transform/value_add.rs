//! Sets value_add.

use crate::{
    Error,
    resmap::ResMap,
    transform::{Scene, Transformer},
};

/// Sets value_add.
pub(crate) struct ValueAdd;

impl Transformer for ValueAdd {
    fn transform(&self, _resources: &mut ResMap, _scene: &Scene<'_>) -> Result<(), Error> {
        Err(Error::new(crate::Step::Transformer, "stub"))
    }
}
