//! Methods of Python's values.

use minijinja::{Error, ErrorKind, State, Value as Dynamic, value::ValueKind};
use minijinja_contrib::pycompat;

use crate::functions::fail;

/// Methods that change their value; the engine's values can't change.
const CHANGING: &[&str] = &[
    "append", "extend", "insert", "remove", "pop", "popitem", "clear", "update", "setdefault", "sort", "reverse",
];

/// Calls a method that the engine itself doesn't know.
pub(crate) fn call(
    state: &mut State<'_, '_>,
    value: &Dynamic,
    method: &str,
    args: &[Dynamic],
) -> Result<Dynamic, Error> {
    match pycompat::unknown_method_callback(state, value, method, args) {
        Err(error) if error.kind() == ErrorKind::UnknownMethod => own(value, method, error),
        other => other,
    }
}

fn own(value: &Dynamic, method: &str, error: Error) -> Result<Dynamic, Error> {
    if matches!(value.kind(), ValueKind::Map | ValueKind::Seq) && CHANGING.contains(&method) {
        return Err(fail(format!(
            "NotImplementedError: .{method}() is not supported yet, values can't be changed in place: make a new one"
        )));
    }
    Err(error)
}
