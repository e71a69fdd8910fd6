//! Rules of a project about fields of its objects: differences to ignore, and conflicts to resolve.
//!
//! The annotations of an object come after the rules ([`crate::vocabulary`]).

use crate::ObjectRef;

/// The objects that a rule applies to; an absent field matches every object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectPattern {
    pub group: Option<String>,
    pub kind: Option<String>,
    pub name: Option<String>,
    /// The namespace; objects without a namespace match too.
    pub namespace: Option<String>,
}

impl ObjectPattern {
    /// Returns true if the object matches. A field that the object leaves empty, like the core group, matches every pattern.
    #[must_use]
    pub fn matches(&self, object: &ObjectRef) -> bool {
        let same = |pattern: &Option<String>, value: &str| {
            value.is_empty() || pattern.as_ref().is_none_or(|pattern| pattern == value)
        };
        same(&self.group, &object.group)
            && same(&self.kind, &object.kind)
            && same(&self.name, &object.name)
            && same(&self.namespace, object.namespace.as_deref().unwrap_or_default())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IgnoreRule {
    pub objects: ObjectPattern,
    pub paths: Vec<String>,
    pub path_patterns: Vec<String>,
}

/// The resolution of a conflict about a field of another manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictAction {
    /// The field is left to the other manager, without a warning.
    Ignore,
    ForceApply,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictRule {
    pub objects: ObjectPattern,
    pub paths: Vec<String>,
    pub path_patterns: Vec<String>,
    /// The fields of managers whose names match these regular expressions.
    pub managers: Vec<String>,
    pub action: ConflictAction,
}

/// The rules for a group of objects: first the rules of its own project, then the rules of the projects that include it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    pub ignore_for_diff: Vec<IgnoreRule>,
    /// Resolutions of conflicts; of several rules for a field, the last one counts.
    pub conflict_resolution: Vec<ConflictRule>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_equal_and_empty_fields() {
        let object = |group: &str, namespace: Option<&str>| ObjectRef {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: namespace.map(str::to_owned),
            name: "s".to_owned(),
        };
        let pattern = |group: Option<&str>, kind: Option<&str>, namespace: Option<&str>| ObjectPattern {
            group: group.map(str::to_owned),
            kind: kind.map(str::to_owned),
            name: None,
            namespace: namespace.map(str::to_owned),
        };
        for (pattern, object, expected) in [
            (pattern(None, None, None), object("x.io", Some("n")), true),
            (pattern(None, Some("Secret"), None), object("", None), true),
            (pattern(None, Some("ConfigMap"), None), object("", None), false),
            (pattern(Some("apps"), None, None), object("", None), true),
            (pattern(Some("apps"), None, None), object("x.io", None), false),
            (pattern(None, None, Some("n")), object("", None), true),
            (pattern(None, None, Some("n")), object("", Some("m")), false),
        ] {
            assert_eq!(pattern.matches(&object), expected, "{pattern:?} {object}");
        }
    }
}
