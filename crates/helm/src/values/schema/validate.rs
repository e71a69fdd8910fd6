//! Values against a sound schema.

use std::{collections::BTreeSet, rc::Rc};

use serde_json::{Map, Value as Json};
use tree::Exceeded;

use super::{Draft, Problem, Schema, formats};
use crate::{Value, template::float_text};

/// How often references and schemas may nest in one check.
const MAX_DEPTH: usize = 500;

/// What of a value some schema has spoken about.
#[derive(Debug, Default)]
pub(super) struct Seen {
    keys: BTreeSet<Rc<str>>,
    items: BTreeSet<usize>,
}

impl Seen {
    fn add(&mut self, mut other: Self) {
        self.keys.append(&mut other.keys);
        self.items.append(&mut other.items);
    }
}

/// One value in one place, while a schema looks at it.
struct Look<'a> {
    map: &'a Map<String, Json>,
    at: &'a str,
    depth: usize,
    problems: Vec<Problem>,
    seen: Seen,
}

impl Look<'_> {
    fn problem(&mut self, words: String) {
        self.nested(words, Vec::new());
    }

    fn nested(&mut self, words: String, causes: Vec<Problem>) {
        self.problems.push(Problem {
            at: self.at.to_owned(),
            words,
            causes,
        });
    }

    fn below(&self, key: impl std::fmt::Display) -> String {
        format!(
            "{}/{}",
            self.at,
            key.to_string().replace('~', "~0").replace('/', "~1")
        )
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.map.get(key).and_then(Json::as_f64)
    }
}

