//! Applies operations to a value.

use serde_json::Value as Json;
use tree::TreePath;

use crate::{Error, run::Run};

const MISSING: &str = "missing value";

/// The problem of an operation that does not apply, in the words of the original's library.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct OperationError(String);

impl From<String> for OperationError {
    fn from(problem: String) -> Self {
        Self(problem)
    }
}

pub(super) enum Failure {
    Operation(OperationError),
    /// The budget ended.
    Ended(Error),
}

impl From<String> for Failure {
    fn from(problem: String) -> Self {
        Self::Operation(OperationError(problem))
    }
}

impl From<OperationError> for Failure {
    fn from(problem: OperationError) -> Self {
        Self::Operation(problem)
    }
}

/// Returns the value after all operations, or the error of the first that does not apply.
pub(super) fn apply(
    operations: &[Operation],
    value: Json,
    run: &Run<'_>,
    file: &TreePath,
) -> Result<Json, Failure> {
    let mut document = Document { value, run, file };
    for operation in operations {
        let paths = [&operation.path, &operation.from].into_iter().flatten();
        let bytes: usize = paths.map(String::len).sum();
        run.step(1 + bytes as u64 / 16, file).map_err(Failure::Ended)?;
        match operation.kind.as_str() {
            "add" => document.add_to(operation)?,
            "remove" => document.remove(operation)?,
            "replace" => document.replace(operation)?,
            "move" => document.shift(operation)?,
            "copy" => document.copy(operation)?,
            "test" => document.test(operation)?,
            other => return Err(OperationError(format!("Unexpected kind: {other}")).into()),
        }
    }
    Ok(document.value)
}

struct Document<'r> {
    value: Json,
    run: &'r Run<'r>,
    file: &'r TreePath,
}

#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) kind: String,
    pub(super) path: Option<String>,
    pub(super) from: Option<String>,
    pub(super) value: Option<Json>,
}

impl Operation {
    /// Returns true if the operation takes a part of the object to another one.
    pub(super) fn is_transfer(&self) -> bool {
        matches!(self.kind.as_str(), "copy" | "move")
    }

    fn path(&self, name: &str) -> Result<&str, OperationError> {
        let failed = || {
            let reason = format!("operation missing path field: {MISSING}");
            format!("{name} operation failed to decode path: {reason}")
        };
        self.path.as_deref().ok_or_else(|| failed().into())
    }

    fn from(&self, name: &str) -> Result<&str, OperationError> {
        let failed =
            || format!("{name} operation failed to decode from: operation, missing from field: {MISSING}");
        self.from.as_deref().ok_or_else(|| failed().into())
    }
}

