//! The tables that say which fields transformers work on, and the files that add rows to them.

use crate::{
    Error,
    fieldspec::{FieldSpec, NameReference},
    transform::Scene,
};

/// The tables of a kustomization: the built-in rows, those of `configurations` and those that `crds` give.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Config {
    pub(crate) name_prefix: Vec<FieldSpec>,
    pub(crate) name_suffix: Vec<FieldSpec>,
    pub(crate) namespace: Vec<FieldSpec>,
    pub(crate) common_labels: Vec<FieldSpec>,
    pub(crate) template_labels: Vec<FieldSpec>,
    pub(crate) labels: Vec<FieldSpec>,
    pub(crate) common_annotations: Vec<FieldSpec>,
    pub(crate) name_reference: Vec<NameReference>,
    pub(crate) var_reference: Vec<FieldSpec>,
    pub(crate) images: Vec<FieldSpec>,
    pub(crate) replicas: Vec<FieldSpec>,
}

impl Config {
    /// The built-in tables with the rows of the files that a kustomization names.
    pub(crate) fn load(_files: &[String], _scene: &Scene<'_>) -> Result<Self, Error> {
        Err(stub())
    }

    /// What the definitions in `crds` say of their fields.
    pub(crate) fn from_crds(_files: &[String], _scene: &Scene<'_>) -> Result<Self, Error> {
        Err(stub())
    }

    /// Adds the rows of another.
    pub(crate) fn merge(&mut self, _other: &Self) -> Result<(), Error> {
        Err(stub())
    }
}

fn stub() -> Error {
    Error::new(crate::Step::Kustomization, "stub")
}
