//! JSON as Go reads it, and indents it.

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

pub(super) fn pretty(value: &yaml::Value) -> String {
    let mut out = String::new();
    write(&mut out, value, 0);
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

fn write(out: &mut String, value: &yaml::Value, depth: usize) {
    match value {
        yaml::Value::Seq(items) if !items.is_empty() => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                write(out, item, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        yaml::Value::Map(map) if !map.is_empty() => {
            out.push('{');
            for (index, (key, value)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                out.push_str(&yaml::print::json_html(&key.into()));
                out.push_str(": ");
                write(out, value, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
        scalar => out.push_str(&yaml::print::json_html(scalar)),
    }
}

/// Parses JSON, whose numbers are floats.
pub(crate) fn read_json(text: &str, budget: &Budget) -> Result<Value, FunctionError> {
    read(&Meter::new(budget, weight::limit(budget), 0), text)
}

/// Returns Go's error for a string that is not JSON; `None` if it is.
pub(crate) fn json_problem(text: &str, budget: &Budget) -> Option<String> {
    read_json(text, budget).err().map(FunctionError::into_message)
}
