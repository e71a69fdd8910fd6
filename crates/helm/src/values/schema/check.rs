//! Validation of schemas, and resolution of their references.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    rc::Rc,
};

use go::regexp::{self, Regexp, RegexpError};
use serde_json::{Map, Value as Json};
use tree::{Budget, Exceeded};

use super::{
    Draft, HOME, MAX_MEMORY, Schema, SchemaMemory, address, below,
    keywords::{self, Shape, kind, shape},
};

const MAX_DEPTH: usize = 200;

#[derive(Debug, thiserror::Error)]
pub(super) enum SchemaError {
    #[error("failing loading {0:?}: only the drafts of json-schema.org are known, nothing is fetched")]
    UnknownDraft(String),
    #[error("failing loading {0:?}: references lead into the schema itself, nothing is fetched")]
    ExternalReference(String),
    #[error("\"{0}\" not found")]
    NotFound(String),
    #[error("the schema nests deeper than {MAX_DEPTH}")]
    TooDeep,
    #[error("{at}: the keyword {keyword} of JSON Schema is not supported")]
    UnsupportedKeyword { at: String, keyword: String },
    #[error(
        "\"{HOME}#\" is not valid against metaschema: jsonschema validation failed\n- at '{at}': {words}\n"
    )]
    Invalid { at: String, words: String },
    #[error(
        "the names and patterns of the schema take more than {MAX_MEMORY} bytes: use fewer or shorter ones"
    )]
    TooLarge,
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

impl<'a> Schema<'a> {
    /// Checks a schema. Fails when it is invalid or uses an unsupported draft, keyword or reference.
    pub(super) fn new(root: &'a Json, budget: &'a Budget) -> Result<Self, SchemaError> {
        let draft = match root.get("$schema") {
            None => Draft::D2020,
            Some(Json::String(url)) => {
                Draft::parse(url).ok_or_else(|| SchemaError::UnknownDraft(url.clone()))?
            }
            Some(_) => return Err(invalid("/$schema", "got another type, want string")),
        };
        let mut schema = Self {
            draft,
            budget,
            named: HashMap::new(),
            bases: HashMap::new(),
            checked: RefCell::new(HashSet::new()),
            patterns: RefCell::new(HashMap::new()),
            memory: SchemaMemory::default(),
            tracks: false,
        };
        schema.named.insert(HOME.to_owned(), root);
        schema.name(root, &HOME.into(), 0)?;
        schema.check(root, "", 0)?;
        Ok(schema)
    }

