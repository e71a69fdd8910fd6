//! Names and labels of objects, by the rules and in the words of the API server. Names become parts of its URLs.

use crate::{Fault, Reason};

/// Maximum length of a name, and of the prefix of a label's name.
const SUBDOMAIN: usize = 253;
/// Maximum length of a namespace, of the name of a label without its prefix, and of its value.
const LABEL: usize = 63;
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

/// Returns true for a DNS subdomain, as the names of most objects are.
#[must_use]
pub fn is_object_name(name: &str) -> bool {
    invalid_subdomain(name).is_none()
}

/// Checks the name of an object. Another one could lead to an object of another namespace, as a part of a path.
///
/// # Errors
/// A stalling fault that names the field at `path` and its value.
pub fn check_object_name(path: &str, name: &str) -> Result<(), Fault> {
    match is_object_name(name) {
        true => Ok(()),
        false => Err(Fault::stall(
            Reason::InvalidSpec,
            format!("{path}: {name:?}: is not a valid object name"),
        )),
    }
}

/// Returns the problem of the name of an object, or of the prefix of a label's name: a DNS subdomain.
#[must_use]
pub fn invalid_subdomain(text: &str) -> Option<String> {
    if text.len() > SUBDOMAIN {
        return Some(too_long(SUBDOMAIN));
    }
    let is_valid = text.split('.').all(is_lower_label);
    (!is_valid).then(|| SUBDOMAIN_RULE.to_owned())
}

/// Returns the problem of the name of a namespace: a DNS label.
#[must_use]
pub fn invalid_label(text: &str) -> Option<String> {
    if text.len() > LABEL {
        return Some(too_long(LABEL));
    }
    (!is_lower_label(text)).then(|| LABEL_RULE.to_owned())
}

/// Returns the problem of the value of a label, which may be empty.
#[must_use]
pub fn invalid_label_value(text: &str) -> Option<String> {
    if text.len() > LABEL {
        return Some(too_long(LABEL));
    }
    (!text.is_empty() && !is_name(text)).then(|| VALUE_RULE.to_owned())
}

/// Returns the problem of the name of a label or annotation, `[PREFIX/]NAME`.
#[must_use]
pub fn invalid_label_name(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix == Some("") {
        return Some("prefix part must be non-empty".to_owned());
    }
    if let Some(why) = prefix.and_then(invalid_subdomain) {
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
    use super::*;

    #[test]
    fn names_of_objects_are_subdomains() {
        for name in ["a", "a.b-c.9", "0a", &"a".repeat(253)] {
            assert!(is_object_name(name), "{name}");
        }
        for name in [
            "",
            "..",
            "a..b",
            "-a",
            "a-",
            "a.",
            "A",
            "a/b",
            "a_b",
            "a%2fb",
            "ä",
            &"a".repeat(254),
        ] {
            assert!(!is_object_name(name), "{name}");
        }
    }

    #[test]
    fn labels_have_a_name_with_a_prefix_and_a_value() {
        for (name, expected) in [
            ("a", None),
            ("a.io/b_C", None),
            ("/a", Some("prefix part must be non-empty")),
            (
                "A.io/a",
                Some("prefix part a lowercase RFC 1123 subdomain must consist of"),
            ),
            ("a/", Some("name part must be non-empty")),
            ("a/b/c", Some("name part must consist of")),
        ] {
            let problem = invalid_label_name(name);
            match expected {
                None => assert_eq!(problem, None, "{name}"),
                Some(expected) => assert!(problem.unwrap().starts_with(expected), "{name}"),
            }
        }
        assert_eq!(invalid_label_value(""), None);
        assert_eq!(invalid_label(&"a".repeat(63)), None);
        for long in [
            invalid_label(&"a".repeat(64)),
            invalid_label_value(&"a".repeat(64)),
        ] {
            assert_eq!(long.as_deref(), Some("must be no more than 63 characters"));
        }
    }
}
