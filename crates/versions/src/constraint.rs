//! Ranges of versions.

use std::{cmp::Ordering, sync::LazyLock};

use regex::Regex;

use super::{Version, VersionError};

/// Maximum length of a range in bytes.
const MAX_BYTES: usize = 2048;
/// Maximum number of comparisons in a range.
const MAX_COMPARISONS: usize = 128;

/// A range of versions, such as `>=1.2 <2 || ~3.1`: comparisons that must all hold, and `||` between alternatives. Operators
/// are `=`, `!=`, `>`, `<`, `>=`, `<=`, `~`, `^` and hyphens between two versions; numbers can be missing, `x` or `*`. A
/// pre-release matches only alternatives that have a pre-release themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    alternatives: Vec<Vec<Comparison>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Comparison {
    operator: String,
    version: Version,
    open: Open,
}

/// The first number of a version that is missing, `x` or `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Major,
    Minor,
    Patch,
    Nothing,
}

struct Grammar {
    /// `1.2 - 1.4`
    hyphen: Regex,
    alternative: Regex,
    comparison: Regex,
}

static GRAMMAR: LazyLock<Option<Grammar>> = LazyLock::new(|| {
    let part = r"[0-9xX*|]+";
    let words = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*";
    let version = format!(r"v?{part}(?:\.{part})?(?:\.{part})?(?:-{words})?(?:\+{words})?");
    let operator = r"(?:=||!=|>|<|>=|=>|<=|=<|~|~>|\^)";
    let space = r"[\t\n\f\r ]";
    let one = format!("{operator}{space}*{version}");
    Some(Grammar {
        hyphen: Regex::new(&format!(
            "{space}*({version}){space}+-{space}+({version}){space}*"
        ))
        .ok()?,
        alternative: Regex::new(&format!(
            r"\A{space}*{one}{space}*(?:(?:{space}+|,{space}*){one}{space}*)*\z"
        ))
        .ok()?,
        comparison: Regex::new(&format!(
            r"({operator}){space}*(v?({part})(\.{part})?(\.{part})?(-{words})?(?:\+{words})?)"
        ))
        .ok()?,
    })
});

impl Constraint {
    /// Parses a range of up to 2048 bytes and 128 comparisons.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        within("bytes", text.len(), MAX_BYTES)?;
        if let Some(only) = single(text) {
            return Ok(Self {
                alternatives: vec![vec![only?]],
            });
        }
        Self::by_grammar(text)
    }

    fn by_grammar(text: &str) -> Result<Self, VersionError> {
        let grammar = GRAMMAR.as_ref().ok_or(VersionError::Constraint)?;
        let text = grammar.hyphen.replace_all(text, ">= $1, <= $2 ");
        let mut alternatives = Vec::new();
        let mut comparisons_in_all = 0;
        for alternative in text.split("||") {
            if !grammar.alternative.is_match(alternative) {
                return Err(VersionError::ImproperConstraint(alternative.to_owned()));
            }
            let count = grammar.comparison.find_iter(alternative).count();
            comparisons_in_all += count;
            within("comparisons", comparisons_in_all, MAX_COMPARISONS)?;
            let comparisons = grammar.comparison.captures_iter(alternative).map(|captures| {
                let group = |index: usize| captures.get(index).map_or("", |found| found.as_str());
                comparison(group(1), [group(3), group(4), group(5)], group(6), group(2))
            });
            alternatives.push(comparisons.collect::<Result<Vec<_>, VersionError>>()?);
        }
        Ok(Self { alternatives })
    }

    /// Returns the steps that a comparison with one version takes at most, to be charged by those who compare it with many: one for each
    /// comparison, and one for 16 bytes of their pre-releases.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let all = self.alternatives.iter().flatten();
        all.map(|one| 1 + one.version.pre.len() as u64 / 16).sum()
    }

    #[must_use]
    pub fn matches(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|all| {
            let has_pre = || all.iter().any(|one| !one.version.pre.is_empty());
            (version.pre.is_empty() || has_pre()) && all.iter().all(|one| one.matches(version))
        })
    }
}

fn within(unit: &'static str, found: usize, limit: usize) -> Result<(), VersionError> {
    if found > limit {
        return Err(VersionError::TooLong { unit, found, limit });
    }
    Ok(())
}

