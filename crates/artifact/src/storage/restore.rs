//! Restores artifacts from another storage.

use std::io::Write as _;

use bytes::Bytes;

use super::{Key, Storage};
use crate::{Digest, Error, digest::Hasher, pack::Packed};

enum Restoring<E> {
    Storage(Error),
    Content(E),
    Other,
}

impl<E> From<Error> for Restoring<E> {
    fn from(error: Error) -> Self {
        Self::Storage(error)
    }
}

impl Storage {
    /// Stores an artifact whose content `next` returns piece by piece as `file` of `key`'s object, and as its alias, if it has
    /// the digest `wanted`. Returns false, and stores nothing, for another digest.
    ///
    /// # Errors
    /// Fails when `next` fails, the artifact exceeds a quota, or the file system returns an error.
    pub fn restore<E: From<Error>>(
        &self,
        key: &Key,
        file: &str,
        wanted: &Digest,
        mut next: impl FnMut() -> Result<Option<Bytes>, E>,
    ) -> Result<bool, E> {
        // A file of this name has other bytes.
        let name = |_: &Digest| Ok(file.to_owned());
        let stored = self.store_as(key, file, None, name, |out| {
            let mut hasher = Hasher::new(wanted.algorithm());
            let mut size = 0;
            while let Some(piece) = next().map_err(Restoring::Content)? {
                hasher.update(&piece);
                size += piece.len() as u64;
                let written = out.write_all(&piece);
                written.map_err(Error::io("write", key.path(file)))?;
            }
            let digest = hasher.finish();
            match digest == *wanted {
                true => Ok(Packed {
                    digest,
                    sha256: String::new(),
                    sha1: String::new(),
                    size,
                    hashes: Vec::new(),
                }),
                false => Err(Restoring::Other),
            }
        });
        match stored {
            Ok(_) => self.renew_alias(key, file).map(|()| true).map_err(E::from),
            Err(Restoring::Other) => Ok(false),
            Err(Restoring::Content(error)) => Err(error),
            Err(Restoring::Storage(error)) => Err(error.into()),
        }
    }
}
