//! Validates values against `values.schema.json`: JSON Schema from draft 4 to 2020-12.
//!
//! Nothing is fetched: references must point into the schema itself. Unsupported assertions are refused by name.

mod check;
mod compare;
mod containers;
mod formats;
mod keywords;
#[cfg(test)]
mod tests;
mod validate;

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    fmt::Write as _,
    rc::Rc,
};

use go::{bytes, regexp::Regexp};
use serde_json::Value as Json;
use tree::{Budget, Exceeded};

use crate::{Chart, Dict, Error, Value};

/// Base URL of a schema without one.
const HOME: &str = "file:///values.schema.json";

/// Drafts of JSON Schema that differ in a supported keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Draft {
    D4,
    D6,
    D7,
    D2019,
    D2020,
}

impl Draft {
    fn parse(url: &str) -> Option<Self> {
        let url = url.strip_suffix('#').unwrap_or(url);
        let url = url
            .strip_prefix("http://")
            .or_else(|| url.strip_prefix("https://"))
            .unwrap_or(url);
        Some(match url {
            "json-schema.org/schema" | "json-schema.org/draft/2020-12/schema" => Self::D2020,
            "json-schema.org/draft/2019-09/schema" => Self::D2019,
            "json-schema.org/draft-07/schema" => Self::D7,
            "json-schema.org/draft-06/schema" => Self::D6,
            "json-schema.org/draft-04/schema" => Self::D4,
            _ => return None,
        })
    }
}

struct Schema<'a> {
    draft: Draft,
    budget: &'a Budget,
    named: HashMap<String, &'a Json>,
    /// The base URLs of references, by the address of the schema with the reference.
    bases: HashMap<usize, Rc<str>>,
    checked: RefCell<HashSet<usize>>,
    patterns: RefCell<HashMap<String, Rc<Regexp>>>,
    memory: SchemaMemory,
    /// True if any schema has a keyword that begins with `unevaluated`.
    tracks: bool,
}

/// The memory that a schema takes beyond its document, in bytes.
#[derive(Debug, Default)]
struct SchemaMemory {
    /// Names, and the compiled patterns.
    schema: Cell<usize>,
    problems: Cell<u64>,
}

/// Maximum memory of the names and patterns of a schema, in bytes: some thousand usual patterns.
const MAX_MEMORY: usize = 16 << 20;

impl SchemaMemory {
    /// Returns false if names and patterns take too much memory.
    fn fits(&self, bytes: usize) -> bool {
        let total = self.schema.get().saturating_add(bytes);
        self.schema.set(total);
        total <= MAX_MEMORY
    }

    /// Counts the messages of problems.
    fn hold(&self, problems: &[Problem], budget: &Budget) -> Result<(), Exceeded> {
        let bytes = problems
            .iter()
            .map(|problem| problem.at.len() + problem.words.len() + 64);
        let total = self.problems.get().saturating_add(bytes.sum::<usize>() as u64);
        self.problems.set(total);
        let limit = budget.limits().bytes;
        if total > limit {
            let what = "bytes of problems with values";
            return Err(Exceeded::Limit { what, limit });
        }
        Ok(())
    }
}

fn below(at: &str, key: &str) -> String {
    let mut part = String::with_capacity(at.len() + key.len() + 1);
    part.push_str(at);
    part.push('/');
    if key.contains(['~', '/']) {
        part.push_str(&key.replace('~', "~0").replace('/', "~1"));
    } else {
        part.push_str(key);
    }
    part
}

/// Headline of several problems with one value.
const GROUP: &str = "validation failed";

#[derive(Debug, Clone)]
struct Problem {
    at: String,
    words: String,
    causes: Vec<Problem>,
}

impl Problem {
    /// Returns the causes of a group, or the problem itself.
    fn parts(self) -> Vec<Self> {
        match self.words == GROUP {
            true => self.causes,
            false => vec![self],
        }
    }

    fn print(&self, depth: usize, into: &mut String) {
        let indent = "  ".repeat(depth);
        let _ = write!(into, "{indent}- at {}: {}", compare::quote(&self.at), self.words);
        for cause in &self.causes {
            into.push('\n');
            cause.print(depth.saturating_add(1), into);
        }
    }
}

fn address(schema: &Json) -> usize {
    std::ptr::from_ref(schema).addr()
}

pub(crate) fn validate(chart: &Chart, values: &Dict, budget: &Budget) -> Result<(), Error> {
    let mut words = String::new();
    collect(chart, values, budget, &mut words)?;
    if words.is_empty() {
        Ok(())
    } else {
        Err(Error::Schema(words))
    }
}

fn collect(chart: &Chart, values: &Dict, budget: &Budget, words: &mut String) -> Result<(), Error> {
    if let Some(schema) = &chart.schema
        && let Some(problems) = one(schema, values, budget).map_err(|error| named(error, chart))?
    {
        let _ = write!(words, "{}:\n{problems}", chart.name());
    }
    for inner in &chart.dependencies {
        let found = values.borrow().get(inner.name()).cloned();
        match found {
            None | Some(Value::Nil) => {}
            Some(Value::Dict(values)) => collect(inner, &values, budget, words)?,
            Some(other) => {
                let got = crate::template::type_name(&other);
                let name = inner.name();
                let _ = writeln!(
                    words,
                    "{name}:\ninvalid type for values: expected object (map), got {got}"
                );
            }
        }
    }
    Ok(())
}

/// Describes invalid JSON in a schema as Helm does, which reads it as a stream.
fn no_json(schema: &str, error: &serde_json::Error, budget: &Budget) -> String {
    if schema.trim_ascii().is_empty() {
        return "EOF".to_owned();
    }
    let words = crate::functions::json_problem(schema, budget);
    match words {
        Some(words) if words == "unexpected end of JSON input" => "unexpected EOF".to_owned(),
        Some(words) if words.ends_with("after top-level value") => {
            "invalid character after top-level value".to_owned()
        }
        Some(words) => words,
        None => error.to_string(),
    }
}

fn named(error: Error, chart: &Chart) -> Error {
    match error {
        Error::Exceeded(limit) => Error::ExceededIn {
            part: format!("chart {}: values.schema.json", chart.name()),
            limit,
        },
        error => error,
    }
}

/// Validates values against a schema. Returns the problems with either, or `None` if both are valid.
fn one(schema: &[u8], values: &Dict, budget: &Budget) -> Result<Option<String>, Error> {
    // The document is read and walked twice.
    budget.step(schema.len() as u64)?;
    let text = bytes::to_string(schema);
    let root: Json = match serde_json::from_str(&bytes::to_valid_utf8(&text)) {
        Ok(root) => root,
        Err(error) => return Ok(Some(no_json(&text, &error, budget))),
    };
    let schema = match Schema::new(&root, budget) {
        Ok(schema) => schema,
        Err(check::SchemaError::Exceeded(error)) => return Err(error.into()),
        Err(error) => return Ok(Some(error.to_string())),
    };
    let mut problems = Vec::new();
    schema.validate(&root, &Value::Dict(values.clone()), "", 0, &mut problems)?;
    if problems.is_empty() {
        return Ok(None);
    }
    let mut text = String::new();
    // A group of problems with the root needs no headline.
    for problem in problems.into_iter().flat_map(Problem::parts) {
        problem.print(0, &mut text);
        text.push('\n');
    }
    Ok(Some(text))
}
