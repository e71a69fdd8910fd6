//! Sets images.

use crate::{
    Error,
    resmap::ResMap,
    transform::{Scene, Transformer},
};

/// Sets images.
pub(crate) struct Images;

impl Transformer for Images {
    fn transform(&self, _resources: &mut ResMap, _scene: &Scene<'_>) -> Result<(), Error> {
        Err(Error::new(crate::Step::Transformer, "stub"))
    }
}
