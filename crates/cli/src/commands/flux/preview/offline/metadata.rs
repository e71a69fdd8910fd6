//! Validation of the metadata of objects, in the words of the API server, which no schema has. Pure.

use api::validation::{invalid_label, invalid_label_name, invalid_label_value, invalid_subdomain};
use serde_json::Value as Json;

use super::schema::Invalid;

/// Maximum bytes of all annotations.
const ANNOTATIONS: usize = 256 << 10;

/// Checks name, namespace, labels and annotations of an object in a namespace.
pub(super) fn check(object: &Json) -> Vec<Invalid> {
    let mut found = Vec::new();
    let mut invalid = |field: &str, value: &str, why: &str| {
        found.push(Invalid {
            field: format!("metadata.{field}"),
            message: format!("Invalid value: {value:?}: {why}"),
        });
    };
    let metadata = object.get("metadata").unwrap_or(&Json::Null);
    let text = |field: &str| metadata.get(field).and_then(Json::as_str).unwrap_or_default();
    let (name, prefix, namespace) = (text("name"), text("generateName"), text("namespace"));
    if let Some(why) = invalid_subdomain(name).filter(|_| !name.is_empty()) {
        invalid("name", name, &why);
    }
    // The API server adds random characters after a last `-`.
    let generated = prefix
        .strip_suffix('-')
        .map_or(prefix.to_owned(), |start| format!("{start}a"));
    if let Some(why) = invalid_subdomain(&generated).filter(|_| !prefix.is_empty()) {
        invalid("generateName", prefix, &why);
    }
    if let Some(why) = invalid_label(namespace).filter(|_| !namespace.is_empty()) {
        invalid("namespace", namespace, &why);
    }
    for (key, value) in entries(metadata, "labels") {
        if let Some(why) = invalid_label_name(key) {
            invalid("labels", key, &why);
        }
        if let Some(why) = invalid_label_value(value) {
            invalid("labels", value, &why);
        }
    }
    let mut bytes = 0;
    for (key, value) in entries(metadata, "annotations") {
        bytes += key.len() + value.len();
        if let Some(why) = invalid_label_name(&key.to_lowercase()) {
            invalid("annotations", key, &why);
        }
    }
    if bytes > ANNOTATIONS {
        found.push(Invalid {
            field: "metadata.annotations".to_owned(),
            message: format!("Too long: may not be more than {ANNOTATIONS} bytes"),
        });
    }
    if name.is_empty() && prefix.is_empty() {
        found.push(Invalid {
            field: "metadata.name".to_owned(),
            message: "Required value: name or generateName is required".to_owned(),
        });
    }
    found
}

fn entries<'m>(metadata: &'m Json, field: &str) -> impl Iterator<Item = (&'m String, &'m str)> {
    let map = metadata.get(field).and_then(Json::as_object);
    map.into_iter()
        .flatten()
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(metadata: &Json) -> Vec<String> {
        let found = check(&json!({ "metadata": metadata }));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn valid_metadata_passes() {
        for metadata in [
            json!({ "name": "a", "namespace": "apps-1", "labels": { "a.io/b_C": "", "x": "Y.z" }, "annotations": { "A.io/b": "any\ntext" } }),
            json!({ "name": "a.b-c.9" }),
            json!({ "generateName": "a-" }),
            json!({ "generateName": "a" }),
        ] {
            assert_eq!(found(&metadata), [""; 0], "{metadata}");
        }
    }

    #[test]
    fn invalid_metadata_is_found_in_the_words_of_the_api_server() {
        let long = "a".repeat(254);
        for (metadata, expected) in [
            (
                json!({}),
                "metadata.name: Required value: name or generateName is required",
            ),
            (
                json!({ "name": "A_b" }),
                "metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain must consist of",
            ),
            (
                json!({ "name": "a..b" }),
                "metadata.name: Invalid value: \"a..b\": ",
            ),
            (json!({ "name": "-a" }), "metadata.name: Invalid value: \"-a\": "),
            (json!({ "name": long }), "metadata.name: Invalid value: "),
            (
                json!({ "generateName": "A-" }),
                "metadata.generateName: Invalid value: \"A-\": ",
            ),
            (
                json!({ "name": "a", "namespace": "a.b" }),
                "metadata.namespace: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of",
            ),
            (
                json!({ "name": "a", "labels": { "a": "b c" } }),
                "metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or consist of",
            ),
            (
                json!({ "name": "a", "labels": { "/a": "b" } }),
                "metadata.labels: Invalid value: \"/a\": prefix part must be non-empty",
            ),
            (
                json!({ "name": "a", "labels": { "A/a": "b" } }),
                "metadata.labels: Invalid value: \"A/a\": prefix part a lowercase RFC 1123 subdomain must consist of",
            ),
            (
                json!({ "name": "a", "annotations": { "a/": "" } }),
                "metadata.annotations: Invalid value: \"a/\": name part must be non-empty",
            ),
            (
                json!({ "name": "a", "annotations": { "a": "b".repeat(ANNOTATIONS) } }),
                "metadata.annotations: Too long: may not be more than 262144 bytes",
            ),
        ] {
            let found = found(&metadata);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with(expected), "{}", found[0]);
        }
    }
}
