//! URLs of kinds and objects.

use objects::ObjectRef;

use crate::{Error, ResourceKind};

/// Returns the URL of all objects of a kind, or of those in a namespace.
pub(crate) fn collection(kind: &ResourceKind, namespace: Option<&str>) -> Result<String, Error> {
    let root = if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    };
    Ok(match namespace {
        Some(namespace) if kind.namespaced => {
            format!(
                "{root}/namespaces/{}/{}",
                segment(namespace, &kind.kind)?,
                kind.plural
            )
        }
        _ => format!("{root}/{}", kind.plural),
    })
}

pub(crate) fn object(kind: &ResourceKind, reference: &ObjectRef) -> Result<String, Error> {
    let namespace = if kind.namespaced {
        Some(reference.namespace.as_deref().unwrap_or("default"))
    } else {
        None
    };
    let collection = collection(kind, namespace)?;
    Ok(format!(
        "{collection}/{}",
        segment(&reference.name, &reference.to_string())?
    ))
}

/// Escapes a name as a segment of a URL. Names come from repositories: none may lead to another URL than its own.
fn segment(name: &str, object: &str) -> Result<String, Error> {
    if name.is_empty() || name == "." || name == ".." || name.len() > 253 || name.contains(['/', '%']) {
        return Err(Error::InvalidName {
            object: object.to_owned(),
            value: name.to_owned(),
        });
    }
    Ok(encode(name))
}

pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(group: &str, namespaced: bool) -> ResourceKind {
        ResourceKind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: "Thing".to_owned(),
            plural: "things".to_owned(),
            namespaced,
            listable: true,
            deletable: true,
            preferred: true,
            status: false,
        }
    }

    fn reference(namespace: Option<&str>, name: &str) -> ObjectRef {
        ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Thing".to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    #[test]
    fn urls_have_group_namespace_and_name() {
        let url = |group, namespaced, namespace, name| {
            object(&kind(group, namespaced), &reference(namespace, name)).unwrap()
        };
        assert_eq!(url("", true, Some("n"), "a"), "/api/v1/namespaces/n/things/a");
        assert_eq!(
            url("x.io", true, None, "a"),
            "/apis/x.io/v1/namespaces/default/things/a"
        );
        assert_eq!(
            url("x.io", false, Some("n"), "system:a b?"),
            "/apis/x.io/v1/things/system:a%20b%3F"
        );
        assert_eq!(collection(&kind("", true), None).unwrap(), "/api/v1/things");
    }

    #[test]
    fn names_that_would_change_the_url_are_refused() {
        for name in ["", ".", "..", "../secrets/x", "a/b", "a%2fb"] {
            assert!(
                object(&kind("", true), &reference(Some("n"), name)).is_err(),
                "{name}"
            );
            assert!(
                object(&kind("", true), &reference(Some(name), "a")).is_err(),
                "{name}"
            );
        }
    }
}
