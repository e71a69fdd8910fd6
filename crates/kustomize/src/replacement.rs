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

impl Replacements {
    pub(crate) fn new(_: &[crate::model::ReplacementEntry], _: &Scene<'_>) -> Result<Self, Error> {
        Ok(Self)
    }
    pub(crate) fn from_config(_: &yaml::Value, _: &Scene<'_>) -> Result<Self, Error> {
        Ok(Self)
    }
}