impl Schema<'_> {
    /// Collects what a schema doesn't allow; tells what it has looked at.
    pub(super) fn validate(
        &self,
        schema: &Json,
        value: &Value,
        at: &str,
        depth: usize,
        problems: &mut Vec<Problem>,
    ) -> Result<Seen, Exceeded> {
        self.budget.step(1)?;
        let map = match schema {
            Json::Object(map) => map,
            Json::Bool(false) => {
                problems.push(Problem {
                    at: at.to_owned(),
                    words: "false schema".to_owned(),
                    causes: Vec::new(),
                });
                return Ok(Seen::default());
            }
            _ => return Ok(Seen::default()),
        };
        let mut look = Look {
            map,
            at,
            depth: depth.saturating_add(1),
            problems: Vec::new(),
            seen: Seen::default(),
        };
        if depth > MAX_DEPTH {
            look.problem(format!("the schema nests deeper than {MAX_DEPTH} there"));
        } else {
            self.look(schema, value, &mut look)?;
        }
        problems.append(&mut look.problems);
        Ok(look.seen)
    }

    fn look(&self, schema: &Json, value: &Value, look: &mut Look<'_>) -> Result<(), Exceeded> {
        if let Some(Json::String(reference)) = look.map.get("$ref") {
            match self.resolve(schema, reference) {
                Ok(target) => self.apply(target, value, look)?,
                Err(words) => look.problem(words),
            }
            if self.draft < Draft::D2019 {
                return Ok(());
            }
        }
        if !self.types(value, look) {
            return Ok(());
        }
        self.constants(value, look);
        match value {
            Value::Dict(entries) => {
                let entries = super::super::entries(entries);
                self.object(&entries, look)?;
                self.combine(value, look)?;
                self.unevaluated_keys(&entries, look)
            }
            Value::List(items) | Value::Strings(items) => {
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

    /// Lets another schema look at the same value, and takes over what it finds.
    fn apply(&self, schema: &Json, value: &Value, look: &mut Look<'_>) -> Result<(), Exceeded> {
        let mut problems = Vec::new();
        let seen = self.validate(schema, value, look.at, look.depth, &mut problems)?;
        look.problems.append(&mut problems);
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
        if names.iter().any(|name| fits(&name)) {
            return true;
        }
        look.problem(format!("got {got}, want {}", names.join(" or ")));
        false
    }

    fn constants(&self, value: &Value, look: &mut Look<'_>) {
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
        }
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
        }
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
            look.problem(format!("'{text}' does not match pattern '{pattern}'"));
        }
        if self.draft < Draft::D2019
            && let Some(Json::String(format)) = look.map.get("format")
            && !formats::fits(format, text)
        {
            look.problem(format!("'{text}' is not valid {format}"));
        }
    }

    fn number(&self, number: f64, look: &mut Look<'_>) {
        let is_set = |key: &str| look.map.get(key) == Some(&Json::Bool(true));
        let old = self.draft == Draft::D4;
        let (open_below, open_above) = (
            old && is_set("exclusiveMinimum"),
            old && is_set("exclusiveMaximum"),
        );
        let checks: [(&str, fn(f64, f64) -> bool); 4] = [
            (
                "minimum",
                if open_below {
                    |got, want| got > want
                } else {
                    |got, want| got >= want
                },
            ),
            (
                "maximum",
                if open_above {
                    |got, want| got < want
                } else {
                    |got, want| got <= want
                },
            ),
            ("exclusiveMinimum", |got, want| got > want),
            ("exclusiveMaximum", |got, want| got < want),
        ];
        for (keyword, fits) in checks {
            if let Some(want) = look.number(keyword)
                && !fits(number, want)
            {
                look.problem(format!("{keyword}: got {}, want {}", plain(number), plain(want)));
            }
        }
        if let Some(want) = look.number("multipleOf") {
            let times = number / want;
            if !((times - times.round()).abs() < 1e-9) {
                look.problem(format!("multipleOf: got {}, want {}", plain(number), plain(want)));
            }
        }
    }

    fn object(&self, entries: &[(Rc<str>, Value)], look: &mut Look<'_>) -> Result<(), Exceeded> {
        limits(look, entries.len() as f64, "minProperties", "maxProperties");
        let has = |key: &str| entries.iter().any(|(name, _)| &**name == key);
        if let Some(missing) = look
            .map
            .get("required")
            .map(|names| missing(names, has))
            .filter(|it| !it.is_empty())
        {
            let word = if missing.len() == 1 {
                "property"
            } else {
                "properties"
            };
            look.problem(format!("missing {word} {}", missing.join(", ")));
        }
        self.properties(entries, look)?;
        self.dependencies(entries, has, look)?;
        if self.draft >= Draft::D6
            && let Some(names) = look.map.get("propertyNames")
        {
            for (key, _) in entries {
                let mut problems = Vec::new();
                let name = Value::String(key.clone());
                self.validate(names, &name, look.at, look.depth, &mut problems)?;
                if !problems.is_empty() {
                    look.nested(format!("invalid propertyName '{key}'"), problems);
                }
            }
        }
        Ok(())
    }

    fn properties(&self, entries: &[(Rc<str>, Value)], look: &mut Look<'_>) -> Result<(), Exceeded> {
        let map = look.map;
        let known = map.get("properties").and_then(Json::as_object);
        let patterns = map.get("patternProperties").and_then(Json::as_object);
        let additional = map.get("additionalProperties");
        let mut refused = Vec::new();
        for (key, value) in entries {
            let below = look.below(key);
            let mut schemas: Vec<&Json> = known.and_then(|known| known.get(&**key)).into_iter().collect();
            for (pattern, schema) in patterns.into_iter().flatten() {
                if self
                    .patterns
                    .borrow()
                    .get(pattern)
                    .is_some_and(|pattern| pattern.is_match(key))
                {
                    schemas.push(schema);
                }
            }
            if schemas.is_empty() {
                match additional {
                    Some(Json::Bool(false)) => refused.push(format!("'{key}'")),
                    other => schemas.extend(other),
                }
            }
            if self.tracks && !schemas.is_empty() {
                look.seen.keys.insert(key.clone());
            }
            for schema in schemas {
                self.validate(schema, value, &below, look.depth, &mut look.problems)?;
            }
        }
        if !refused.is_empty() {
            look.problem(format!(
                "additional properties {} not allowed",
                refused.join(", ")
            ));
        }
        Ok(())
    }

    fn dependencies(
        &self,
        entries: &[(Rc<str>, Value)],
        has: impl Fn(&str) -> bool,
        look: &mut Look<'_>,
    ) -> Result<(), Exceeded> {
        let map = look.map;
        let keywords: &[&str] = if self.draft < Draft::D2019 {
            &["dependencies"]
        } else {
            &["dependentRequired", "dependentSchemas"]
        };
        let rules = keywords
            .iter()
            .filter_map(|keyword| map.get(*keyword)?.as_object())
            .flatten();
        for (key, rule) in rules.filter(|(key, _)| has(key)) {
            if rule.is_array() {
                let missing = missing(rule, &has);
                if !missing.is_empty() {
                    look.problem(format!(
                        "properties {} required, if '{key}' exists",
                        missing.join(", ")
                    ));
                }
            } else {
                let value = Value::dict(entries.iter().map(|(key, value)| (key.clone(), value.clone())));
                self.apply(rule, &value, look)?;
            }
        }
        Ok(())
    }

    fn array(&self, items: &[Value], look: &mut Look<'_>) -> Result<(), Exceeded> {
        limits(look, items.len() as f64, "minItems", "maxItems");
        if look.map.get("uniqueItems") == Some(&Json::Bool(true)) {
            let texts: Vec<String> = items.iter().map(canonical).collect();
            let mut seen = std::collections::HashMap::new();
            for (n, text) in texts.iter().enumerate() {
                if let Some(first) = seen.insert(text, n) {
                    look.problem(format!("items at {first} and {n} are equal"));
                    break;
                }
            }
        }
        let map = look.map;
        let new = self.draft >= Draft::D2020;
        let (prefix, rest) = match (map.get(if new { "prefixItems" } else { "items" }), new) {
            (Some(Json::Array(prefix)), true) => (prefix.as_slice(), map.get("items")),
            (Some(Json::Array(prefix)), false) => (prefix.as_slice(), map.get("additionalItems")),
            (_, _) => ([].as_slice(), map.get("items")),
        };
        for (n, item) in items.iter().enumerate() {
            if let Some(schema) = prefix.get(n).or(rest) {
                let below = look.below(n);
                look.seen.items.insert(n);
                self.validate(schema, item, &below, look.depth, &mut look.problems)?;
            }
        }
        self.contains(items, look)
    }

    fn contains(&self, items: &[Value], look: &mut Look<'_>) -> Result<(), Exceeded> {
        let Some(schema) = look.map.get("contains").filter(|_| self.draft >= Draft::D6) else {
            return Ok(());
        };
        let mut found = 0_u32;
        for (n, item) in items.iter().enumerate() {
            let mut problems = Vec::new();
            self.validate(schema, item, look.at, look.depth, &mut problems)?;
            if problems.is_empty() {
                found = found.saturating_add(1);
                if self.draft >= Draft::D2020 {
                    look.seen.items.insert(n);
                }
            }
        }
        let newer = self.draft >= Draft::D2019;
        let least = look.number("minContains").filter(|_| newer).unwrap_or(1.0);
        let most = look.number("maxContains").filter(|_| newer);
        if f64::from(found) < least {
            look.problem("no items match contains schema".to_owned());
        } else if most.is_some_and(|most| f64::from(found) > most) {
            look.problem(format!("too many items match contains schema: {found}"));
        }
        Ok(())
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

    fn unevaluated_keys(&self, entries: &[(Rc<str>, Value)], look: &mut Look<'_>) -> Result<(), Exceeded> {
        let Some(schema) = look
            .map
            .get("unevaluatedProperties")
            .filter(|_| self.draft >= Draft::D2019)
        else {
            return Ok(());
        };
        for (key, value) in entries {
            if look.seen.keys.insert(key.clone()) {
                let below = look.below(key);
                self.validate(schema, value, &below, look.depth, &mut look.problems)?;
            }
        }
        Ok(())
    }

    fn unevaluated_items(&self, items: &[Value], look: &mut Look<'_>) -> Result<(), Exceeded> {
        let Some(schema) = look
            .map
            .get("unevaluatedItems")
            .filter(|_| self.draft >= Draft::D2019)
        else {
            return Ok(());
        };
        for (n, item) in items.iter().enumerate() {
            if look.seen.items.insert(n) {
                let below = look.below(n);
                self.validate(schema, item, &below, look.depth, &mut look.problems)?;
            }
        }
        Ok(())
    }
}

