//! An index in a file: downloaded once, then read for one chart after the other.

use std::io::{self, Read, Write};

use flate2::write::MultiGzDecoder;
use reqwest::header::HeaderValue;

use super::{Entry, Stream};
use crate::{Digest, Error, Limits, digest::Hasher};

const PIECE: usize = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexFile {
    /// SHA-256 of the unpacked index as it is on the server: Flux's revision.
    pub digest: Digest,
    pub size: u64,
    /// Tag of this content (ETag), if the server sent one of a usual length.
    pub(crate) tag: Option<HeaderValue>,
}

impl IndexFile {
    #[must_use]
    pub fn new(digest: Digest, size: u64) -> Self {
        Self {
            digest,
            size,
            tag: None,
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum Download<W: Write> {
    Plain(Intake<W>),
    Packed(MultiGzDecoder<Intake<W>>),
}

/// Counts, checks and hashes an unpacked index on its way to a file.
pub(crate) struct Intake<W> {
    file: W,
    check: Stream,
    hasher: Hasher,
    size: u64,
    limit: u64,
    url: String,
    error: Option<Error>,
}

impl<W: Write> Download<W> {
    pub(crate) fn new(file: W, url: &str, packed: bool, limits: &Limits) -> Self {
        let intake = Intake {
            file,
            // No chart has an empty name, so that the index is read to its end.
            check: Stream::new("", url, false, limits),
            hasher: Hasher::Sha256(sha2::Sha256::default()),
            size: 0,
            limit: limits.index_bytes,
            url: url.to_owned(),
            error: None,
        };
        match packed {
            true => Self::Packed(MultiGzDecoder::new(intake)),
            false => Self::Plain(intake),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::Plain(intake) => intake.take(bytes),
            Self::Packed(packed) => {
                let written = packed.write_all(bytes);
                packed.get_mut().check(written)
            }
        }
    }

    /// Ends the index; fails if it is truncated, or not an index at all.
    pub(crate) fn finish(self, tag: Option<HeaderValue>) -> Result<IndexFile, Error> {
        let mut intake = match self {
            Self::Plain(intake) => intake,
            Self::Packed(mut packed) => {
                let ended = packed.try_finish();
                packed.get_mut().check(ended)?;
                let url = packed.get_ref().url.clone();
                packed.finish().map_err(|_| unpacked(url))?
            }
        };
        intake
            .file
            .flush()
            .map_err(Error::disk("write the index of", &intake.url))?;
        intake.check.finish_unread()?;
        Ok(IndexFile {
            digest: intake.hasher.finish(),
            size: intake.size,
            tag,
        })
    }
}

impl<W: Write> Intake<W> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.size = self.size.saturating_add(bytes.len() as u64);
        if self.size > self.limit {
            return Err(Error::TooLarge {
                url: self.url.clone(),
                what: "bytes of an index",
                limit: self.limit,
            });
        }
        self.check.push(bytes)?;
        self.hasher.update(bytes);
        let written = self.file.write_all(bytes);
        written.map_err(Error::disk("write the index of", &self.url))
    }

    /// Returns this intake's own error instead of the error that unpacking makes of it.
    fn check(&mut self, written: io::Result<()>) -> Result<(), Error> {
        match (self.error.take(), written) {
            (Some(error), _) => Err(error),
            (None, Ok(())) => Ok(()),
            (None, Err(_)) => Err(unpacked(self.url.clone())),
        }
    }
}

impl<W: Write> Write for Intake<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.take(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                let failed = io::Error::other(error.to_string());
                self.error = Some(error);
                Err(failed)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn unpacked(url: String) -> Error {
    Error::malformed(url, "the index is packed, and can't be unpacked")
}

/// Returns the versions of a chart in a stored index, the newest first; `None` without such a chart.
pub(crate) fn stored_entries(
    mut file: impl Read,
    url: &str,
    chart: &str,
    limits: &Limits,
) -> Result<Option<Vec<Entry>>, Error> {
    let mut stream = Stream::new(chart, url, false, limits);
    let mut piece = vec![0; PIECE];
    loop {
        let len = match file.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::disk("read the stored index of", url)(error)),
        };
        if !stream.push(piece.get(..len).unwrap_or_default())? {
            break;
        }
    }
    stream.finish()
}
