//! The file of the database: opening and verifying it, and setting a damaged one aside.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use redb::{Database, Error};
use tree::panics::caught;

use super::tables;

/// Memory of the database for pages that were read or are not written yet, in bytes.
const CACHE: usize = 4 * 1024 * 1024;
const NAME: &str = "journal.redb";
const DAMAGED: &str = "journal.redb.damaged";

enum Failure {
    Damaged(String),
    Io(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Corrupted(_)
            | Error::UpgradeRequired(_)
            | Error::TableTypeMismatch { .. }
            | Error::TypeDefinitionChanged { .. }
            | Error::TableIsMultimap(_) => Self::Damaged(error.to_string()),
            Error::Io(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
                Self::Damaged(error.to_string())
            }
            Error::Io(error) => Self::Io(error),
            Error::DatabaseAlreadyOpen => Self::Io(io::Error::other("another process uses the journal")),
            error => Self::Io(io::Error::other(error)),
        }
    }
}

/// Opens the database of a directory, or begins one, verifies it, and reads it with `read`.
/// A damaged file is set aside, in place of one that was set aside before, and an empty database begins.
pub(super) fn open<T>(dir: &Path, read: impl Fn(&Database) -> Result<T, Error>) -> io::Result<(Database, T)> {
    let opened = match attempt(dir, &read) {
        Err(Failure::Damaged(error)) => {
            let aside = dir.join(DAMAGED);
            fs::rename(path(dir), &aside)?;
            tracing::error!(%error, file = %aside.display(), "the journal of events is damaged: its events are lost, and its file is set aside");
            attempt(dir, &read)
        }
        opened => opened,
    };
    let opened = opened.map_err(|failure| match failure {
        Failure::Damaged(error) => io::Error::other(error),
        Failure::Io(error) => error,
    })?;
    // The entry of a new file has to be on the disk, too.
    File::open(dir)?.sync_all()?;
    Ok(opened)
}

fn attempt<T>(dir: &Path, read: impl Fn(&Database) -> Result<T, Error>) -> Result<(Database, T), Failure> {
    let opened = caught(|| {
        let database = Database::builder()
            .set_cache_size(CACHE)
            .set_check_integrity_on_open(true)
            .create(path(dir))?;
        tables::create(&database)?;
        let content = read(&database)?;
        Ok::<_, Error>((database, content))
    });
    match opened {
        Ok(opened) => Ok(opened?),
        Err(panicked) => Err(Failure::Damaged(panicked.to_string())),
    }
}

fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

/// Returns the bytes that the file takes on the disk. Parts of the file that were never written take none.
pub(super) fn size(dir: &Path) -> io::Result<u64> {
    Ok(fs::metadata(path(dir))?.blocks().saturating_mul(512))
}
