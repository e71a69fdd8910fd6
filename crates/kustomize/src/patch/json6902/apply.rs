//! Applies operations to a value.

use serde_json::Value as Json;
use tree::TreePath;

use super::Operation;
use crate::{Error, options::Run};

const MISSING: &str = "missing value";

/// Why a patch could not be applied.
pub(super) enum Failure {
    /// An operation does not apply.
    Problem(String),
    /// The budget ended.
    Ended(Error),
}

impl From<String> for Failure {
    fn from(problem: String) -> Self {
        Self::Problem(problem)
    }
}

/// The value after all operations, or what is wrong with the first that does not apply.
pub(super) fn apply(
    operations: &[Operation],
    value: Json,
    run: &Run<'_>,
    file: &TreePath,
) -> Result<Json, Failure> {
    let mut document = Document { value, run, file };
    for operation in operations {
        run.step(1, file).map_err(Failure::Ended)?;
        match operation.kind.as_str() {
            "add" => document.add_to(operation)?,
            "remove" => document.remove(operation)?,
            "replace" => document.replace(operation)?,
            "move" => document.shift(operation)?,
            "copy" => document.copy(operation)?,
            "test" => document.test(operation)?,
            other => return Err(format!("Unexpected kind: {other}").into()),
        }
    }
    Ok(document.value)
}

struct Document<'r> {
    value: Json,
    run: &'r Run<'r>,
    file: &'r TreePath,
}

impl Operation {
    fn path(&self, name: &str) -> Result<&str, String> {
        let failed = || {
            let reason = format!("operation missing path field: {MISSING}");
            format!("{name} operation failed to decode path: {reason}")
        };
        self.path.as_deref().ok_or_else(failed)
    }

    fn from(&self, name: &str) -> Result<&str, String> {
        let failed =
            || format!("{name} operation failed to decode from: operation, missing from field: {MISSING}");
        self.from.as_deref().ok_or_else(failed)
    }
}

