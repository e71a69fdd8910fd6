//! Regular expressions of users: bounded in their size, also while they are compiled, and in the work of their searches.

use go::regexp::{RegexpError, to_rust};
use regex::{Regex, RegexBuilder};

use super::{JsonPathError, Meter, PatternError};

/// Sizes of compiled expressions, in bytes. The last one is the maximum.
const SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Size from which a search is charged four times: its worst case is rather the usual one.
const LARGE: usize = 256 << 10;
/// Maximum size of the lazy automaton of an expression, in bytes.
const AUTOMATON: usize = 64 << 10;
/// Maximum bytes of the expressions for an object.
const MAX_PATTERNS: usize = 32 << 20;

/// Compiles a regular expression of a user in Go's syntax, up to a compiled size of 1 MiB.
///
/// # Errors
/// Fails when the syntax is invalid or the expression is too large, parsed or compiled.
pub fn bounded_regex(pattern: &str) -> Result<Regex, PatternError> {
    let [.., most] = SIZES;
    sized(pattern, most)
}

fn sized(pattern: &str, size: usize) -> Result<Regex, PatternError> {
    let translated = to_rust(pattern).map_err(|error| match error {
        RegexpError::TooLarge => PatternError::TooLarge,
        error => PatternError::Syntax(error.to_string()),
    })?;
    let built = RegexBuilder::new(&translated)
        .size_limit(size)
        .dfa_size_limit(AUTOMATON)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => PatternError::TooLarge,
        other => {
            let message = other.to_string();
            let last = message.lines().last().unwrap_or_default();
            PatternError::Syntax(last.trim_start_matches("error: ").to_owned())
        }
    })
}

/// A regular expression of a user, with its size.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
    size: usize,
}

impl Pattern {
    /// Compiles an expression as [`bounded_regex`] does.
    ///
    /// # Errors
    /// Fails when the syntax is invalid or the expression is too large.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        let mut sizes = SIZES.into_iter();
        let fits = sizes.find_map(|size| match sized(pattern, size) {
            Err(PatternError::TooLarge) => None,
            Ok(regex) => Some(Ok(Self { regex, size })),
            Err(error) => Some(Err(error)),
        });
        fits.unwrap_or(Err(PatternError::TooLarge))
    }

    /// Returns true if a string has a match. The product of its length and the size is charged before.
    ///
    /// # Errors
    /// Fails when the meter is used up.
    pub fn is_match(&self, text: &str, meter: &mut Meter) -> Result<bool, JsonPathError> {
        let size = match self.size {
            LARGE.. => self.size.saturating_mul(4),
            size => size,
        };
        meter.matching(text, size as u64)?;
        Ok(self.regex.is_match(text))
    }

    /// Returns the memory of the compiled expression and its automaton, in bytes.
    fn memory(&self) -> usize {
        self.size + AUTOMATON
    }
}

/// The memory of the expressions for an object.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    bytes: usize,
}

impl Patterns {
    /// Compiles a further expression.
    ///
    /// # Errors
    /// Fails when its syntax is invalid, or it is too large, alone or with the others.
    pub fn compile(&mut self, pattern: &str) -> Result<Pattern, PatternError> {
        if self.bytes > MAX_PATTERNS {
            return Err(PatternError::TooMany);
        }
        let compiled = Pattern::new(pattern)?;
        self.bytes += compiled.memory();
        Ok(compiled)
    }
}
