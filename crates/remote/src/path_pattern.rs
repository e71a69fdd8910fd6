//! Glob patterns for the paths of repositories.

use std::collections::HashMap;

/// Maximum length of a path, in bytes. Only `**` matches longer ones.
const MAX_PATH_BYTES: usize = 8 << 10;
/// Maximum sum, over the patterns of one search, of the length of the pattern times the length of the path. Ten thousand patterns of 100
/// bytes are within it for a path of 60 bytes.
const MAX_SEARCH: usize = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// Any bytes.
    Anything,
    /// Any bytes but slashes.
    InSegment,
    /// One byte, but no slash.
    One,
    Byte(u8),
}

/// The paths have too many or too long patterns to be matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the patterns of paths are too long, or too many, for a path of {path} bytes: all patterns times the path may have {MAX_SEARCH} bytes"
)]
pub(crate) struct TooManyPatterns {
    path: usize,
}

/// Charges the patterns that one path is compared with, before they are.
#[derive(Debug, Default)]
pub(crate) struct PatternSearch {
    charged: usize,
}

impl PatternSearch {
    pub(crate) fn is_match(&mut self, pattern: &[u8], path: &[u8]) -> Result<bool, TooManyPatterns> {
        let product = pattern.len().saturating_mul(path.len().max(1));
        self.charged = self.charged.saturating_add(product);
        if self.charged > MAX_SEARCH {
            return Err(TooManyPatterns { path: path.len() });
        }
        Ok(is_path_match(pattern, path))
    }
}

/// Matches a path against a glob pattern: `*` matches within one path segment, `**` across segments, `?` one character.
///
/// All positions of the pattern at which the path may be are followed at once, in time of the pattern times the path, divided by 64.
#[must_use]
pub fn is_path_match(pattern: &[u8], path: &[u8]) -> bool {
    let Some(tokens) = tokens(pattern, path.len()) else {
        return false;
    };
    if tokens == [Token::Anything] {
        return true;
    }
    path.len() <= MAX_PATH_BYTES && Positions::new(&tokens).follow(path)
}

/// Parses a pattern; `None` if it needs more than `most` bytes of a path. Adjacent stars are one.
fn tokens(pattern: &[u8], most: usize) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut needed = 0;
    let mut rest = pattern;
    while let [first, tail @ ..] = rest {
        if *first == b'*' {
            let stars = rest.iter().take_while(|byte| **byte == b'*').count();
            tokens.push(if stars > 1 {
                Token::Anything
            } else {
                Token::InSegment
            });
            rest = rest.get(stars..).unwrap_or_default();
            continue;
        }
        needed += 1;
        if needed > most {
            return None;
        }
        tokens.push(if *first == b'?' {
            Token::One
        } else {
            Token::Byte(*first)
        });
        rest = tail;
    }
    Some(tokens)
}

const WORD: usize = u64::BITS as usize;

/// One bit for each token that the path may be before, and one for the end.
struct Positions<'a> {
    tokens: &'a [Token],
    words: usize,
    stars: Vec<u64>,
    bits: Vec<u64>,
}

/// The tokens that consume a byte, and the stars that stay at it.
struct Steps {
    consume: Vec<u64>,
    stay: Vec<u64>,
}

fn set(bits: &mut [u64], at: usize) {
    if let Some(word) = bits.get_mut(at / WORD) {
        *word |= 1 << (at % WORD);
    }
}

impl<'a> Positions<'a> {
    fn new(tokens: &'a [Token]) -> Self {
        let words = tokens.len() / WORD + 1;
        let mut stars = vec![0; words];
        for (at, token) in tokens.iter().enumerate() {
            if matches!(token, Token::Anything | Token::InSegment) {
                set(&mut stars, at);
            }
        }
        let mut bits = vec![0; words];
        set(&mut bits, 0);
        Self {
            tokens,
            words,
            stars,
            bits,
        }
    }

    fn steps(&self, byte: u8) -> Steps {
        let mut steps = Steps {
            consume: vec![0; self.words],
            stay: vec![0; self.words],
        };
        for (at, token) in self.tokens.iter().enumerate() {
            match token {
                Token::Anything => set(&mut steps.stay, at),
                Token::InSegment if byte != b'/' => set(&mut steps.stay, at),
                Token::One if byte != b'/' => set(&mut steps.consume, at),
                Token::Byte(wanted) if *wanted == byte => set(&mut steps.consume, at),
                _ => {}
            }
        }
        steps
    }

    /// Moves past stars, which may match nothing. No two stars are adjacent, so once is enough.
    fn pass_stars(&mut self) {
        let mut carry = 0;
        for (bits, stars) in self.bits.iter_mut().zip(&self.stars) {
            let moved = *bits & stars;
            *bits |= moved << 1 | carry;
            carry = moved >> (WORD - 1);
        }
    }

