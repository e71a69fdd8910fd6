//! Does order.

use crate::{
    Error,
    resmap::ResMap,
    transform::{Scene, Transformer},
};

/// Does order.
pub(crate) struct Sort;

impl Transformer for Sort {
    fn transform(&self, _resources: &mut ResMap, _scene: &Scene<'_>) -> Result<(), Error> {
        Err(Error::new(crate::Step::Transformer, "stub"))
    }
}
