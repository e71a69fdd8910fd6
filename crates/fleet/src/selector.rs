//! Selection of objects by a condition of their status.

use std::str::FromStr;

use api::condition_type::READY;

use crate::{Kind, Object};

/// A condition and its status, such as `ready=false` or `ready!=true`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusSelector {
    condition: String,
    status: String,
    is_negated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected status selector in type=status or type!=status format, but found: {0}")]
pub struct InvalidSelector(String);

impl FromStr for StatusSelector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidSelector(text.to_owned());
        let (condition, status) = text.split_once('=').ok_or_else(invalid)?;
        let (condition, is_negated) = match condition.strip_suffix('!') {
            Some(condition) => (condition, true),
            None => (condition, false),
        };
        if condition.trim().is_empty() || status.trim().is_empty() {
            return Err(invalid());
        }
        Ok(Self {
            condition: condition.trim().to_owned(),
            status: status.trim().to_owned(),
            is_negated,
        })
    }
}

impl StatusSelector {
    /// Returns true for objects with the status. A missing condition has no status; objects whose controller writes none are ready.
    #[must_use]
    pub fn matches(&self, kind: &Kind, object: &Object) -> bool {
        let mut conditions = object.status.conditions.iter();
        let found = conditions.find(|condition| condition.type_.eq_ignore_ascii_case(&self.condition));
        let status = match object.is_static(kind) {
            true => self.condition.eq_ignore_ascii_case(READY).then_some("True"),
            false => found.map(|found| found.status.as_str()),
        };
        let is_equal = status.is_some_and(|status| status.eq_ignore_ascii_case(&self.status));
        is_equal != self.is_negated
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind;

    #[test]
    fn selectors_compare_a_condition_in_any_case() {
        let object = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        let object: Object = serde_json::from_value(object).unwrap();
        for (selector, expected, of_alert) in [
            ("ready=false", true, false),
            ("Ready=True", false, true),
            ("ready!=true", true, false),
            ("stalled=true", false, false),
            ("stalled!=true", true, true),
        ] {
            let selector: StatusSelector = selector.parse().unwrap();
            assert_eq!(selector.matches(&kind::KUSTOMIZATION, &object), expected);
            assert_eq!(selector.matches(&kind::ALERT, &Object::default()), of_alert);
            assert_eq!(selector.matches(&kind::ALERT, &object), expected);
        }
        for invalid in ["ready", "=true", "ready=", "!=x"] {
            assert!(invalid.parse::<StatusSelector>().is_err(), "{invalid}");
        }
    }
}
