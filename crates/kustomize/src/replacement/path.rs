//! The paths of targets; for paths of sources see [`lookup`].

use std::{borrow::Cow, sync::Arc};

use go::regexp::Regexp;

use super::meter::Meter;
use crate::{
    Error,
    error::Step,
    lookup::{self, condition, is_condition},
    selector::Patterns,
};

/// The path of a replacement whose `fieldPath` or `fieldPaths` is empty.
pub(super) const DEFAULT_PATH: &str = "metadata.name";

pub(super) fn or_default(path: &str) -> &str {
    if path.is_empty() { DEFAULT_PATH } else { path }
}

/// One part of a target's path.
#[derive(Debug)]
pub(super) enum Part {
    Index(usize),
    Items(Condition),
    /// Brackets without a condition, with the error message.
    NoCondition(String),
    /// Every item of a list.
    Every,
    Key(String),
}

/// The condition of the items of a list: `[key=value]`, or `[=value]` for items that are scalars.
#[derive(Debug)]
pub(super) struct Condition {
    /// Empty for items that are scalars.
    pub(super) key: String,
    pub(super) value: String,
    pattern: Result<Arc<Regexp>, Error>,
}

impl Condition {
    /// Returns true if a printed value fits the condition.
    ///
    /// quirk: the value of a condition is a pattern that may match anywhere, so `[name=web]` also means `web2`. In a
    /// source's path it must be equal.
    pub(super) fn fits(&self, printed: &str, meter: &Meter<'_>) -> Result<bool, Error> {
        meter.work(printed.len() / 16)?;
        match &self.pattern {
            Ok(pattern) => Patterns::new(meter.run, meter.dir).is_match(pattern, printed),
            Err(problem) => Err(Error::new(Step::Replacement, problem)),
        }
    }
}

impl Part {
    fn parse(text: &str, patterns: Patterns<'_>) -> Result<Self, Error> {
        if let Ok(index) = text.parse::<i64>()
            && let Ok(index) = usize::try_from(index)
        {
            return Ok(Self::Index(index));
        }
        if is_condition(text) {
            let (key, value) = match condition(text) {
                Ok(parts) => parts,
                Err(error) => return Ok(Self::NoCondition(error.to_string())),
            };
            let pattern = match patterns.compile(value) {
                Err(error) if error.exceeded().is_some() => return Err(error),
                // An invalid one is reported at its use.
                compiled => compiled,
            };
            return Ok(Self::Items(Condition {
                key: key.to_owned(),
                value: value.to_owned(),
                pattern,
            }));
        }
        Ok(match text {
            "*" => Self::Every,
            key => Self::Key(key.to_owned()),
        })
    }
}

#[derive(Debug)]
pub(super) struct Path<'p> {
    /// As written.
    pub(super) text: &'p str,
    pub(super) elements: Vec<Cow<'p, str>>,
    pub(super) parts: Vec<Part>,
}

impl<'p> Path<'p> {
    pub(super) fn new(text: &'p str, patterns: Patterns<'_>) -> Result<Self, Error> {
        let elements = lookup::split(text);
        let parts = elements.iter().map(|element| Part::parse(element, patterns));
        Ok(Self {
            text,
            parts: parts.collect::<Result<_, Error>>()?,
            elements,
        })
    }
}