fn limits(look: &mut Look<'_>, got: f64, least: &str, most: &str) {
    for (keyword, sign) in [(least, 1.0), (most, -1.0)] {
        if let Some(want) = look.number(keyword)
            && got * sign < want * sign
        {
            look.problem(format!("{keyword}: got {}, want {}", plain(got), plain(want)));
        }
    }
}

fn missing(names: &Json, has: impl Fn(&str) -> bool) -> Vec<String> {
    let names = names.as_array().into_iter().flatten().filter_map(Json::as_str);
    names
        .filter(|name| !has(name))
        .map(|name| format!("'{name}'"))
        .collect()
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value, _) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::Int(..) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::List(_) | Value::Strings(_) => "array",
        Value::Dict(_) => "object",
        Value::Nil | Value::Missing | Value::Bytes(_) | Value::Object(_) => "null",
    }
}

fn plain(number: f64) -> String {
    float_text(number, 'f', None)
}

fn display(value: &Json) -> String {
    match value {
        Json::String(text) => format!("'{text}'"),
        other => other.to_string(),
    }
}

fn same(wanted: &Json, value: &Value) -> bool {
    match (wanted, value) {
        (Json::Null, Value::Nil | Value::Missing) => true,
        (Json::Bool(wanted), Value::Bool(value)) => wanted == value,
        (Json::Number(wanted), value) => number(value).is_some_and(|value| wanted.as_f64() == Some(value)),
        (Json::String(wanted), Value::String(value)) => **wanted == **value,
        (Json::Array(wanted), Value::List(items) | Value::Strings(items)) => {
            wanted.len() == items.len() && wanted.iter().zip(items.iter()).all(|(a, b)| same(a, b))
        }
        (Json::Object(wanted), Value::Dict(map)) => {
            let map = map.borrow();
            wanted.len() == map.len()
                && wanted
                    .iter()
                    .all(|(key, a)| map.get(key.as_str()).is_some_and(|b| same(a, b)))
        }
        _ => false,
    }
}

/// A text that equal values share.
fn canonical(value: &Value) -> String {
    match value {
        Value::List(items) | Value::Strings(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Dict(map) => {
            let entry = |(key, value): (&Rc<str>, &Value)| format!("{key:?}:{}", canonical(value));
            let entries: Vec<String> = map.borrow().iter().map(entry).collect();
            format!("{{{}}}", entries.join(","))
        }
        value => number(value).map_or_else(|| format!("{value:?}"), |number| number.to_string()),
    }
}
