//! The dialect of JSONPath that annotations of deployments are written in.
//!
//! A path may begin with `$`, `@`, a name or a bracket. Filters compare (`==`, `!=`, `<`, `<=`, `>`, `>=`), match
//! regular expressions (`=~ /re/`), test for presence, and combine with `&&`, `||`, `!` and parentheses. Escapes,
//! functions and scripts are refused. Evaluation never changes a value: it returns where the matches are.

mod eval;
mod parse;

#[cfg(test)]
mod tests;

use yaml::Value;

use crate::path::Path;

/// How many values one evaluation may look at, so that a hostile path cannot hold the process.
const MAX_VISITS: usize = 1_000_000;
/// How long a path may be.
const MAX_LENGTH: usize = 4096;
/// How deep filters may nest.
const MAX_DEPTH: u32 = 16;

/// A parsed path.
#[derive(Debug, Clone)]
pub struct JsonPath {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone)]
enum Segment {
    /// The matching members of each value.
    Children(Vec<Selector>),
    /// Each value and all that is below it.
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
    Matches(Operand, regex::Regex),
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
    /// From the value under test.
    Current(Vec<Segment>),
    /// From the root.
    Root(Vec<Segment>),
}

impl JsonPath {
    /// Parses a path.
    ///
    /// # Errors
    /// A sentence about what is wrong and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse::path(text).map(|segments| Self { segments })
    }

    /// Where the path leads in a value: each place once, in the order of the value.
    ///
    /// # Errors
    /// When the path leads to more values than may be looked at.
    pub fn find(&self, root: &Value) -> Result<Vec<Path>, String> {
        eval::find(&self.segments, root)
    }
}

/// A regular expression of a user, with a bound on its size.
///
/// # Errors
/// A sentence about what is wrong.
pub fn bounded_regex(pattern: &str) -> Result<regex::Regex, String> {
    regex::RegexBuilder::new(pattern)
        .size_limit(1 << 20)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            other => other
                .to_string()
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned(),
        })
}
