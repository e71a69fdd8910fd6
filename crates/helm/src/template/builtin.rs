//! Go's built-in functions of templates.

mod compare;
mod escape;

use std::{fmt::Display, rc::Rc};

use go::bytes::{of_str, to_string};
use tree::Budget;

use super::{
    FunctionError,
    format::{print, printf, println},
    signature::{Signature, Type},
    slot::Slot,
    types::{truth, type_name},
};
use crate::{IntKind, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builtin {
    And,
    Call,
    Html,
    Index,
    Slice,
    Js,
    Len,
    Not,
    Or,
    Print,
    Printf,
    Println,
    Urlquery,
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
    Ne,
}

const ALL: [(&str, Builtin); 19] = [
    ("and", Builtin::And),
    ("call", Builtin::Call),
    ("html", Builtin::Html),
    ("index", Builtin::Index),
    ("slice", Builtin::Slice),
    ("js", Builtin::Js),
    ("len", Builtin::Len),
    ("not", Builtin::Not),
    ("or", Builtin::Or),
    ("print", Builtin::Print),
    ("printf", Builtin::Printf),
    ("println", Builtin::Println),
    ("urlquery", Builtin::Urlquery),
    ("eq", Builtin::Eq),
    ("ge", Builtin::Ge),
    ("gt", Builtin::Gt),
    ("le", Builtin::Le),
    ("lt", Builtin::Lt),
    ("ne", Builtin::Ne),
];

impl Builtin {
    pub(super) fn of(name: &str) -> Option<Self> {
        ALL.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, builtin)| *builtin)
    }

    pub(super) fn name(self) -> &'static str {
        ALL.iter()
            .find(|(_, builtin)| *builtin == self)
            .map_or("", |(name, _)| name)
    }

    pub(super) fn signature(self) -> Signature {
        match self {
            Self::Html | Self::Js | Self::Urlquery | Self::Print | Self::Println => {
                Signature::variadic(&[Type::Any])
            }
            Self::Printf => Signature::variadic(&[Type::String, Type::Any]),
            Self::Len | Self::Not => Signature::fixed(&[Type::Reflect]),
            Self::Ge | Self::Gt | Self::Le | Self::Lt | Self::Ne => {
                Signature::fixed(&[Type::Reflect, Type::Reflect])
            }
            Self::And | Self::Or | Self::Call | Self::Index | Self::Slice | Self::Eq => {
                Signature::variadic(&[Type::Reflect, Type::Reflect])
            }
        }
    }

    /// Calls the function with valid arguments; `operand` is the source of the first one. Fails with Go's message.
    pub(super) fn call(
        self,
        arguments: &[Slot],
        operand: Option<&dyn Display>,
        budget: &Budget,
    ) -> Result<Slot, FunctionError> {
        let Some((first, rest)) = arguments.split_first() else {
            return match self {
                Self::Print | Self::Html | Self::Js | Self::Urlquery => Ok(text(String::new())),
                Self::Println => Ok(text("\n".to_owned())),
                _ => Err("no arguments".into()),
            };
        };
        let second = rest.first().unwrap_or(first);
        // Lengths, indices and slices count bytes of the original encoding.
        if let (Self::Len | Self::Index | Self::Slice, Value::String(text)) = (self, &first.value) {
            budget.step(text.len() as u64 / 32)?;
        }
        let flag = |value: bool| Ok(Slot::bare(Value::Bool(value)));
        match self {
            Self::And | Self::Or => Ok(first.clone()),
            Self::Call => call(first, operand),
            Self::Html => Ok(text(escape::html(&escaped(arguments, budget)?, budget)?)),
            Self::Js => Ok(text(escape::js(&escaped(arguments, budget)?, budget)?)),
            Self::Urlquery => Ok(text(escape::url_query(&escaped(arguments, budget)?, budget)?)),
            Self::Index => index(first, rest),
            Self::Slice => slice(first, rest),
            Self::Len => length(first).map(|length| Slot::bare(Value::Int(length as i128, IntKind::Int))),
            Self::Not => flag(!truth(&first.value)),
            Self::Print => Ok(text(print(&values(arguments), budget)?)),
            Self::Println => Ok(text(println(&values(arguments), budget)?)),
            Self::Printf => match &first.value {
                Value::String(format) => Ok(text(printf(format, &values(rest), budget)?)),
                _ => Err("the format is no string".into()),
            },
            Self::Eq => flag(compare::equal(&first.value, rest, budget)?),
            Self::Ne => flag(!compare::equal(&first.value, rest, budget)?),
            Self::Lt => flag(compare::less(&first.value, &second.value, budget)?),
            Self::Ge => flag(!compare::less(&first.value, &second.value, budget)?),
            Self::Le => flag(compare::less_or_equal(&first.value, &second.value, budget)?),
            Self::Gt => flag(!compare::less_or_equal(&first.value, &second.value, budget)?),
        }
    }
}

