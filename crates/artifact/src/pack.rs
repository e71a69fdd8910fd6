//! Packs a list of files into one tarball, byte for byte the same everywhere.

mod ignore;
mod plan;
mod ustar;

use std::io::{self, Read, Write};

use flate2::{Compression, GzBuilder, write::GzEncoder};
use sha2::{Digest as _, Sha256};

pub use ignore::{IGNORE_FILE, MAX_RULE_BYTES, has_long_rule, rules, rules_below};
pub use plan::{Item, LeftOut, PathKind, Planned, plan};

use crate::{
    Digest, Error,
    digest::{Algorithm, Hasher},
    hashes,
};
use ustar::EntryKind;

/// Deflate level: four times as fast as the default 6 for a twentieth more bytes.
const LEVEL: u32 = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Digest by the wanted algorithm.
    pub digest: Digest,
    pub sha256: String,
    pub sha1: String,
    pub size: u64,
    /// Hashes of its directories ([`crate::hashes`]); empty if it was not packed from files.
    pub hashes: Vec<u8>,
}

/// Writes a compressed tarball of `items` (from [`plan`]) to `out`. Owners, times and modes are fixed: directories 0750, files
/// 0600, executable ones 0700. `read` replaces the buffer with the content of an item. `limit` bounds the bytes of all
/// contents.
///
/// # Errors
/// Fails when `read` fails, `out` cannot be written or the limit is reached.
pub fn pack<T, E: From<Error>>(
    items: &[Item<T>],
    mut read: impl FnMut(&Item<T>, &mut Vec<u8>) -> Result<(), E>,
    algorithm: Algorithm,
    limit: u64,
    out: impl Write,
) -> Result<Packed, E> {
    let mut tarball = Tarball::start(out, algorithm, limit)?;
    let mut content = Vec::new();
    for item in items {
        content.clear();
        if matches!(item.kind, PathKind::File { .. }) {
            read(item, &mut content)?;
        }
        tarball.add(item, content.len() as u64, &mut content.as_slice())?;
    }
    Ok(tarball.finish()?)
}

/// Writes the same tarball as [`pack`] as a stream: `open` returns a reader of a file and its size.
///
/// # Errors
/// Fails when `open` fails, a content has another length, `out` cannot be written or the limit is reached.
pub fn pack_streams<T, R: Read, E: From<Error>>(
    items: &[Item<T>],
    mut open: impl FnMut(&Item<T>) -> Result<(u64, R), E>,
    algorithm: Algorithm,
    limit: u64,
    out: impl Write,
) -> Result<Packed, E> {
    let mut tarball = Tarball::start(out, algorithm, limit)?;
    for item in items {
        match item.kind {
            PathKind::File { .. } => {
                let (size, mut content) = open(item)?;
                tarball.add(item, size, &mut content)?;
            }
            PathKind::Dir | PathKind::Other | PathKind::NotUtf8 => tarball.add(item, 0, &mut io::empty())?,
        }
    }
    Ok(tarball.finish()?)
}

pub fn copy(content: impl Read, algorithm: Algorithm, limit: u64, out: impl Write) -> Result<Packed, Error> {
    let mut hashing = Hashing::new(out, algorithm);
    let mut content = content.take(limit.saturating_add(1));
    let copied = io::copy(&mut content, &mut hashing).map_err(failed("its content"))?;
    if copied > limit {
        return Err(Error::TooLarge {
            what: "bytes",
            limit,
            at: String::new(),
        });
    }
    hashing.finish().map_err(failed("its end"))
}

struct Tarball<W: Write> {
    out: GzEncoder<Hashing<W>>,
    hashes: hashes::Hashing,
    limit: u64,
    left: u64,
}

impl<W: Write> Tarball<W> {
    fn start(out: W, algorithm: Algorithm, limit: u64) -> Result<Self, Error> {
        let gzip = GzBuilder::new().mtime(0).operating_system(255);
        let mut out = gzip.write(Hashing::new(out, algorithm), Compression::new(LEVEL));
        out.write_all(&ustar::header(".", EntryKind::Dir, 0))
            .map_err(failed("."))?;
        Ok(Self {
            out,
            hashes: hashes::Hashing::start(),
            limit,
            left: limit,
        })
    }

    fn add<T>(&mut self, item: &Item<T>, size: u64, content: &mut impl Read) -> Result<(), Error> {
        let path = item.path.as_str();
        let kind = match item.kind {
            PathKind::Dir => EntryKind::Dir,
            PathKind::File { executable } => EntryKind::File { executable },
            PathKind::Other | PathKind::NotUtf8 => return Ok(()),
        };
        self.left = self.left.checked_sub(size).ok_or_else(|| Error::TooLarge {
            what: "bytes of unpacked files",
            limit: self.limit,
            at: format!(" at '{path}'"),
        })?;
        let header = ustar::header(path, kind, size);
        self.out.write_all(&header).map_err(failed(path))?;
        let mut out = Hashed {
            out: &mut self.out,
            hasher: Sha256::new(),
        };
        let copied = io::copy(&mut content.take(size), &mut out).map_err(failed(path))?;
        let hash = out.hasher.finalize().into();
        self.hashes.add(&item.path, item.kind, &hash);
        if copied != size {
            let short = io::Error::new(io::ErrorKind::UnexpectedEof, "its content is shorter than it was");
            return Err(failed(path)(short));
        }
        self.out.write_all(ustar::padding(size)).map_err(failed(path))
    }

    fn finish(mut self) -> Result<Packed, Error> {
        self.out.write_all(&ustar::END).map_err(failed("its end"))?;
        let hashing = self.out.finish().map_err(failed("its end"))?;
        let packed = hashing.finish().map_err(failed("its end"))?;
        Ok(Packed {
            hashes: self.hashes.finish(),
            ..packed
        })
    }
}

struct Hashed<'a, W> {
    out: &'a mut W,
    hasher: Sha256,
}

impl<W: Write> Write for Hashed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn failed(path: &str) -> impl FnOnce(io::Error) -> Error {
    Error::io("write the tarball at", path.to_owned())
}

struct Hashing<W> {
    out: W,
    sha256: Hasher,
    sha1: Hasher,
    /// The wanted algorithm, if it is neither.
    other: Option<Hasher>,
    algorithm: Algorithm,
    size: u64,
}

impl<W: Write> Hashing<W> {
    fn new(out: W, algorithm: Algorithm) -> Self {
        let covered = matches!(algorithm, Algorithm::Sha1 | Algorithm::Sha256);
        Self {
            out,
            sha256: Hasher::new(Algorithm::Sha256),
            sha1: Hasher::new(Algorithm::Sha1),
            other: (!covered).then(|| Hasher::new(algorithm)),
            algorithm,
            size: 0,
        }
    }

    fn finish(mut self) -> io::Result<Packed> {
        self.out.flush()?;
        let (sha256, sha1) = (self.sha256.finish(), self.sha1.finish());
        let digest = match (self.other, self.algorithm) {
            (Some(other), _) => other.finish(),
            (None, Algorithm::Sha1) => sha1.clone(),
            (None, _) => sha256.clone(),
        };
        Ok(Packed {
            digest,
            sha256: sha256.hex().to_owned(),
            sha1: sha1.hex().to_owned(),
            size: self.size,
            hashes: Vec::new(),
        })
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        let bytes = bytes.get(..written).unwrap_or_default();
        self.sha256.update(bytes);
        self.sha1.update(bytes);
        if let Some(other) = &mut self.other {
            other.update(bytes);
        }
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
