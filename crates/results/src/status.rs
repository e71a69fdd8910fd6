//! Results in the form in which statuses hold them.

use yaml::{Map, Value};

use super::{CommandResult, ObjectError, ResultObject, entry::reference};
use crate::ValidateResult;

impl CommandResult {
    /// Returns the outcome for each object as data, without the objects themselves. It is kept below about
    /// `limit` bytes of JSON by leaving out values first, then objects, then messages.
    #[must_use]
    pub fn to_status(&self, limit: usize) -> Value {
        let whole = self.value(true, usize::MAX);
        if size(&whole) <= limit {
            return whole;
        }
        let mut keep = self.objects.len().max(self.errors.len()).max(self.warnings.len());
        loop {
            let smaller = self.value(false, keep);
            if keep == 0 || size(&smaller) <= limit {
                return smaller;
            }
            keep /= 2;
        }
    }

    fn value(&self, with_changes: bool, keep: usize) -> Value {
        let mut command = Map::from([
            ("initiator", Value::from("KluctlDeployment")),
            ("startTime", Value::from(self.start.to_string())),
            ("endTime", Value::from(self.end.to_string())),
            ("command", Value::from(self.command.as_str())),
        ]);
        if self.dry_run {
            command.insert("dryRun", true);
        }
        let mut root = Map::from([("command", command)]);
        if let Some(discriminator) = &self.discriminator {
            root.insert(
                "targetKey",
                Map::from([("discriminator", discriminator.as_str())]),
            );
        }
        let objects: Vec<Value> = self
            .objects
            .iter()
            .take(keep)
            .map(|object| entry(object, with_changes))
            .collect();
        root.insert("objects", objects);
        root.insert("errors", messages(&self.errors, keep));
        root.insert("warnings", messages(&self.warnings, keep));
        if keep < self.objects.len() {
            root.insert(
                "truncatedObjects",
                Value::from(u64::try_from(self.objects.len() - keep).unwrap_or(u64::MAX)),
            );
        }
        Value::Map(root)
    }
}

impl ValidateResult {
    #[must_use]
    pub fn to_status(&self, keep: usize) -> Value {
        Value::Map(Map::from([
            ("ready", Value::from(self.ready)),
            ("startTime", Value::from(self.start.to_string())),
            ("endTime", Value::from(self.end.to_string())),
            ("errors", messages(&self.errors, keep)),
            ("warnings", messages(&self.warnings, keep)),
            ("results", Value::from(self.annotation_results(keep))),
        ]))
    }
}

fn size(value: &Value) -> usize {
    yaml::print::json(value).len()
}

fn entry(object: &ResultObject, with_changes: bool) -> Value {
    let mut entry = Map::from([("ref", reference(&object.reference))]);
    for (name, set) in [
        ("new", object.new),
        ("orphan", object.orphan),
        ("deleted", object.deleted),
    ] {
        if set {
            entry.insert(name, true);
        }
    }
    if with_changes && !object.changes.is_empty() {
        entry.insert(
            "changes",
            object
                .changes
                .iter()
                .map(|change| change.to_value())
                .collect::<Vec<_>>(),
        );
    }
    Value::Map(entry)
}

fn messages(list: &[ObjectError], keep: usize) -> Value {
    let list: Vec<Value> = list
        .iter()
        .take(keep)
        .map(|error| {
            let mut entry = Map::new();
            if let Some(of) = &error.reference {
                entry.insert("ref", reference(of));
            }
            entry.insert("message", error.message.as_str());
            Value::Map(entry)
        })
        .collect();
    Value::from(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, status_objects};
    use objects::{ObjectRef, diff};

    fn result(objects: usize) -> CommandResult {
        let mut result = CommandResult::new(Command::Deploy, true, Some("d"));
        for i in 0..objects {
            let reference = ObjectRef {
                group: String::new(),
                version: "v1".to_owned(),
                kind: "ConfigMap".to_owned(),
                namespace: Some("n".to_owned()),
                name: format!("c{i}"),
            };
            let (old, new) = (Map::from([("data", "x")]), Map::from([("data", "y".repeat(100))]));
            let changes = diff::changes(&Value::Map(old), &Value::Map(new));
            result.objects.push(ResultObject {
                changes,
                ..ResultObject::new(reference)
            });
        }
        result
    }

    #[test]
    fn status_objects_returns_the_objects_of_a_status() {
        let result = result(3);
        let refs: Vec<ObjectRef> = result
            .objects
            .iter()
            .map(|object| object.reference.clone())
            .collect();
        let raw = yaml::print::goyaml(&result.to_status(100_000));
        assert_eq!(status_objects(&raw), Some(refs));
        assert_eq!(status_objects("objects: 1"), None);
    }

    #[test]
    fn a_result_fits_into_a_status() {
        let small = result(1).to_status(100_000);
        assert_eq!(
            small
                .pointer(&["objects", "0", "changes", "0", "jsonPath"])
                .and_then(Value::as_str),
            Some("data")
        );
        assert_eq!(
            small.pointer(&["command", "dryRun"]).and_then(Value::as_bool),
            Some(true)
        );
        let without_changes = result(100).to_status(10_000);
        assert_eq!(
            without_changes
                .get("objects")
                .and_then(Value::as_seq)
                .map(<[Value]>::len),
            Some(100)
        );
        assert!(without_changes.pointer(&["objects", "0", "changes"]).is_none());
        let truncated = result(5000).to_status(10_000);
        assert!(size(&truncated) <= 10_000 && truncated.get("truncatedObjects").is_some());
    }
}
