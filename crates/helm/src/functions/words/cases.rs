//! `snake_case`, `kebab-case` and `CamelCase`.

use std::sync::{
    LazyLock,
    atomic::{AtomicU8, Ordering},
};

use regex::Regex;

use super::{lower, upper};
use go::bytes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Number,
    /// Capitals, or a capital and the following small letters.
    Capital,
    Letters,
    Connector,
    Punctuation,
    Other,
    End,
}

static PUNCTUATION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A\p{P}").ok());
static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A\p{L}").ok());

/// The known classes of characters: a search by an expression is slow.
type Known = [AtomicU8; 0x11_0000];

static KNOWN_PUNCTUATION: Known = [const { AtomicU8::new(0) }; 0x11_0000];
static KNOWN_LETTERS: Known = [const { AtomicU8::new(0) }; 0x11_0000];

fn matches(regex: &Option<Regex>, known: &Known, c: char) -> bool {
    const YES: u8 = 1;
    const NO: u8 = 2;
    let known = known.get(u32::from(c) as usize);
    match known.map(|known| known.load(Ordering::Relaxed)) {
        Some(YES) => return true,
        Some(NO) => return false,
        _ => {}
    }
    let mut buffer = [0; 4];
    let fits = regex
        .as_ref()
        .is_some_and(|regex| regex.is_match(c.encode_utf8(&mut buffer)));
    if let Some(known) = known {
        known.store(if fits { YES } else { NO }, Ordering::Relaxed);
    }
    fits
}

fn is_invalid(c: char) -> bool {
    c == char::REPLACEMENT_CHARACTER || bytes::invalid_byte(c).is_some()
}

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || c.is_whitespace()
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_punctuation() && !"$+<=>^`|~".contains(c)
    } else {
        matches(&PUNCTUATION, &KNOWN_PUNCTUATION, c)
    }
}

/// Returns true for letters of alphabetic scripts; common Chinese characters are none.
fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    let ideograph =
        matches!(c, '\u{4E00}'..='\u{9FCC}' | '\u{3400}'..='\u{4D85}' | '\u{20000}'..='\u{2B81D}');
    !ideograph && matches(&LETTER, &KNOWN_LETTERS, c)
}

fn is_small(c: char) -> bool {
    is_letter(c) && !c.is_uppercase()
}

/// Returns the characters of a string with their ends; invalid bytes belong to the next character.
fn characters(text: &str) -> impl Iterator<Item = (char, usize)> {
    let valid = text.char_indices().filter(|(_, c)| !is_invalid(*c));
    valid.map(|(at, c)| (c, at + c.len_utf8()))
}

fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    let mut length = 0;
    for (c, end) in characters(text) {
        if !belongs(c) {
            return length;
        }
        length = end;
    }
    text.len()
}

struct Words<'t> {
    tail: &'t str,
}

impl<'t> Words<'t> {
    fn take(&mut self) -> (Word, &'t str) {
        let (kind, length) = self.measure();
        let (word, tail) = self.tail.split_at(length);
        self.tail = tail;
        (kind, word)
    }

    fn run(&self, belongs: impl Fn(char) -> bool) -> usize {
        run(self.tail, belongs)
    }

    fn measure(&self) -> (Word, usize) {
        let Some((first, behind_first)) = characters(self.tail).next() else {
            return (Word::End, self.tail.len());
        };
        if is_connector(first) {
            (Word::Connector, self.run(is_connector))
        } else if is_punctuation(first) {
            (Word::Punctuation, self.run(is_punctuation))
        } else if first.is_uppercase() {
            (Word::Capital, self.capital(behind_first))
        } else if is_letter(first) {
            (Word::Letters, self.run(is_small))
        } else if first.is_numeric() {
            (Word::Number, self.run(char::is_numeric))
        } else {
            let known = |c: char| is_connector(c) || is_letter(c) || c.is_numeric() || is_punctuation(c);
            (Word::Other, self.run(|c| !known(c)))
        }
    }

