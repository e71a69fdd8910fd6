//! Validates objects and arrays.

use std::rc::Rc;

use serde_json::Value as Json;
use tree::Exceeded;

use super::{
    Draft, Problem, Schema,
    compare::{canonical, quote},
    validate::{Frame, limits},
};
use crate::Value;

impl Schema<'_> {
    pub(super) fn object(&self, entries: &[(Rc<str>, Value)], frame: &mut Frame<'_>) -> Result<(), Exceeded> {
        limits(frame, entries.len() as f64, "minProperties", "maxProperties");
        let has = |key: &str| entries.binary_search_by(|(name, _)| (**name).cmp(key)).is_ok();
        let required = frame.map.get("required").and_then(Json::as_array);
        self.budget.step(required.map_or(0, |names| names.len() as u64))?;
        if let Some(missing) = frame
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
            frame.problem(format!("missing {word} {}", missing.join(", ")));
        }
        self.properties(entries, frame)?;
        self.dependencies(entries, has, frame)?;
        if self.draft >= Draft::D6
            && let Some(names) = frame.map.get("propertyNames")
        {
            for (key, _) in entries {
                let mut problems = Vec::new();
                let name = Value::String(key.clone());
                self.validate(names, &name, "", frame.depth, &mut problems)?;
                if !problems.is_empty() {
                    frame.problems.push(Problem {
                        // The original reports names without a path.
                        at: String::new(),
                        words: format!("invalid propertyName {}", quote(key)),
                        causes: problems.into_iter().flat_map(Problem::parts).collect(),
                    });
                }
            }
        }
        Ok(())
    }

    fn properties(&self, entries: &[(Rc<str>, Value)], frame: &mut Frame<'_>) -> Result<(), Exceeded> {
        let map = frame.map;
        let known = map.get("properties").and_then(Json::as_object);
        let patterns = map.get("patternProperties").and_then(Json::as_object);
        let additional = map.get("additionalProperties");
        let mut refused = Vec::new();
        for (key, value) in entries {
            let mut schemas: Vec<&Json> = known.and_then(|known| known.get(&**key)).into_iter().collect();
            for (pattern, schema) in patterns.into_iter().flatten() {
                if self.has_match(pattern, key)? {
                    schemas.push(schema);
                }
            }
            if schemas.is_empty() {
                match additional {
                    Some(Json::Bool(false)) => refused.push(quote(key)),
                    other => schemas.extend(other),
                }
            }
            if self.tracks && !schemas.is_empty() {
                frame.seen.keys.insert(key.clone());
            }
            for schema in schemas {
                self.budget.step(frame.at.len() as u64 / 64)?;
                let below = frame.below(key);
                self.validate(schema, value, &below, frame.depth, &mut frame.problems)?;
            }
        }
        if !refused.is_empty() {
            frame.problem(format!(
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
        frame: &mut Frame<'_>,
    ) -> Result<(), Exceeded> {
        let map = frame.map;
        let keywords: &[&str] = if self.draft < Draft::D2019 {
            &["dependencies"]
        } else {
            &["dependencies", "dependentRequired", "dependentSchemas"]
        };
        let rules = keywords
            .iter()
            .filter_map(|keyword| map.get(*keyword)?.as_object())
            .flatten();
        let whole = std::cell::OnceCell::new();
        for (key, rule) in rules.filter(|(key, _)| has(key)) {
            self.budget
                .step(1 + rule.as_array().map_or(0, |names| names.len() as u64))?;
            if rule.is_array() {
                let missing = missing(rule, &has);
                if !missing.is_empty() {
                    frame.problem(format!(
                        "properties {} required, if {} exists",
                        missing.join(", "),
                        quote(key)
                    ));
                }
            } else {
                let entry = |(key, value): &(Rc<str>, Value)| (key.clone(), value.clone());
                let value = whole.get_or_init(|| Value::dict(entries.iter().map(entry)));
                self.apply(rule, value, frame)?;
            }
        }
        Ok(())
    }

    pub(super) fn array(&self, items: &[Value], frame: &mut Frame<'_>) -> Result<(), Exceeded> {
        limits(frame, items.len() as f64, "minItems", "maxItems");
        if frame.map.get("uniqueItems") == Some(&Json::Bool(true)) {
            let mut canonical_keys = Vec::with_capacity(items.len());
            for item in items {
                let key = canonical(item);
                self.budget.step(key.len() as u64 / 16 + 1)?;
                canonical_keys.push(key);
            }
            let mut seen = std::collections::HashMap::new();
            for (n, text) in canonical_keys.iter().enumerate() {
                if let Some(first) = seen.insert(text, n) {
                    frame.problem(format!("items at {first} and {n} are equal"));
                    break;
                }
            }
        }
        let map = frame.map;
        let new = self.draft >= Draft::D2020;
        let (prefix, rest) = match (map.get(if new { "prefixItems" } else { "items" }), new) {
            (Some(Json::Array(prefix)), true) => (prefix.as_slice(), map.get("items")),
            (Some(Json::Array(prefix)), false) => (prefix.as_slice(), map.get("additionalItems")),
            (_, _) => ([].as_slice(), map.get("items")),
        };
        if !new && !prefix.is_empty() && rest == Some(&Json::Bool(false)) && items.len() > prefix.len() {
            frame.problem(format!(
                "last {} additionalItem(s) not allowed",
                items.len().saturating_sub(prefix.len())
            ));
        }
        let rest = rest.filter(|rest| new || prefix.is_empty() || **rest != Json::Bool(false));
        for (n, item) in items.iter().enumerate() {
            if let Some(schema) = prefix.get(n).or(rest) {
                self.budget.step(frame.at.len() as u64 / 64)?;
                let below = frame.below(&n.to_string());
                frame.seen.items.insert(n);
                self.validate(schema, item, &below, frame.depth, &mut frame.problems)?;
            }
        }
        self.contains(items, frame)
    }

    fn contains(&self, items: &[Value], frame: &mut Frame<'_>) -> Result<(), Exceeded> {
        let Some(schema) = frame.map.get("contains").filter(|_| self.draft >= Draft::D6) else {
            return Ok(());
        };
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for (n, item) in items.iter().enumerate() {
            let mut problems = Vec::new();
            self.validate(
                schema,
                item,
                &frame.below(&n.to_string()),
                frame.depth,
                &mut problems,
            )?;
            if problems.is_empty() {
                found.push(n.to_string());
                if self.draft >= Draft::D2020 {
                    frame.seen.items.insert(n);
                }
            }
            others.append(&mut problems);
        }
        let newer = self.draft >= Draft::D2019;
        let bound = |keyword: &str| frame.number(keyword).filter(|_| newer);
        let (least, most) = (bound("minContains"), bound("maxContains"));
        let count = found.len() as f64;
        let which = match found.as_slice() {
            [] => "but none matched".to_owned(),
            found => format!("but matched {} items at {}", found.len(), found.join(" ")),
        };
        match least {
            Some(least) if count < least => {
                let words = format!("min {least} items required to match contains schema, {which}");
                frame.nested(words, others);
            }
            None if found.is_empty() => frame.nested("no items match contains schema".to_owned(), others),
            _ => {}
        }
        if let Some(most) = most.filter(|most| count > *most) {
            frame.problem(format!(
                "max {most} items required to match contains schema, {which}"
            ));
        }
        Ok(())
    }

    pub(super) fn unevaluated_keys(
        &self,
        entries: &[(Rc<str>, Value)],
        frame: &mut Frame<'_>,
    ) -> Result<(), Exceeded> {
        let Some(schema) = frame
            .map
            .get("unevaluatedProperties")
            .filter(|_| self.draft >= Draft::D2019)
        else {
            return Ok(());
        };
        for (key, value) in entries {
            if frame.seen.keys.insert(key.clone()) {
                let below = frame.below(key);
                self.validate(schema, value, &below, frame.depth, &mut frame.problems)?;
            }
        }
        Ok(())
    }

    pub(super) fn unevaluated_items(&self, items: &[Value], frame: &mut Frame<'_>) -> Result<(), Exceeded> {
        let Some(schema) = frame
            .map
            .get("unevaluatedItems")
            .filter(|_| self.draft >= Draft::D2019)
        else {
            return Ok(());
        };
        for (n, item) in items.iter().enumerate() {
            if frame.seen.items.insert(n) {
                self.budget.step(frame.at.len() as u64 / 64)?;
                let below = frame.below(&n.to_string());
                self.validate(schema, item, &below, frame.depth, &mut frame.problems)?;
            }
        }
        Ok(())
    }
}

fn missing(names: &Json, has: impl Fn(&str) -> bool) -> Vec<String> {
    let names = names.as_array().into_iter().flatten().filter_map(Json::as_str);
    names.filter(|name| !has(name)).map(quote).collect()
}
