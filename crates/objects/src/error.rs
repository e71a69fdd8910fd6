//! The errors of this crate.

/// What can be wrong with an object, or with what its annotations ask for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Something that should be an object is no map.
    #[error("a Kubernetes object must be a map, but this is a {0}")]
    NotAnObject(&'static str),
    /// A field that every object has is missing or has the wrong type.
    #[error("{object}: {field} must be a non-empty string: set it in the manifest")]
    MissingField {
        /// What is known of the object.
        object: String,
        /// The field.
        field: &'static str,
    },
    /// A regular expression of an annotation or a rule does not compile.
    #[error("{place}: '{pattern}' is not a valid regular expression: {reason}")]
    Pattern {
        /// Where it stands.
        place: String,
        /// Its value.
        pattern: String,
        /// Why.
        reason: String,
    },
    /// A JSON path of an annotation or a rule does not parse.
    #[error("{place}: '{path}' is not a valid JSON path: {reason}")]
    JsonPath {
        /// Where it stands.
        place: String,
        /// Its value.
        path: String,
        /// Why.
        reason: String,
    },
    /// The API server reported a conflict of another type than the one that can be resolved.
    #[error("{message}: unknown type {reason}")]
    UnknownConflict {
        /// What the API server said.
        message: String,
        /// Its type.
        reason: String,
    },
    /// A conflicting field is in nobody's managed fields.
    #[error("{message}. Could not find matching field for path '{field}'")]
    ConflictFieldUnknown {
        /// What the API server said.
        message: String,
        /// The field, as the API server wrote it.
        field: String,
    },
    /// Two different fields are written in the same way.
    #[error("{message}. Field path '{field}' is ambiguous")]
    ConflictFieldAmbiguous {
        /// What the API server said.
        message: String,
        /// The field, as the API server wrote it.
        field: String,
    },
    /// A conflicting field is not in one of the two objects.
    #[error("{message}. Field '{field}' not found in {side} object")]
    ConflictFieldMissing {
        /// What the API server said.
        message: String,
        /// The field, as the API server wrote it.
        field: String,
        /// `local` or `remote`.
        side: &'static str,
    },
    /// No discriminator.
    #[error("no discriminator is configured: set `discriminator` in .kluctl.yaml or in the target")]
    EmptyDiscriminator,
    /// A discriminator that cannot be a label value.
    #[error(
        "the discriminator '{0}' is not a valid label value: use at most 63 letters, digits, '-', '_' and '.', \
         beginning and ending with a letter or digit"
    )]
    InvalidDiscriminator(String),
    /// Somebody else uses the same discriminator.
    #[error(
        "the discriminator '{discriminator}' is also used by {other}: give each deployment its own, or the objects of \
         one would be removed by the other"
    )]
    DuplicateDiscriminator {
        /// The discriminator.
        discriminator: String,
        /// Who else uses it.
        other: String,
    },
}