fn text(text: String) -> Slot {
    Slot::bare(Value::string(text))
}

fn values(slots: &[Slot]) -> Vec<Value> {
    slots.iter().map(|slot| slot.value.clone()).collect()
}

fn escaped(arguments: &[Slot], budget: &Budget) -> Result<String, FunctionError> {
    let display = |slot: &Slot| match &slot.value {
        Value::Nil | Value::Missing => Value::string("<no value>"),
        value => value.clone(),
    };
    Ok(print(&arguments.iter().map(display).collect::<Vec<_>>(), budget)?)
}

/// Always fails: values are never functions.
fn call(function: &Slot, operand: Option<&dyn Display>) -> Result<Slot, FunctionError> {
    if function.is_nil() {
        return Err("call of nil".into());
    }
    let kind = type_name(&function.value);
    let name = match (operand, &function.value) {
        (Some(operand), _) => operand.to_string(),
        (None, Value::String(text)) => text.to_string(),
        (None, _) => format!("<{kind} Value>"),
    };
    Err(format!("non-function {name} of type {kind}").into())
}

/// Returns the map or list of an object that is one; other values unchanged.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(object) => match (object.as_dict(), object.as_list()) {
            (Some(map), _) => Value::Dict(map),
            (None, Some(items)) => Value::Strings(items),
            (None, None) => value.clone(),
        },
        _ => value.clone(),
    }
}

/// Returns the name of a value's type, without a pointer.
fn pointed(value: &Value) -> &str {
    let name = type_name(value);
    name.strip_prefix('*').unwrap_or(name)
}

fn length(slot: &Slot) -> Result<usize, FunctionError> {
    match plain(&slot.value) {
        Value::Nil | Value::Missing if slot.boxed => Err("len of nil pointer".into()),
        Value::Nil | Value::Missing => Err("reflect: call of reflect.Value.Type on zero Value".into()),
        Value::String(text) => Ok(of_str(&text).len()),
        Value::Bytes(bytes) => Ok(bytes.len()),
        Value::List(items) | Value::Strings(items) | Value::Ints(items) => Ok(items.len()),
        Value::Dict(map) => Ok(map.try_borrow().map_or(0, |map| map.len())),
        other => Err(format!("len of type {}", pointed(&other)).into()),
    }
}

fn position(index: &Value, capacity: usize) -> Result<usize, FunctionError> {
    if let Some(number) = index.as_integer() {
        return usize::try_from(number)
            .ok()
            .filter(|number| *number <= capacity)
            // Go interprets the bits of an unsigned number as a signed one.
            .ok_or_else(|| format!("index out of range: {}", number as i64).into());
    }
    match index {
        Value::Nil | Value::Missing => Err("cannot index slice/array with nil".into()),
        other => Err(format!("cannot index slice/array with type {}", type_name(other)).into()),
    }
}

