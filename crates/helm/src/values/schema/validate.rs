//! Values against a sound schema.

use std::{collections::BTreeSet, rc::Rc};

use serde_json::{Map, Value as Json};
use tree::Exceeded;

use super::{
    Draft, GROUP, Problem, Schema, below,
    compare::{count, display, kind, number, plain, quote, same},
    formats,
};
use crate::Value;

/// Maximum nesting of references and schemas in one check.
const MAX_DEPTH: usize = 500;

/// The types of JSON, in the order in which messages name them.
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

/// One value in one place, while a schema looks at it.
pub(super) struct Look<'a> {
    pub(super) map: &'a Map<String, Json>,
    pub(super) at: &'a str,
    pub(super) depth: usize,
    pub(super) problems: Vec<Problem>,
    pub(super) seen: Evaluated,
}

impl Look<'_> {
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
        // A place in a schema costs far more than a step of a template, and schemas can double at each level.
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
        let mut look = Look {
            map,
            at,
            depth: depth.saturating_add(1),
            problems: Vec::new(),
            seen: Evaluated::default(),
        };
        if depth > MAX_DEPTH {
            look.problem(format!("the schema nests deeper than {MAX_DEPTH} there"));
        } else {
            self.look(schema, value, &mut look)?;
        }
        problems.extend(grouped(at, look.problems));
        Ok(look.seen)
    }

    fn look(&self, schema: &Json, value: &Value, look: &mut Look<'_>) -> Result<(), Exceeded> {
        if let Some(Json::String(reference)) = look.map.get("$ref") {
            match self.resolve(schema, reference) {
                Ok(target) => self.apply(target, value, look)?,
                Err(error) => look.problem(error.to_string()),
            }
            if self.draft < Draft::D2019 {
                return Ok(());
            }
        }
        if !self.types(value, look) || !self.constants(value, look) {
            return Ok(());
        }
        match value {
            Value::Dict(entries) => {
                let entries = crate::values::entries(entries);
                self.object(&entries, look)?;
                self.combine(value, look)?;
                self.unevaluated_keys(&entries, look)
            }
            Value::List(items) | Value::Strings(items) | Value::Ints(items) => {
                self.array(items, look)?;
                self.combine(value, look)?;
                self.unevaluated_items(items, look)
            }
            Value::String(text) => {
                self.text(text, look);
                self.combine(value, look)
            }
            value => {
                if let Some(number) = number(value) {
                    self.number(number, look);
                }
                self.combine(value, look)
            }
        }
    }

    /// Validates the same value against another schema and adds its results.
    pub(super) fn apply(&self, schema: &Json, value: &Value, look: &mut Look<'_>) -> Result<(), Exceeded> {
        let seen = self.validate(schema, value, look.at, look.depth, &mut look.problems)?;
        look.seen.add(seen);
        Ok(())
    }

    fn types(&self, value: &Value, look: &mut Look<'_>) -> bool {
        let names: Vec<&str> = match look.map.get("type") {
            Some(Json::String(name)) => vec![name],
            Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
            _ => return true,
        };
        let got = kind(value);
        let is_whole = || number(value).is_some_and(|number| number.fract() == 0.0);
        let fits = |name: &&str| *name == got || *name == "integer" && is_whole();
        if names.iter().any(fits) {
            return true;
        }
        let wanted: Vec<&str> = TYPES.into_iter().filter(|name| names.contains(name)).collect();
        look.problem(format!("got {got}, want {}", wanted.join(" or ")));
        false
    }

    /// Checks `const`, `enum` and, before draft 2019-09, `format`. Returns false if one of them fails.
    fn constants(&self, value: &Value, look: &mut Look<'_>) -> bool {
        if self.draft >= Draft::D6
            && let Some(wanted) = look.map.get("const")
            && !same(wanted, value)
        {
            let simple = !wanted.is_array() && !wanted.is_object();
            look.problem(if simple {
                format!("value must be {}", display(wanted))
            } else {
                "'const' failed".to_owned()
            });
            return false;
        }
        if let Some(Json::Array(allowed)) = look.map.get("enum")
            && !allowed.iter().any(|one| same(one, value))
        {
            let simple = allowed.iter().all(|one| !one.is_array() && !one.is_object());
            let names: Vec<String> = allowed.iter().map(display).collect();
            look.problem(match names.as_slice() {
                _ if !simple => "'enum' failed".to_owned(),
                [name] => format!("value must be {name}"),
                names => format!("value must be one of {}", names.join(", ")),
            });
            return false;
        }
        if self.draft < Draft::D2019
            && let (Some(Json::String(format)), Value::String(text)) = (look.map.get("format"), value)
            && !formats::fits(format, text)
        {
            look.problem(format!("{} is not valid {format}", quote(text)));
            return false;
        }
        true
    }

    fn text(&self, text: &str, look: &mut Look<'_>) {
        let length = text.chars().count() as f64;
        limits(look, length, "minLength", "maxLength");
        if let Some(Json::String(pattern)) = look.map.get("pattern")
            && !self
                .patterns
                .borrow()
                .get(pattern)
                .is_some_and(|known| known.is_match(text))
        {
            look.problem(format!(
                "{} does not match pattern {}",
                quote(text),
                quote(pattern)
            ));
        }
    }

    fn number(&self, number: f64, look: &mut Look<'_>) {
        let is_set = |key: &str| look.map.get(key) == Some(&Json::Bool(true));
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
            let Some(want) = look.number(keyword) else {
                continue;
            };
            let fits = match keyword {
                "minimum" => number > want || number == want && !open_below,
                "maximum" => number < want || number == want && !open_above,
                "exclusiveMinimum" => number > want,
                "exclusiveMaximum" => number < want,
                // A little room for fractions that no float has.
                _ => ((number / want) - (number / want).round()).abs() < 1e-9,
            };
            if !fits {
                look.problem(format!("{keyword}: got {}, want {}", plain(number), plain(want)));
            }
        }
    }

    /// `allOf` and its relatives.
    fn combine(&self, value: &Value, look: &mut Look<'_>) -> Result<(), Exceeded> {
        let map = look.map;
        let list = |key: &str| map.get(key).and_then(Json::as_array);
        let branches = |list: &[Json], look: &mut Look<'_>| {
            let mut fitting = Vec::new();
            let mut problems = Vec::new();
            for (n, schema) in list.iter().enumerate() {
                let mut found = Vec::new();
                let seen = self.validate(schema, value, look.at, look.depth, &mut found)?;
                if found.is_empty() {
                    fitting.push(n);
                    look.seen.add(seen);
                }
                problems.append(&mut found);
            }
            Ok::<_, Exceeded>((fitting, problems))
        };
        if let Some(all) = list("allOf") {
            let (fitting, problems) = branches(all, look)?;
            if fitting.len() < all.len() {
                look.nested("'allOf' failed".to_owned(), problems);
            }
        }
        if let Some(any) = list("anyOf") {
            let (fitting, problems) = branches(any, look)?;
            if fitting.is_empty() {
                look.nested("'anyOf' failed".to_owned(), problems);
            }
        }
        if let Some(one) = list("oneOf") {
            let (fitting, problems) = branches(one, look)?;
            match fitting.as_slice() {
                [] => look.nested("'oneOf' failed, none matched".to_owned(), problems),
                [_] => {}
                [a, b, ..] => look.problem(format!("'oneOf' failed, subschemas {a}, {b} matched")),
            }
        }
        if let Some(not) = map.get("not") {
            let mut problems = Vec::new();
            self.validate(not, value, look.at, look.depth, &mut problems)?;
            if problems.is_empty() {
                look.problem("'not' failed".to_owned());
            }
        }
        if let Some(condition) = map.get("if").filter(|_| self.draft >= Draft::D7) {
            let mut problems = Vec::new();
            let seen = self.validate(condition, value, look.at, look.depth, &mut problems)?;
            let branch = if problems.is_empty() {
                look.seen.add(seen);
                "then"
            } else {
                "else"
            };
            if let Some(schema) = map.get(branch) {
                self.apply(schema, value, look)?;
            }
        }
        Ok(())
    }
}

/// Prints several problems with one value below a line of their own.
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

/// Checks a length against its bounds.
pub(super) fn limits(look: &mut Look<'_>, got: f64, least: &str, most: &str) {
    for (keyword, sign) in [(least, 1.0), (most, -1.0)] {
        if let Some(want) = look.number(keyword)
            && got * sign < want * sign
        {
            look.problem(format!("{keyword}: got {}, want {}", count(got), count(want)));
        }
    }
}
