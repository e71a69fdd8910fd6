//! Go's names of types, and operations of templates that depend on types.

use crate::{IntKind, Value};

/// The type of a parameter of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// `interface {}`: anything, also nothing.
    Any,
    /// `reflect.Value`, as the built-in functions have it: as [`Type::Any`], but a value knows whether it came from a map.
    Reflect,
    /// `bool`.
    Bool,
    /// `string`.
    String,
    /// `int`.
    Int,
    /// `int64`.
    Int64,
    /// `float64`.
    Float,
    /// `[]interface {}`; `nil` comes as [`Value::nil_list`].
    List,
    /// `[]string`; `nil` comes as [`Value::nil_list`].
    Strings,
    /// `map[string]interface {}`; `nil` comes as an empty map.
    Dict,
    /// An [`Object`](crate::Object) of that type.
    Object(&'static str),
}

/// The parameters of a function or method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// The types, in order.
    pub parameters: &'static [Type],
    /// True if the last parameter accepts any number of arguments, including none.
    pub variadic: bool,
}

impl Signature {
    /// Makes the signature of a function with exactly these parameters.
    #[must_use]
    pub const fn fixed(parameters: &'static [Type]) -> Self {
        Self {
            parameters,
            variadic: false,
        }
    }

    /// Makes the signature of a function whose last parameter accepts any number of arguments.
    #[must_use]
    pub const fn variadic(parameters: &'static [Type]) -> Self {
        Self {
            parameters,
            variadic: true,
        }
    }
}

impl Type {
    /// Returns the name of the type, as Go prints it.
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

/// Returns the type of a value as `%T` and sprig's `typeOf` print it: `map[string]interface {}`, `<nil>`.
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

/// Returns the kind of a value as sprig's `kindOf` prints it: `map`, `slice`, `invalid` for nothing.
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

/// Returns true if `if` considers a value true: not nil, false, zero or empty.
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
