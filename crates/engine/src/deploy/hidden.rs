//! Differences that a user does not want to see.

use kluctl::annotations;
use objects::rules::IgnoreRule;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HiddenDifferences {
    pub tags: bool,
    pub labels: bool,
    pub annotations: bool,
    /// True if all labels and annotations that kluctl adds are hidden: tags, discriminator, directory of the item.
    pub marks: bool,
}

impl HiddenDifferences {
    /// Returns rules for all objects; none if nothing is hidden.
    #[must_use]
    pub fn rules(self) -> Vec<IgnoreRule> {
        let mut rule = IgnoreRule::default();
        if self.tags || self.marks {
            let prefix = annotations::TAG_PREFIX.replace('.', "\\.").replace('-', "\\-");
            rule.path_patterns
                .push(format!("^metadata\\.labels\\[\"{prefix}"));
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
    use crate::deploy::owner::VOCABULARY;
    use objects::{Ignore, normalize};
    use serde_json::json;
    use yaml::Value;

    #[test]
    fn rules_cover_hidden_differences() {
        assert!(HiddenDifferences::default().rules().is_empty());
        let marks = HiddenDifferences {
            marks: true,
            ..HiddenDifferences::default()
        };
        assert_eq!(marks.rules()[0].paths.len(), 2);
        assert_eq!(
            marks.rules()[0].path_patterns,
            ["^metadata\\.labels\\[\"kluctl\\.io/tag\\-"]
        );
    }

    #[test]
    fn hidden_tags_are_not_compared() {
        let object = Value::from_json(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "c", "labels": {"kluctl.io/tag-0": "a", "team": "t"}}}));
        let tags = HiddenDifferences {
            tags: true,
            ..HiddenDifferences::default()
        };
        let mut ignore = Ignore::of(&object, &VOCABULARY, &tags.rules()).unwrap();
        let normalized = normalize(&object, &mut ignore).unwrap();
        assert_eq!(
            normalized.pointer(&["metadata", "labels"]),
            Some(&Value::from_json(json!({"team": "t"})))
        );
    }
}
