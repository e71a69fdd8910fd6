//! The parts that readers of an index extract.

use crate::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Charts,
    Chart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    #[error("{0}")]
    Malformed(&'static str),
    #[error("too large")]
    EntryTooLarge,
    #[error("too large")]
    IndexTooLarge,
}

impl Trouble {
    /// Returns the error of reading the entries of `chart` in the index at `url`.
    pub(super) fn error(self, url: String, chart: &str, limits: &crate::Limits) -> Error {
        match self {
            Self::Malformed(why) => Error::malformed(url, why),
            Self::EntryTooLarge => Error::TooLarge {
                url: format!("{url}: {chart}"),
                what: "bytes of the entries of one chart",
                limit: limits.entry_bytes,
            },
            Self::IndexTooLarge => Error::TooLarge {
                url,
                what: "bytes of an index",
                limit: limits.index_bytes,
            },
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Wanted {
    /// The chart of this name; the index is read no further.
    One(String),
    Every,
}

impl Wanted {
    pub(super) fn fits(&self, name: &[u8]) -> bool {
        match self {
            Self::One(chart) => chart.as_bytes() == name,
            Self::Every => true,
        }
    }
}

#[derive(Debug)]
pub(super) struct ChartText {
    pub(super) name: Vec<u8>,
    pub(super) text: Vec<u8>,
}

/// Strings of an index beside its charts; empty if they are missing.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    pub(super) api_version: Vec<u8>,
    pub(super) generated: Vec<u8>,
}

impl Fields {
    pub(super) fn set(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"apiVersion" => self.api_version = value.to_vec(),
            b"generated" => self.generated = value.to_vec(),
            _ => {}
        }
    }
}

/// The entries of one chart, up to a limit.
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
