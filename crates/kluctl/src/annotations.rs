//! Annotations that decide what becomes of an object before anything is deployed.

use objects::meta;
use yaml::Value;

/// The object is left out of the deployment.
pub(crate) const IGNORE: &str = "kluctl.io/ignore";
/// On a kustomization: everything before is finished before anything after starts.
pub(crate) const BARRIER: &str = "kluctl.io/barrier";
/// The object isn't deleted when items are chosen by tags.
pub(crate) const SKIP_DELETE_IF_TAGS: &str = "kluctl.io/skip-delete-if-tags";

/// Prefixes of annotations that change a deployment in ways that are not obeyed.
const REFUSED: &[&str] = &["kluctl.io/downscale-"];

/// The first annotation of an object that must be refused by name.
pub(crate) fn refused(object: &Value) -> Option<&str> {
    meta::annotations(object)
        .map(|(name, _)| name)
        .find(|name| REFUSED.iter().any(|prefix| name.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use yaml::Map;

    use super::*;

    fn annotated(name: &str, value: &str) -> Value {
        let annotations: Map = [(name.to_owned(), Value::from(value))].into_iter().collect();
        let mut metadata = Map::new();
        metadata.insert("annotations", annotations);
        let mut object = Map::new();
        object.insert("metadata", metadata);
        Value::Map(object)
    }

    #[test]
    fn unsupported_fields_are_refused() {
        for (name, value, is_refused) in [
            ("kluctl.io/hook", "pre-deploy", false),
            ("helm.sh/hook", "pre-install", false),
            ("kluctl.io/delete", "true", false),
            ("kluctl.io/skip-delete-if-tags", "true", false),
            ("kluctl.io/downscale-patch", "x", true),
            ("kluctl.io/downscale-delete", "true", true),
            ("example.com/hook", "x", false),
        ] {
            assert_eq!(
                refused(&annotated(name, value)).is_some(),
                is_refused,
                "{name}: {value}"
            );
        }
    }
}
