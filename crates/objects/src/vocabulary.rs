//! The names of the annotations and labels that an owner of objects obeys, and of the managers that it overrides.
//!
//! This crate decides by rules, and knows no name of any tool: the caller passes in its own vocabulary.

use yaml::Value;

use crate::meta;

/// A statement of an object about itself, by an annotation or a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// An annotation whose value is a boolean, as Go's `strconv.ParseBool` reads it; an invalid value counts as false.
    Flag(&'static str),
    Annotation(&'static str, &'static str),
    Label(&'static str, &'static str),
    /// A label or an annotation with this value, in upper or lower case.
    Either(&'static str, &'static str),
}

impl Marker {
    #[must_use]
    pub fn marks(self, object: &Value) -> bool {
        match self {
            Self::Flag(name) => meta::flag(object, name),
            Self::Annotation(name, value) => meta::annotation(object, name) == Some(value),
            Self::Label(name, value) => meta::label(object, name) == Some(value),
            Self::Either(name, value) => [meta::label(object, name), meta::annotation(object, name)]
                .into_iter()
                .flatten()
                .any(|found| found.eq_ignore_ascii_case(value)),
        }
    }
}

#[must_use]
pub fn is_marked(object: &Value, markers: &[Marker]) -> bool {
    markers.iter().any(|marker| marker.marks(object))
}

/// The names of annotations that decide about a kind of conflict or difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConflictNames {
    pub all: &'static [Marker],
    /// Annotation with a JSON path of fields; `-` and a number may follow the name.
    pub field: Option<&'static str>,
    /// Annotation with a regular expression for names of managers; `-` and a number may follow the name.
    pub manager: Option<&'static str>,
}

/// The annotations and labels by which an object is treated in a special manner. The default obeys nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vocabulary {
    pub delete: &'static [Marker],
    pub skip_delete: &'static [Marker],
    /// The object counts as applied by the owner, whatever its managed fields and owner references say.
    pub force_managed: &'static [Marker],
    /// The object is neither applied nor deleted. The manifest or the live object may say it.
    pub ignore: &'static [Marker],
    /// The object is created, and never changed afterwards.
    pub create_only: &'static [Marker],
    /// The object is deleted and created again if the API server refuses a change of an immutable field. The manifest or the live object may
    /// say it.
    pub recreate: &'static [Marker],
    /// The fields and metadata of other managers are not taken over ([`crate::takeover`]). The manifest or the live object may say it.
    pub merge: &'static [Marker],
    /// The fields that are taken over from other managers.
    pub force_apply: ConflictNames,
    /// The fields that are left to other managers without a warning.
    pub ignore_conflicts: ConflictNames,
    /// The name of the field of a project that holds conflict rules, for error messages.
    pub conflict_rules: &'static str,
    /// Whatever comes next waits until the object is ready.
    pub wait_readiness: &'static [Marker],
    /// Annotation with an explicit boolean that replaces the check of readiness.
    pub is_ready: Option<&'static str>,
    /// The object counts as ready without a check.
    pub validate_ignore: &'static [Marker],
    /// Prefix of the annotations whose values are results of a validation.
    pub validate_result_prefix: Option<&'static str>,
    pub ignore_diff: &'static [Marker],
    /// Annotation with a JSON path of fields that are not compared; `-` and a number may follow the name.
    pub ignore_diff_field: Option<&'static str>,
    /// Annotation with a regular expression for paths that are not compared; `-` and a number may follow the name.
    pub ignore_diff_field_regex: Option<&'static str>,
    /// The name of the field of a project that holds rules for differences, for error messages.
    pub ignore_diff_rules: &'static str,
    /// Annotation with the name under which the object is compared and displayed, for objects with a hash in their name.
    pub diff_name: Option<&'static str>,
}

/// Names of field managers, exact or by prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Managers {
    pub names: &'static [&'static str],
    pub prefixes: &'static [&'static str],
}

impl Managers {
    #[must_use]
    pub fn contain(&self, manager: &str) -> bool {
        self.names.contains(&manager) || self.prefixes.iter().any(|prefix| manager.starts_with(prefix))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    /// A vocabulary with a name for everything, in the group `example.com`.
    pub(crate) const EXAMPLE: Vocabulary = Vocabulary {
        delete: &[Marker::Flag("example.com/delete")],
        skip_delete: &[
            Marker::Flag("example.com/skip-delete"),
            Marker::Annotation("example.org/policy", "keep"),
        ],
        force_managed: &[Marker::Flag("example.com/force-managed")],
        ignore: &[Marker::Either("example.com/apply", "ignore")],
        create_only: &[Marker::Either("example.com/apply", "if-not-present")],
        recreate: &[Marker::Either("example.com/force", "enabled")],
        merge: &[Marker::Either("example.com/apply", "merge")],
        force_apply: ConflictNames {
            all: &[Marker::Flag("example.com/force-apply")],
            field: Some("example.com/force-apply-field"),
            manager: Some("example.com/force-apply-manager"),
        },
        ignore_conflicts: ConflictNames {
            all: &[Marker::Flag("example.com/ignore-conflicts")],
            field: Some("example.com/ignore-conflicts-field"),
            manager: Some("example.com/ignore-conflicts-manager"),
        },
        conflict_rules: "conflictResolution",
        wait_readiness: &[Marker::Flag("example.com/wait-readiness")],
        is_ready: Some("example.com/is-ready"),
        validate_ignore: &[Marker::Flag("example.com/validate-ignore")],
        validate_result_prefix: Some("validate-result.example.com/"),
        ignore_diff: &[Marker::Flag("example.com/ignore-diff")],
        ignore_diff_field: Some("example.com/ignore-diff-field"),
        ignore_diff_field_regex: Some("example.com/ignore-diff-field-regex"),
        ignore_diff_rules: "ignoreForDiff",
        diff_name: Some("example.com/diff-name"),
    };

    #[test]
    fn markers_read_annotations_and_labels() {
        let object = Value::from_json(json!({"metadata": {
            "annotations": {"a": "true", "b": "no", "c": "keep"}, "labels": {"d": "off"}}}));
        for (marker, expected) in [
            (Marker::Flag("a"), true),
            (Marker::Flag("b"), false),
            (Marker::Flag("missing"), false),
            (Marker::Annotation("c", "keep"), true),
            (Marker::Annotation("c", "true"), false),
            (Marker::Label("d", "off"), true),
            (Marker::Label("a", "true"), false),
            (Marker::Either("c", "KEEP"), true),
            (Marker::Either("d", "off"), true),
            (Marker::Either("d", "on"), false),
        ] {
            assert_eq!(marker.marks(&object), expected, "{marker:?}");
        }
        assert!(is_marked(&object, &[Marker::Flag("b"), Marker::Flag("a")]));
        assert!(!is_marked(&object, &[]));
    }

    #[test]
    fn managers_match_exactly_or_by_prefix() {
        let managers = Managers {
            names: &["kubectl"],
            prefixes: &["kubectl-"],
        };
        for (name, expected) in [
            ("kubectl", true),
            ("kubectl-edit", true),
            ("kubectlx", false),
            ("hpa", false),
        ] {
            assert_eq!(managers.contain(name), expected, "{name}");
        }
    }
}
