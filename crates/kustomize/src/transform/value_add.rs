//! Sets value_add.

use crate::{
    Error,
    resmap::ResMap,
    transform::{Scene, Transformer},
};

/// Sets value_add.
pub(crate) struct ValueAdd;

impl ValueAdd {
    /// A `ValueAddTransformer`.
    ///
    /// # Errors
    /// When something in the configuration is of the wrong type or missing, or its file can't be read.
    pub(crate) fn from_config(_config: &yaml::Value, _scene: &Scene<'_>) -> Result<Self, Error> {
        Err(Error::new(crate::Step::Plugin, "stub"))
    }
}

impl Transformer for ValueAdd {
    fn transform(&self, _resources: &mut ResMap, _scene: &Scene<'_>) -> Result<(), Error> {
        Err(Error::new(crate::Step::Transformer, "stub"))
    }
}
