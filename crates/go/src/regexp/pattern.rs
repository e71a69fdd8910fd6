//! Expressions that are only asked whether a string has a match: fast, and bounded in their memory, also while they are compiled.

use regex_automata::{
    meta::{Builder, Config, Regex},
    nfa::thompson::{self, Compiler, WhichCaptures},
    util::syntax,
};

use super::{RegexpError, to_rust};

/// Maximum size of a compiled pattern, in bytes.
const SIZE: usize = 1 << 20;
/// Minimum and maximum size of the lazy automaton of a pattern, in bytes. Searches for which it is too small do without.
const AUTOMATON: (usize, usize) = (16 << 10, 64 << 10);
/// Size from which a search counts four times: its worst case is rather the usual one, because the automaton is soon too small.
const LARGE: usize = 64 << 10;
/// Compiled bytes with which a byte of the string counts as one step.
const BYTES_OF_STEP: usize = 2 << 10;
/// Maximum memory of all patterns of a quota, in bytes. A thousand usual ones are within it.
const QUOTA: usize = 32 << 20;

/// A compiled expression in Go's syntax that tells if a string has a match, but not where.
///
/// ```
/// let pattern = go::regexp::Pattern::compile("^(data|stringData)$")?;
/// assert!(pattern.is_match("data") && !pattern.is_match("metadata"));
/// # Ok::<(), go::regexp::RegexpError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
    size: usize,
    automaton: usize,
}

impl Pattern {
    /// Compiles an expression. Fails with Go's error if Go refuses it, and if it is too large, parsed or compiled (over 1 MiB).
    pub fn compile(expression: &str) -> Result<Self, RegexpError> {
        let hir = syntax::parse(&to_rust(expression)?).map_err(|error| {
            let message = error.to_string();
            let last = message.lines().last().unwrap_or_default();
            RegexpError::Unicode(last.trim_start_matches("error: ").to_owned())
        })?;
        let config = thompson::Config::new()
            .nfa_size_limit(Some(SIZE))
            .which_captures(WhichCaptures::None);
        let nfa = Compiler::new().configure(config).build_from_hir(&hir);
        let size = nfa.map_err(|_| RegexpError::TooLarge)?.memory_usage();
        let (smallest, largest) = AUTOMATON;
        let automaton = size.saturating_mul(4).clamp(smallest, largest);
        let config = Config::new()
            .nfa_size_limit(Some(SIZE))
            .which_captures(WhichCaptures::None)
            .hybrid_cache_capacity(automaton);
        let regex = Builder::new().configure(config).build_from_hir(&hir);
        Ok(Self {
            regex: regex.map_err(|_| RegexpError::TooLarge)?,
            size,
            automaton,
        })
    }

    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Returns the steps of a budget as which a search in a string of a length counts: some nanoseconds each, 300 in the worst case.
    #[must_use]
    pub fn steps(&self, bytes: usize) -> u64 {
        let factor = if self.size >= LARGE { 4 } else { 1 };
        let of_byte = (self.size / BYTES_OF_STEP).max(1).saturating_mul(factor);
        bytes.saturating_add(1).saturating_mul(of_byte) as u64
    }

    /// Returns the memory of the compiled pattern and its automaton, in bytes.
    fn memory(&self) -> usize {
        self.regex.memory_usage().saturating_add(self.automaton)
    }
}

/// Compiles patterns that take at most 32 MiB together.
#[derive(Debug, Clone, Default)]
pub struct PatternQuota {
    used: usize,
}

impl PatternQuota {
    /// Compiles a further pattern. Fails as [`Pattern::compile`] does, and if the patterns take too much memory together.
    pub fn compile(&mut self, expression: &str) -> Result<Pattern, RegexpError> {
        if self.used >= QUOTA {
            return Err(RegexpError::TooMany);
        }
        let pattern = Pattern::compile(expression)?;
        self.used = self.used.saturating_add(pattern.memory());
        Ok(pattern)
    }
}

#[cfg(test)]
mod tests {
    use regex_automata::Input;

    use super::*;

    #[test]
    fn word_boundaries_are_of_ascii() {
        for (pattern, text, expected) in [
            (r"a\Bé", "aé", false),
            (r"\Ba", "éa", false),
            (r"é\Bé", "éé", true),
            (r"a\bé", "aé", true),
            (r"a\Bb", "ab", true),
        ] {
            let compiled = Pattern::compile(pattern).unwrap();
            assert_eq!(compiled.is_match(text), expected, "{pattern}");
        }
    }

    #[test]
    fn patterns_of_a_quota_are_bounded_together() {
        let mut quota = PatternQuota::default();
        for number in 0..1000 {
            quota.compile(&format!("^registry.io/app-{number}:.*$")).unwrap();
        }
        let mut quota = PatternQuota::default();
        let refused = (0..300).find_map(|number| quota.compile(&format!(r"\pL{{20}}x{number}")).err());
        assert_eq!(refused, Some(RegexpError::TooMany));
        let mut quota = PatternQuota::default();
        assert!(matches!(quota.compile("("), Err(RegexpError::Syntax { .. })));
        assert_eq!(quota.compile(r"\pL{1000}").map(drop), Err(RegexpError::TooLarge));
        assert!(quota.compile("a").is_ok());
    }

    #[test]
    fn searches_stay_in_the_memory_that_counts() {
        // Each of the last twenty letters has a part in the state of the automaton.
        let pattern = Pattern::compile("(?:a|b)*a(?:a|b){20}[c-z]").unwrap();
        let mut state = 1_u32;
        let text: String = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if state >> 31 == 0 { 'a' } else { 'b' }
        })
        .take(100_000)
        .collect();
        let searched = |regex: &Regex| {
            let mut cache = regex.create_cache();
            let found = regex.search_half_with(&mut cache, &Input::new(&text).earliest(true));
            assert!(found.is_none());
            cache.memory_usage()
        };
        assert!(searched(&pattern.regex) < pattern.memory());
        let unbounded = Regex::new("(?:a|b)*a(?:a|b){20}[c-z]").unwrap();
        assert!(searched(&unbounded) > 10 * pattern.memory());
    }

    #[test]
    fn steps_grow_with_the_pattern() {
        let steps = |pattern: &str| Pattern::compile(pattern).unwrap().steps(99);
        assert_eq!(steps("^(data|stringData)$"), 100);
        let large = steps(r"\pL{20}x");
        assert!((50_000..100_000).contains(&large), "{large}");
    }
}