fn index(item: &Slot, indexes: &[Slot]) -> Result<Slot, FunctionError> {
    if item.is_nil() {
        return Err("index of untyped nil".into());
    }
    let mut item = item.clone();
    for index in indexes {
        item = index_once(&item, &index.value)?;
    }
    Ok(item)
}

fn index_once(item: &Slot, index: &Value) -> Result<Slot, FunctionError> {
    let out_of_range = |what: &str| FunctionError::from(format!("reflect: {what} index out of range"));
    if let (Value::Object(object), Value::String(key)) = (&item.value, index)
        && !object.has_any_values()
        && let Some(found) = object.field(key)
    {
        return Ok(Slot::bare(found));
    }
    match plain(&item.value) {
        Value::Nil | Value::Missing => Err("index of nil pointer".into()),
        Value::List(items) => {
            let found = items.get(position(index, items.len())?);
            found
                .map(|item| Slot::boxed(item.clone()))
                .ok_or_else(|| out_of_range("slice"))
        }
        Value::Strings(items) | Value::Ints(items) => {
            let found = items.get(position(index, items.len())?);
            found
                .map(|item| Slot::element(item.clone(), false))
                .ok_or_else(|| out_of_range("slice"))
        }
        Value::Bytes(bytes) => {
            byte(&bytes, position(index, bytes.len())?).ok_or_else(|| out_of_range("slice"))
        }
        Value::String(text) => {
            let bytes = of_str(&text);
            byte(&bytes, position(index, bytes.len())?).ok_or_else(|| out_of_range("string"))
        }
        Value::Dict(map) => match index {
            Value::String(key) => {
                let found = map.try_borrow().ok().and_then(|map| map.get(key).cloned());
                Ok(Slot::boxed(found.unwrap_or_default()))
            }
            Value::Nil | Value::Missing => Err("value is nil; should be of type string".into()),
            other => Err(format!("value has type {}; should be string", type_name(other)).into()),
        },
        other => Err(format!("can't index item of type {}", pointed(&other)).into()),
    }
}

fn byte(bytes: &[u8], at: usize) -> Option<Slot> {
    bytes
        .get(at)
        .map(|byte| Slot::bare(Value::Int((*byte).into(), IntKind::Uint8)))
}

fn slice(item: &Slot, indexes: &[Slot]) -> Result<Slot, FunctionError> {
    if item.is_nil() {
        return Err("slice of untyped nil".into());
    }
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()).into());
    }
    let item = plain(&item.value);
    let length = match &item {
        Value::String(_) if indexes.len() == 3 => return Err("cannot 3-index slice a string".into()),
        Value::String(text) => of_str(text).len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) | Value::Strings(items) | Value::Ints(items) => items.len(),
        other => return Err(format!("can't slice item of type {}", pointed(other)).into()),
    };
    let mut positions = Vec::with_capacity(3);
    for index in indexes {
        // Unlike `index`, it doesn't look into interfaces.
        if index.boxed {
            return Err("cannot index slice/array with type interface {}".into());
        }
        positions.push(position(&index.value, length)?);
    }
    let start = positions.first().copied().unwrap_or(0);
    let end = positions.get(1).copied().unwrap_or(length);
    let capacity = positions.get(2).copied().unwrap_or(length);
    for (low, high) in [(start, end), (end, capacity)] {
        if low > high {
            return Err(format!("invalid slice index: {low} > {high}").into());
        }
    }
    let part = |items: &[Value]| Rc::new(items.get(start..end).unwrap_or_default().to_vec());
    Ok(Slot::bare(match &item {
        Value::String(text) => {
            let bytes = of_str(text);
            Value::string(to_string(bytes.get(start..end).unwrap_or_default()))
        }
        Value::Bytes(bytes) => Value::Bytes(bytes.get(start..end).unwrap_or_default().into()),
        Value::List(items) => Value::List(part(items)),
        Value::Strings(items) => Value::Strings(part(items)),
        Value::Ints(items) => Value::Ints(part(items)),
        other => other.clone(),
    }))
}
