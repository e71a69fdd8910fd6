//! JSONPath in the dialect of the Go library ojg, for annotations, rules, queries and `targetPath`.
//!
//! A path may begin with `$`, `@`, a name or a bracket. Filters compare (`==`, `!=`, `<`, `<=`, `>`, `>=`), match
//! regular expressions (`=~ /re/`), test for presence, and combine with `&&`, `||`, `!` and parentheses. Escapes,
//! functions and scripts are refused. Evaluation never changes a value: it returns the paths of the matches.

mod error;
mod eval;
mod meter;
mod parse;
mod wrap;

#[cfg(test)]
mod tests;

use go::regexp::Pattern;
use yaml::{Map, Value};

use crate::path::Path;

pub use error::{JsonPathError, WrapError};
pub use meter::Meter;

/// The maximum length of a path, in bytes.
const MAX_LENGTH: usize = 4096;
/// The maximum nesting of filters.
const MAX_DEPTH: u32 = 16;

/// A parsed path.
///
/// ```
/// use objects::jsonpath::JsonPath;
/// use yaml::Value;
///
/// let object = Value::from_json(serde_json::json!({"ports": [{"name": "http", "port": 80}]}));
/// let path = JsonPath::parse("ports[?(@.name == 'http')].port")?;
/// assert_eq!(path.find(&object)?.len(), 1);
/// # Ok::<(), objects::jsonpath::JsonPathError>(())
/// ```
#[derive(Debug, Clone)]
pub struct JsonPath {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone)]
enum Segment {
    /// The members of each value that a selector matches.
    Children(Vec<Selector>),
    /// Each value and all values below it.
    Descendants,
}

#[derive(Debug, Clone)]
enum Selector {
    Name(String),
    Wildcard,
    Index(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    Filter(Filter),
}

#[derive(Debug, Clone)]
enum Filter {
    Or(Box<Filter>, Box<Filter>),
    And(Box<Filter>, Box<Filter>),
    Not(Box<Filter>),
    Exists(Operand),
    Compare(Operand, Comparison, Operand),
    Matches(Operand, Pattern),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone)]
enum Operand {
    Literal(Value),
    /// Relative to the value that the filter tests.
    Current(Vec<Segment>),
    Root(Vec<Segment>),
}

impl JsonPath {
    /// Parses a path.
    ///
    /// # Errors
    /// Fails when the syntax is invalid, the path is longer than 4096 bytes, or filters nest deeper than 16
    /// levels.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        parse::path(text).map(|segments| Self { segments })
    }

    /// Returns the paths of all matches in a value: each path once, in the order of the value.
    ///
    /// # Errors
    /// Fails when the evaluation visits more than a million values, or its patterns search too much text.
    pub fn find(&self, root: &Value) -> Result<Vec<Path>, JsonPathError> {
        eval::find(&self.segments, root, &mut Meter::of_path())
    }

    /// Returns the paths of all matches as [`JsonPath::find`] does, and charges the work to a meter that the paths for
    /// an object share.
    ///
    /// # Errors
    /// Fails when the meter is used up.
    pub fn find_within(&self, root: &Value, meter: &mut Meter) -> Result<Vec<Path>, JsonPathError> {
        eval::find(&self.segments, root, meter)
    }

    /// Returns a map that has a value at this path, as setting the path in an empty map does.
    ///
    /// # Errors
    /// Fails when the path does not name exactly one field or item (with the message of ojg), or has more than
    /// 100 steps or an index over 1000.
    pub fn wrap(&self, value: Value) -> Result<Map, WrapError> {
        wrap::wrap(&self.segments, value)
    }
}