    fn follow(mut self, path: &[u8]) -> bool {
        let mut known: HashMap<u8, Steps> = HashMap::new();
        self.pass_stars();
        for byte in path {
            let steps = known.entry(*byte).or_insert_with(|| self.steps(*byte));
            let mut carry = 0;
            let mut any = 0;
            for (bits, (consume, stay)) in self.bits.iter_mut().zip(steps.consume.iter().zip(&steps.stay)) {
                let moved = *bits & consume;
                *bits = *bits & stay | moved << 1 | carry;
                carry = moved >> (WORD - 1);
                any |= *bits;
            }
            if any == 0 {
                return false;
            }
            self.pass_stars();
        }
        let end = self.tokens.len();
        let word = self.bits.get(end / WORD).copied().unwrap_or_default();
        word >> (end % WORD) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use testkit::fuzz::{self, Random};

    use super::*;

    #[test]
    fn stars_match_in_segments_and_double_stars_across_them() {
        for (pattern, path, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "a", true),
            ("*", "a/b", false),
            ("**", "a/b", true),
            ("***", "a/b", true),
            ("**/b", "a/x/b", true),
            ("**/b", "b", false),
            ("a/*", "a/b", true),
            ("a/*", "a/b/c", false),
            ("a/**", "a/b/c", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("*a*b", "xayb", true),
            ("*a*b", "xay/b", false),
            ("**a*b", "x/a/ayb", true),
        ] {
            let found = is_path_match(pattern.as_bytes(), path.as_bytes());
            assert_eq!(found, expected, "{pattern} {path}");
        }
    }

    #[test]
    fn long_patterns_with_many_stars_need_neither_stack_nor_time() {
        let path = "a".repeat(500);
        for (pattern, expected) in [
            (format!("{}x", "**".repeat(400_000)), false),
            (format!("{}a", "**".repeat(400_000)), true),
            (format!("{}**b", "**a".repeat(100)), false),
            (format!("{}b", "*a*?".repeat(100)), false),
            (format!("{}**", "**a".repeat(500)), true),
            ("a".repeat(1_000_000), false),
        ] {
            assert_eq!(is_path_match(pattern.as_bytes(), path.as_bytes()), expected);
        }
        let longest = "a".repeat(MAX_PATH_BYTES);
        assert!(!is_path_match(
            "**a".repeat(MAX_PATH_BYTES).as_bytes(),
            format!("{longest}b").as_bytes()
        ));
        assert!(!is_path_match(
            format!("{}b", "**a".repeat(MAX_PATH_BYTES - 1)).as_bytes(),
            longest.as_bytes()
        ));
        assert!(is_path_match(b"**", "a".repeat(MAX_PATH_BYTES + 1).as_bytes()));
    }

    #[test]
    fn patterns_of_a_search_are_charged_together() {
        let (pattern, path) = ("*a".repeat(500), "a".repeat(1000));
        let mut search = PatternSearch::default();
        let fits = MAX_SEARCH / (pattern.len() * path.len());
        for _ in 0..fits {
            assert_eq!(search.is_match(pattern.as_bytes(), path.as_bytes()), Ok(true));
        }
        let error = search.is_match(pattern.as_bytes(), path.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("a path of 1000 bytes"), "{error}");
    }

    /// Follows the definition, by trying each length of each star.
    fn by_definition(pattern: &[u8], path: &[u8]) -> bool {
        match (pattern, path) {
            ([], path) => path.is_empty(),
            ([b'*', b'*', rest @ ..], _) => (0..=path.len()).any(|at| by_definition(rest, &path[at..])),
            ([b'*', rest @ ..], _) => {
                let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
                (0..=end).any(|at| by_definition(rest, &path[at..]))
            }
            ([first, rest @ ..], [byte, tail @ ..]) => {
                (byte == first || (*first == b'?' && *byte != b'/')) && by_definition(rest, tail)
            }
            _ => false,
        }
    }

    fn word(random: &mut Random, pieces: &[&str], most: usize) -> String {
        let count = random.below(most + 1);
        (0..count).map(|_| *random.pick(pieces)).collect()
    }

    #[test]
    fn fuzz_path_patterns_match_as_defined_and_long_ones_end() {
        fuzz::run("path patterns", |random| {
            let pattern = word(random, &["*", "**", "?", "/", "a", "b"], 7);
            let path = word(random, &["/", "a", "b"], 7);
            random.note("pattern", &pattern);
            random.note("path", &path);
            let expected = by_definition(pattern.as_bytes(), path.as_bytes());
            assert_eq!(is_path_match(pattern.as_bytes(), path.as_bytes()), expected);
            let pattern = pattern.repeat(1 + random.below(200));
            let path = path.repeat(1 + random.below(100));
            let _ = PatternSearch::default().is_match(pattern.as_bytes(), path.as_bytes());
        });
    }
}
