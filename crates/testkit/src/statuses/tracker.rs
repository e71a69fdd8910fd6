//! Checks statuses in the order in which they were written. Pure.

use std::collections::HashMap;

use api::conditions::{self, KindRules, Subject, Violation};
use api::{Condition, group};
use kube::{ResourceExt as _, api::DynamicObject};
use serde_json::Value;

#[derive(Debug)]
struct Seen {
    status: Value,
    /// The generation of the object when a pass last ended. The next pass began after that.
    at_rest: i64,
    /// True if it has been suspended since.
    suspended: bool,
}

#[derive(Debug)]
struct Broken {
    namespace: String,
    text: String,
}

#[derive(Debug, Default)]
pub(super) struct Tracker {
    objects: HashMap<String, Seen>,
    broken: Vec<Broken>,
}

impl Tracker {
    /// Takes an object as it is before the first controller writes to it.
    pub(super) fn know(&mut self, object: &DynamicObject) {
        let seen = Seen {
            status: object.data.get("status").cloned().unwrap_or_default(),
            at_rest: object.metadata.generation.unwrap_or(1),
            suspended: is_suspended(object),
        };
        self.objects.insert(object.uid().unwrap_or_default(), seen);
    }

    /// Takes an object as it became, and checks its status if that is new.
    pub(super) fn see(&mut self, group: &str, object: &DynamicObject) {
        let generation = object.metadata.generation.unwrap_or(1);
        let status = object.data.get("status").cloned().unwrap_or_default();
        let suspended = is_suspended(object);
        let seen = self
            .objects
            .entry(object.uid().unwrap_or_default())
            .or_insert(Seen {
                status: Value::Null,
                at_rest: 1,
                suspended,
            });
        seen.suspended |= suspended;
        if seen.status == status {
            return;
        }
        let conditions = status.get("conditions").cloned().unwrap_or_default();
        let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
        let subject = Subject {
            generation,
            observed_generation: status.get("observedGeneration").and_then(Value::as_i64),
            conditions: &conditions,
            kind: KindRules::of(group),
            suspended: seen.suspended,
        };
        // An object that was suspended from its beginning has a status without conditions.
        if is_ours(object) && !conditions.is_empty() {
            let oldest = match group {
                // Its statuses don't say whether a pass runs.
                group::FLUX_KLUCTL => 1,
                _ => seen.at_rest,
            };
            let broken = broken_in_all(&subject, oldest);
            if !broken.is_empty() {
                self.broken.push(describe(object, &status, &broken));
            }
        }
        if !subject.is_in_progress() {
            seen.at_rest = generation;
            seen.suspended = suspended;
        }
        seen.status = status;
    }

    /// Returns the broken rules in a namespace, or in all, and forgets them.
    pub(super) fn take(&mut self, namespace: Option<&str>) -> Vec<String> {
        let is_of = |broken: &Broken| namespace.is_none_or(|namespace| broken.namespace == namespace);
        let (taken, others) = self.broken.drain(..).partition(is_of);
        self.broken = others;
        let taken: Vec<Broken> = taken;
        taken.into_iter().map(|broken| broken.text).collect()
    }
}

/// Returns the rules that a status breaks in each of the generations that the object had since `oldest`: the user may have changed the
/// object while a pass worked on an earlier one.
fn broken_in_all(subject: &Subject<'_>, oldest: i64) -> Vec<Violation> {
    let newest = subject.generation;
    let mut broken = Vec::new();
    for generation in oldest.min(newest)..=newest {
        broken = conditions::check(&Subject {
            generation,
            ..*subject
        });
        if broken.is_empty() {
            break;
        }
    }
    broken
}

fn is_suspended(object: &DynamicObject) -> bool {
    object.data.pointer("/spec/suspend") == Some(&Value::Bool(true))
}

/// Returns true if nobody but our controllers wrote a part of the status: tests write statuses of other controllers, too.
fn is_ours(object: &DynamicObject) -> bool {
    let fields = object.metadata.managed_fields.iter().flatten();
    let mut writers = fields.filter(|entry| entry.subresource.as_deref() == Some("status"));
    writers.all(|entry| {
        let manager = entry.manager.as_deref().unwrap_or_default();
        manager.ends_with("-controller") || manager == "probe"
    })
}

