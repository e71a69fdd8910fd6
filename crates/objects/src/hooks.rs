//! Hooks: objects that are not part of a deployment, but run before or after it.
//!
//! An annotation says when; Helm's own annotations are understood, too. What can't be understood about a hook is told and
//! the rest of it still counts, so that one bad weight doesn't turn a job of a deployment into a part of it.

use std::num::IntErrorKind;

use yaml::Value;

use crate::{annotations as names, meta};

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the other objects of the item.
    Before,
    /// After them.
    After,
}

/// Whether an item is deployed for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// None of its objects is there.
    Initial,
    /// Some of them are.
    Upgrade,
}

/// One kind of hooks. Those without a moment never run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    moment: Option<Moment>,
    round: Option<Round>,
}

/// What an object says about being a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    kinds: Vec<Kind>,
    /// Hooks run in the order of their weights.
    pub weight: i64,
    /// What is left of an earlier run is deleted before.
    pub delete_before: bool,
    /// It is deleted when it succeeded.
    pub delete_on_success: bool,
    /// It is deleted when it failed.
    pub delete_on_failure: bool,
    /// Whether what comes next waits for it.
    pub wait: bool,
    /// How long to wait, as it is written, if it says so.
    pub timeout: Option<String>,
}

/// What an object says about being a hook, and what is wrong with that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// The hook; without one the object is a part of the deployment as any other.
    pub hook: Option<Hook>,
    /// What is wrong.
    pub errors: Vec<String>,
    /// What has no effect.
    pub warnings: Vec<String>,
}

impl Hook {
    /// Whether it runs at this moment.
    #[must_use]
    pub fn runs(&self, moment: Moment, round: Round) -> bool {
        self.kinds
            .iter()
            .any(|kind| kind.moment == Some(moment) && kind.round.is_none_or(|only| only == round))
    }

    /// Whether the object stays after a deployment that succeeded, so that it can be looked for.
    #[must_use]
    pub fn stays(&self) -> bool {
        !self.delete_on_success && self.kinds.iter().any(|kind| kind.moment.is_some())
    }
}

/// Reads the annotations of an object. What is to be deleted is no hook.
#[must_use]
pub fn read(object: &Value) -> Reading {
    let mut reading = Reading::default();
    if meta::flag(object, names::DELETE) {
        return reading;
    }
    let mut kinds = Vec::new();
    let mut said = false;
    for name in words(object, names::HOOK) {
        said = true;
        match kind(name) {
            Some(kind) if kind.moment.is_some() => kinds.push(kind),
            _ => reading
                .errors
                .push(format!("unsupported {} '{name}'", names::HOOK)),
        }
    }
    for name in words(object, names::HELM_HOOK) {
        let mapped = match name {
            "pre-install" => kind("pre-deploy-initial"),
            "post-install" => kind("post-deploy-initial"),
            "pre-upgrade" => kind("pre-deploy-upgrade"),
            "post-upgrade" => kind("post-deploy-upgrade"),
            "pre-delete" | "post-delete" | "pre-rollback" | "post-rollback" => Some(Kind {
                moment: None,
                round: None,
            }),
            _ => None,
        };
        if mapped.is_none_or(|kind| kind.moment.is_none()) {
            reading
                .warnings
                .push(format!("unsupported {} '{name}'", names::HELM_HOOK));
        }
        said |= mapped.is_some();
        kinds.extend(mapped);
    }
    if said {
        reading.hook = Some(hook(object, kinds, &mut reading.errors));
    }
    reading
}

fn hook(object: &Value, kinds: Vec<Kind>, errors: &mut Vec<String>) -> Hook {
    let mut hook = Hook {
        kinds,
        weight: weight(object, errors),
        delete_before: false,
        delete_on_success: false,
        delete_on_failure: false,
        wait: true,
        timeout: meta::annotation(object, names::HOOK_TIMEOUT).map(str::to_owned),
    };
    let mut policies = 0;
    for annotation in [names::HOOK_DELETE_POLICY, names::HELM_HOOK_DELETE_POLICY] {
        for policy in words(object, annotation) {
            policies += 1;
            match policy {
                "before-hook-creation" => hook.delete_before = true,
                "hook-succeeded" => hook.delete_on_success = true,
                "hook-failed" => hook.delete_on_failure = true,
                _ => errors.push(format!("unsupported {} '{policy}'", names::HOOK_DELETE_POLICY)),
            }
        }
    }
    hook.delete_before |= policies == 0;
    if let Some(text) = meta::annotation(object, names::HOOK_WAIT) {
        match meta::go_bool(text) {
            Some(wait) => hook.wait = wait,
            None => errors.push(format!(
                "failed to parse {}: strconv.ParseBool: parsing \"{text}\": invalid syntax",
                names::HOOK_WAIT
            )),
        }
    }
    hook
}

