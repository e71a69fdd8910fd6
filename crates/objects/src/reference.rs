//! The identity of an object.

use std::fmt;

use yaml::Value;

use crate::Error;

/// Group, version, kind, namespace and name of an object. It is ordered by exactly these.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    pub group: String,
    /// API version without the group.
    pub version: String,
    pub kind: String,
    pub namespace: Option<String>,
    pub name: String,
}

/// The identity of an object, independent of the version in which it is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    pub group: String,
    pub kind: String,
    pub namespace: Option<String>,
    pub name: String,
}

impl ObjectRef {
    /// Creates a reference to an object of the core API (`v1`) in a namespace.
    #[must_use]
    pub fn core(kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            group: String::new(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        }
    }

    /// Returns the reference of an object.
    ///
    /// # Errors
    /// Fails when the object is not a map, or `apiVersion`, `kind` or `metadata.name` is missing, empty or not a
    /// string.
    pub fn of(object: &Value) -> Result<Self, Error> {
        if object.as_map().is_none() {
            return Err(Error::NotAnObject(object.type_name()));
        }
        let text = |path: &[&str]| {
            object
                .pointer(path)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let (kind, name) = (text(&["kind"]), text(&["metadata", "name"]));
        let missing = |field| Error::MissingField {
            object: match (kind, name) {
                (Some(kind), Some(name)) => format!("{kind}/{name}"),
                (Some(kind), None) => format!("an object of kind {kind}"),
                (None, Some(name)) => format!("the object named {name}"),
                (None, None) => "an object".to_owned(),
            },
            field,
        };
        let api_version = text(&["apiVersion"]).ok_or_else(|| missing("apiVersion"))?;
        let (group, version) = split_api_version(api_version);
        Ok(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.ok_or_else(|| missing("kind"))?.to_owned(),
            namespace: text(&["metadata", "namespace"]).map(str::to_owned),
            name: name.ok_or_else(|| missing("metadata.name"))?.to_owned(),
        })
    }

    /// Returns `group/version`, or the version alone for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        join_api_version(&self.group, &self.version)
    }

    /// Returns the reference without the version.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        ObjectId {
            group: self.group.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    #[must_use]
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }
}

/// Joins group and version to an `apiVersion`: the core group has no name.
#[must_use]
pub fn join_api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

#[must_use]
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// `namespace/Kind/name`, or `Kind/name`: group and version are never shown.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}/{}", self.kind, self.name),
            None => write!(f, "{}/{}", self.kind, self.name),
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}/{}", self.kind, self.name),
            None => write!(f, "{}/{}", self.kind, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn object_ref_is_parsed_displayed_and_ordered() {
        let deployment = ObjectRef::of(&Value::from_json(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}
        })))
        .unwrap();
        assert_eq!(deployment.to_string(), "shop/Deployment/web");
        assert_eq!(deployment.api_version(), "apps/v1");
        let namespace = ObjectRef::of(&Value::from_json(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "namespace": ""}
        })))
        .unwrap();
        assert_eq!(namespace.to_string(), "Namespace/shop");
        assert_eq!(namespace.api_version(), "v1");
        assert!(namespace < deployment, "the core group comes first");
    }

    #[test]
    fn object_ref_names_the_missing_field() {
        for (object, expected) in [
            (json!([]), "a Kubernetes object must be a map, but this is a list"),
            (
                json!({"kind": "A", "metadata": {"name": "b"}}),
                "A/b: apiVersion must be",
            ),
            (
                json!({"apiVersion": "v1", "kind": "A"}),
                "an object of kind A: metadata.name must be",
            ),
            (
                json!({"apiVersion": "v1", "metadata": {"name": 1}}),
                "an object: kind must be",
            ),
        ] {
            let error = ObjectRef::of(&Value::from_json(object)).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