impl Document<'_> {
    /// Returns the map or list at the parent of a path, and the key in it; `None` if there is none.
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

    /// Returns the value at a path; `no_holder` and `no_item` make the errors for a missing parent and a missing item. A
    /// missing field of a map is `None`.
    fn get(
        &mut self,
        path: &str,
        no_holder: impl FnOnce() -> String,
        no_item: impl FnOnce(&str, OperationError) -> String,
    ) -> Result<Option<&Json>, OperationError> {
        let (holder, key) = self.holder(path).ok_or_else(no_holder)?;
        match holder {
            Json::Array(items) => {
                let at = index(&key, items.len()).map_err(|error| no_item(&key, error))?;
                Ok(items.get(at))
            }
            holder => Ok(holder.get(&key)),
        }
    }

    fn add(&mut self, path: &str, value: Json, no_holder: &str, failed: &str) -> Result<(), Failure> {
        let (run, file) = (self.run, self.file);
        // The value is walked, and the items behind it move up.
        let step = |n: usize| run.step(n as u64 / 16, file).map_err(Failure::Ended);
        step(size(&value))?;
        self.check_depth(path, &value)?;
        let Some((holder, key)) = self.holder(path) else {
            return Err(format!("{no_holder}: {MISSING}").into());
        };
        match holder {
            Json::Array(items) if key == "-" => items.push(value),
            Json::Array(items) => {
                let at = index(&key, items.len() + 1).map_err(|error| {
                    let error = if key.parse::<i64>().is_err() {
                        format!("value was not a proper array index: '{key}': {error}")
                    } else {
                        error.to_string()
                    };
                    format!("{failed}: {error}")
                })?;
                step(items.len())?;
                items.insert(at, value);
            }
            Json::Object(fields) => {
                fields.insert(key, value);
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts a copy of a value in the document.
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
        self.add(path, value, &no_holder, &failed)
    }

    fn take(
        &mut self,
        path: &str,
        no_holder: impl FnOnce() -> String,
        failed: impl FnOnce(&str, OperationError) -> String,
    ) -> Result<Json, Failure> {
        let (run, file) = (self.run, self.file);
        let (holder, key) = self.holder(path).ok_or_else(no_holder)?;
        if let Json::Array(items) = holder {
            run.step(items.len() as u64 / 16, file).map_err(Failure::Ended)?;
        }
        let taken = match holder {
            Json::Array(items) => index(&key, items.len()).map(|at| items.remove(at)),
            Json::Object(fields) => {
                let nonexistent = || format!("Unable to remove nonexistent key: {key}: {MISSING}");
                fields.remove(&key).ok_or_else(|| nonexistent().into())
            }
            _ => Ok(Json::Null),
        };
        taken.map_err(|error| failed(&key, error).into())
    }

    fn remove(&mut self, operation: &Operation) -> Result<(), Failure> {
        let path = operation.path("remove")?;
        let no_holder =
            || format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}");
        let failed = |_: &str, error| format!("error in remove for path: '{path}': {error}");
        self.take(path, no_holder, failed).map(|_| ())
    }

    /// quirk: a missing field of a map is added.
    fn replace(&mut self, operation: &Operation) -> Result<(), Failure> {
        let path = operation.path("replace")?;
        let value = self.value_of(operation)?;
        self.check_depth(path, &value)?;
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                let problem = "replace operation value must be object or array";
                return Err(OperationError(problem.to_owned()).into());
            }
            self.value = value;
            return Ok(());
        }
        let missing =
            |what| format!("replace operation does not apply: doc is missing {what}: {path}: {MISSING}");
        let Some((holder, key)) = self.holder(path) else {
            return Err(OperationError(missing("path")).into());
        };
        match holder {
            Json::Array(items) => {
                let at = index(&key, items.len()).map_err(|_| OperationError(missing("key")))?;
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

    fn shift(&mut self, operation: &Operation) -> Result<(), Failure> {
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

    /// quirk: the copy of a missing field is null.
    fn copy(&mut self, operation: &Operation) -> Result<(), Failure> {
        let from = operation.from("copy")?;
        let no_holder =
            || format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}");
        let failed = |_: &str, error| format!("error in copy for from: '{from}': {error}");
        let value = self.get(from, no_holder, failed)?.cloned().unwrap_or_default();
        self.grow(&value)?;
        let path = operation.path("copy")?;
        let no_holder = format!("copy operation does not apply: doc is missing destination path: {path}");
        self.add(path, value, &no_holder, "error while adding value during copy")
    }

    fn test(&mut self, operation: &Operation) -> Result<(), Failure> {
        let steps = operation.value.as_ref().map_or(0, size) as u64 / 16;
        self.run.step(steps, self.file).map_err(Failure::Ended)?;
        let path = operation.path("test")?;
        let failed = || format!("testing value {path} failed: test failed");
        let own = if path.is_empty() {
            Some(&self.value)
        } else {
            let no_holder = || format!("test operation does not apply: is missing path: {path}: {MISSING}");
            self.get(path, no_holder, |_, error| {
                format!("error in test for path: '{path}': {error}")
            })?
        };
        let is_equal = match &operation.value {
            Some(value) => own.unwrap_or(&Json::Null) == value,
            None => own.is_none_or(Json::is_null),
        };
        is_equal.then_some(()).ok_or_else(|| failed().into())
    }

    /// Fails if the result would nest deeper than documents that are read may.
    fn check_depth(&self, path: &str, value: &Json) -> Result<(), OperationError> {
        let max_depth = self.run.budget.limits().yaml_depth as usize;
        if path.matches('/').count() + depth(value) > max_depth {
            return Err(OperationError(format!(
                "the patch nests more than {max_depth} levels"
            )));
        }
        Ok(())
    }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Parses the index of a list; a negative one counts from the end.
fn index(key: &str, len: usize) -> Result<usize, OperationError> {
    let invalid = || OperationError(format!("strconv.Atoi: parsing {key:?}: invalid syntax"));
    let number = key.parse::<i64>().map_err(|_| invalid())?;
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if number < 0 { number + len } else { number };
    let inside = (0..len).contains(&at).then(|| usize::try_from(at).ok()).flatten();
    inside.ok_or_else(|| {
        OperationError(format!(
            "Unable to access invalid index: {number}: invalid index referenced"
        ))
    })
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

/// Returns the approximate size of a printed value.
fn size(value: &Json) -> usize {
    let own = match value {
        Json::String(text) => text.len(),
        Json::Object(fields) => fields.keys().map(|key| key.len() + 2).sum(),
        _ => 0,
    };
    4 + own + children(value).map(size).sum::<usize>()
}
