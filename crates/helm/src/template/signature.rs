//! Parameters of functions and methods.

pub(crate) const DURATION: &str = "time.Duration";

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
    /// `[]interface {}`; `nil` comes as [`Value::nil_list`](crate::Value::nil_list).
    List,
    /// `[]string`; `nil` comes as [`Value::nil_list`](crate::Value::nil_list).
    Strings,
    /// `map[string]interface {}`; `nil` comes as an empty map.
    Dict,
    /// `[]byte`; `nil` comes as empty bytes.
    Bytes,
    /// `time.Duration`; a literal comes as an integer.
    Duration,
    Object(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    pub parameters: &'static [Type],
    /// True if the last parameter accepts any number of arguments, including none.
    pub variadic: bool,
}

impl Signature {
    #[must_use]
    pub const fn fixed(parameters: &'static [Type]) -> Self {
        Self {
            parameters,
            variadic: false,
        }
    }

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
            Self::Bytes => "[]uint8",
            Self::Duration => DURATION,
            Self::Object(name) => name,
        }
    }

    pub(super) fn takes_nil(self) -> bool {
        match self {
            Self::Any | Self::Reflect | Self::List | Self::Strings | Self::Dict | Self::Bytes => true,
            Self::Object(name) => name.starts_with('*'),
            Self::Bool | Self::String | Self::Int | Self::Int64 | Self::Float | Self::Duration => false,
        }
    }
}
