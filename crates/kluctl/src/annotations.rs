//! Annotations that ask for something which is not obeyed.

use objects::{annotations as names, meta};
use yaml::Value;

/// The object is left out of the deployment.
pub(crate) const IGNORE: &str = "kluctl.io/ignore";
/// On a kustomization: everything before is finished before anything after starts.
pub(crate) const BARRIER: &str = "kluctl.io/barrier";

/// Prefixes of annotations that change a deployment in ways that are not obeyed.
const REFUSED: &[&str] = &[
    "kluctl.io/hook",
    "helm.sh/hook",
    "kluctl.io/skip-delete-if-tags",
    "kluctl.io/downscale-",
];

/// The first annotation of an object that must be refused by name.
pub(crate) fn refused(object: &Value) -> Option<&str> {
    let by_prefix = meta::annotations(object).map(|(name, _)| name);
    by_prefix
        .into_iter()
        .find(|name| REFUSED.iter().any(|prefix| name.starts_with(prefix)))
        .or_else(|| meta::flag(object, names::DELETE).then_some(names::DELETE))
        .or_else(|| names::unsupported(object))
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
    fn what_is_not_obeyed_is_refused() {
        for (name, value, is_refused) in [
            ("kluctl.io/hook", "pre-deploy", true),
            ("kluctl.io/hook-weight", "1", true),
            ("helm.sh/hook", "pre-install", true),
            ("kluctl.io/delete", "true", true),
            ("kluctl.io/delete", "false", false),
            ("kluctl.io/skip-delete-if-tags", "true", true),
            ("kluctl.io/skip-delete", "true", false),
            ("kluctl.io/diff-name", "x", true),
            ("kluctl.io/downscale-patch", "x", true),
            ("kluctl.io/force-apply", "true", false),
            ("kluctl.io/ignore-conflicts-field-1", "spec", false),
            ("kluctl.io/wait-readiness", "true", false),
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