fn kind(name: &str) -> Option<Kind> {
    let (moment, rest) = match name.strip_prefix("pre-deploy") {
        Some(rest) => (Moment::Before, rest),
        None => (Moment::After, name.strip_prefix("post-deploy")?),
    };
    let round = match rest {
        "" => None,
        "-initial" => Some(Round::Initial),
        "-upgrade" => Some(Round::Upgrade),
        _ => return None,
    };
    Some(Kind {
        moment: Some(moment),
        round,
    })
}

/// The words of a list with commas.
fn words<'a>(object: &'a Value, annotation: &str) -> impl Iterator<Item = &'a str> {
    let text = meta::annotation(object, annotation).unwrap_or_default();
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn weight(object: &Value, errors: &mut Vec<String>) -> i64 {
    let text = meta::annotation(object, names::HOOK_WEIGHT)
        .or_else(|| meta::annotation(object, names::HELM_HOOK_WEIGHT));
    let Some(text) = text else { return 0 };
    match text.parse::<i64>() {
        Ok(weight) => weight,
        Err(error) => {
            let reason = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            errors.push(format!(
                "failed to parse hook weight: strconv.ParseInt: parsing \"{text}\": {reason}"
            ));
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    fn of(annotations: &Json) -> Reading {
        read(&Value::from_json(
            json!({"kind": "Job", "metadata": {"annotations": annotations}}),
        ))
    }

    #[test]
    fn when_a_hook_runs() {
        let all = [
            (Moment::Before, Round::Initial),
            (Moment::Before, Round::Upgrade),
            (Moment::After, Round::Initial),
            (Moment::After, Round::Upgrade),
        ];
        for (annotation, value, expected) in [
            ("kluctl.io/hook", "pre-deploy", [true, true, false, false]),
            (
                "kluctl.io/hook",
                "post-deploy-upgrade, pre-deploy-initial",
                [true, false, false, true],
            ),
            (
                "helm.sh/hook",
                "pre-install,post-upgrade",
                [true, false, false, true],
            ),
            ("helm.sh/hook", "pre-delete", [false; 4]),
            ("kluctl.io/hook", "pre-launch", [false; 4]),
        ] {
            let hook = of(&json!({annotation: value})).hook.unwrap();
            assert_eq!(
                all.map(|(moment, round)| hook.runs(moment, round)),
                expected,
                "{value}"
            );
        }
        for none in [
            json!({}),
            json!({"kluctl.io/hook": ""}),
            json!({"helm.sh/hook": "test"}),
            json!({"kluctl.io/hook": "pre-deploy", "kluctl.io/delete": "true"}),
        ] {
            assert_eq!(of(&none).hook, None, "{none}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_and_the_rest_counts() {
        for (annotations, error) in [
            (
                json!({"kluctl.io/hook": "pre-launch"}),
                "unsupported kluctl.io/hook 'pre-launch'",
            ),
            (
                json!({"kluctl.io/hook": "pre-deploy", "helm.sh/hook-delete-policy": "sometimes"}),
                "unsupported kluctl.io/hook-delete-policy 'sometimes'",
            ),
            (
                json!({"kluctl.io/hook": "pre-deploy", "helm.sh/hook-weight": "heavy"}),
                "failed to parse hook weight: strconv.ParseInt: parsing \"heavy\": invalid syntax",
            ),
            (
                json!({"kluctl.io/hook": "pre-deploy", "kluctl.io/hook-wait": "maybe"}),
                "failed to parse kluctl.io/hook-wait: strconv.ParseBool: parsing \"maybe\": invalid syntax",
            ),
        ] {
            let reading = of(&annotations);
            assert_eq!(reading.errors, [error]);
            assert!(reading.hook.is_some());
        }
        assert_eq!(
            of(&json!({"helm.sh/hook": "test,pre-rollback"})).warnings,
            [
                "unsupported helm.sh/hook 'test'",
                "unsupported helm.sh/hook 'pre-rollback'"
            ]
        );
    }

    #[test]
    fn policies_weights_and_waiting() {
        let plain = of(&json!({"kluctl.io/hook": "post-deploy"})).hook.unwrap();
        assert!(plain.delete_before && plain.wait && plain.weight == 0 && plain.stays());
        let both = of(&json!({"kluctl.io/hook": "post-deploy", "kluctl.io/hook-weight": "-3",
            "helm.sh/hook-weight": "7", "kluctl.io/hook-delete-policy": "hook-succeeded",
            "helm.sh/hook-delete-policy": "hook-failed", "kluctl.io/hook-wait": "false", "kluctl.io/hook-timeout": "1m30s"}))
        .hook
        .unwrap();
        assert!(!both.delete_before && both.delete_on_success && both.delete_on_failure && !both.stays());
        assert_eq!(
            (both.weight, both.wait, both.timeout.as_deref()),
            (-3, false, Some("1m30s"))
        );
        assert!(!of(&json!({"helm.sh/hook": "post-delete"})).hook.unwrap().stays());
    }
}
