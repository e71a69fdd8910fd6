//! Selects the reader of an index, and decompresses it.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;

use super::{
    Entry,
    block::Block,
    extract::{ChartText, EntryText, Fields, Found, Trouble, Wanted},
    json::Json,
    parse,
};
use crate::Error;

pub(crate) struct Stream {
    source: IndexDecoder,
    chart: String,
    url: String,
    limits: crate::Limits,
}

#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum IndexDecoder {
    Plain(Cut),
    Packed(MultiGzDecoder<Cut>),
}

/// Syntax of an index, by its first character.
enum Style {
    Unknown,
    Block(Block),
    Json(Json),
}

pub(super) struct Cut {
    style: Style,
    wanted: Wanted,
    entry_limit: u64,
    left: u64,
    trouble: Option<Trouble>,
}

impl Stream {
    pub(crate) fn new(chart: &str, url: &str, packed: bool, limits: &crate::Limits) -> Self {
        let cut = Cut::new(Wanted::One(chart.to_owned()), limits);
        Self {
            source: if packed {
                IndexDecoder::Packed(MultiGzDecoder::new(cut))
            } else {
                IndexDecoder::Plain(cut)
            },
            chart: chart.to_owned(),
            url: url.to_owned(),
            limits: limits.clone(),
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
            (Some(trouble), _) => Err(trouble.error(url, &self.chart, &self.limits)),
        }
    }

    /// Returns the entries after the last piece; `None` without such a chart.
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
    pub(super) fn new(wanted: Wanted, limits: &crate::Limits) -> Self {
        Self {
            style: Style::Unknown,
            wanted,
            entry_limit: limits.entry_bytes,
            left: limits.index_bytes,
            trouble: None,
        }
    }

    pub(super) fn complete(&mut self) -> Vec<ChartText> {
        match &mut self.style {
            Style::Unknown => Vec::new(),
            Style::Block(block) => block.complete(),
            Style::Json(json) => json.complete(),
        }
    }

    pub(super) fn fields(&self) -> Fields {
        match &self.style {
            Style::Unknown => Fields::default(),
            Style::Block(block) => block.fields().clone(),
            Style::Json(json) => json.fields().clone(),
        }
    }

    fn found(&self) -> Found {
        match &self.style {
            Style::Unknown => Found::Nothing,
            Style::Block(block) => block.found(),
            Style::Json(json) => json.found(),
        }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.left = self
            .left
            .checked_sub(bytes.len() as u64)
            .ok_or(Trouble::IndexTooLarge)?;
        if matches!(self.style, Style::Unknown)
            && let Some(first) = bytes.iter().find(|byte| !byte.is_ascii_whitespace())
        {
            let captured = EntryText {
                limit: self.entry_limit,
                ..EntryText::default()
            };
            self.style = match first {
                b'{' => Style::Json(Json::new(self.wanted.clone(), captured)),
                _ => Style::Block(Block::new(self.wanted.clone(), captured)),
            };
        }
        match &mut self.style {
            Style::Unknown => Ok(()),
            Style::Block(block) => block.push(bytes),
            Style::Json(json) => json.push(bytes),
        }
    }

    pub(super) fn end(&mut self) -> Result<Found, Trouble> {
        match &mut self.style {
            Style::Unknown => {}
            Style::Block(block) => block.end()?,
            Style::Json(json) => json.end()?,
        }
        Ok(self.found())
    }

    fn finish(&mut self) -> (Found, Vec<u8>) {
        self.trouble = self.end().err();
        let text = self.complete().pop().map(|chart| chart.text);
        (self.found(), text.unwrap_or_default())
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
