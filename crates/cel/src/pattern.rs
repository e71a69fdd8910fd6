//! Regular expressions whose size and time are bounded, also while they are compiled.

use go::regexp::{MAX_PARSED, RegexpError, parsed_bytes, to_rust};
use regex_automata::{
    meta::{Builder, Config, Regex},
    nfa::thompson::WhichCaptures,
    util::syntax,
};

/// Maximum size of a compiled expression, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Maximum length of an expression, in bytes. It may come from a request.
const MAX_LENGTH: usize = 8 << 10;
const MAX_NESTING: u32 = 50;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The value is the message of the compiler, in one line.
    #[error("{0}")]
    Invalid(String),
    #[error("the expression is too large")]
    TooLarge,
}

impl From<RegexpError> for PatternError {
    fn from(error: RegexpError) -> Self {
        match error {
            RegexpError::TooLarge => Self::TooLarge,
            error => Self::Invalid(error.to_string()),
        }
    }
}

/// Fails if an expression is too long to be compiled.
pub(crate) fn check_length(pattern: &str) -> Result<(), PatternError> {
    match pattern.len() {
        ..=MAX_LENGTH => Ok(()),
        _ => Err(PatternError::TooLarge),
    }
}

pub(crate) fn compile(pattern: &str) -> Result<Regex, PatternError> {
    compile_patterns(&[pattern], MAX_BYTES)
}

/// Compiles expressions in Go's syntax to one of at most `max_bytes` bytes, which matches if any of them does, in time that is linear in the text.
/// It only tells if a string matches, not where.
/// Fails if one is invalid, or they are too large together, before or after they are compiled.
pub fn compile_patterns<T: AsRef<str>>(patterns: &[T], max_bytes: usize) -> Result<Regex, PatternError> {
    let translated = patterns.iter().map(|pattern| to_rust(pattern.as_ref()));
    let patterns: Vec<String> = translated.collect::<Result<_, _>>()?;
    let parsed = patterns.iter().map(|pattern| parsed_bytes(pattern));
    if parsed.fold(0, usize::saturating_add) > MAX_PARSED {
        return Err(PatternError::TooLarge);
    }
    let config = Config::new()
        .nfa_size_limit(Some(max_bytes))
        // A search would have memory for the positions of each expression at each state.
        .which_captures(WhichCaptures::None)
        .auto_prefilter(false)
        // Lazy automata need more memory than the expression.
        .hybrid(false)
        .onepass(false)
        .backtrack(false)
        .dfa(false)
        .pool_capacity(1);
    let built = Builder::new()
        .configure(config)
        .syntax(syntax::Config::new().nest_limit(MAX_NESTING).utf8(false))
        .build_many(&patterns);
    built.map_err(|error| match error.size_limit() {
        Some(_) => PatternError::TooLarge,
        None => {
            let text = error
                .syntax_error()
                .map_or_else(|| error.to_string(), ToString::to_string);
            let line = text.lines().last().unwrap_or("it does not compile");
            PatternError::Invalid(line.trim().to_owned())
        }
    })
}
