//! The value type.

use indexmap::IndexMap;

/// Where something begins in its source text, counted from 1. Positions never take part in comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A YAML or JSON value.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer that fits into 64 bits with sign.
    Int(i64),
    /// An integer above `i64::MAX` that fits into 64 bits.
    UInt(u64),
    /// Any other number.
    Float(f64),
    /// Text.
    String(String),
    /// A list.
    Seq(Vec<Value>),
    /// A map, in the order of its source.
    Map(Map),
}

/// A map with text keys that keeps the order of insertion and knows where its entries came from.
#[derive(Debug, Clone, Default)]
pub struct Map {
    entries: IndexMap<String, (Value, Option<Position>)>,
}
