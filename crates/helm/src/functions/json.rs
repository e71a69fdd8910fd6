//! JSON as Go reads it.

mod read;

use tree::Budget;

use super::context::Meter;
use crate::{
    Dict, Object, Value,
    template::{FormatError, FunctionError, kind_name, printed, weight},
};

pub(super) use read::read;

#[derive(Debug)]
pub(super) struct Failed(pub(super) String);

impl Object for Failed {
    fn type_name(&self) -> &str {
        "error"
    }

    fn field(&self, _: &str) -> Option<Value> {
        None
    }

    fn call(&self, _: &str, _: &[Value]) -> Option<Result<Value, FunctionError>> {
        None
    }

    fn as_dict(&self) -> Option<Dict> {
        None
    }

    fn print(&self, budget: &Budget) -> Result<String, FormatError> {
        printed(&self.0, budget)
    }
}

/// Returns the map, or the list unless `map` is set; null counts as an empty one.
pub(super) fn wanted(found: Value, prefix: &str, map: bool, budget: &Budget) -> Result<Value, FunctionError> {
    let name = match &found {
        Value::Nil if map => return Ok(Value::dict::<&str>([])),
        Value::Nil => return Ok(Value::list(Vec::new())),
        Value::Dict(_) if map => return Ok(found),
        Value::List(_) if !map => return Ok(found),
        Value::Object(failed) => return Err(failed.print(budget)?.into()),
        Value::Dict(_) => "object",
        Value::List(_) => "array",
        Value::Float(_) => "number",
        other => kind_name(other),
    };
    let kind = if map {
        "map[string]interface {}"
    } else {
        "[]interface {}"
    };
    Err(format!("{prefix}json: cannot unmarshal {name} into Go value of type {kind}").into())
}

/// Parses JSON, whose numbers are floats.
pub(crate) fn read_json(text: &str, budget: &Budget) -> Result<Value, FunctionError> {
    read(&Meter::new(budget, weight::limit(budget), 0), text)
}

/// Returns Go's error for a string that is not JSON; `None` if it is.
pub(crate) fn json_problem(text: &str, budget: &Budget) -> Option<String> {
    read_json(text, budget).err().map(FunctionError::into_message)
}
