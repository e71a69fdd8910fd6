//! Validates values against a valid schema.

use std::{collections::BTreeSet, rc::Rc};

use serde_json::{Map, Value as Json};
use tree::Exceeded;

use super::{
    Draft, GROUP, Problem, Schema, below,
    check::SchemaError,
    compare::{count, display, kind, number, plain, quote, same},
    formats,
};
use crate::Value;

/// Maximum nesting of references and schemas in one check.
const MAX_DEPTH: usize = 500;

/// The types of JSON, in the order of messages.
const TYPES: [&str; 7] = [
    "null", "boolean", "number", "integer", "string", "array", "object",
];

/// Keys and items of a value that a schema has evaluated.
#[derive(Debug, Default)]
pub(super) struct Evaluated {
    pub(super) keys: BTreeSet<Rc<str>>,
    pub(super) items: BTreeSet<usize>,
}

impl Evaluated {
    fn add(&mut self, mut other: Self) {
        self.keys.append(&mut other.keys);
        self.items.append(&mut other.items);
    }
}

/// A value and its location while a schema is applied.
pub(super) struct Frame<'a> {
    pub(super) map: &'a Map<String, Json>,
    pub(super) at: &'a str,
    pub(super) depth: usize,
    pub(super) problems: Vec<Problem>,
    pub(super) seen: Evaluated,
}

impl Frame<'_> {
    pub(super) fn problem(&mut self, words: String) {
        self.nested(words, Vec::new());
    }

    pub(super) fn nested(&mut self, words: String, causes: Vec<Problem>) {
        self.problems.push(Problem {
            at: self.at.to_owned(),
            words,
            causes,
        });
    }

    pub(super) fn below(&self, key: &str) -> String {
        below(self.at, key)
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.map.get(key).and_then(Json::as_f64)
    }
}

