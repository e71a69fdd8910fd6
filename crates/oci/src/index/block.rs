//! A reader for an index in YAML as Helm writes it: blocks, distinguished by their indentation.

use std::borrow::Cow;

use tree::Budget;

use super::stream::{ChartText, EntryText, Fields, Found, Trouble, Wanted};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IndexPosition {
    /// Before `entries:`, or behind them.
    Outside,
    /// Below `entries:`, before the first chart.
    Inside,
    /// Among the charts, whose names are indented so far.
    Among(usize),
    /// In a chart that is cut out.
    Chart(usize),
    /// All of it is there.
    Done,
}

/// Cuts the lines of charts out.
#[derive(Debug)]
pub(super) struct Block {
    wanted: Wanted,
    kept: EntryText,
    /// Name of the chart whose lines are kept.
    name: Vec<u8>,
    complete: Vec<ChartText>,
    fields: Fields,
    line: Vec<u8>,
    is_cut: bool,
    place: IndexPosition,
    charts: bool,
}

impl Block {
    pub(super) fn new(wanted: Wanted, kept: EntryText) -> Self {
        Self {
            wanted,
            kept,
            name: Vec::new(),
            complete: Vec::new(),
            fields: Fields::default(),
            line: Vec::new(),
            is_cut: false,
            place: IndexPosition::Outside,
            charts: false,
        }
    }

    pub(super) fn found(&self) -> Found {
        match self.place {
            IndexPosition::Done => Found::Chart,
            _ if self.charts => Found::Charts,
            _ => Found::Nothing,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            // Of a longer line of another chart, what it begins with is enough.
            let room = usize::try_from(self.kept.limit).unwrap_or(usize::MAX);
            let left = room.saturating_sub(self.line.len());
            self.is_cut |= part.len() > left;
            if self.is_cut && matches!(self.place, IndexPosition::Chart(_)) {
                return Err(Trouble::EntryTooLarge);
            }
            self.line.extend_from_slice(part.get(..left).unwrap_or(part));
            if part.ends_with(b"\n") {
                self.end_of_line()?;
                if self.place == IndexPosition::Done {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads the last line, and ends the chart that it is in.
    pub(super) fn end(&mut self) -> Result<(), Trouble> {
        self.end_of_line()?;
        if matches!(self.place, IndexPosition::Chart(_)) {
            self.place = self.end_of_chart(IndexPosition::Outside);
        }
        Ok(())
    }

    /// Returns the charts that were read to their end since the last call.
    pub(super) fn complete(&mut self) -> Vec<ChartText> {
        std::mem::take(&mut self.complete)
    }

    /// Returns the fields that were read so far.
    pub(super) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Keeps the chart that ends here, and returns where that leaves the reader: `next` unless nothing more is wanted.
    fn end_of_chart(&mut self, next: IndexPosition) -> IndexPosition {
        self.complete.push(ChartText {
            name: std::mem::take(&mut self.name),
            text: std::mem::take(&mut self.kept.text),
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
        match self.place {
            IndexPosition::Done => Ok(()),
            IndexPosition::Outside if indent == 0 && !says_nothing => self.outside(text),
            IndexPosition::Inside if !says_nothing => {
                if indent == 0 {
                    self.place = IndexPosition::Outside;
                    return self.outside(text);
                }
                self.place = IndexPosition::Among(indent);
                self.among(indent, text)
            }
            IndexPosition::Among(at) if !says_nothing && indent <= at && !is_item => {
                self.next(at, indent, text)
            }
            // A quoted string continues on the next lines, at any indentation.
            IndexPosition::Chart(_) if breaks > 0 && key(text).is_none() => self.kept.push(line),
            IndexPosition::Chart(at) if !says_nothing && indent <= at && !(is_item && indent == at) => {
                self.place = self.end_of_chart(IndexPosition::Among(at));
                match self.place {
                    IndexPosition::Done => Ok(()),
                    _ => self.next(at, indent, text),
                }
            }
            IndexPosition::Chart(_) => self.kept.push(line),
            IndexPosition::Outside | IndexPosition::Inside | IndexPosition::Among(_) => Ok(()),
        }
    }

    /// A line as far left as the names of charts, or further.
    fn next(&mut self, at: usize, indent: usize, text: &[u8]) -> Result<(), Trouble> {
        match indent {
            0 => {
                self.place = IndexPosition::Outside;
                self.outside(text)
            }
            indent if indent == at => self.among(at, text),
            _ => Err(Trouble::Malformed(
                "the names of the charts in the index are not indented alike",
            )),
        }
    }

    /// A line that is not indented.
    fn outside(&mut self, text: &[u8]) -> Result<(), Trouble> {
        match key(text) {
            Some((name, rest)) if name.as_ref() == b"entries" => {
                self.charts = true;
                match rest {
                    b"" => self.place = IndexPosition::Inside,
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

    /// The name of a chart.
    fn among(&mut self, at: usize, text: &[u8]) -> Result<(), Trouble> {
        let Some((name, rest)) = key(text) else {
            return Err(Trouble::Malformed(
                "the index has something else where the name of a chart is expected",
            ));
        };
        if !self.wanted.fits(&name) {
            self.place = IndexPosition::Among(at);
            return Ok(());
        }
        if self.is_cut {
            return Err(Trouble::EntryTooLarge);
        }
        self.name = name.into_owned();
        self.place = IndexPosition::Chart(at);
        if !rest.is_empty() {
            self.kept.push(rest)?;
            self.kept.push(b"\n")?;
        }
        Ok(())
    }
}

/// Returns a string without the quotes around it.
fn unquoted(text: &[u8]) -> &[u8] {
    let inner = |quote: u8| text.strip_prefix(&[quote])?.strip_suffix(&[quote]);
    inner(b'"').or_else(|| inner(b'\'')).unwrap_or(text)
}

/// Returns the number of bytes of Unicode line breaks at the start of a line: YAML 1.1 treats them as line
/// ends, and strings may contain them unescaped.
fn other_breaks(line: &[u8]) -> usize {
    let breaks = ["\u{85}", "\u{2028}", "\u{2029}"].map(str::as_bytes);
    let mut rest = line;
    while let Some(behind) = breaks.iter().find_map(|end| rest.strip_prefix(*end)) {
        rest = behind;
    }
    line.len() - rest.len()
}

/// The key of a line, and what follows it, without a comment that is all of it.
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

/// Returns the position of the closing quote of a string.
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
