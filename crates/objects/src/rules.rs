//! What a project says about fields of its objects: which differences don't matter, and who wins a conflict.
//!
//! They are rules of `deployment.yaml`, passed down from projects to those that they include; annotations of single objects
//! come on top ([`crate::annotations`]).

use crate::{ObjectRef, annotations};

/// The objects that a rule is about; what is absent matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectPattern {
    /// The API group.
    pub group: Option<String>,
    /// The kind.
    pub kind: Option<String>,
    /// The name.
    pub name: Option<String>,
    /// The namespace; objects without one match, too.
    pub namespace: Option<String>,
}

impl ObjectPattern {
    /// Whether an object is meant. What the object itself leaves empty, as the core group or no namespace, matches all.
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

/// Differences that don't matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IgnoreRule {
    /// In which objects.
    pub objects: ObjectPattern,
    /// The fields, as JSON paths.
    pub paths: Vec<String>,
    /// The fields, as regular expressions on their paths.
    pub path_patterns: Vec<String>,
}

/// What becomes of a field that another manager owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictAction {
    /// It is left to the other manager, and nobody is told.
    Ignore,
    /// It is taken over.
    ForceApply,
}

/// Who wins conflicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictRule {
    /// In which objects.
    pub objects: ObjectPattern,
    /// The fields, as JSON paths.
    pub paths: Vec<String>,
    /// The fields, as regular expressions on their paths.
    pub path_patterns: Vec<String>,
    /// The fields of the managers that these regular expressions match.
    pub managers: Vec<String>,
    /// What becomes of them.
    pub action: ConflictAction,
}

/// The rules that hold for the objects of an item: those of its own project first, then those of the projects around.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// Which differences don't matter.
    pub ignore_for_diff: Vec<IgnoreRule>,
    /// Who wins conflicts; of several rules for a field, the last one counts.
    pub conflict_resolution: Vec<ConflictRule>,
}

/// What somebody who looks at differences does not want to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unseen {
    /// The labels with tags.
    pub tags: bool,
    /// All labels.
    pub labels: bool,
    /// All annotations.
    pub annotations: bool,
    /// All that deployments are marked with: tags, discriminator, directory of the item.
    pub marks: bool,
}

impl Unseen {
    /// The same as rules for all objects.
    #[must_use]
    pub fn rules(self) -> Vec<IgnoreRule> {
        let mut rule = IgnoreRule::default();
        if self.tags || self.marks {
            let tags = format!(
                "^metadata\\.labels\\[\"{}",
                regex::escape(annotations::TAG_PREFIX)
            );
            rule.path_patterns.push(tags);
        }
        if self.marks {
            rule.paths.extend([
                format!("metadata.labels[\"{}\"]", annotations::DISCRIMINATOR),
                format!("metadata.annotations[\"{}\"]", annotations::ITEM_DIR),
            ]);
        }
        if self.labels {
            rule.paths.push("metadata.labels.*".to_owned());
        }
        if self.annotations {
            rule.paths.push("metadata.annotations.*".to_owned());
        }
        if rule == IgnoreRule::default() {
            Vec::new()
        } else {
            vec![rule]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_they_name_and_what_is_empty() {
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

    #[test]
    fn nothing_unseen_is_no_rule() {
        assert!(Unseen::default().rules().is_empty());
        let marks = Unseen {
            marks: true,
            ..Unseen::default()
        };
        assert_eq!(marks.rules()[0].paths.len(), 2);
        assert_eq!(
            marks.rules()[0].path_patterns,
            ["^metadata\\.labels\\[\"kluctl\\.io/tag\\-"]
        );
    }
}
