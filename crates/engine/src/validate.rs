//! Looking whether everything that was rendered is there and ready.

use cluster::Cluster;
use jiff::Timestamp;
use kluctl::Rendered;
use objects::{ObjectRef, readiness::ValidateResult as AnnotationResult};

use crate::{Error, ObjectError, live, result};

/// What a validation found.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidateResult {
    /// Whether everything is there and ready.
    pub ready: bool,
    /// When it began.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// What is missing or not ready.
    pub errors: Vec<ObjectError>,
    /// What the user should know.
    pub warnings: Vec<ObjectError>,
    /// Results that annotations of objects carry.
    pub results: Vec<(ObjectRef, AnnotationResult)>,
}

impl ValidateResult {
    /// Why the validation failed, if it did: how many errors, and the first of them.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        result::failure("validate", &self.errors)
    }
}

/// Looks at the live state of everything that was rendered.
///
/// # Errors
/// When the cluster can't be asked for its state, or the work is cancelled.
pub async fn validate(cluster: &Cluster, rendered: &Rendered) -> Result<ValidateResult, Error> {
    let start = Timestamp::now();
    let refs = live::references(rendered)?;
    let live = live::fetch(cluster, &refs, rendered.target.discriminator.as_deref()).await?;
    let mut result = ValidateResult {
        ready: true,
        start,
        end: start,
        errors: Vec::new(),
        warnings: Vec::new(),
        results: Vec::new(),
    };
    for reference in refs {
        let Some(object) = live.rendered.get(&reference) else {
            result.ready = false;
            let unreadable = live.unreadable.get(&reference).map(String::as_str);
            result.errors.push(ObjectError::of(
                &reference,
                unreadable.unwrap_or("object not found"),
            ));
            continue;
        };
        let readiness = cluster.readiness(object, true).await?;
        result.ready &= readiness.ready && readiness.errors.is_empty();
        result.errors.extend(
            readiness
                .errors
                .into_iter()
                .map(|text| ObjectError::of(&reference, text)),
        );
        result.warnings.extend(
            readiness
                .warnings
                .into_iter()
                .map(|text| ObjectError::of(&reference, text)),
        );
        result.results.extend(
            readiness
                .results
                .into_iter()
                .map(|found| (reference.clone(), found)),
        );
    }
    for list in [&mut result.errors, &mut result.warnings] {
        list.sort();
        list.dedup();
    }
    result.end = Timestamp::now();
    Ok(result)
}
