//! Regular expressions of projects, which are kept together.

use go::regexp::to_rust;
use objects::jsonpath::bounded_regex;
use regex::{Regex, RegexBuilder};

/// Maximum size of all compiled expressions of a list, in bytes. A thousand usual ones are within it.
const MAX_BYTES: usize = 16 << 20;
/// Sizes to which an expression is counted, in bytes.
const SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Compiles the regular expressions of a list.
#[derive(Debug)]
pub(crate) struct Patterns {
    left: usize,
}

impl Default for Patterns {
    fn default() -> Self {
        Self { left: MAX_BYTES }
    }
}

impl Patterns {
    /// Compiles an expression in Go's syntax. Fails if it is invalid or larger than 1 MiB when it is compiled, and if all together are too large.
    pub(crate) fn compile(&mut self, pattern: &str) -> Result<Regex, String> {
        let translated = to_rust(pattern).map_err(|why| why.to_string())?;
        for size in SIZES {
            if size > self.left {
                return Err(format!(
                    "all regular expressions of the list have more than {MAX_BYTES} bytes when they are compiled: use fewer or simpler ones"
                ));
            }
            if let Ok(regex) = RegexBuilder::new(&translated).size_limit(size).build() {
                self.left -= size;
                return Ok(regex);
            }
        }
        bounded_regex(pattern).map_err(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
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
            let compiled = Patterns::default().compile(pattern).unwrap();
            assert_eq!(compiled.is_match(text), expected, "{pattern}");
            assert_eq!(
                bounded_regex(pattern).unwrap().is_match(text),
                expected,
                "{pattern}"
            );
        }
    }

    #[test]
    fn expressions_of_a_list_are_bounded_together() {
        let mut patterns = Patterns::default();
        for number in 0..1000 {
            patterns
                .compile(&format!("^registry.io/app-{number}:.*$"))
                .unwrap();
        }
        let mut patterns = Patterns::default();
        let refused = (0..300).find_map(|number| patterns.compile(&format!(r"\pL{{20}}x{number}")).err());
        assert!(refused.unwrap().contains("16777216 bytes"));
        let mut patterns = Patterns::default();
        assert!(patterns.compile("(").is_err());
        assert!(patterns.compile(r"\pL{1000}").is_err());
        assert!(patterns.compile("a").is_ok());
    }
}
