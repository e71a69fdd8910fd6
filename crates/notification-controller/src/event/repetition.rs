//! Compares the messages of events: durations and counts of attempts grow with each repetition of the same news. Pure.

use std::{borrow::Cow, iter::Peekable};

/// Replaces a part of a message that differs between repetitions. Not longer than any such part.
const MARK: &str = "\0";
const TIME_UNITS: [&str; 14] = [
    "millisecond",
    "milliseconds",
    "ms",
    "second",
    "seconds",
    "sec",
    "secs",
    "s",
    "minute",
    "minutes",
    "min",
    "mins",
    "hour",
    "hours",
];
/// Names of counts of attempts, after a number and a space.
const COUNTED: [&str; 8] = [
    "time", "times", "attempt", "attempts", "retry", "retries", "try", "tries",
];
/// Nouns before the number that they name.
const NOUNS: [&str; 3] = ["attempt", "attempts", "retries"];
/// Words before the number that they name, unless they are verbs: `retry 3 of 5`, but not `retry 3 objects`.
const VERBS: [&str; 2] = ["retry", "try"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// Every character counts, as in the original.
    Exact,
    /// Durations and counts of attempts don't count.
    Lasting,
}

impl Comparison {
    /// Returns the compared part of a message, in linear time. It is never longer than the message.
    pub(crate) fn of(self, message: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => Cow::Borrowed(message),
            Self::Lasting => Cow::Owned(lasting(message)),
        }
    }
}

/// A run of characters without separators: `text`, the punctuation at its end, and the separator after it.
#[derive(Debug, Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    punctuation: &'a str,
    separator: &'a str,
}

impl<'a> Word<'a> {
    fn new(piece: &'a str) -> Self {
        let (word, separator) = piece.split_at(piece.trim_end_matches(is_separator).len());
        let text = word.trim_end_matches(['.', ':', ';', '!', '?']);
        Self {
            text,
            punctuation: word.strip_prefix(text).unwrap_or_default(),
            separator,
        }
    }

    /// Returns true if a single space is between the word and the next.
    fn is_before_space(self) -> bool {
        self.punctuation.is_empty() && self.separator == " "
    }

    fn is_one_of(self, names: &[&str]) -> bool {
        names.iter().any(|name| self.text.eq_ignore_ascii_case(name))
    }
}

/// Returns true for the end of a word. A dash, a slash or a colon is part of a word: names, paths and tags of images contain them.
fn is_separator(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(
            letter,
            '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | ',' | '=' | '"' | '\'' | '`'
        )
}

/// Replaces durations (`1m30.5s`, `90 seconds`) and counts of attempts (`attempt 3`, `3/5 retries`, `3 times`).
fn lasting(message: &str) -> String {
    let mut lasting = String::with_capacity(message.len());
    let mut words = message.split_inclusive(is_separator).map(Word::new).peekable();
    let mut naming = Naming::Nothing;
    while let Some(word) = words.next() {
        let number = is_count(word.text);
        if number && let Some(unit) = unit_after(word, &mut words) {
            lasting.extend([MARK, unit.punctuation, unit.separator]);
            naming = Naming::Nothing;
            continue;
        }
        let counts = match naming {
            Naming::Nothing => false,
            Naming::Number => number,
            Naming::NumberOrObjects => {
                number && (!word.is_before_space() || words.peek().is_none_or(|next| next.is_one_of(&["of"])))
            }
        };
        let text = if counts || is_duration(word.text) {
            MARK
        } else {
            word.text
        };
        lasting.extend([text, word.punctuation, word.separator]);
        naming = naming.after(word);
    }
    lasting
}

#[derive(Debug, Clone, Copy)]
enum Naming {
    Nothing,
    Number,
    NumberOrObjects,
}

impl Naming {
    /// Returns the meaning of a number after `word`: `attempt 3`, `attempt: 3`, `attempt=3` and `attempt (3)` are the same.
    fn after(self, word: Word<'_>) -> Self {
        let is_joined = matches!(word.punctuation, "" | ":") && matches!(word.separator, " " | "=" | "(");
        match word {
            _ if !is_joined => Self::Nothing,
            _ if word.is_one_of(&NOUNS) => Self::Number,
            _ if word.is_one_of(&VERBS) && word.is_before_space() => Self::NumberOrObjects,
            _ if word.is_one_of(&VERBS) => Self::Number,
            _ if word.text.is_empty() && word.punctuation.is_empty() => self,
            _ => Self::Nothing,
        }
    }
}

/// Consumes the unit that follows a number, if there is one.
fn unit_after<'a>(
    number: Word<'a>,
    words: &mut Peekable<impl Iterator<Item = Word<'a>>>,
) -> Option<Word<'a>> {
    let time = |unit: &Word<'a>| unit.is_one_of(&TIME_UNITS) || unit.is_one_of(&COUNTED);
    words.next_if(|unit| number.is_before_space() && time(unit))
}

