//! The paths of targets; for paths of sources see [`lookup`].

use std::borrow::Cow;

use regex::Regex;

use crate::{
    Error,
    error::Step,
    lookup::{self, condition, is_condition},
    selector,
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
    pattern: Result<Regex, Error>,
}

impl Condition {
    /// Returns true if a printed value fits the condition.
    ///
    /// quirk: the value of a condition is a pattern that may match anywhere, so `[name=web]` also means `web2`. In a
    /// source's path it must be equal.
    pub(super) fn fits(&self, printed: &str) -> Result<bool, Error> {
        match &self.pattern {
            Ok(pattern) => Ok(pattern.is_match(printed)),
            Err(problem) => Err(Error::new(Step::Replacement, problem)),
        }
    }
}

impl Part {
    fn parse(text: &str) -> Self {
        if let Ok(index) = text.parse::<i64>()
            && let Ok(index) = usize::try_from(index)
        {
            return Self::Index(index);
        }
        if is_condition(text) {
            return match condition(text) {
                Ok((key, value)) => Self::Items(Condition {
                    key: key.to_owned(),
                    value: value.to_owned(),
                    pattern: selector::regex(value),
                }),
                Err(error) => Self::NoCondition(error.to_string()),
            };
        }
        match text {
            "*" => Self::Every,
            key => Self::Key(key.to_owned()),
        }
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
    pub(super) fn new(text: &'p str) -> Self {
        let elements = lookup::split(text);
        Self {
            text,
            parts: elements.iter().map(|element| Part::parse(element)).collect(),
            elements,
        }
    }

    /// Returns the steps for its patterns.
    pub(super) fn cost(&self) -> usize {
        let cost = |part: &Part| match part {
            Part::Items(condition) => selector::cost(&condition.value) as usize,
            _ => 1,
        };
        self.parts.iter().map(cost).sum()
    }
}
