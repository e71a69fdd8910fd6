//! The inputs of an artifact beside its revision.

use super::{resolve::Resolve, verify::Verification};

/// Compares the inputs of an artifact with the ones that the status records; by default, the revision and the ignore rules are the only
/// inputs. Pure.
pub(crate) trait Inputs: Resolve {
    /// True if the ignore rules act through the revision, so that changing them alone builds no artifact.
    const IGNORE_IN_REVISION: bool = false;

    /// Returns true if fields of this kind only have changed since the artifact was stored, so that it is built again.
    fn config_changed(_: &Self::Object) -> bool {
        false
    }

    /// Returns true if a resolved input beside the revision has changed since the artifact was stored, so that it is built again.
    fn inputs_changed(_: &Self::Object, _: &Self::Resolved) -> bool {
        false
    }

    /// Sets the fields of the status that only this kind has, after a successful pass. The object still has its past status; `verified` is
    /// the verification of this pass, if there was one. After a failure they stay as they were.
    fn observe(_: &mut Self::Status, _: &Self::Object, _verified: Option<&Verification>) {}

    /// Records the resolved inputs beside the revision, after a successful pass.
    fn observe_inputs(_: &mut Self::Status, _: &Self::Resolved) {}
}
