//! An index in JSON: the value of one key, found by counting brackets.

use super::stream::{EntryText, Found, Trouble};

/// The number of bytes of a JSON string that are kept to compare it with the name of a chart.
const MAX_KEY: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Capture {
    No,
    /// Capture starts at the next character that is not white space.
    Next,
    /// Until brackets are as deep as here again.
    Until(u32),
    Done,
}

/// Cuts the value of one chart out.
#[derive(Debug)]
pub(super) struct Json {
    chart: String,
    kept: EntryText,
    depth: u32,
    in_text: bool,
    escaped: bool,
    /// The last string, up to `MAX_KEY` bytes, until it is known whether it is a key.
    last: Vec<u8>,
    /// True if the next value is that of `entries`.
    entries_next: bool,
    /// True if the current object, at depth two, is the value of `entries`.
    inside: bool,
    charts: bool,
    capture: Capture,
}

impl Json {
    pub(super) fn new(chart: &str, kept: EntryText) -> Self {
        Self {
            chart: chart.to_owned(),
            kept,
            depth: 0,
            in_text: false,
            escaped: false,
            last: Vec::new(),
            entries_next: false,
            inside: false,
            charts: false,
            capture: Capture::No,
        }
    }

    pub(super) fn found(&self) -> Found {
        match self.capture {
            Capture::Done => Found::Chart,
            _ if self.charts => Found::Charts,
            _ => Found::Nothing,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        let mut from = self.is_captured().then_some(0);
        for (at, byte) in bytes.iter().enumerate() {
            self.step(*byte)?;
            match (self.is_captured(), from) {
                (true, None) => from = Some(at),
                (false, Some(begin)) => {
                    // The bracket that ends the value is part of it.
                    self.kept.push(bytes.get(begin..=at).unwrap_or_default())?;
                    return Ok(());
                }
                _ => {}
            }
        }
        if let Some(begin) = from {
            self.kept.push(bytes.get(begin..).unwrap_or_default())?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> (Found, Vec<u8>, Option<Trouble>) {
        let cut = self.depth != 0 && self.capture != Capture::Done;
        let trouble = cut.then_some(Trouble::Malformed("the index ends too early"));
        (self.found(), self.kept.text, trouble)
    }

    fn is_captured(&self) -> bool {
        matches!(self.capture, Capture::Until(_))
    }

    fn step(&mut self, byte: u8) -> Result<(), Trouble> {
        if self.in_text {
            self.text(byte);
            return Ok(());
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.last.clear();
            }
            b'{' | b'[' => self.open(byte),
            b'}' | b']' => {
                self.depth = self
                    .depth
                    .checked_sub(1)
                    .ok_or(Trouble::Malformed("the index closes too often"))?;
                if self.depth < 2 {
                    self.inside = false;
                }
                if self.capture == Capture::Until(self.depth) {
                    self.capture = Capture::Done;
                }
            }
            b':' if self.depth == 1 => self.entries_next = self.last == b"entries",
            b':' if self.depth == 2 && self.inside && self.is_chart() => self.capture = Capture::Next,
            b':' | b',' | b' ' | b'\t' | b'\r' | b'\n' => {}
            _ if self.capture == Capture::Next => {
                return Err(Trouble::Malformed("what the index has of the chart is no list"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns true if the last string is the name of the chart, once its escapes are decoded.
    fn is_chart(&self) -> bool {
        if !self.last.contains(&b'\\') {
            return self.last == self.chart.as_bytes();
        }
        let quoted = [b"\"", self.last.as_slice(), b"\""].concat();
        serde_json::from_slice::<String>(&quoted).is_ok_and(|name| name == self.chart)
    }

    fn open(&mut self, byte: u8) {
        if self.capture == Capture::Next {
            self.capture = Capture::Until(self.depth);
        }
        if self.depth == 1 && self.entries_next && byte == b'{' {
            self.inside = true;
            self.charts = true;
        }
        self.entries_next = false;
        self.depth = self.depth.saturating_add(1);
    }

    fn text(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => {
                self.in_text = false;
                return;
            }
            _ => {}
        }
        if self.last.len() < MAX_KEY {
            self.last.push(byte);
        }
    }
}
