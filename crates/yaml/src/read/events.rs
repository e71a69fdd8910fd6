//! From bytes to parser events: encoding, the characters that YAML allows, and errors with their position.

use std::borrow::Cow;

use libyaml_safer::{Event, EventData, Mark, ScalarStyle};
use tree::{Budget, Exceeded};

use super::{comments, parse::Parser, scan::Flavour};
use crate::{Error, Position, Problem};

/// Start of the message about a scalar without its end.
const STREAM_END: &str = "found unexpected end of stream";

/// A decoded document that the parser accepts.
pub(super) struct Text<'t> {
    text: Cow<'t, str>,
    /// True if the last line got a line break: the parser fails at a block scalar that ends without one.
    completed: bool,
    traits: Traits,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Traits {
    pub(super) tabs: bool,
    /// Breaks other than `\n`, or byte order marks.
    pub(super) odd: bool,
}

/// Decodes bytes to a string that the parser accepts.
pub(super) fn decode<'t>(bytes: &'t [u8], budget: &Budget) -> Result<Text<'t>, Error> {
    let limit = budget.limits().file_bytes;
    if bytes.len() as u64 > limit {
        return Err(Error::new(
            None,
            Exceeded::Limit {
                what: "bytes of one YAML text",
                limit,
            },
        ));
    }
    let text = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest)?,
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes)?,
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes)?,
        _ => utf8(bytes)?,
    };
    let traits = scan(&text)?;
    let completed = !text.ends_with('\n');
    Ok(Text {
        text: if completed { text + "\n" } else { text },
        completed,
        traits,
    })
}

/// Fails at characters that the parser refuses.
fn scan(text: &str) -> Result<Traits, Error> {
    let mut traits = Traits::default();
    let mut from = 0;
    while let Some((before, rest)) = special(text.as_bytes(), from).and_then(|at| text.split_at_checked(at)) {
        let Some(c) = rest.chars().next().filter(|c| allowed(*c)) else {
            let number = rest.chars().next().map_or(0, u32::from);
            return Err(Error::new(end_of(before), Problem::ControlCharacter(number)));
        };
        traits.tabs |= c == '\t';
        traits.odd |= matches!(c, '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}');
        from = before.len() + c.len_utf8();
    }
    Ok(traits)
}

/// Returns the position of the next byte that is not plain ASCII text.
fn special(bytes: &[u8], from: usize) -> Option<usize> {
    let plain = |byte: &u8| matches!(byte, b'\n' | b' '..=b'~');
    let rest = bytes.get(from..)?;
    // Documents in other scripts have them in sequence.
    let (near, far) = rest.split_at_checked(16).unwrap_or((rest, &[]));
    if let Some(at) = near.iter().position(|byte| !plain(byte)) {
        return Some(from + at);
    }
    let mut start = from + near.len();
    for piece in far.chunks(256) {
        // Each piece to its end, so that many bytes are compared at once.
        if !piece.iter().fold(true, |all, byte| all & plain(byte)) {
            return piece.iter().position(|byte| !plain(byte)).map(|at| start + at);
        }
        start += piece.len();
    }
    None
}

fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, Error> {
    str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        Error::new(
            end_of(&String::from_utf8_lossy(valid)),
            Problem::Encoding("UTF-8"),
        )
    })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Cow<'_, str>, Error> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let text: Result<String, _> = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect();
    match text {
        Ok(text) if rest.is_empty() => Ok(Cow::Owned(text)),
        _ => Err(Error::new(None, Problem::Encoding("UTF-16"))),
    }
}

fn allowed(c: char) -> bool {
    matches!(c,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

fn end_of(text: &str) -> Position {
    let lines = text.matches('\n').count();
    let last = text.rsplit('\n').next().unwrap_or_default();
    Position {
        line: count(lines as u64 + 1),
        column: count(last.chars().count() as u64 + 1),
    }
}

fn count(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

pub(super) fn position(mark: Mark) -> Position {
    Position {
        line: count(mark.line.saturating_add(1)),
        column: count(mark.column.saturating_add(1)),
    }
}

/// The events of a document, each one a step of the budget.
pub(super) struct Events<'t> {
    parser: Parser<'t>,
    text: &'t Text<'t>,
    budget: &'t Budget,
    last: Position,
}

impl<'t> Events<'t> {
    pub(super) fn new(text: &'t Text<'t>, flavour: Flavour, budget: &'t Budget) -> Self {
        Self {
            parser: Parser::new(&text.text, flavour),
            text,
            budget,
            last: Position { line: 1, column: 1 },
        }
    }

    /// Returns the next event. There is none after an error.
    pub(super) fn next(&mut self) -> Result<Event, Error> {
        self.budget
            .step(1)
            .map_err(|exceeded| Error::new(self.last, exceeded))?;
        let mut event = self.parser.next().map_err(|error| self.located(error))?;
        self.last = position(event.start_mark);
        self.text.take_back(&mut event);
        Ok(event)
    }

    /// Moves errors at the end of the stream before the line break that was added.
    fn located(&self, error: Error) -> Error {
        let at_end = matches!(&error.problem, Problem::Syntax(text) if text.starts_with(STREAM_END));
        let Some(at) = error.position.filter(|_| at_end && self.text.completed) else {
            return error;
        };
        let own = self.text.text.strip_suffix('\n').unwrap_or_default();
        match end_of(own) {
            end if end.line < at.line => Error {
                position: Some(end),
                ..error
            },
            _ => error,
        }
    }
}

impl Text<'_> {
    /// Returns the document, which ends with a break, and true if that was added.
    pub(super) fn parts(&self) -> (&str, bool) {
        (&self.text, self.completed)
    }

    pub(super) fn traits(&self) -> Traits {
        self.traits
    }

    /// Empties the comments: they take time, too.
    pub(super) fn shortened(self) -> Self {
        match comments::shortened(&self.text) {
            None => self,
            Some(text) => Self {
                text: Cow::Owned(text),
                ..self
            },
        }
    }

    /// Removes the added line break from a block scalar that reaches the end of the document.
    fn take_back(&self, event: &mut Event) {
        let EventData::Scalar {
            value,
            style: ScalarStyle::Literal | ScalarStyle::Folded,
            ..
        } = &mut event.data
        else {
            return;
        };
        if !self.completed || event.end_mark.index < self.text.len() as u64 {
            return;
        }
        let last_line = self
            .text
            .trim_end_matches('\n')
            .rsplit('\n')
            .next()
            .unwrap_or_default();
        let Some(content) = value.strip_suffix('\n') else {
            return;
        };
        // A last line of mere indentation is not content: its break counts only if all breaks stay.
        let indentation = last_line.trim_start_matches(' ').is_empty();
        let last_of_content = content.rsplit('\n').next().unwrap_or_default();
        let added = match (indentation, last_of_content) {
            (false, _) => true,
            (true, "") => true,
            (true, spaces) => spaces.trim_start_matches(' ').is_empty(),
        };
        if added {
            value.pop();
        }
    }
}
