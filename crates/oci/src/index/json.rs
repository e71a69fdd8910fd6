//! An index in JSON: the value of one key, found by counting brackets.

use super::extract::{ChartText, EntryText, Fields, Found, Trouble, Wanted};

/// Maximum bytes of a JSON string that are compared with the name of a chart.
const MAX_KEY: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Capture {
    No,
    Next,
    Until(u32),
    Done,
}

#[derive(Debug)]
pub(super) struct Json {
    wanted: Wanted,
    captured: EntryText,
    name: Vec<u8>,
    complete: Vec<ChartText>,
    fields: Fields,
    field: Vec<u8>,
    depth: u32,
    in_text: bool,
    escaped: bool,
    last: Vec<u8>,
    entries_next: bool,
    /// True if the current object, at depth two, is the value of `entries`.
    inside: bool,
    charts: bool,
    capture: Capture,
}

impl Json {
    pub(super) fn new(wanted: Wanted, captured: EntryText) -> Self {
        Self {
            wanted,
            captured,
            name: Vec::new(),
            complete: Vec::new(),
            fields: Fields::default(),
            field: Vec::new(),
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
                    self.captured.push(bytes.get(begin..=at).unwrap_or_default())?;
                    self.complete.push(ChartText {
                        name: std::mem::take(&mut self.name),
                        text: std::mem::take(&mut self.captured.text),
                    });
                    from = None;
                    match self.wanted {
                        Wanted::One(_) => return Ok(()),
                        Wanted::Every => self.capture = Capture::No,
                    }
                }
                _ => {}
            }
        }
        if let Some(begin) = from {
            self.captured.push(bytes.get(begin..).unwrap_or_default())?;
        }
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<(), Trouble> {
        match self.depth != 0 && self.capture != Capture::Done {
            true => Err(Trouble::Malformed("the index ends too early")),
            false => Ok(()),
        }
    }

    pub(super) fn complete(&mut self) -> Vec<ChartText> {
        std::mem::take(&mut self.complete)
    }

    pub(super) fn fields(&self) -> &Fields {
        &self.fields
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
                self.end_of_field();
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
            b':' if self.depth == 1 => {
                self.entries_next = self.last == b"entries";
                self.field = std::mem::take(&mut self.last);
            }
            b':' if self.depth == 2 && self.inside => {
                let name = self.decoded();
                if self.wanted.fits(&name) {
                    self.name = name;
                    self.capture = Capture::Next;
                }
            }
            b',' if self.depth == 1 => self.end_of_field(),
            b':' | b',' | b' ' | b'\t' | b'\r' | b'\n' => {}
            // A chart without a list has no versions.
            b'n' if self.capture == Capture::Next => self.capture = Capture::No,
            _ if self.capture == Capture::Next => {
                return Err(Trouble::Malformed("what the index has of the chart is no list"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Records the string value of a key outside of the charts.
    fn end_of_field(&mut self) {
        if self.depth == 1 && !self.field.is_empty() {
            let field = std::mem::take(&mut self.field);
            self.fields.set(&field, &self.last);
        }
    }

    fn decoded(&self) -> Vec<u8> {
        let quoted = || [b"\"", self.last.as_slice(), b"\""].concat();
        match self.last.contains(&b'\\') {
            false => self.last.clone(),
            true => serde_json::from_slice::<String>(&quoted())
                .unwrap_or_default()
                .into_bytes(),
        }
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
