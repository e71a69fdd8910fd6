//! Validation of the metadata of objects, in the words of the API server, which no schema has. Pure.

use serde_json::Value as Json;

use super::schema::Invalid;

/// Maximum length of a name, and of the prefix of a label's name.
const SUBDOMAIN: usize = 253;
/// Maximum length of a namespace, of the name of a label without its prefix, and of its value.
const LABEL: usize = 63;
/// Maximum bytes of all annotations.
const ANNOTATIONS: usize = 256 << 10;
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and \
                              end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                              '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an \
                          alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                          '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NAME_RULE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character \
                         (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                          an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
                          '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

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
    if let Some(why) = not_subdomain(name).filter(|_| !name.is_empty()) {
        invalid("name", name, &why);
    }
    // The API server adds random characters after a last `-`.
    let generated = prefix
        .strip_suffix('-')
        .map_or(prefix.to_owned(), |start| format!("{start}a"));
    if let Some(why) = not_subdomain(&generated).filter(|_| !prefix.is_empty()) {
        invalid("generateName", prefix, &why);
    }
    if let Some(why) = not_label(namespace).filter(|_| !namespace.is_empty()) {
        invalid("namespace", namespace, &why);
    }
    for (key, value) in entries(metadata, "labels") {
        if let Some(why) = not_qualified(key) {
            invalid("labels", key, &why);
        }
        if let Some(why) = not_label_value(value) {
            invalid("labels", value, &why);
        }
    }
    let mut bytes = 0;
    for (key, value) in entries(metadata, "annotations") {
        bytes += key.len() + value.len();
        if let Some(why) = not_qualified(&key.to_lowercase()) {
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

fn not_subdomain(text: &str) -> Option<String> {
    if text.len() > SUBDOMAIN {
        return Some(too_long(SUBDOMAIN));
    }
    let is_valid = text.split('.').all(is_lower_label);
    (!is_valid).then(|| SUBDOMAIN_RULE.to_owned())
}

fn not_label(text: &str) -> Option<String> {
    if text.len() > LABEL {
        return Some(too_long(LABEL));
    }
    (!is_lower_label(text)).then(|| LABEL_RULE.to_owned())
}

fn not_label_value(text: &str) -> Option<String> {
    if text.len() > LABEL {
        return Some(too_long(LABEL));
    }
    (!text.is_empty() && !is_name(text)).then(|| VALUE_RULE.to_owned())
}

/// Checks the name of a label or annotation, `[PREFIX/]NAME`.
fn not_qualified(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix == Some("") {
        return Some("prefix part must be non-empty".to_owned());
    }
    if let Some(why) = prefix.and_then(not_subdomain) {
        return Some(format!("prefix part {why}"));
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > LABEL {
        return Some(format!("name part {}", too_long(LABEL)));
    }
    (!is_name(name)).then(|| NAME_RULE.to_owned())
}

fn too_long(most: usize) -> String {
    format!("must be no more than {most} characters")
}

fn is_lower_label(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_between(text, alphanumeric, |byte| alphanumeric(byte) || byte == b'-')
}

fn is_name(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_alphanumeric();
    is_between(text, alphanumeric, |byte| {
        alphanumeric(byte) || b"-_.".contains(&byte)
    })
}

/// Returns true for a string whose first and last byte are `outer` and whose others are `inner`.
fn is_between(text: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(|byte| outer(*byte))) && bytes.iter().all(|byte| inner(*byte))
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
