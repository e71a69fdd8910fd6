//! The errors of this crate.

/// A malformed object, annotation or rule, or a conflict that can't be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a Kubernetes object must be a map, but this is a {0}")]
    NotAnObject(&'static str),
    /// A required field is missing or has the wrong type.
    #[error("{object}: {field} must be a non-empty string: set it in the manifest")]
    MissingField {
        /// Description of the object, as far as it is known.
        object: String,
        field: &'static str,
    },
    /// A regular expression of an annotation or a rule does not compile.
    #[error("{origin}: '{pattern}' is not a valid regular expression: {reason}")]
    Pattern {
        /// The annotation, or the field of the project, that holds it.
        origin: String,
        pattern: String,
        reason: String,
    },
    /// A JSON path of an annotation or a rule does not parse.
    #[error("{origin}: '{path}' is not a valid JSON path: {reason}")]
    JsonPath {
        /// The annotation, or the field of the project, that holds it.
        origin: String,
        path: String,
        reason: String,
    },
    /// The rules of an object about differences or conflicts had no thread, or their work panicked.
    #[error("the rules of the object cannot be evaluated now")]
    Unevaluated,
    /// The API server reported a conflict of an unknown type.
    #[error("{message}: unknown type {reason}")]
    UnknownConflict { message: String, reason: String },
    #[error("{message}. Could not find matching field for path '{field}'")]
    ConflictFieldUnknown {
        message: String,
        /// The field in the notation of the API server.
        field: String,
    },
    #[error("{message}. Field path '{field}' is ambiguous")]
    ConflictFieldAmbiguous {
        message: String,
        /// The field in the notation of the API server.
        field: String,
    },
    /// The conflicting field is missing in one of the two objects.
    #[error("{message}. Field '{field}' not found in {side} object")]
    ConflictFieldMissing {
        message: String,
        /// The field in the notation of the API server.
        field: String,
        /// `local` or `remote`.
        side: &'static str,
    },
}
