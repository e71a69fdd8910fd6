//! Chooses how an index is read, and unpacks it on the way.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;

use super::{Entry, block::Block, json::Json, parse};
use crate::Error;

/// The parts of an index that were found so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// No list of charts yet.
    Nothing,
    /// The list of charts, but not the chart.
    Charts,
    /// All of the chart.
    Chart,
}

/// The reason an index cannot be read further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    #[error("{0}")]
    Malformed(&'static str),
    #[error("too large")]
    EntryTooLarge,
    #[error("too large")]
    IndexTooLarge,
}

/// The bytes of the entries of one chart, up to a limit.
#[derive(Debug, Default)]
pub(super) struct EntryText {
    pub(super) text: Vec<u8>,
    pub(super) limit: u64,
}

impl EntryText {
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        if self.text.len() as u64 + bytes.len() as u64 > self.limit {
            return Err(Trouble::EntryTooLarge);
        }
        self.text.extend_from_slice(bytes);
        Ok(())
    }
}

/// Reads one piece of an index after the other.
pub(crate) struct Stream {
    source: IndexDecoder,
    chart: String,
    url: String,
    entry_limit: u64,
    index_limit: u64,
}

#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum IndexDecoder {
    Plain(Cut),
    Packed(MultiGzDecoder<Cut>),
}

/// The way in which an index is written: by its first character.
enum Style {
    Unknown,
    Block(Block),
    Json(Json),
}

/// Cuts one chart out of an index.
struct Cut {
    style: Style,
    chart: String,
    entry_limit: u64,
    left: u64,
    trouble: Option<Trouble>,
}

impl Stream {
    /// Looks for one chart.
    pub(crate) fn new(chart: &str, url: &str, packed: bool, limits: &crate::Limits) -> Self {
        let cut = Cut {
            style: Style::Unknown,
            chart: chart.to_owned(),
            entry_limit: limits.entry_bytes,
            left: limits.index_bytes,
            trouble: None,
        };
        Self {
            source: if packed {
                IndexDecoder::Packed(MultiGzDecoder::new(cut))
            } else {
                IndexDecoder::Plain(cut)
            },
            chart: chart.to_owned(),
            url: url.to_owned(),
            entry_limit: limits.entry_bytes,
            index_limit: limits.index_bytes,
        }
    }

    fn cut(&self) -> &Cut {
        match &self.source {
            IndexDecoder::Plain(cut) => cut,
            IndexDecoder::Packed(packed) => packed.get_ref(),
        }
    }

    /// Reads the next piece. Returns true if more is needed.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        let written = match &mut self.source {
            IndexDecoder::Plain(cut) => cut.write_all(bytes),
            IndexDecoder::Packed(packed) => packed.write_all(bytes),
        };
        self.check(written)?;
        Ok(self.cut().found() != Found::Chart)
    }

    fn check(&self, written: io::Result<()>) -> Result<(), Error> {
        let url = self.url.clone();
        match (self.cut().trouble, written) {
            (None, Ok(())) => Ok(()),
            (None, Err(_)) => Err(Error::malformed(
                url,
                "the index is packed, and can't be unpacked",
            )),
            (Some(Trouble::Malformed(why)), _) => Err(Error::malformed(url, why)),
            (Some(Trouble::EntryTooLarge), _) => Err(Error::TooLarge {
                url: format!("{url}: {}", self.chart),
                what: "bytes of the entries of one chart",
                limit: self.entry_limit,
            }),
            (Some(Trouble::IndexTooLarge), _) => Err(Error::TooLarge {
                url,
                what: "bytes of an index",
                limit: self.index_limit,
            }),
        }
    }

    /// The entries, once there is no more to read; `None` when the index has no such chart.
    pub(crate) fn finish(mut self) -> Result<Option<Vec<Entry>>, Error> {
        match self.end()? {
            (Found::Chart, text) => parse(&text, &self.url).map(Some),
            _ => Ok(None),
        }
    }

    /// Ends an index of which no chart is needed; fails if it has no entries.
    pub(crate) fn finish_unread(mut self) -> Result<(), Error> {
        self.end().map(drop)
    }

    /// Returns what was found of the chart, and its entries as written.
    fn end(&mut self) -> Result<(Found, Vec<u8>), Error> {
        if self.cut().found() != Found::Chart {
            let ended = match &mut self.source {
                IndexDecoder::Plain(_) => Ok(()),
                IndexDecoder::Packed(packed) => packed.try_finish(),
            };
            self.check(ended)?;
        }
        let cut = match &mut self.source {
            IndexDecoder::Plain(cut) => cut,
            IndexDecoder::Packed(packed) => packed.get_mut(),
        };
        let (found, text) = cut.finish();
        self.check(Ok(()))?;
        match found {
            Found::Nothing => {
                let url = self.url.clone();
                Err(Error::malformed(url, "it is no index: it has no entries"))
            }
            found => Ok((found, text)),
        }
    }
}

impl Cut {
    fn found(&self) -> Found {
        match &self.style {
            Style::Unknown => Found::Nothing,
            Style::Block(block) => block.found(),
            Style::Json(json) => json.found(),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.left = self
            .left
            .checked_sub(bytes.len() as u64)
            .ok_or(Trouble::IndexTooLarge)?;
        if matches!(self.style, Style::Unknown)
            && let Some(first) = bytes.iter().find(|byte| !byte.is_ascii_whitespace())
        {
            let kept = EntryText {
                limit: self.entry_limit,
                ..EntryText::default()
            };
            self.style = match first {
                b'{' => Style::Json(Json::new(&self.chart, kept)),
                _ => Style::Block(Block::new(&self.chart, kept)),
            };
        }
        match &mut self.style {
            Style::Unknown => Ok(()),
            Style::Block(block) => block.push(bytes),
            Style::Json(json) => json.push(bytes),
        }
    }

    /// Returns the final state and the bytes of the entries that were found.
    fn finish(&mut self) -> (Found, Vec<u8>) {
        let (found, text, trouble) = match std::mem::replace(&mut self.style, Style::Unknown) {
            Style::Unknown => (Found::Nothing, Vec::new(), None),
            Style::Block(block) => block.finish(),
            Style::Json(json) => json.finish(),
        };
        self.trouble = trouble;
        (found, text)
    }
}

impl Write for Cut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Content after the chart is ignored.
        if self.found() != Found::Chart
            && let Err(trouble) = self.take(bytes)
        {
            self.trouble = Some(trouble);
            return Err(io::Error::other(trouble));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