/// Returns true for `3`, `3.5`, `#3` and `3/5`.
fn is_count(text: &str) -> bool {
    let text = text.strip_prefix('#').unwrap_or(text);
    let (count, limit) = text.split_once('/').unwrap_or((text, "0"));
    is_number(count) && is_number(limit)
}

fn is_number(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && digits(fraction)
}

/// Returns true for a duration as Go and Rust print measured ones: it ends in seconds or a fraction of them. `5m` and `100m`
/// may be quantities.
fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_suffix('s') else {
        return false;
    };
    if let Some(number) = ["m", "n", "u", "µ", "μ"]
        .iter()
        .find_map(|unit| rest.strip_suffix(unit))
    {
        return is_number(number);
    }
    // Hours and minutes are integers, seconds may have a fraction.
    let integer = |text: &str| is_number(text) && !text.contains('.');
    let after = |text: &str, unit: char| match text.split_once(unit) {
        Some((count, rest)) => integer(count).then(|| rest.to_owned()),
        None => Some(text.to_owned()),
    };
    after(rest, 'h')
        .and_then(|rest| after(&rest, 'm'))
        .is_some_and(|seconds| is_number(&seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_repetition(one: &str, other: &str) -> bool {
        Comparison::Lasting.of(one) == Comparison::Lasting.of(other)
    }

    #[test]
    fn durations_do_not_make_a_message_new() {
        for (one, other) in [
            (
                "Reconciliation finished in 1.234s, next run in 10m0s",
                "Reconciliation finished in 987.6ms, next run in 1h0m0s",
            ),
            ("timed out after (59s)", "timed out after (1m0.5s)"),
            ("took 12µs.", "took 350ns."),
            ("elapsed=3s: no answer", "elapsed=14us: no answer"),
            ("\"2s\" late", "\"31s\" late"),
            ("waited 1 second, gave up", "waited 59.5 seconds, gave up"),
            ("waited 59 Seconds", "waited 1 minute"),
        ] {
            assert!(is_repetition(one, other), "{one} / {other}");
            assert_ne!(Comparison::Exact.of(one), Comparison::Exact.of(other));
        }
    }

    #[test]
    fn counts_of_attempts_do_not_make_a_message_new() {
        for (one, other) in [
            ("failed 1 time", "failed 12 times"),
            ("attempt 1 failed", "attempt 2 failed"),
            ("Attempt #1/5: refused", "Attempt #2/5: refused"),
            ("refused (retry 1 of 5)", "refused (retry 4 of 5)"),
            ("refused, retries: 1", "refused, retries: 31"),
            ("attempts=3", "attempts=4"),
            ("retry 3", "retry 4"),
            ("try: 3 failed", "try: 4 failed"),
            ("gave up after 3/5 retries", "gave up after 4/5 retries"),
        ] {
            assert!(is_repetition(one, other), "{one} / {other}");
        }
    }

    #[test]
    fn all_other_numbers_make_a_message_new() {
        for (one, other) in [
            ("event 1", "event 2"),
            ("1 of 3 replicas are ready", "2 of 3 replicas are ready"),
            ("stored artifact for v1.2.3s", "stored artifact for v1.2.4s"),
            ("image shop:10s", "image shop:20s"),
            ("job shop-10s failed", "job shop-20s failed"),
            ("path a/10s", "path a/20s"),
            ("cpu 100m", "cpu 200m"),
            ("memory 10 m", "memory 20 m"),
            ("3, times", "4, times"),
            ("retry at 10:30", "retry at 10:31"),
            ("retry 0x1", "retry 0x2"),
            ("will retry 3 objects", "will retry 4 objects"),
            ("will retry. 3 objects", "will retry. 4 objects"),
            ("no attempts, 3 objects", "no attempts, 4 objects"),
            ("user -5s", "user -6s"),
            ("code 1e3s", "code 1e4s"),
            ("1.5h0s", "2.5h0s"),
            ("é1s", "é2s"),
            ("took 3s", "took long"),
            ("Artifact a", "Artifact a "),
        ] {
            assert!(!is_repetition(one, other), "{one} / {other}");
        }
    }

    #[test]
    fn message_without_changing_parts_is_compared_whole() {
        for message in [
            "",
            " ",
            "..",
            "stored artifact: 'main@sha1:0'!",
            "s",
            "ms",
            "h1m2s",
            "a  b\n\nc",
            "3",
            "é…",
        ] {
            assert_eq!(Comparison::Lasting.of(message), message);
        }
    }
}