impl Document<'_> {
    /// The map or list that holds what a path names, and the key in it; none when there is no such.
    fn holder(&mut self, path: &str) -> Option<(&mut Json, String)> {
        let mut parts = path.split('/');
        parts.next();
        let mut holder = &mut self.value;
        let mut key = unescape(parts.next()?);
        for part in parts {
            holder = match holder {
                Json::Object(fields) => fields.get_mut(&key)?,
                Json::Array(items) => {
                    let at = index(&key, items.len()).ok()?;
                    items.get_mut(at)?
                }
                _ => return None,
            };
            key = unescape(part);
        }
        matches!(holder, Json::Object(_) | Json::Array(_)).then_some((holder, key))
    }

    /// What a path names, by the words for when its holder or it itself is missing; a missing field of a map is null.
    fn get(
        &mut self,
        path: &str,
        no_holder: impl FnOnce() -> String,
        no_item: impl FnOnce(&str, String) -> String,
    ) -> Result<Json, String> {
        let (holder, key) = self.holder(path).ok_or_else(no_holder)?;
        match holder {
            Json::Array(items) => {
                let at = index(&key, items.len()).map_err(|error| no_item(&key, error))?;
                Ok(items.get(at).cloned().unwrap_or_default())
            }
            holder => Ok(holder.get(&key).cloned().unwrap_or_default()),
        }
    }

    fn add(&mut self, path: &str, value: Json, no_holder: &str, failed: &str) -> Result<(), String> {
        self.check_depth(path, &value)?;
        let Some((holder, key)) = self.holder(path) else {
            return Err(format!("{no_holder}: {MISSING}"));
        };
        match holder {
            Json::Array(items) if key == "-" => items.push(value),
            Json::Array(items) => {
                let at = index(&key, items.len() + 1).map_err(|error| {
                    let error = if key.parse::<i64>().is_err() {
                        format!("value was not a proper array index: '{key}': {error}")
                    } else {
                        error
                    };
                    format!("{failed}: {error}")
                })?;
                items.insert(at, value);
            }
            Json::Object(fields) => {
                fields.insert(key, value);
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts a value that is put into the document once more.
    fn grow(&self, value: &Json) -> Result<(), Failure> {
        self.run.grow(size(value), self.file).map_err(Failure::Ended)
    }

    /// quirk: an operation without a value has null.
    fn value_of(&self, operation: &Operation) -> Result<Json, Failure> {
        let value = operation.value.clone().unwrap_or_default();
        self.grow(&value)?;
        Ok(value)
    }

    fn add_to(&mut self, operation: &Operation) -> Result<(), Failure> {
        let path = operation.path("add")?;
        let no_holder = format!("add operation does not apply: doc is missing path: \"{path}\"");
        let failed = format!("error in add for path: '{path}'");
        let value = self.value_of(operation)?;
        Ok(self.add(path, value, &no_holder, &failed)?)
    }

    fn take(
        &mut self,
        path: &str,
        no_holder: impl FnOnce() -> String,
        failed: impl FnOnce(&str, String) -> String,
    ) -> Result<Json, String> {
        let (holder, key) = self.holder(path).ok_or_else(no_holder)?;
        let taken = match holder {
            Json::Array(items) => index(&key, items.len()).map(|at| items.remove(at)),
            Json::Object(fields) => {
                let nonexistent = || format!("Unable to remove nonexistent key: {key}: {MISSING}");
                fields.remove(&key).ok_or_else(nonexistent)
            }
            _ => Ok(Json::Null),
        };
        taken.map_err(|error| failed(&key, error))
    }

    fn remove(&mut self, operation: &Operation) -> Result<(), String> {
        let path = operation.path("remove")?;
        let no_holder =
            || format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}");
        let failed = |_: &str, error| format!("error in remove for path: '{path}': {error}");
        self.take(path, no_holder, failed).map(|_| ())
    }

    /// quirk: a field that a map doesn't have is added.
    fn replace(&mut self, operation: &Operation) -> Result<(), Failure> {
        let path = operation.path("replace")?;
        let value = self.value_of(operation)?;
        self.check_depth(path, &value)?;
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err("replace operation value must be object or array"
                    .to_owned()
                    .into());
            }
            self.value = value;
            return Ok(());
        }
        let missing =
            |what| format!("replace operation does not apply: doc is missing {what}: {path}: {MISSING}");
        let Some((holder, key)) = self.holder(path) else {
            return Err(missing("path").into());
        };
        match holder {
            Json::Array(items) => {
                let at = index(&key, items.len()).map_err(|_| missing("key"))?;
                if let Some(item) = items.get_mut(at) {
                    *item = value;
                }
            }
            Json::Object(fields) => {
                fields.insert(key, value);
            }
            _ => {}
        }
        Ok(())
    }

    fn shift(&mut self, operation: &Operation) -> Result<(), String> {
        let from = operation.from("move")?;
        let no_holder =
            || format!("move operation does not apply: doc is missing from path: {from}: {MISSING}");
        let failed = |key: &str, error| format!("error in move for path: '{key}': {error}");
        let value = self.take(from, no_holder, failed)?;
        let path = operation.path("move")?;
        let no_holder = format!("move operation does not apply: doc is missing destination path: {path}");
        self.add(
            path,
            value,
            &no_holder,
            &format!("error in move for path: '{path}'"),
        )
    }

    /// quirk: the copy of a field that isn't there is null.
    fn copy(&mut self, operation: &Operation) -> Result<(), Failure> {
        let from = operation.from("copy")?;
        let no_holder =
            || format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}");
        let failed = |_: &str, error| format!("error in copy for from: '{from}': {error}");
        let value = self.get(from, no_holder, failed)?;
        self.grow(&value)?;
        let path = operation.path("copy")?;
        let no_holder = format!("copy operation does not apply: doc is missing destination path: {path}");
        Ok(self.add(path, value, &no_holder, "error while adding value during copy")?)
    }

    fn test(&mut self, operation: &Operation) -> Result<(), String> {
        let path = operation.path("test")?;
        let failed = || format!("testing value {path} failed: test failed");
        let own = if path.is_empty() {
            self.value.clone()
        } else {
            let no_holder = || format!("test operation does not apply: is missing path: {path}: {MISSING}");
            self.get(path, no_holder, |_, error| {
                format!("error in test for path: '{path}': {error}")
            })?
        };
        let is_equal = match &operation.value {
            Some(value) => own == *value,
            None => own.is_null(),
        };
        is_equal.then_some(()).ok_or_else(failed)
    }

    /// What operations make must not nest deeper than what is read.
    fn check_depth(&self, path: &str, value: &Json) -> Result<(), String> {
        let max_depth = self.run.budget.limits().yaml_depth as usize;
        if path.matches('/').count() + depth(value) > max_depth {
            return Err(format!("the patch nests more than {max_depth} levels"));
        }
        Ok(())
    }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// The place in a list that a key names; a negative one counts from the end.
fn index(key: &str, len: usize) -> Result<usize, String> {
    let invalid = || format!("strconv.Atoi: parsing {key:?}: invalid syntax");
    let number = key.parse::<i64>().map_err(|_| invalid())?;
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if number < 0 { number + len } else { number };
    let inside = (0..len).contains(&at).then(|| usize::try_from(at).ok()).flatten();
    inside.ok_or_else(|| format!("Unable to access invalid index: {number}: invalid index referenced"))
}

fn children(value: &Json) -> Box<dyn Iterator<Item = &Json> + '_> {
    match value {
        Json::Array(items) => Box::new(items.iter()),
        Json::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    }
}

fn depth(value: &Json) -> usize {
    children(value).map(|child| depth(child) + 1).max().unwrap_or(0)
}

/// About how many bytes a value is when it is printed.
fn size(value: &Json) -> usize {
    let own = match value {
        Json::String(text) => text.len(),
        Json::Object(fields) => fields.keys().map(|key| key.len() + 2).sum(),
        _ => 0,
    };
    4 + own + children(value).map(size).sum::<usize>()
}
