//! Package `regexp`: regular expressions in Go's syntax and with its errors, compiled by crate regex-automata.

mod pattern;
mod search;
mod translate;

use std::{convert::Infallible, ops::Range};

use regex_automata::{
    nfa::thompson::{Compiler, Config, NFA},
    util::{primitives::PatternID, syntax},
};

use crate::{bytes, strconv};
use search::{FirstBytes, NONE, first_bytes};

pub use pattern::{Pattern, PatternQuota};
pub use search::Search;

/// Returns the steps of a render that visits of states count as: a visit among many states takes some ten nanoseconds, as a step does.
#[must_use]
pub const fn steps(visits: u64) -> u64 {
    visits + 1
}

/// An invalid regular expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegexpError {
    /// The error in Go's words.
    #[error("error parsing regexp: {problem}: `{at}`")]
    Syntax { problem: &'static str, at: String },
    /// The error of an expression in the syntax of crate regex, in its words.
    #[error("{0}")]
    Unicode(String),
    /// The compiled expression is over 4 MiB (a [`Pattern`]: 1 MiB), the parsed one over [`MAX_PARSED`], or the expression over 128 KiB.
    #[error("error parsing regexp: expression nests too deeply or is too large")]
    TooLarge,
    /// The patterns of a [`PatternQuota`] are over 32 MiB.
    #[error("the patterns are too many or too large together: use fewer or smaller ones")]
    TooMany,
}

impl RegexpError {
    /// Formats the message that `regexp.MustCompile` panics with.
    #[must_use]
    pub fn panic_message(&self, expression: &str) -> String {
        let quoted = if strconv::can_backquote(expression) {
            format!("`{expression}`")
        } else {
            strconv::quote(expression)
        };
        format!("regexp: Compile({quoted}): {self}")
    }
}

/// Maximum size of a compiled expression in bytes.
const SIZE: usize = 4 << 20;

/// Maximum length of an expression in bytes: its syntax tree takes a hundred times as much.
const LENGTH: usize = 128 << 10;

/// Maximum size of a parsed expression in bytes: it is made before the compiled one.
pub const MAX_PARSED: usize = 16 << 20;

/// Size of a parsed character in bytes.
const PARSED_CHARACTER: usize = 200;

/// Size of a parsed class such as `\pL`, which has hundreds of ranges, in bytes.
const PARSED_CLASS: usize = 12 << 10;

/// Maximum number of positions of groups that all threads of a search hold together.
const POSITIONS: usize = 1 << 20;

/// A compiled regular expression in Go's syntax.
///
/// A search takes time in proportion to the product of the string and the compiled expression. Searches of untrusted
/// expressions count it with [`Regexp::search`], all others may use the other methods.
///
/// ```
/// let words = go::regexp::Regexp::compile(r"(?P<first>\w)\w*")?;
/// assert_eq!(words.find("to be"), Some(0..2));
/// assert_eq!(go::regexp::Regexp::compile("a**").unwrap_err().to_string(),
///     "error parsing regexp: invalid nested repetition operator: `**`");
/// # Ok::<(), go::regexp::RegexpError>(())
/// ```
#[derive(Debug)]
pub struct Regexp {
    nfa: NFA,
    /// The first bytes of all matches; `None` if a match can be empty.
    first: Option<Box<FirstBytes>>,
}

impl Regexp {
    /// Compiles an expression. Fails if Go refuses it, or if it is too large.
    pub fn compile(expression: &str) -> Result<Self, RegexpError> {
        let translated = translate(expression, true)?;
        Self::build(&translated, false, |_| RegexpError::TooLarge)
    }

    /// Compiles an expression in the syntax of crate regex, whose classes are of Unicode. Fails if it is invalid or too large.
    pub fn compile_unicode(expression: &str) -> Result<Self, RegexpError> {
        Self::build(expression, true, RegexpError::Unicode)
    }

    /// Compiles an expression in the syntax of crate regex. With `utf8`, it matches whole characters only.
    fn build(expression: &str, utf8: bool, invalid: fn(String) -> RegexpError) -> Result<Self, RegexpError> {
        check_parsed(expression)?;
        let hir = syntax::parse_with(expression, &syntax::Config::new().utf8(utf8))
            .map_err(|error| invalid(error.to_string()))?;
        let nfa = Compiler::new()
            .configure(Config::new().utf8(true).nfa_size_limit(Some(SIZE)))
            .build_from_hir(&hir)
            .map_err(|_| RegexpError::TooLarge)?;
        let positions = nfa.states().len().saturating_mul(nfa.group_info().slot_len());
        if positions > POSITIONS {
            return Err(RegexpError::TooLarge);
        }
        let first = first_bytes(&nfa);
        Ok(Self { nfa, first })
    }

    /// Returns the memory of the compiled expression in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let states = self.nfa.states().len().saturating_mul(size_of::<u64>());
        self.nfa.memory_usage().saturating_add(states)
    }

    /// Starts a search that counts its work: `meter` gets the number of visited states of the program, after each 4096 of them
    /// or, if the program has more, after each byte. Its error ends the search.
    pub fn search<'a, E, M: FnMut(u64) -> Result<(), E>>(&'a self, text: &'a str, meter: M) -> Search<'a, M> {
        Search::new(self, text, meter)
    }

    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.search(text, free).is_match().unwrap_or_default()
    }

    #[must_use]
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        self.find_iter(text).next()
    }

    /// Iterates over all matches, without overlaps.
    pub fn find_iter<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let mut search = self.search(text, free);
        std::iter::from_fn(move || search.next().ok().flatten())
    }

    /// Iterates over all matches with their groups, without overlaps.
    pub fn captures_iter<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Captures<'a>> + 'a {
        let mut search = self.search(text, free);
        std::iter::from_fn(move || search.next_captures().ok().flatten())
    }
}

