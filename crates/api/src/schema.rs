//! Parts of schemas that the derive macro cannot express. They only describe the values that the API server accepts.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A positive duration with units from milliseconds to hours. The numbers of digits and [`DURATION_LENGTH`] bound it to
/// the range of [`crate::GoDuration`] (292 years), so that the API server refuses values that would not decode.
pub(crate) const DURATION: &str = r"^([0-9]{1,6}(\.[0-9]+)?(m|h)|[0-9]{1,9}(\.[0-9]+)?(ms|s))+$";
/// A positive duration with units from milliseconds to minutes, as timeouts of sources have it.
pub(crate) const SHORT_DURATION: &str = r"^([0-9]{1,6}(\.[0-9]+)?m|[0-9]{1,9}(\.[0-9]+)?(ms|s))+$";
/// As [`DURATION`], or the word `never`.
pub(crate) const DURATION_OR_NEVER: &str =
    r"^(([0-9]{1,6}(\.[0-9]+)?(m|h)|[0-9]{1,9}(\.[0-9]+)?(ms|s))+|never)$";
/// A positive duration as the original of `gitops.kluctl.io` accepts it, of any length. The controller refuses strings that don't decode.
pub(crate) const ANY_DURATION: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$";
/// As [`ANY_DURATION`], with anything behind it: objects that the original stored must stay valid.
pub(crate) const SAFE_DURATION: &str = r"^(([0-9]+(\.[0-9]+)?(ms|s|m|h))+)";
/// Maximum length of a duration: two numbers of six digits with hours, and some minutes and seconds.
pub(crate) const DURATION_LENGTH: u32 = 20;
/// A digest with its algorithm, as in `sha256:<hex>`.
pub(crate) const DIGEST: &str = "^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$";

pub(crate) fn free_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

pub(crate) fn free_list(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": free_object(generator) })
}

pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Conditions of the object.",
        "type": "array",
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "description": "Type of the condition, as in Ready.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": concat!(
                        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
                        r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
                    ),
                },
                "status": {
                    "description": "Status of the condition.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "observedGeneration": {
                    "description": "Generation of the object that the condition describes.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "lastTransitionTime": {
                    "description": "Time at which the status last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "reason": {
                    "description": "Reason in CamelCase, for programs.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": { "description": "Message for people.", "type": "string", "maxLength": 32768 },
            },
        },
    })
}
