//! Makes the field table of a kind from its schema.

use std::fmt::Write;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

pub(crate) fn table(crd: &CustomResourceDefinition) -> String {
    let schema = crd
        .spec
        .versions
        .first()
        .and_then(|v| v.schema.as_ref())
        .and_then(|s| s.open_api_v3_schema.as_ref());
    let mut out = String::from("| field | type | default | meaning |\n|---|---|---|---|\n");
    for part in ["spec", "status"] {
        if let Some(inner) = schema
            .and_then(|s| s.properties.as_ref())
            .and_then(|p| p.get(part))
        {
            children(part, inner, &mut out);
        }
    }
    out
}

fn children(path: &str, schema: &JSONSchemaProps, out: &mut String) {
    for (name, inner) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        let required = schema
            .required
            .as_ref()
            .is_some_and(|required| required.contains(name));
        row(&path, inner, required, out);
        // The conditions of every kind are the same: their fields are not repeated on each page.
        if name == "conditions" {
            continue;
        }
        match &inner.items {
            Some(JSONSchemaPropsOrArray::Schema(item)) => children(&format!("{path}[]"), item, out),
            _ => children(&path, inner, out),
        }
    }
}

fn row(path: &str, schema: &JSONSchemaProps, required: bool, out: &mut String) {
    let star = if required { " (required)" } else { "" };
    let default = schema
        .default
        .as_ref()
        .map_or(String::new(), |value| format!("`{}`", value.0));
    let text = schema
        .description
        .as_deref()
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let text = text.replace('|', "\\|");
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "| `{path}`{star} | {} | {default} | {text} |",
        type_of(schema)
    );
}

fn type_of(schema: &JSONSchemaProps) -> String {
    if let Some(values) = &schema.enum_ {
        let values: Vec<String> = values
            .iter()
            .map(|v| format!("`{}`", v.0.as_str().unwrap_or_default()))
            .collect();
        return values.join(", ");
    }
    let plain = schema.type_.clone().unwrap_or_default();
    match (&schema.items, &schema.additional_properties) {
        (Some(JSONSchemaPropsOrArray::Schema(item)), _) => format!("list of {}", type_of(item)),
        (_, Some(JSONSchemaPropsOrBool::Schema(item))) => format!("map of {}", type_of(item)),
        _ if schema.format.as_deref() == Some("date-time") => "time".to_owned(),
        _ if schema
            .pattern
            .as_deref()
            .is_some_and(|pattern| pattern.contains("(ms|s)")) =>
        {
            if schema.pattern.as_deref().is_some_and(|p| p.contains("never")) {
                "duration or `never`"
            } else {
                "duration"
            }
            .to_owned()
        }
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_lists_types_defaults_and_descriptions() {
        let table = table(&api::crd::git_repository());
        for line in [
            "| `spec.interval` (required) | duration |  | Time between two checks for changes, as in `5m`. It is spread by a few percent. |",
            "| `spec.timeout` | duration | `\"60s\"` | Timeout of the comparison of references, and of the download. Default: 60s. |",
            "| `spec.include[].repository.name` (required) | string |  | Name of the object, which must exist. |",
            "| `spec.gitImplementation` | `go-git`, `libgit2` |  | Git library of releases up to 0.31. No effect. |",
            "| `status.artifact.metadata` | map of string |  | Metadata of the producer, as in the annotations of an OCI artifact. |",
            "| `status.artifact.lastUpdateTime` | time |  | Time at which the file was stored. |",
        ] {
            assert!(table.contains(line), "{line}\n{table}");
        }
        assert!(!table.contains("status.conditions[]"));
    }
}
