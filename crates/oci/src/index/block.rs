//! A reader for an index in YAML as Helm writes it: blocks, distinguished by their indentation.

use std::borrow::Cow;

use tree::Budget;

use super::extract::{ChartText, EntryText, Fields, Found, Trouble, Wanted};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IndexPosition {
    /// Before `entries:`, or after its charts.
    Outside,
    /// Below `entries:`, before the first chart.
    Inside,
    /// Between charts, whose names have this indentation.
    Among(usize),
    Chart(usize),
    Done,
}

#[derive(Debug)]
pub(super) struct Block {
    wanted: Wanted,
    captured: EntryText,
    name: Vec<u8>,
    complete: Vec<ChartText>,
    fields: Fields,
    line: Vec<u8>,
    is_cut: bool,
    position: IndexPosition,
    charts: bool,
}

impl Block {
    pub(super) fn new(wanted: Wanted, captured: EntryText) -> Self {
        Self {
            wanted,
            captured,
            name: Vec::new(),
            complete: Vec::new(),
            fields: Fields::default(),
            line: Vec::new(),
            is_cut: false,
            position: IndexPosition::Outside,
            charts: false,
        }
    }

    pub(super) fn found(&self) -> Found {
        match self.position {
            IndexPosition::Done => Found::Chart,
            _ if self.charts => Found::Charts,
            _ => Found::Nothing,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            // The beginning of a longer line of another chart is enough.
            let limit = usize::try_from(self.captured.limit).unwrap_or(usize::MAX);
            let left = limit.saturating_sub(self.line.len());
            self.is_cut |= part.len() > left;
            if self.is_cut && matches!(self.position, IndexPosition::Chart(_)) {
                return Err(Trouble::EntryTooLarge);
            }
            self.line.extend_from_slice(part.get(..left).unwrap_or(part));
            if part.ends_with(b"\n") {
                self.end_of_line()?;
                if self.position == IndexPosition::Done {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<(), Trouble> {
        self.end_of_line()?;
        if matches!(self.position, IndexPosition::Chart(_)) {
            self.position = self.end_of_chart(IndexPosition::Outside);
        }
        Ok(())
    }

    pub(super) fn complete(&mut self) -> Vec<ChartText> {
        std::mem::take(&mut self.complete)
    }

    pub(super) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Completes a chart, and returns the reader's position: `next` unless nothing more is needed.
    fn end_of_chart(&mut self, next: IndexPosition) -> IndexPosition {
        self.complete.push(ChartText {
            name: std::mem::take(&mut self.name),
            text: std::mem::take(&mut self.captured.text),
        });
        match self.wanted {
            Wanted::One(_) => IndexPosition::Done,
            Wanted::Every => next,
        }
    }

    fn end_of_line(&mut self) -> Result<(), Trouble> {
        let mut line = std::mem::take(&mut self.line);
        let done = self.take(&line);
        line.clear();
        self.line = line;
        self.is_cut = false;
        done
    }

    fn take(&mut self, line: &[u8]) -> Result<(), Trouble> {
        let breaks = other_breaks(line);
        let content = line.get(breaks..).unwrap_or_default();
        let indent = content.iter().take_while(|byte| **byte == b' ').count();
        let text = content.get(indent..).unwrap_or_default().trim_ascii_end();
        let says_nothing = text.is_empty() || text.starts_with(b"#");
        let is_item = text == b"-" || text.starts_with(b"- ");
        match self.position {
            IndexPosition::Done => Ok(()),
            IndexPosition::Outside if indent == 0 && !says_nothing => self.unindented(text),
            IndexPosition::Inside if !says_nothing => {
                if indent == 0 {
                    self.position = IndexPosition::Outside;
                    return self.unindented(text);
                }
                self.position = IndexPosition::Among(indent);
                self.among(indent, text)
            }
            IndexPosition::Among(at) if !says_nothing && indent <= at && !is_item => {
                self.next(at, indent, text)
            }
            // A quoted string continues on the next lines, at any indentation.
            IndexPosition::Chart(_) if breaks > 0 && key(text).is_none() => self.captured.push(line),
            IndexPosition::Chart(at) if !says_nothing && indent <= at && !(is_item && indent == at) => {
                self.position = self.end_of_chart(IndexPosition::Among(at));
                match self.position {
                    IndexPosition::Done => Ok(()),
                    _ => self.next(at, indent, text),
                }
            }
            IndexPosition::Chart(_) => self.captured.push(line),
            IndexPosition::Outside | IndexPosition::Inside | IndexPosition::Among(_) => Ok(()),
        }
    }

    fn next(&mut self, at: usize, indent: usize, text: &[u8]) -> Result<(), Trouble> {
        match indent {
            0 => {
                self.position = IndexPosition::Outside;
                self.unindented(text)
            }
            indent if indent == at => self.among(at, text),
            _ => Err(Trouble::Malformed(
                "the names of the charts in the index are not indented alike",
            )),
        }
    }

    fn unindented(&mut self, text: &[u8]) -> Result<(), Trouble> {
        match key(text) {
            Some((name, rest)) if name.as_ref() == b"entries" => {
                self.charts = true;
                match rest {
                    b"" => self.position = IndexPosition::Inside,
                    b"{}" | b"null" | b"~" => {}
                    _ => {
                        return Err(Trouble::Malformed(
                            "the entries of the index are neither YAML in blocks nor JSON",
                        ));
                    }
                }
                Ok(())
            }
            Some((name, rest)) => {
                self.fields.set(&name, unquoted(rest));
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn among(&mut self, at: usize, text: &[u8]) -> Result<(), Trouble> {
        let Some((name, rest)) = key(text) else {
            return Err(Trouble::Malformed(
                "the index has something else where the name of a chart is expected",
            ));
        };
        if !self.wanted.fits(&name) {
            self.position = IndexPosition::Among(at);
            return Ok(());
        }
        if self.is_cut {
            return Err(Trouble::EntryTooLarge);
        }
        self.name = name.into_owned();
        self.position = IndexPosition::Chart(at);
        if !rest.is_empty() {
            self.captured.push(rest)?;
            self.captured.push(b"\n")?;
        }
        Ok(())
    }
}

fn unquoted(text: &[u8]) -> &[u8] {
    let inner = |quote: u8| text.strip_prefix(&[quote])?.strip_suffix(&[quote]);
    inner(b'"').or_else(|| inner(b'\'')).unwrap_or(text)
}

/// Returns the number of bytes of Unicode line breaks at the start of a line: they end lines in YAML 1.1, and strings may
/// contain them unescaped.
fn other_breaks(line: &[u8]) -> usize {
    let breaks = ["\u{85}", "\u{2028}", "\u{2029}"].map(str::as_bytes);
    let mut rest = line;
    while let Some(behind) = breaks.iter().find_map(|end| rest.strip_prefix(*end)) {
        rest = behind;
    }
    line.len() - rest.len()
}

/// Returns the key of a line and the rest, without a comment that is all of it.
fn key(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let (name, rest) = match text.first() {
        Some(quote @ (b'"' | b'\'')) => {
            let end = 1 + end_of_quoted(text.get(1..)?, *quote)?;
            let after = text.get(end + 1..)?.trim_ascii_start();
            let inner = text.get(1..end)?;
            // Quotes and other characters may be escaped.
            let name = if inner.iter().any(|byte| matches!(byte, b'\\' | b'\'')) {
                let read = yaml::read::goyaml(text.get(..=end)?, &Budget::default()).ok()?;
                Cow::Owned(read.value.as_str()?.as_bytes().to_vec())
            } else {
                Cow::Borrowed(inner)
            };
            (name, after.strip_prefix(b":")?)
        }
        _ => {
            let colon = (0..text.len()).find(|at| {
                text.get(*at) == Some(&b':')
                    && text.get(at + 1).is_none_or(|next| matches!(next, b' ' | b'\t'))
            })?;
            let name = text.get(..colon)?.trim_ascii_end();
            (Cow::Borrowed(name), text.get(colon + 1..)?)
        }
    };
    let rest = rest.trim_ascii();
    Some((name, if rest.starts_with(b"#") { b"" } else { rest }))
}

fn end_of_quoted(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'\\' if quote == b'"' => at += 2,
            byte if *byte == quote && quote == b'\'' && text.get(at + 1) == Some(&quote) => at += 2,
            byte if *byte == quote => return Some(at),
            _ => at += 1,
        }
    }
}