    /// Returns the length of `HTTP` in `HTTPServer`, of `Server` in `ServerName`.
    fn capital(&self, behind_first: usize) -> usize {
        let capitals = self.run(char::is_uppercase);
        let (several, rest) = self.tail.split_at(capitals);
        let Some((next, _)) = characters(rest).next() else {
            return capitals;
        };
        if capitals == behind_first {
            return capitals + run(rest, is_small);
        }
        if !is_letter(next) {
            return capitals;
        }
        let ends: Vec<usize> = characters(several).map(|(_, end)| end).collect();
        ends.iter().rev().nth(1).copied().unwrap_or(capitals)
    }

    /// Writes consecutive letters and digits, and returns the next word.
    fn alphanumerics(&mut self, mut next: (Word, &'t str), out: &mut String) -> (Word, &'t str) {
        while matches!(next.0, Word::Letters | Word::Number) {
            out.push_str(next.1);
            next = self.take();
        }
        next
    }
}

fn separate(word: Word) -> bool {
    !matches!(word, Word::Connector | Word::Punctuation)
}

/// Joins the words of a string in lower case with a connector.
pub(super) fn joined(full: &str, connector: char) -> String {
    let mut out = String::with_capacity(full.len() + 8);
    let mut words = Words { tail: full };
    let mut next = words.take();
    while !words.tail.is_empty() {
        let before = next;
        if before.0 != Word::Connector {
            write(&mut out, before, connector);
        }
        next = words.take();
        match before.0 {
            Word::Connector => write(&mut out, before, connector),
            Word::Punctuation => {}
            Word::Number => {
                next = words.alphanumerics(next, &mut out);
                if next.0 != Word::End && separate(next.0) {
                    out.push(connector);
                }
            }
            _ if next.0 != Word::Number => {
                if separate(next.0) {
                    out.push(connector);
                }
            }
            _ if words.tail.is_empty() => {}
            _ => next = number(&mut words, next, connector, &mut out),
        }
    }
    write(&mut out, next, connector);
    out
}

/// A number belongs to the word before it unless small letters follow: `bld4_floor`, but `http_2xx`.
fn number<'t>(
    words: &mut Words<'t>,
    number: (Word, &'t str),
    connector: char,
    out: &mut String,
) -> (Word, &'t str) {
    let mut next = words.take();
    if next.0 != Word::Letters {
        out.push_str(number.1);
        if separate(next.0) {
            out.push(connector);
        }
        return next;
    }
    out.push(connector);
    out.push_str(number.1);
    next = words.alphanumerics(next, out);
    if next.0 != Word::End && separate(next.0) {
        out.push(connector);
    }
    next
}

fn write(out: &mut String, (kind, word): (Word, &str), connector: char) {
    if !matches!(kind, Word::Capital | Word::Connector) {
        out.push_str(word);
        return;
    }
    out.extend(
        word.chars()
            .map(|c| if is_connector(c) { connector } else { lower(c) })
            .map(|c| {
                if is_invalid(c) {
                    char::REPLACEMENT_CHARACTER
                } else {
                    c
                }
            }),
    );
}

/// Joins capitalized words without separators. Leading connectors are retained, and of several connectors all but the last.
pub(super) fn camel(full: &str) -> String {
    let mut out = String::with_capacity(full.len());
    let mut chars = full.chars().peekable();
    while let Some(c) = chars.next_if(|c| is_connector(*c)) {
        out.push(c);
        // quirk: the last connector of a string of connectors is repeated.
        if chars.peek().is_none() {
            out.push(c);
        }
    }
    let Some(first) = chars.next() else { return out };
    let mut capital = first.is_uppercase();
    let mut pending = upper(first);
    for c in chars {
        let mut next = c;
        if is_connector(pending) {
            if is_connector(c) {
                out.push(pending);
            } else {
                capital = c.is_uppercase();
                next = upper(c);
            }
        } else {
            if capital {
                if c.is_uppercase() {
                    next = lower(c);
                } else {
                    capital = false;
                }
            }
            out.push(pending);
        }
        pending = next;
    }
    out.push(pending);
    out
}
