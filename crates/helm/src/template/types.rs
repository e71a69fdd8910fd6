//! Go's names of types, and operations of templates that depend on types.

use crate::{IntKind, Value};

/// The type of a parameter of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// `interface {}`, also nothing.
    Any,
    /// `reflect.Value`, as built-in functions take it: like [`Type::Any`], but a value knows if it came from a map.
    Reflect,
    Bool,
    String,
    Int,
    Int64,
    Float,
    /// `[]interface {}`; `nil` comes as [`Value::nil_list`].
    List,
    /// `[]string`; `nil` comes as [`Value::nil_list`].
    Strings,
    /// `map[string]interface {}`; `nil` comes as an empty map.
    Dict,
    /// An [`Object`](crate::Object) with this type name.
    Object(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    pub parameters: &'static [Type],
    /// True if the last parameter accepts any number of arguments, including none.
    pub variadic: bool,
}

impl Signature {
    /// Returns the signature of a function with exactly these parameters.
    #[must_use]
    pub const fn fixed(parameters: &'static [Type]) -> Self {
        Self {
            parameters,
            variadic: false,
        }
    }

    /// Returns the signature of a function whose last parameter accepts any number of arguments.
    #[must_use]
    pub const fn variadic(parameters: &'static [Type]) -> Self {
        Self {
            parameters,
            variadic: true,
        }
    }
}

impl Type {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Reflect => "reflect.Value",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Float => "float64",
            Self::List => "[]interface {}",
            Self::Strings => "[]string",
            Self::Dict => "map[string]interface {}",
            Self::Object(name) => name,
        }
    }

    /// Returns true if `nil` is a value of the type.
    pub(super) fn takes_nil(self) -> bool {
        match self {
            Self::Any | Self::Reflect | Self::List | Self::Strings | Self::Dict => true,
            Self::Object(name) => name.starts_with('*'),
            Self::Bool | Self::String | Self::Int | Self::Int64 | Self::Float => false,
        }
    }
}

/// Returns a value's type as `%T` and sprig's `typeOf` print it: `map[string]interface {}`, `<nil>`.
#[must_use]
pub fn type_name(value: &Value) -> &str {
    match value {
        Value::Nil | Value::Missing => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_, kind) => kind_text(*kind),
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::List(_) => "[]interface {}",
        Value::Strings(_) => "[]string",
        Value::Ints(_) => "[]int",
        Value::Dict(_) => "map[string]interface {}",
        Value::Object(object) => object.type_name(),
    }
}

/// Returns a value's kind as sprig's `kindOf` prints it: `map`, `slice`, `invalid` for nothing.
#[must_use]
pub fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Nil | Value::Missing => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_, kind) => kind_text(*kind),
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Bytes(_) | Value::List(_) | Value::Strings(_) | Value::Ints(_) => "slice",
        Value::Dict(_) => "map",
        Value::Object(object) => object.kind_name(),
    }
}

fn kind_text(kind: IntKind) -> &'static str {
    match kind {
        IntKind::Int => "int",
        IntKind::Int64 => "int64",
        IntKind::Int32 => "int32",
        IntKind::Uint8 => "uint8",
        IntKind::Uint32 => "uint32",
        IntKind::Uint64 => "uint64",
    }
}

/// Returns true for values that are true in `if`: not nil, false, zero or empty.
#[must_use]
pub fn truth(value: &Value) -> bool {
    match value {
        Value::Nil | Value::Missing => false,
        Value::Bool(value) => *value,
        Value::Int(value, _) => *value != 0,
        Value::Float(value) => *value != 0.0,
        Value::String(text) => !text.is_empty(),
        Value::Bytes(bytes) => !bytes.is_empty(),
        Value::List(items) | Value::Strings(items) | Value::Ints(items) => !items.is_empty(),
        Value::Dict(map) => map.try_borrow().is_ok_and(|map| !map.is_empty()),
        Value::Object(object) => object.truth(),
    }
}