    /// Collects the named schemas and the base URLs of references.
    fn name(&mut self, schema: &'a Json, base: &Rc<str>, depth: usize) -> Result<(), SchemaError> {
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        let next = depth.saturating_add(1);
        match schema {
            Json::Object(map) => {
                let base = self.name_one(schema, map, base)?;
                for (key, value) in map {
                    self.tracks |= key.starts_with("unevaluated");
                    if !matches!(key.as_str(), "enum" | "const" | "default" | "examples") {
                        self.name(value, &base, next)?;
                    }
                }
            }
            Json::Array(items) => {
                for item in items {
                    self.name(item, base, next)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a name of a schema.
    fn add_name(&mut self, name: String, schema: &'a Json) -> Result<(), SchemaError> {
        if !self.memory.fits(name.len()) {
            return Err(SchemaError::TooLarge);
        }
        self.named.insert(name, schema);
        Ok(())
    }

    fn name_one(
        &mut self,
        schema: &'a Json,
        map: &'a Map<String, Json>,
        base: &Rc<str>,
    ) -> Result<Rc<str>, SchemaError> {
        let mut base = Rc::clone(base);
        let id = map
            .get(if self.draft == Draft::D4 { "id" } else { "$id" })
            .and_then(Json::as_str);
        let hidden = self.draft < Draft::D2019 && map.contains_key("$ref");
        if let Some(id) = id.filter(|_| !hidden) {
            let (url, fragment) = id.split_once('#').unwrap_or((id, ""));
            if !url.is_empty() {
                base = join(&base, url).into();
                self.add_name(base.to_string(), schema)?;
            }
            if !fragment.is_empty() {
                self.add_name(format!("{base}#{fragment}"), schema)?;
            }
        }
        if let Some(anchor) = map.get("$anchor").and_then(Json::as_str) {
            self.add_name(format!("{base}#{anchor}"), schema)?;
        }
        if map.contains_key("$ref") {
            self.bases.insert(address(schema), Rc::clone(&base));
        }
        Ok(base)
    }

    /// Resolves a reference of the schema `from`, within the document.
    pub(super) fn resolve(&self, from: &Json, reference: &str) -> Result<&'a Json, SchemaError> {
        let base = self.bases.get(&address(from)).map_or(HOME, |base| base);
        self.budget.step((base.len() + reference.len()) as u64 / 8)?;
        let (url, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let url = if url.is_empty() {
            base.to_owned()
        } else {
            join(base, url)
        };
        let Some(resource) = self.named.get(&url) else {
            return Err(SchemaError::ExternalReference(url));
        };
        let fragment = percent_decoded(fragment);
        let found = if fragment.is_empty() {
            Some(*resource)
        } else if fragment.starts_with('/') {
            resource.pointer(&fragment)
        } else {
            self.named.get(&format!("{url}#{fragment}")).copied()
        };
        found.ok_or_else(|| SchemaError::NotFound(format!("{url}#{fragment}")))
    }

    fn check(&self, schema: &'a Json, at: &str, depth: usize) -> Result<(), SchemaError> {
        let map = match schema {
            Json::Object(map) => map,
            Json::Bool(_) if self.draft > Draft::D4 => return Ok(()),
            other => {
                return Err(invalid(
                    at,
                    &format!("got {}, want boolean or object", kind(other)),
                ));
            }
        };
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        // The path is copied for each keyword.
        let path = 16 + at.len() as u64 / 64;
        self.budget.step(path.saturating_mul(1 + map.len() as u64))?;
        if !self.checked.borrow_mut().insert(address(schema)) {
            return Ok(());
        }
        if let Some(Json::String(reference)) = map.get("$ref") {
            self.check(self.resolve(schema, reference)?, at, depth.saturating_add(1))?;
            if self.draft < Draft::D2019 {
                return Ok(());
            }
        }
        if self.draft == Draft::D4
            && let Some(words) = keywords::bound_is_missing(map)
        {
            return Err(invalid(at, &words));
        }
        for (keyword, value) in map {
            let at = below(at, keyword);
            let dynamic = ["$dynamicRef", "$recursiveRef"].contains(&keyword.as_str());
            if dynamic && self.draft >= Draft::D2019 {
                return Err(SchemaError::UnsupportedKeyword {
                    at,
                    keyword: keyword.clone(),
                });
            }
            if let Some(shape) = shape(keyword, self.draft) {
                self.keyword(shape, value, &at, depth.saturating_add(1))?;
            }
            if keyword == "patternProperties" {
                value
                    .as_object()
                    .into_iter()
                    .flat_map(Map::keys)
                    .try_for_each(|text| self.pattern(text, &at))?;
            }
        }
        Ok(())
    }

    fn keyword(&self, shape: Shape, value: &'a Json, at: &str, depth: usize) -> Result<(), SchemaError> {
        let wrong = |want: &str| Err(invalid(at, &format!("got {}, want {want}", kind(value))));
        let all = |items: &'a [Json]| {
            items
                .iter()
                .enumerate()
                .try_for_each(|(n, item)| self.check(item, &below(at, &n.to_string()), depth))
        };
        let strings = |value: &Json, at: &str| {
            self.budget
                .step(value.as_array().map_or(0, |items| items.len() as u64))?;
            keywords::strings(value).map_err(|(n, words)| match n {
                Some(n) => invalid(&below(at, &n.to_string()), &words),
                None => invalid(at, &words),
            })
        };
        match (shape, value) {
            (Shape::Schema, value) => self.check(value, at, depth),
            (Shape::Schemas, Json::Array(items)) if !items.is_empty() => all(items),
            (Shape::Schemas, value) => Err(invalid(at, &keywords::not_some(value))),
            (Shape::SchemaOrSchemas, Json::Array(items)) => all(items),
            (Shape::SchemaOrSchemas, value) => self.check(value, at, depth),
            (Shape::SchemaMap, Json::Object(map)) => map
                .iter()
                .try_for_each(|(key, value)| self.check(value, &below(at, key), depth)),
            (Shape::Dependencies, Json::Object(map)) => map.iter().try_for_each(|(key, value)| match value {
                Json::Array(_) => strings(value, &below(at, key)),
                value => self.check(value, &below(at, key), depth),
            }),
            (Shape::StringsMap, Json::Object(map)) => map
                .iter()
                .try_for_each(|(key, value)| strings(value, &below(at, key))),
            (Shape::SchemaMap | Shape::Dependencies | Shape::StringsMap, _) => wrong("object"),
            (Shape::SomeStrings, Json::Array(items)) if items.is_empty() => {
                Err(invalid(at, &keywords::not_some(value)))
            }
            (Shape::Strings | Shape::SomeStrings, value) => strings(value, at),
            (Shape::Pattern, Json::String(text)) => self.pattern(text, at),
            (Shape::Pattern, _) => wrong("string"),
            (shape, value) => {
                self.budget
                    .step(value.as_array().map_or(0, |items| items.len() as u64 * 4))?;
                keywords::check(shape, value).map_err(|words| invalid(at, &words))
            }
        }
    }

    /// Compiles a pattern, in Go's syntax as in the original. All patterns of a schema share one limit of memory.
    fn pattern(&self, text: &str, at: &str) -> Result<(), SchemaError> {
        if self.patterns.borrow().contains_key(text) {
            return Ok(());
        }
        self.budget.step((text.len() as u64).saturating_mul(1000))?;
        let pattern = Regexp::compile(text).map_err(|error| match error {
            RegexpError::TooLarge => SchemaError::TooLarge,
            _ => invalid(at, &format!("'{text}' is not valid regex")),
        })?;
        self.budget.step(pattern.size() as u64 / 16)?;
        if !self.memory.fits(text.len().saturating_add(pattern.size())) {
            return Err(SchemaError::TooLarge);
        }
        self.budget.memory(pattern.size() as u64)?;
        self.patterns
            .borrow_mut()
            .insert(text.to_owned(), Rc::new(pattern));
        Ok(())
    }

    /// Returns true if a string has a match of a pattern of the schema.
    pub(super) fn has_match(&self, pattern: &str, text: &str) -> Result<bool, Exceeded> {
        let known = self.patterns.borrow().get(pattern).cloned();
        known.map_or(Ok(false), |known| {
            let search = known.search(text, |visits| self.budget.step(regexp::steps(visits)));
            search.is_match()
        })
    }
}

fn invalid(at: &str, words: &str) -> SchemaError {
    SchemaError::Invalid {
        at: at.to_owned(),
        words: words.to_owned(),
    }
}

fn join(base: &str, url: &str) -> String {
    if url.contains("://") || url.starts_with("urn:") {
        return url.to_owned();
    }
    let host = base.find("://").map_or(0, |at| at.saturating_add(3));
    let path = base
        .get(host..)
        .and_then(|rest| rest.find('/'))
        .map_or(base.len(), |at| host.saturating_add(at));
    let (origin, path) = base.split_at_checked(path).unwrap_or((base, ""));
    let path = if url.starts_with('/') {
        url.to_owned()
    } else {
        format!("{}/{url}", path.rsplit_once('/').map_or("", |(dir, _)| dir))
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("{origin}/{}", parts.join("/"))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .filter(|_| *first == b'%')
        {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