impl Schema<'_> {
    /// Collects violations of a schema. Returns the members and items that were evaluated.
    pub(super) fn validate(
        &self,
        schema: &Json,
        value: &Value,
        at: &str,
        depth: usize,
        problems: &mut Vec<Problem>,
    ) -> Result<Evaluated, Exceeded> {
        // A subschema costs far more than a step of a template, and schemas can double at each level.
        self.budget.step(256)?;
        let map = match schema {
            Json::Object(map) => map,
            Json::Bool(false) => {
                problems.push(Problem {
                    at: at.to_owned(),
                    words: "false schema".to_owned(),
                    causes: Vec::new(),
                });
                return Ok(Evaluated::default());
            }
            _ => return Ok(Evaluated::default()),
        };
        let mut frame = Frame {
            map,
            at,
            depth: depth.saturating_add(1),
            problems: Vec::new(),
            seen: Evaluated::default(),
        };
        if depth > MAX_DEPTH {
            frame.problem(format!("the schema nests deeper than {MAX_DEPTH} there"));
        } else {
            self.frame(schema, value, &mut frame)?;
        }
        self.memory.hold(&frame.problems, self.budget)?;
        problems.extend(grouped(at, frame.problems));
        Ok(frame.seen)
    }

    fn frame(&self, schema: &Json, value: &Value, frame: &mut Frame<'_>) -> Result<(), Exceeded> {
        if let Some(Json::String(reference)) = frame.map.get("$ref") {
            match self.resolve(schema, reference) {
                Ok(target) => self.apply(target, value, frame)?,
                Err(SchemaError::Exceeded(error)) => return Err(error),
                Err(error) => frame.problem(error.to_string()),
            }
            if self.draft < Draft::D2019 {
                return Ok(());
            }
        }
        if !self.types(value, frame)? || !self.constants(value, frame)? {
            return Ok(());
        }
        match value {
            Value::Dict(entries) => {
                let entries = crate::values::entries(entries);
                self.object(&entries, frame)?;
                self.combine(value, frame)?;
                self.unevaluated_keys(&entries, frame)
            }
            Value::List(items) | Value::Strings(items) | Value::Ints(items) => {
                self.array(items, frame)?;
                self.combine(value, frame)?;
                self.unevaluated_items(items, frame)
            }
            Value::String(text) => {
                self.text(text, frame)?;
                self.combine(value, frame)
            }
            value => {
                if let Some(number) = number(value) {
                    self.number(number, frame);
                }
                self.combine(value, frame)
            }
        }
    }

    /// Validates the same value against another schema and adds its results.
    pub(super) fn apply(&self, schema: &Json, value: &Value, frame: &mut Frame<'_>) -> Result<(), Exceeded> {
        let seen = self.validate(schema, value, frame.at, frame.depth, &mut frame.problems)?;
        frame.seen.add(seen);
        Ok(())
    }

    fn types(&self, value: &Value, frame: &mut Frame<'_>) -> Result<bool, Exceeded> {
        let names: Vec<&str> = match frame.map.get("type") {
            Some(Json::String(name)) => vec![name],
            Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
            _ => return Ok(true),
        };
        self.budget.step(names.len() as u64)?;
        let got = kind(value);
        let is_whole = || number(value).is_some_and(|number| number.fract() == 0.0);
        let fits = |name: &&str| *name == got || *name == "integer" && is_whole();
        if names.iter().any(fits) {
            return Ok(true);
        }
        let wanted: Vec<&str> = TYPES.into_iter().filter(|name| names.contains(name)).collect();
        frame.problem(format!("got {got}, want {}", wanted.join(" or ")));
        Ok(false)
    }

    /// Checks `const`, `enum` and, before draft 2019-09, `format`. Returns false if one of them fails.
    fn constants(&self, value: &Value, frame: &mut Frame<'_>) -> Result<bool, Exceeded> {
        if self.draft >= Draft::D6
            && let Some(wanted) = frame.map.get("const")
            && !same(wanted, value, self.budget)?
        {
            let simple = !wanted.is_array() && !wanted.is_object();
            frame.problem(if simple {
                format!("value must be {}", display(wanted))
            } else {
                "'const' failed".to_owned()
            });
            return Ok(false);
        }
        if let Some(Json::Array(allowed)) = frame.map.get("enum")
            && !self.is_among(allowed, value)?
        {
            let simple = allowed.iter().all(|one| !one.is_array() && !one.is_object());
            let names: Vec<String> = allowed.iter().map(display).collect();
            frame.problem(match names.as_slice() {
                _ if !simple => "'enum' failed".to_owned(),
                [name] => format!("value must be {name}"),
                names => format!("value must be one of {}", names.join(", ")),
            });
            return Ok(false);
        }
        if self.draft < Draft::D2019
            && let (Some(Json::String(format)), Value::String(text)) = (frame.map.get("format"), value)
        {
            // Most formats compile an expression.
            self.budget.step(10_000 + text.len() as u64)?;
            if !formats::fits(format, text) {
                frame.problem(format!("{} is not valid {format}", quote(text)));
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_among(&self, allowed: &[Json], value: &Value) -> Result<bool, Exceeded> {
        for one in allowed {
            if same(one, value, self.budget)? {
                return Ok(true);
            }
        }
        // The message names all of them.
        self.budget.step((allowed.len() as u64).saturating_mul(8))?;
        Ok(false)
    }

    fn text(&self, text: &str, frame: &mut Frame<'_>) -> Result<(), Exceeded> {
        self.budget.step(text.len() as u64 / 32)?;
        let length = text.chars().count() as f64;
        limits(frame, length, "minLength", "maxLength");
        if let Some(Json::String(pattern)) = frame.map.get("pattern")
            && !self.has_match(pattern, text)?
        {
            frame.problem(format!(
                "{} does not match pattern {}",
                quote(text),
                quote(pattern)
            ));
        }
        Ok(())
    }

    fn number(&self, number: f64, frame: &mut Frame<'_>) {
        let is_set = |key: &str| frame.map.get(key) == Some(&Json::Bool(true));
        let old = self.draft == Draft::D4;
        let (open_below, open_above) = (
            old && is_set("exclusiveMinimum"),
            old && is_set("exclusiveMaximum"),
        );
        for keyword in [
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ] {
            let Some(want) = frame.number(keyword) else {
                continue;
            };
            let fits = match keyword {
                "minimum" => number > want || number == want && !open_below,
                "maximum" => number < want || number == want && !open_above,
                "exclusiveMinimum" => number > want,
                "exclusiveMaximum" => number < want,
                // A tolerance for fractions that no float represents.
                _ => ((number / want) - (number / want).round()).abs() < 1e-9,
            };
            if !fits {
                frame.problem(format!("{keyword}: got {}, want {}", plain(number), plain(want)));
            }
        }
    }

    /// `allOf` and related keywords.
    fn combine(&self, value: &Value, frame: &mut Frame<'_>) -> Result<(), Exceeded> {
        let map = frame.map;
        let list = |key: &str| map.get(key).and_then(Json::as_array);
        let branches = |list: &[Json], frame: &mut Frame<'_>| {
            let mut fitting = Vec::new();
            let mut problems = Vec::new();
            for (n, schema) in list.iter().enumerate() {
                let mut found = Vec::new();
                let seen = self.validate(schema, value, frame.at, frame.depth, &mut found)?;
                if found.is_empty() {
                    fitting.push(n);
                    frame.seen.add(seen);
                }
                problems.append(&mut found);
            }
            Ok::<_, Exceeded>((fitting, problems))
        };
        if let Some(all) = list("allOf") {
            let (fitting, problems) = branches(all, frame)?;
            if fitting.len() < all.len() {
                frame.nested("'allOf' failed".to_owned(), problems);
            }
        }
        if let Some(any) = list("anyOf") {
            let (fitting, problems) = branches(any, frame)?;
            if fitting.is_empty() {
                frame.nested("'anyOf' failed".to_owned(), problems);
            }
        }
        if let Some(one) = list("oneOf") {
            let (fitting, problems) = branches(one, frame)?;
            match fitting.as_slice() {
                [] => frame.nested("'oneOf' failed, none matched".to_owned(), problems),
                [_] => {}
                [a, b, ..] => frame.problem(format!("'oneOf' failed, subschemas {a}, {b} matched")),
            }
        }
        if let Some(not) = map.get("not") {
            let mut problems = Vec::new();
            self.validate(not, value, frame.at, frame.depth, &mut problems)?;
            if problems.is_empty() {
                frame.problem("'not' failed".to_owned());
            }
        }
        if let Some(condition) = map.get("if").filter(|_| self.draft >= Draft::D7) {
            let mut problems = Vec::new();
            let seen = self.validate(condition, value, frame.at, frame.depth, &mut problems)?;
            let branch = if problems.is_empty() {
                frame.seen.add(seen);
                "then"
            } else {
                "else"
            };
            if let Some(schema) = map.get(branch) {
                self.apply(schema, value, frame)?;
            }
        }
        Ok(())
    }
}

fn grouped(at: &str, problems: Vec<Problem>) -> Vec<Problem> {
    if problems.len() < 2 {
        return problems;
    }
    vec![Problem {
        at: at.to_owned(),
        words: GROUP.to_owned(),
        causes: problems,
    }]
}

pub(super) fn limits(frame: &mut Frame<'_>, got: f64, least: &str, most: &str) {
    for (keyword, sign) in [(least, 1.0), (most, -1.0)] {
        if let Some(want) = frame.number(keyword)
            && got * sign < want * sign
        {
            frame.problem(format!("{keyword}: got {}, want {}", count(got), count(want)));
        }
    }
}
