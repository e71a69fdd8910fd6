//! Hooks: objects that are not part of a deployment, but run before or after it.
//!
//! An annotation sets the time; Helm's annotations are obeyed too. An invalid annotation is an error, and the others still
//! count, so that one bad weight doesn't turn a hook into a part of the deployment.

use std::num::IntErrorKind;

use objects::meta;
use yaml::Value;

use crate::annotations as names;

/// Words of an annotation that are read; each unsupported one has a message.
const MAX_WORDS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Before,
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollout {
    Initial,
    /// Some of its objects exist.
    Upgrade,
}

/// A time at which a hook runs; never without a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Time {
    phase: Option<Phase>,
    rollout: Option<Rollout>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    times: Vec<Time>,
    /// Hooks run in ascending order.
    pub weight: i64,
    /// The object of an earlier run is deleted before.
    pub delete_before: bool,
    pub delete_on_success: bool,
    pub delete_on_failure: bool,
    /// The next objects wait until this one is ready.
    pub wait: bool,
    /// Timeout of the wait as it is written, such as `1m30s`.
    pub timeout: Option<String>,
}

/// The parsed annotations of an object. Without a hook, it is a part of the deployment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParsedHook {
    pub hook: Option<Hook>,
    /// About invalid annotations.
    pub errors: Vec<String>,
    /// About annotations without an effect.
    pub warnings: Vec<String>,
}

impl Hook {
    #[must_use]
    pub fn runs(&self, phase: Phase, rollout: Rollout) -> bool {
        self.times
            .iter()
            .any(|time| time.phase == Some(phase) && time.rollout.is_none_or(|only| only == rollout))
    }

    /// Returns true if the object still exists after a successful deployment.
    #[must_use]
    pub fn stays(&self) -> bool {
        !self.delete_on_success && self.times.iter().any(|time| time.phase.is_some())
    }
}

/// Parses the annotations of an object. An object that is marked for deletion is not a hook.
#[must_use]
pub fn parse(object: &Value) -> ParsedHook {
    let mut parsed = ParsedHook::default();
    if meta::flag(object, names::DELETE) {
        return parsed;
    }
    let mut times = Vec::new();
    let mut is_hook = false;
    for name in words(object, names::HOOK) {
        is_hook = true;
        match time(name) {
            Some(time) if time.phase.is_some() => times.push(time),
            _ => parsed
                .errors
                .push(format!("unsupported {} '{name}'", names::HOOK)),
        }
    }
    for name in words(object, names::HELM_HOOK) {
        let mapped = match name {
            "pre-install" => time("pre-deploy-initial"),
            "post-install" => time("post-deploy-initial"),
            "pre-upgrade" => time("pre-deploy-upgrade"),
            "post-upgrade" => time("post-deploy-upgrade"),
            "pre-delete" | "post-delete" | "pre-rollback" | "post-rollback" => Some(Time {
                phase: None,
                rollout: None,
            }),
            _ => None,
        };
        if mapped.is_none_or(|time| time.phase.is_none()) {
            parsed
                .warnings
                .push(format!("unsupported {} '{name}'", names::HELM_HOOK));
        }
        is_hook |= mapped.is_some();
        times.extend(mapped);
    }
    if is_hook {
        parsed.hook = Some(hook(object, times, &mut parsed.errors));
    }
    parsed
}

fn hook(object: &Value, times: Vec<Time>, errors: &mut Vec<String>) -> Hook {
    let mut hook = Hook {
        times,
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

fn time(name: &str) -> Option<Time> {
    let (phase, rest) = match name.strip_prefix("pre-deploy") {
        Some(rest) => (Phase::Before, rest),
        None => (Phase::After, name.strip_prefix("post-deploy")?),
    };
    let rollout = match rest {
        "" => None,
        "-initial" => Some(Rollout::Initial),
        "-upgrade" => Some(Rollout::Upgrade),
        _ => return None,
    };
    Some(Time {
        phase: Some(phase),
        rollout,
    })
}

/// Splits the value of an annotation at its commas.
fn words<'a>(object: &'a Value, annotation: &str) -> impl Iterator<Item = &'a str> {
    let text = meta::annotation(object, annotation).unwrap_or_default();
    let words = text.split(',').map(str::trim);
    words.filter(|word| !word.is_empty()).take(MAX_WORDS)
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

    fn of(annotations: &Json) -> ParsedHook {
        parse(&Value::from_json(
            json!({"kind": "Job", "metadata": {"annotations": annotations}}),
        ))
    }

    #[test]
    fn hooks_run_in_their_phase_and_rollout() {
        let all = [
            (Phase::Before, Rollout::Initial),
            (Phase::Before, Rollout::Upgrade),
            (Phase::After, Rollout::Initial),
            (Phase::After, Rollout::Upgrade),
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
                all.map(|(phase, rollout)| hook.runs(phase, rollout)),
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
    fn invalid_annotations_are_errors_and_the_others_count() {
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
            let parsed = of(&annotations);
            assert_eq!(parsed.errors, [error]);
            assert!(parsed.hook.is_some());
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
    fn policies_weights_and_timeouts_are_parsed() {
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