fn describe(object: &DynamicObject, status: &Value, broken: &[Violation]) -> Broken {
    let namespace = object.namespace().unwrap_or_default();
    let kind = object.types.as_ref().map(|types| types.kind.as_str());
    let rules: Vec<String> = broken.iter().map(Violation::to_string).collect();
    let text = format!(
        "{} {namespace}/{} of generation {:?} as of {}: {}, status of generation {} with {}",
        kind.unwrap_or_default(),
        object.name_any(),
        object.metadata.generation.unwrap_or_default(),
        object.resource_version().unwrap_or_default(),
        rules.join(", "),
        status.get("observedGeneration").unwrap_or(&Value::Null),
        status.get("conditions").unwrap_or(&Value::Null),
    );
    Broken { namespace, text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GROUP: &str = group::SOURCE;

    fn object(generation: i64, suspended: bool, manager: &str, status: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {
                "name": "shop", "namespace": "apps", "uid": "u", "generation": generation, "resourceVersion": "7",
                "managedFields": [{"manager": manager, "operation": "Update", "subresource": "status"}],
            },
            "spec": {"suspend": suspended}, "status": status,
        }))
        .unwrap()
    }

    fn condition(name: &str, status: &str, reason: &str, generation: i64) -> Value {
        json!({"type": name, "status": status, "reason": reason, "message": "m", "observedGeneration": generation})
    }

    fn ready(generation: i64) -> Value {
        json!({"observedGeneration": generation, "conditions": [condition("Ready", "True", "Succeeded", generation)]})
    }

    fn unknown() -> Value {
        json!({"observedGeneration": 1, "conditions": [condition("Ready", "Unknown", "Progressing", 1)]})
    }

    fn running(generation: i64) -> Value {
        let reconciling = condition("Reconciling", "True", "Progressing", generation);
        json!({"observedGeneration": -1, "conditions": [condition("Ready", "Unknown", "Progressing", generation), reconciling]})
    }

    fn broken(states: &[DynamicObject]) -> Vec<String> {
        let mut tracker = Tracker::default();
        for state in states {
            tracker.see(GROUP, state);
        }
        tracker.take(None)
    }

    fn ours(generation: i64, status: &Value) -> DynamicObject {
        object(generation, false, "source-controller", status)
    }

    #[test]
    fn broken_statuses_are_told_once_with_their_rules() {
        let mut tracker = Tracker::default();
        tracker.see(GROUP, &ours(1, &unknown()));
        tracker.see(GROUP, &ours(1, &ready(1)));
        assert_eq!(tracker.take(Some("other")), [""; 0]);
        let told = tracker.take(Some("apps"));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("GitRepository apps/shop of generation 1 as of 7: FAIL0011 by Ready, "),
            "{told:?}"
        );
        assert_eq!(tracker.take(None), [""; 0]);
    }

    #[test]
    fn status_of_the_generation_that_a_pass_read_is_sound() {
        // The user changes the object while the pass runs.
        assert_eq!(
            broken(&[ours(1, &Value::Null), ours(2, &running(1)), ours(3, &ready(1))]),
            [""; 0]
        );
        // The next pass has read a later generation.
        let states = [ours(1, &ready(1)), ours(2, &ready(1)), ours(2, &ready(2))];
        assert_eq!(broken(&states), [""; 0]);
        let mut touched = ready(1);
        touched["artifact"] = json!({});
        let states = [ours(2, &ready(2)), ours(2, &touched)];
        assert!(broken(&states)[0].contains("FAIL0007 by Ready"));
    }

    #[test]
    fn statuses_of_others_and_from_before_are_not_checked() {
        assert_eq!(broken(&[object(1, false, "test", &unknown())]), [""; 0]);
        let mut tracker = Tracker::default();
        tracker.know(&ours(1, &unknown()));
        tracker.see(GROUP, &ours(1, &unknown()));
        assert_eq!(tracker.take(None), [""; 0]);
        assert_eq!(broken(&[ours(1, &Value::Null), ours(1, &json!({}))]), [""; 0]);
    }

    #[test]
    fn suspended_object_needs_no_outlook_until_it_is_resumed() {
        let failed =
            json!({"observedGeneration": 1, "conditions": [condition("Ready", "False", "Failed", 1)]});
        let suspended = object(1, true, "source-controller", &Value::Null);
        assert_eq!(broken(&[suspended.clone(), ours(2, &failed)]), [""; 0]);
        let states = [suspended, ours(2, &ready(2)), ours(2, &failed)];
        assert!(broken(&states)[0].contains("OUTLOOK by Ready"));
    }
}