/// Translates an expression in Go's syntax to the syntax of crate regex, with which it matches the same strings. Its groups capture
/// nothing, because a search has memory for each group at each state. Fails with Go's error if Go refuses it, and if it is over 128 KiB,
/// or over [`MAX_PARSED`] when it is parsed.
///
/// ```
/// assert_eq!(go::regexp::to_rust(r"{name}(\d)")?, r"\{name\}(?:[0-9])");
/// # Ok::<(), go::regexp::RegexpError>(())
/// ```
pub fn to_rust(expression: &str) -> Result<String, RegexpError> {
    let translated = translate(expression, false)?;
    check_parsed(&translated)?;
    Ok(translated)
}

fn translate(expression: &str, captures: bool) -> Result<String, RegexpError> {
    if let Some(at) = expression.find(|c| bytes::invalid_byte(c).is_some()) {
        return Err(RegexpError::Syntax {
            problem: "invalid UTF-8",
            at: expression.get(at..).unwrap_or_default().to_owned(),
        });
    }
    if expression.len() > LENGTH {
        return Err(RegexpError::TooLarge);
    }
    translate::translate(expression, captures)
}

fn free(_: u64) -> Result<(), Infallible> {
    Ok(())
}

fn check_parsed(expression: &str) -> Result<(), RegexpError> {
    match parsed_bytes(expression) {
        ..=MAX_PARSED => Ok(()),
        _ => Err(RegexpError::TooLarge),
    }
}

/// Returns an upper bound of the size of a parsed expression of crate regex, in bytes.
#[must_use]
pub fn parsed_bytes(expression: &str) -> usize {
    let mut letters = expression.bytes();
    let mut classes: usize = 0;
    while let Some(letter) = letters.next() {
        if letter == b'\\' {
            classes += usize::from(letters.next().is_some_and(|letter| b"pPwWdDsS".contains(&letter)));
        }
    }
    let characters = expression.len().saturating_mul(PARSED_CHARACTER);
    characters.saturating_add(classes.saturating_mul(PARSED_CLASS))
}

#[derive(Debug, Clone)]
pub struct Captures<'a> {
    regexp: &'a Regexp,
    text: &'a str,
    /// Start and end of each group; [`NONE`] for a group that is not part of the match.
    positions: Vec<usize>,
}

impl<'a> Captures<'a> {
    fn span(&self, number: usize) -> Option<Range<usize>> {
        let start = self.positions.get(number.checked_mul(2)?)?;
        let end = self.positions.get(number.checked_mul(2)?.checked_add(1)?)?;
        (*start != NONE && *end != NONE).then_some(*start..*end)
    }

    /// Returns the captures of another string, whose offsets differ.
    #[must_use]
    pub fn of<'o>(self, text: &'o str, offset: impl Fn(usize) -> usize) -> Captures<'o>
    where
        'a: 'o,
    {
        let moved = |at: usize| if at == NONE { NONE } else { offset(at) };
        Captures {
            regexp: self.regexp,
            text,
            positions: self.positions.into_iter().map(moved).collect(),
        }
    }

    #[must_use]
    pub fn range(&self) -> Option<Range<usize>> {
        self.span(0)
    }

    /// Returns the string of a group, empty if it is not part of the match.
    #[must_use]
    pub fn group(&self, number: usize) -> &'a str {
        self.span(number)
            .and_then(|span| self.text.get(span))
            .unwrap_or_default()
    }

    /// Returns the string of a named group, empty if it is not part of the match.
    #[must_use]
    pub fn named(&self, name: &str) -> &'a str {
        let number = self.regexp.nfa.group_info().to_index(PatternID::ZERO, name);
        number.map(|number| self.group(number)).unwrap_or_default()
    }
}

impl Captures<'_> {
    /// Appends a template to `out` (`Regexp.Expand`): `$1` and `${name}` are the strings of groups, `$$` is a dollar sign.
    pub fn expand(&self, template: &str, out: &mut String) {
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                out.push('$');
                rest = after;
                continue;
            }
            let braced = after.strip_prefix('{');
            let body = braced.unwrap_or(after);
            let end = body
                .find(|c: char| c != '_' && !c.is_alphanumeric())
                .unwrap_or(body.len());
            let (name, tail) = body.split_at(end);
            let tail = if braced.is_some() {
                tail.strip_prefix('}')
            } else {
                Some(tail)
            };
            let Some(tail) = tail.filter(|_| !name.is_empty()) else {
                out.push('$');
                rest = after;
                continue;
            };
            let index = name
                .parse::<usize>()
                .ok()
                .filter(|_| name == "0" || !name.starts_with('0'));
            out.push_str(match index {
                Some(index) => self.group(index),
                None => self.named(name),
            });
            rest = tail;
        }
        out.push_str(rest);
    }
}

/// Escapes all characters that have a meaning in expressions (`regexp.QuoteMeta`).
#[must_use]
pub fn quote_meta(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests;
