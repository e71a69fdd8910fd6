//! A compiled regular expression.

use std::ops::Range;

use regex_automata::{
    MatchKind,
    meta::{BuildError, Builder, Config, Regex},
    util::{captures::Captures, syntax},
};

/// How large a compiled expression may be.
const SIZE: usize = 4 << 20;

/// An expression for a single thread: crate regex would ask the operating system for how many it has to have room.
#[derive(Debug)]
pub(super) struct Expression(Regex);

impl Expression {
    /// Compiles what [`super::pattern::translate`] gave.
    pub(super) fn new(translated: &str) -> Result<Self, Box<BuildError>> {
        let config = Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .utf8_empty(true)
            .nfa_size_limit(Some(SIZE))
            // Charts look through short texts, so automata that take long to make don't pay; Go has none either.
            .auto_prefilter(false)
            .hybrid(false)
            .onepass(false)
            .dfa(false)
            .pool_capacity(1);
        let compiled = Builder::new()
            .configure(config)
            .syntax(syntax::Config::new().utf8(true))
            .build(translated);
        compiled.map(Self).map_err(Box::new)
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Where it matches first.
    pub(super) fn find(&self, text: &str) -> Option<Range<usize>> {
        self.0.find(text).map(|found| found.range())
    }

    /// Where it matches, without overlaps.
    pub(super) fn find_iter<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        self.0.find_iter(text).map(|found| found.range())
    }

    /// Where it and its groups match.
    pub(super) fn captures_iter<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Groups<'a>> + 'a {
        self.0
            .captures_iter(text)
            .map(move |captures| Groups { text, captures })
    }
}

/// One match of an expression, with its groups.
pub(super) struct Groups<'a> {
    text: &'a str,
    captures: Captures,
}

impl<'a> Groups<'a> {
    /// Where all of it is.
    pub(super) fn whole(&self) -> Option<Range<usize>> {
        self.captures.get_match().map(|found| found.range())
    }

    /// The text of a group; the empty text when it has no part in the match.
    pub(super) fn group(&self, number: usize) -> &'a str {
        let span = self.captures.get_group(number);
        span.and_then(|span| self.text.get(span.range()))
            .unwrap_or_default()
    }

    /// The text of a named group.
    pub(super) fn named(&self, name: &str) -> &'a str {
        let span = self.captures.get_group_by_name(name);
        span.and_then(|span| self.text.get(span.range()))
            .unwrap_or_default()
    }
}
