//! Regular expressions whose size and time are bounded.

use regex_automata::{
    meta::{Builder, Config, Regex},
    util::syntax,
};

/// Maximum size of a compiled expression, in bytes.
const MAX_BYTES: usize = 1 << 20;
const MAX_NESTING: u32 = 50;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    /// The value is the message of the compiler, in one line.
    #[error("{0}")]
    Invalid(String),
    #[error("the expression is too large")]
    TooLarge,
}

pub(crate) fn compile(pattern: &str) -> Result<Regex, PatternError> {
    let config = Config::new()
        .nfa_size_limit(Some(MAX_BYTES))
        .auto_prefilter(false)
        // Lazy automata need more memory than the expression.
        .hybrid(false)
        .onepass(false)
        .backtrack(false)
        .dfa(false)
        .pool_capacity(1);
    let built = Builder::new()
        .configure(config)
        .syntax(syntax::Config::new().nest_limit(MAX_NESTING))
        .build(pattern);
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
