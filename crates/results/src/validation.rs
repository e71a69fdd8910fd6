//! The result of a validation.

use jiff::Timestamp;
use objects::{ObjectRef, readiness::ValidateResult as AnnotationResult};

use crate::{ObjectError, Origin, message::failure};

#[derive(Debug, Clone, PartialEq)]
pub struct ValidateResult {
    /// True if all objects that exist are ready. As with kluctl, a missing object is an error and doesn't count here.
    pub ready: bool,
    pub discriminator: Option<String>,
    pub start: Timestamp,
    pub end: Timestamp,
    pub origin: Origin,
    pub errors: Vec<ObjectError>,
    pub warnings: Vec<ObjectError>,
    /// Results of validations in annotations of objects.
    pub results: Vec<(ObjectRef, AnnotationResult)>,
}

impl ValidateResult {
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        failure("validate", &self.errors)
    }
}
