//! Pieces of schema that the derive cannot express. They describe what the API server accepts; nothing here decodes.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A positive duration with units from milliseconds to hours. The numbers of digits and [`DURATION_LENGTH`] bound it to
/// what [`crate::GoDuration`] holds (292 years), so that the API server refuses what would not decode.
pub(crate) const DURATION: &str = r"^([0-9]{1,6}(\.[0-9]+)?(m|h)|[0-9]{1,9}(\.[0-9]+)?(ms|s))+$";
/// A positive duration with units from milliseconds to minutes, as timeouts of sources have it.
pub(crate) const SHORT_DURATION: &str = r"^([0-9]{1,6}(\.[0-9]+)?m|[0-9]{1,9}(\.[0-9]+)?(ms|s))+$";
/// As [`DURATION`], or the word `never`.
pub(crate) const DURATION_OR_NEVER: &str =
    r"^(([0-9]{1,6}(\.[0-9]+)?(m|h)|[0-9]{1,9}(\.[0-9]+)?(ms|s))+|never)$";
/// Maximum length of a duration: two numbers of six digits with hours, and some minutes and seconds.
pub(crate) const DURATION_LENGTH: u32 = 20;
/// A digest with its algorithm.
pub(crate) const DIGEST: &str = "^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$";

/// An object whose fields are the user's own.
pub(crate) fn free_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// A list of conditions with the limits of `metav1.Condition`.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "What is true of the object.",
        "type": "array",
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "description": "Name of the aspect.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": concat!(
                        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
                        r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
                    ),
                },
                "status": {
                    "description": "Whether the aspect holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "observedGeneration": {
                    "description": "Generation of the object that the condition speaks of.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "lastTransitionTime": {
                    "description": "When the status last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "reason": {
                    "description": "Why, in one word.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": { "description": "Why, in a sentence.", "type": "string", "maxLength": 32768 },
            },
        },
    })
}
