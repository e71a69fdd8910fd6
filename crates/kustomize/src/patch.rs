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

impl Patches {
    pub(crate) fn from_paths(_: &[String], _: &Scene<'_>) -> Result<Self, Error> {
        Ok(Self)
    }
    pub(crate) fn from_entry(_: &crate::model::Patch, _: &Scene<'_>) -> Result<Self, Error> {
        Ok(Self)
    }
    pub(crate) fn json6902_from_entry(_: &crate::model::Patch, _: &Scene<'_>) -> Result<Self, Error> {
        Ok(Self)
    }
    pub(crate) fn from_config(_: &yaml::Value, _: &Scene<'_>) -> Result<Self, Error> {
        Ok(Self)
    }
    pub(crate) fn strategic_from_config(_: &yaml::Value, _: &Scene<'_>) -> Result<Self, Error> {
        Ok(Self)
    }
    pub(crate) fn json6902_from_config(_: &yaml::Value, _: &Scene<'_>) -> Result<Self, Error> {
        Ok(Self)
    }
}
