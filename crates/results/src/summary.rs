//! Summaries of results, as they are in the annotations of stored results.

use yaml::{Map, Value};

use super::{CommandResult, ResultObject, entry};
use crate::ValidateResult;

/// The field of results that their summaries don't have: kluctl's types refuse fields that they don't know.
const OVERRIDES: &str = "overridesPatch";

pub(super) fn number(count: usize) -> Value {
    Value::from(u64::try_from(count).unwrap_or(u64::MAX))
}

impl CommandResult {
    /// Returns the summary of the result, for lists. It has all errors and warnings: [`bounded`](super::bounded) leaves some out.
    #[must_use]
    pub fn summary(&self) -> Value {
        let count = |accept: fn(&ResultObject) -> bool| {
            number(self.objects.iter().filter(|object| accept(object)).count())
        };
        let mut root = self.head("commandInfo");
        root.remove(OVERRIDES);
        for (name, count) in [
            ("renderedObjects", count(|object| object.rendered.is_some())),
            ("remoteObjects", count(|object| object.remote.is_some())),
            (
                "appliedObjects",
                count(|object| object.is_applied && !object.hook),
            ),
            (
                "appliedHookObjects",
                count(|object| object.is_applied && object.hook),
            ),
            ("newObjects", count(|object| object.new)),
            ("changedObjects", count(|object| !object.changes.is_empty())),
            ("orphanObjects", count(|object| object.orphan)),
            ("deletedObjects", count(|object| object.deleted)),
        ] {
            root.insert(name, count);
        }
        root.insert("errors", entry::summary_messages(&self.errors));
        root.insert("warnings", entry::summary_messages(&self.warnings));
        root.insert(
            "totalChanges",
            number(self.objects.iter().map(|object| object.changes.len()).sum()),
        );
        Value::Map(root)
    }

    /// Returns the drift detection result: the objects that differ from their manifests.
    #[must_use]
    pub fn drift(&self) -> Value {
        let mut root: Map = self.head("commandInfo");
        for foreign in [OVERRIDES, "target", "commandInfo", "gitInfo", "clusterInfo"] {
            root.remove(foreign);
        }
        root.insert("startTime", self.start.to_string());
        root.insert("endTime", self.end.to_string());
        let drifted = self.objects.iter().filter(|object| is_drifted(object));
        root.insert("objects", drifted.map(entry::entry).collect::<Vec<_>>());
        root.insert("errors", entry::messages(&self.errors));
        root.insert("warnings", entry::messages(&self.warnings));
        Value::Map(root)
    }

    /// Returns the counts of the drift, as `1 new/2 chg/1 orp`, or `no drift`.
    #[must_use]
    pub fn drift_message(&self) -> String {
        let count =
            |accept: fn(&ResultObject) -> bool| self.objects.iter().filter(|object| accept(object)).count();
        let mut parts = Vec::new();
        for (count, what) in [
            (count(|object| object.new), "new"),
            (count(|object| !object.changes.is_empty()), "chg"),
            (count(|object| object.orphan), "orp"),
            (count(|object| object.deleted), "del"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        if parts.is_empty() {
            return "no drift".to_owned();
        }
        for (count, what) in [(self.errors.len(), "err"), (self.warnings.len(), "wrn")] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        parts.join("/")
    }
}

fn is_drifted(object: &ResultObject) -> bool {
    object.new || object.orphan || object.deleted || !object.changes.is_empty()
}

impl ValidateResult {
    #[must_use]
    pub fn summary(&self) -> Value {
        let mut root = self.head();
        root.remove(OVERRIDES);
        root.insert("ready", self.ready);
        root.insert("warnings", number(self.warnings.len()));
        root.insert("errors", number(self.errors.len()));
        root.insert("results", number(self.results.len()));
        Value::Map(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, ObjectError};
    use objects::ObjectRef;
    use serde_json::json;

    fn object(name: &str) -> ResultObject {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        ResultObject::new(ObjectRef::of(&Value::from_json(object)).unwrap())
    }

    #[test]
    fn summary_counts_objects_and_drift() {
        let mut result = CommandResult::new(Command::Diff, true, Some("d"));
        assert_eq!(result.drift_message(), "no drift");
        result.warnings.push(ObjectError::general("w"));
        assert_eq!(result.drift_message(), "no drift");
        result.objects = vec![
            ResultObject {
                new: true,
                is_applied: true,
                ..object("a")
            },
            ResultObject {
                hook: true,
                is_applied: true,
                ..object("b")
            },
            ResultObject {
                orphan: true,
                ..object("c")
            },
            object("d"),
        ];
        assert_eq!(result.drift_message(), "1 new/1 orp/1 wrn");
        let summary = result.summary();
        let number = |name: &str| summary.get(name).and_then(Value::as_u64);
        assert_eq!(
            (number("newObjects"), number("appliedObjects")),
            (Some(1), Some(1))
        );
        assert_eq!(
            (number("appliedHookObjects"), number("totalChanges")),
            (Some(1), Some(0))
        );
        assert_eq!(
            summary
                .pointer(&["commandInfo", "command"])
                .and_then(Value::as_str),
            Some("diff")
        );
        assert_eq!(
            result
                .drift()
                .get("objects")
                .and_then(Value::as_seq)
                .map(<[Value]>::len),
            Some(2)
        );
    }

    #[test]
    fn short_results_have_no_fields_that_the_types_of_kluctl_refuse() {
        let mut result = CommandResult::new(Command::Deploy, true, Some("d"));
        result.origin.overrides_patch = Some(Value::from_json(json!({"spec": {"dryRun": true}})));
        result.origin.git = Some(crate::GitInfo::default());
        let fields = |value: &Value| {
            let mut names: Vec<String> = value.as_map().unwrap().keys().map(str::to_owned).collect();
            names.sort_unstable();
            names.join(" ")
        };
        assert!(
            result
                .to_value(crate::Contents::None)
                .get("overridesPatch")
                .is_some()
        );
        assert_eq!(
            fields(&result.summary()),
            "appliedHookObjects appliedObjects changedObjects clusterInfo commandInfo deletedObjects errors gitInfo id newObjects \
             orphanObjects projectKey remoteObjects renderedObjects target targetKey totalChanges warnings"
        );
        assert_eq!(
            fields(&result.drift()),
            "endTime errors id objects projectKey startTime targetKey warnings"
        );
    }
}
