//! Requests by annotation, and their results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::KluctlDeploymentStatus;
use crate::{Time, annotation, schema};

const VALUE_BYTES: usize = 1024;

/// A request: the value of one of the annotations `kluctl.io/request-*`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManualRequest {
    /// Value that tells requests apart, as in a time.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_value: String,
    /// Changes of the object for this request: a merge patch (RFC 7396), which may change only the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub overrides_patch: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    #[error("missing requestValue in manual request annotation")]
    MissingValue,
    #[error("the requestValue in a manual request annotation has more than {VALUE_BYTES} bytes")]
    LongValue,
    #[error("invalid manual request annotation: {0}")]
    Malformed(String),
}

impl ManualRequest {
    /// Parses the value of an annotation: a JSON object, or any other string as the value of a request without overrides.
    ///
    /// # Errors
    /// If the value is missing or has more than 1 KiB, or a JSON object is malformed.
    pub fn parse(annotation: &str) -> Result<Self, InvalidRequest> {
        let request = if annotation.trim_start().starts_with('{') {
            serde_json::from_str(annotation).map_err(|error| InvalidRequest::Malformed(error.to_string()))?
        } else {
            Self {
                request_value: annotation.trim().to_owned(),
                overrides_patch: None,
            }
        };
        match request.request_value.len() {
            0 => Err(InvalidRequest::MissingValue),
            length if length > VALUE_BYTES => Err(InvalidRequest::LongValue),
            _ => Ok(request),
        }
    }
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManualRequestResult {
    /// The request that was handled.
    pub request: ManualRequest,
    /// Time at which the work began.
    pub start_time: Time,
    /// Time at which the work ended; absent while it is going on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Time>,
    /// Identity of the reconciliation, which log lines and results have, too.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reconcile_id: String,
    /// Identity of the stored result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_id: Option<String>,
    /// Error of the command; absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_error: Option<String>,
}

/// The kind of a request, in the order in which requests are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    Diff,
    Deploy,
    Prune,
    Validate,
    Reconcile,
}

impl RequestKind {
    pub const ALL: [Self; 5] = [
        Self::Diff,
        Self::Deploy,
        Self::Prune,
        Self::Validate,
        Self::Reconcile,
    ];

    pub const fn annotation(self) -> &'static str {
        match self {
            Self::Diff => annotation::REQUEST_DIFF,
            Self::Deploy => annotation::REQUEST_DEPLOY,
            Self::Prune => annotation::REQUEST_PRUNE,
            Self::Validate => annotation::REQUEST_VALIDATE,
            Self::Reconcile => annotation::REQUEST_RECONCILE,
        }
    }

    /// Returns the word in messages, in the annotation and in the status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Diff => "diff",
            Self::Deploy => "deploy",
            Self::Prune => "prune",
            Self::Validate => "validate",
            Self::Reconcile => "reconcile",
        }
    }

    /// Returns the field of the status with the last result.
    pub fn result(self, status: &mut KluctlDeploymentStatus) -> &mut Option<ManualRequestResult> {
        match self {
            Self::Diff => &mut status.diff_request_result,
            Self::Deploy => &mut status.deploy_request_result,
            Self::Prune => &mut status.prune_request_result,
            Self::Validate => &mut status.validate_request_result,
            Self::Reconcile => &mut status.reconcile_request_result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_parses_objects_and_plain_strings() {
        let request =
            ManualRequest::parse(r#"{"requestValue":"7","overridesPatch":{"spec":{"dryRun":true}}}"#);
        let request = request.unwrap();
        assert_eq!(request.request_value, "7");
        assert_eq!(request.overrides_patch.unwrap()["spec"]["dryRun"], true);
        let plain = ManualRequest::parse("2024-01-01T00:00:00Z").unwrap();
        assert_eq!(
            (plain.request_value.as_str(), plain.overrides_patch),
            ("2024-01-01T00:00:00Z", None)
        );
    }

    #[test]
    fn request_without_value_is_refused() {
        for text in ["", "  ", "{}", r#"{"overridesPatch":{}}"#] {
            assert_eq!(
                ManualRequest::parse(text),
                Err(InvalidRequest::MissingValue),
                "{text}"
            );
        }
        assert_eq!(
            ManualRequest::parse(&"x".repeat(VALUE_BYTES + 1)),
            Err(InvalidRequest::LongValue)
        );
        for text in [
            "{",
            r#"{"requestValue":1}"#,
            r#"{"requestValue":"1","overridesPatch":[]}"#,
        ] {
            assert!(
                matches!(ManualRequest::parse(text), Err(InvalidRequest::Malformed(_))),
                "{text}"
            );
        }
    }
}
