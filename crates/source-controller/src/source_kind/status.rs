//! The fields of a status that all kinds have.

use api::{
    Artifact, Condition,
    source::{BucketStatus, GitRepositoryStatus, HelmChartStatus, HelmRepositoryStatus, OCIRepositoryStatus},
};

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SourceStatus {
    /// Generation of the last finished pass; -1 before the first.
    pub(crate) observed_generation: Option<i64>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) artifact: Option<Artifact>,
    /// URL of the latest artifact.
    pub(crate) url: Option<String>,
    /// Ignore rules of the stored artifact.
    pub(crate) observed_ignore: Option<String>,
    /// Last handled value of the annotation `reconcile.fluxcd.io/requestedAt`.
    pub(crate) last_handled_reconcile_at: Option<String>,
}

/// A status with the fields that all kinds have.
pub(crate) trait CommonStatus {
    fn common(&self) -> SourceStatus;

    /// Sets the common fields, and leaves the others.
    fn set_common(&mut self, common: SourceStatus);
}

/// Implements [`CommonStatus`] for statuses that have the fields under the same names; `observed_ignore` is named for statuses that have
/// it.
macro_rules! common_fields {
    ($($status:ty { $($field:ident)? })*) => {$(
        impl CommonStatus for $status {
            fn common(&self) -> SourceStatus {
                SourceStatus {
                    observed_generation: self.observed_generation,
                    conditions: self.conditions.clone(),
                    artifact: self.artifact.clone(),
                    url: self.url.clone(),
                    last_handled_reconcile_at: self.last_handled_reconcile_at.clone(),
                    observed_ignore: None$(.or_else(|| self.$field.clone()))?,
                }
            }

            fn set_common(&mut self, common: SourceStatus) {
                self.observed_generation = common.observed_generation;
                self.conditions = common.conditions;
                self.artifact = common.artifact;
                self.url = common.url;
                self.last_handled_reconcile_at = common.last_handled_reconcile_at;
                $(self.$field = common.$field;)?
            }
        }
    )*};
}

common_fields! {
    GitRepositoryStatus { observed_ignore }
    OCIRepositoryStatus { observed_ignore }
    BucketStatus { observed_ignore }
    HelmRepositoryStatus {}
    HelmChartStatus {}
}
