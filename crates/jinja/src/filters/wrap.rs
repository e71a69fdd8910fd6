//! `wordwrap`, as Python's textwrap does it.

use std::collections::VecDeque;

use crate::{
    eval::context::Cx,
    exc::{R, raise, value_error},
    rt::ENTRY,
    text::lines as lines_of,
    value::{Value, args::Args},
};

#[derive(Debug, Clone, Copy)]
struct Style {
    width: usize,
    break_long_words: bool,
    break_on_hyphens: bool,
}

pub(super) fn wordwrap(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let names = ["width", "break_long_words", "wrapstring", "break_on_hyphens"];
    let args = args.bind("do_wordwrap", names, 0)?;
    let separator = args.optional_text(2)?.unwrap_or_else(|| "\n".into());
    if let Value::Undefined(why) = &value {
        return why.fail();
    }
    let Some(text) = value.as_str() else {
        return raise(
            "AttributeError",
            format!("'{}' object has no attribute 'splitlines'", value.type_name()),
        );
    };
    if text.is_empty() {
        return Ok(value);
    }
    args.get(0).map_or(Ok(&value), Value::defined)?;
    let Ok(width @ 1..) = usize::try_from(args.int(0, 79)?) else {
        return value_error(format!("invalid width {} (must be > 0)", args.int(0, 79)?));
    };
    let style = Style {
        width,
        break_long_words: args.flag(1, true)?,
        break_on_hyphens: args.flag(3, true)?,
    };
    // Each letter can become a line, and a part of a line is a list in between.
    let size = text.len().saturating_mul(separator.len().saturating_add(ENTRY));
    cx.rt.fits(size)?;
    cx.rt.alloc(size)?;
    cx.rt.step(text.len() as u64)?;
    let lines: Vec<String> = lines_of(text, false)
        .into_iter()
        .map(|line| wrapped(line, style).join(&*separator))
        .collect();
    cx.rt.text(lines.join(&*separator))
}

fn wrapped(line: &str, style: Style) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    let mut chunks = chunks(&letters, style.break_on_hyphens);
    let mut lines: Vec<String> = Vec::new();
    while !chunks.is_empty() {
        if !lines.is_empty() && chunks.front().is_some_and(|chunk| is_blank(chunk)) {
            chunks.pop_front();
        }
        let mut line: Vec<&[char]> = Vec::new();
        let mut length = 0;
        while let Some(chunk) = chunks.pop_front_if(|chunk| length + chunk.len() <= style.width) {
            length += chunk.len();
            line.push(chunk);
        }
        if let Some(chunk) = chunks.pop_front_if(|chunk| chunk.len() > style.width) {
            take_long(chunk, length, style, &mut line, &mut chunks);
        }
        if line.last().is_some_and(|chunk| is_blank(chunk)) {
            line.pop();
        }
        if !line.is_empty() {
            lines.push(line.into_iter().flatten().collect());
        }
    }
    lines
}

/// Puts a part of a word that is longer than a line where it fits.
fn take_long<'l>(
    chunk: &'l [char],
    length: usize,
    style: Style,
    line: &mut Vec<&'l [char]>,
    chunks: &mut VecDeque<&'l [char]>,
) {
    if !style.break_long_words {
        if line.is_empty() {
            line.push(chunk);
        } else {
            chunks.push_front(chunk);
        }
        return;
    }
    // A full line takes nothing of the word, but retains the space before it.
    let mut end = style.width - length;
    if style.break_on_hyphens {
        let hyphen = chunk.iter().take(end).rposition(|letter| *letter == '-');
        let has_word = |at: &usize| *at > 0 && chunk.iter().take(*at).any(|letter| *letter != '-');
        end = hyphen.filter(has_word).map_or(end, |at| at + 1);
    }
    let (part, rest) = chunk.split_at_checked(end).unwrap_or((chunk, &[]));
    line.push(part);
    if !rest.is_empty() {
        chunks.push_front(rest);
    }
}

/// Splits into words, the space between them, dashes between words, and parts of words that end with a hyphen. Only ASCII
/// has space: words contain no-break spaces.
fn chunks(letters: &[char], break_on_hyphens: bool) -> VecDeque<&[char]> {
    let text = Text(letters);
    let mut chunks = VecDeque::new();
    let mut start = 0;
    while start < letters.len() {
        let end = if text.is(start, is_space) {
            text.run(start, is_space)
        } else if break_on_hyphens {
            text.dashes(start).unwrap_or_else(|| text.word(start))
        } else {
            text.run(start, |letter| !is_space(letter))
        };
        chunks.extend(letters.get(start..end));
        start = end;
    }
    chunks
}

struct Text<'l>(&'l [char]);

impl Text<'_> {
    fn is(&self, at: usize, matches: impl Fn(char) -> bool) -> bool {
        self.0.get(at).copied().is_some_and(matches)
    }

    /// Returns true if the letter `back` letters before `at` matches.
    fn was(&self, at: usize, back: usize, matches: impl Fn(char) -> bool) -> bool {
        at.checked_sub(back).is_some_and(|at| self.is(at, matches))
    }

    /// Returns the end of the letters that match.
    fn run(&self, start: usize, matches: impl Fn(char) -> bool) -> usize {
        let rest = self.0.get(start..).unwrap_or_default();
        start + rest.iter().take_while(|letter| matches(**letter)).count()
    }

    /// Returns the end of two or more hyphens between words.
    fn dashes(&self, start: usize) -> Option<usize> {
        let end = self.run(start, |letter| letter == '-');
        let follows = self.was(start, 1, is_word_or_mark);
        (follows && end >= start + 2 && self.is(end, is_word)).then_some(end)
    }

    /// Returns the end of a word, or of its part with a hyphen.
    fn word(&self, start: usize) -> usize {
        let mut end = start + 1;
        while end < self.0.len() && !self.is(end, is_space) {
            if self.breaks_at(end) {
                return end + 1;
            }
            if self.dashes(end).is_some() {
                return end;
            }
            end += 1;
        }
        end
    }

    /// Returns true at a hyphen between two letters on each side, one of which may be another hyphen.
    fn breaks_at(&self, at: usize) -> bool {
        let hyphen = |letter| letter == '-';
        let pair = self.was(at, 2, is_letter) || self.was(at, 2, hyphen) && self.was(at, 3, is_letter);
        let next = self.is(at + 2, is_letter) || self.is(at + 2, hyphen) && self.is(at + 3, is_letter);
        self.is(at, hyphen) && self.was(at, 1, is_letter) && pair && self.is(at + 1, is_letter) && next
    }
}

fn is_space(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ')
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn is_letter(letter: char) -> bool {
    is_word(letter) && !letter.is_numeric()
}

fn is_word_or_mark(letter: char) -> bool {
    is_word(letter) || matches!(letter, '!' | '"' | '\'' | '&' | '.' | ',' | '?')
}

fn is_blank(chunk: &[char]) -> bool {
    chunk
        .iter()
        .all(|letter| letter.is_whitespace() || matches!(letter, '\u{1c}'..='\u{1f}'))
}