/// Parses a range of only one comparison. Most have one, and compiling the grammar takes longer than rendering a small
/// chart.
fn single(text: &str) -> Option<Result<Comparison, VersionError>> {
    const OPERATORS: [&str; 12] = ["", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^"];
    const SPACES: [char; 5] = ['\t', '\n', '\x0C', '\r', ' '];
    let text = text.trim_matches(SPACES);
    let rest = text.trim_start_matches(['=', '!', '<', '>', '~', '^']);
    let operator = text.get(..text.len() - rest.len())?;
    let whole = rest.trim_start_matches(SPACES);
    let (numbers, pre) = whole.split_at(whole.find('-').unwrap_or(whole.len()));
    let mut parts = [""; 3];
    let mut rest = numbers.strip_prefix('v').unwrap_or(numbers);
    for (index, part) in parts.iter_mut().enumerate() {
        let dot = usize::from(index > 0 && rest.starts_with('.'));
        let end = rest.get(dot..)?.find('.').map_or(rest.len(), |at| at + dot);
        (*part, rest) = rest.split_at_checked(end)?;
        let number = part.get(dot..)?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if !(is_number || matches!(number, "x" | "X" | "*") || (index > 0 && part.is_empty())) {
            return None;
        }
    }
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let has_words = pre.is_empty() || pre.get(1..)?.split('.').all(is_word);
    let is_single = OPERATORS.contains(&operator) && rest.is_empty() && has_words;
    is_single.then(|| comparison(operator, parts, pre, whole))
}

fn is_open(part: &str) -> bool {
    matches!(part.trim_start_matches('.'), "" | "x" | "X" | "*")
}

fn comparison(
    operator: &str,
    [major, minor, patch]: [&str; 3],
    pre: &str,
    whole: &str,
) -> Result<Comparison, VersionError> {
    let (text, open) = if is_open(major) {
        (format!("0.0.0{pre}"), Open::Major)
    } else if is_open(minor) {
        (format!("{major}.0.0{pre}"), Open::Minor)
    } else if is_open(patch) {
        (format!("{major}{minor}.0{pre}"), Open::Patch)
    } else {
        (whole.to_owned(), Open::Nothing)
    };
    let version = Version::parse(&text).map_err(|_| VersionError::Constraint)?;
    Ok(Comparison {
        operator: operator.to_owned(),
        version,
        open,
    })
}

impl Comparison {
    fn matches(&self, v: &Version) -> bool {
        let c = &self.version;
        let order = v.precedence(c);
        match self.operator.as_str() {
            "" | "=" if self.open == Open::Nothing => order == Ordering::Equal,
            "" | "=" | "~" | "~>" => self.tilde(v, order),
            "!=" => self.differs(v, order),
            ">" => match self.open {
                Open::Minor => v.major > c.major,
                Open::Patch => (v.major, v.minor) > (c.major, c.minor),
                Open::Major | Open::Nothing => order.is_gt(),
            },
            ">=" | "=>" => order.is_ge(),
            "<" => order.is_lt(),
            "<=" | "=<" => match self.open {
                Open::Nothing => order.is_le(),
                Open::Minor => v.major <= c.major,
                Open::Major | Open::Patch => (v.major, v.minor) <= (c.major, c.minor),
            },
            _ => self.caret(v, order),
        }
    }

    /// Compares with `~`: the same minor version, or any if the minor version is open.
    fn tilde(&self, v: &Version, order: Ordering) -> bool {
        let c = &self.version;
        let zero = (c.major, c.minor, c.patch) == (0, 0, 0);
        if zero && matches!(self.open, Open::Major | Open::Nothing) {
            return order.is_ge();
        }
        order.is_ge() && v.major == c.major && (v.minor == c.minor || self.open == Open::Minor)
    }

    fn differs(&self, v: &Version, order: Ordering) -> bool {
        let c = &self.version;
        match self.open {
            Open::Nothing => order.is_ne(),
            Open::Minor => v.major != c.major,
            Open::Patch if (v.major, v.minor) == (c.major, c.minor) => v.pre != c.pre,
            Open::Patch => true,
            Open::Major => (v.major, v.minor, v.patch) != (0, 0, 0) || order.is_ne(),
        }
    }

    /// Compares with `^`: all numbers up to the first that is not zero are the same.
    fn caret(&self, v: &Version, order: Ordering) -> bool {
        let c = &self.version;
        if order.is_lt() {
            return false;
        }
        if c.major > 0 || self.open == Open::Minor {
            return v.major == c.major;
        }
        if v.major > 0 {
            return false;
        }
        if c.minor > 0 || self.open == Open::Patch {
            return v.minor == c.minor;
        }
        v.minor == 0 && v.patch == c.patch
    }
}

#[cfg(test)]
mod tests {
    use testkit::fuzz;

    use super::*;

    #[test]
    fn single_parses_comparisons_as_the_grammar_does() {
        let pieces = [
            "", "=", ">", "!", "~", "^", " ", "v", "1", "02", ".", "x", "*", "-", "a", "+", "|", ",",
            "\u{a0}",
        ];
        let mut texts = vec![String::new()];
        let mut found = 0;
        for _ in 0..4 {
            texts = texts
                .iter()
                .flat_map(|text| pieces.map(|piece| format!("{text}{piece}")))
                .collect();
            texts.sort();
            texts.dedup();
        }
        let more = [
            ">=1.21.0-0",
            " <= v1.2.3-a.4-b ",
            "~> 1.x",
            "^1.2.3-",
            "1.2.3.4",
            "=>99999999999999999999",
            "1.2-a..b",
        ];
        for text in texts.iter().map(String::as_str).chain(more) {
            if let Some(only) = single(text) {
                let only = only.map(|only| vec![vec![only]]);
                let expected = Constraint::by_grammar(text).map(|range| range.alternatives);
                assert_eq!(only, expected, "{text:?}");
                found += 1;
            }
        }
        assert!(found > 200, "{found}");
    }

    #[test]
    fn long_ranges_are_refused_and_the_steps_of_others_are_few() {
        let error = |text: &str| Constraint::parse(text).unwrap_err().to_string();
        let long = error(&">1 ".repeat(400_000));
        assert_eq!(
            long,
            "the range is too long: it has 1200000 bytes, and at most 2048 are allowed"
        );
        assert!(error(&"=".repeat(1_000_000)).contains("bytes"));
        for (text, found) in [(">1 ".repeat(129), 129), ("1||".repeat(200) + "1", 129)] {
            assert_eq!(
                error(&text),
                format!("the range is too long: it has {found} comparisons, and at most 128 are allowed")
            );
        }
        let most = Constraint::parse(&">1 ".repeat(128)).unwrap();
        assert_eq!(most.steps(), 128);
        let longest = Constraint::parse(&format!(">1.0.0-{}", "a".repeat(1000))).unwrap();
        assert_eq!(longest.steps(), 63);
        assert!(Constraint::parse(&format!("{}1", " ".repeat(2000))).is_ok());
        assert!(Version::parse(&format!("1.0.0-{}", "a".repeat(2000))).is_err());
    }

    #[test]
    fn fuzz_ranges_take_bounded_work() {
        const PIECES: &[&str] = &[
            "1",
            "0",
            "99999999999999999999",
            ".",
            "x",
            "*",
            "v",
            ">=",
            "<",
            "~",
            "^",
            "!=",
            "=",
            "||",
            ",",
            " ",
            " - ",
            "-",
            "a",
            "-rc.1",
            "+b",
            "\t",
            "é",
        ];
        fuzz::run("ranges at the limits", |random| {
            let piece = random.text(PIECES, 0..12);
            let text = piece.repeat(1 + random.below(2 * MAX_BYTES / piece.len().max(1)));
            let version = random.text(PIECES, 0..8).repeat(1 + random.below(100));
            random.note("range", &text);
            random.note("version", &version);
            let range = Constraint::parse(&text);
            assert!(text.len() <= MAX_BYTES || range.is_err());
            if let (Ok(range), Ok(version)) = (range, Version::parse(&version)) {
                let _ = range.matches(&version);
                assert!(range.steps() <= (MAX_COMPARISONS + MAX_BYTES / 16) as u64);
            }
        });
    }
}
