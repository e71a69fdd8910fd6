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

/// Splits into words, the space between them, and parts of words that end with a hyphen.
fn chunks(letters: &[char], break_on_hyphens: bool) -> VecDeque<&[char]> {
    let mut chunks = VecDeque::new();
    let letter_at = |index: Option<usize>| index.and_then(|index| letters.get(index).copied());
    let mut start = 0;
    for (index, letter) in letters.iter().enumerate().skip(1) {
        let previous = letter_at(index.checked_sub(1));
        let after_hyphen = break_on_hyphens
            && previous == Some('-')
            && letter.is_alphabetic()
            && letter_at(index.checked_sub(2)).is_some_and(char::is_alphabetic);
        let same_kind = previous.is_some_and(|previous| previous.is_whitespace() == letter.is_whitespace());
        if !same_kind || after_hyphen {
            chunks.extend(letters.get(start..index));
            start = index;
        }
    }
    chunks.extend(letters.get(start..).filter(|last| !last.is_empty()));
    chunks
}

fn is_blank(chunk: &[char]) -> bool {
    chunk.iter().all(|letter| letter.is_whitespace())
}
