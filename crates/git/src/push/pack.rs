//! A pack of new objects.

use std::io::Write as _;

use flate2::{Compression, write::ZlibEncoder};
use gix::{
    ObjectId,
    objs::{Kind, compute_hash},
};

use super::{HASH, unmade};
use crate::Error;

/// Objects in the order in which they were added, without duplicates.
#[derive(Default)]
pub(super) struct Objects {
    all: Vec<(ObjectId, Kind, Vec<u8>)>,
}

impl Objects {
    pub(super) fn add(&mut self, kind: Kind, bytes: Vec<u8>) -> Result<ObjectId, Error> {
        let id = compute_hash(HASH, kind, &bytes).map_err(|error| unmade(&error))?;
        if self.all.iter().all(|(known, ..)| *known != id) {
            self.all.push((id, kind, bytes));
        }
        Ok(id)
    }

    /// Returns the objects as a pack, each as a whole.
    pub(super) fn pack(&self) -> Result<Vec<u8>, Error> {
        let disk = |error: std::io::Error| Error::Disk(error.to_string());
        let count = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend(count.to_be_bytes());
        for (_, kind, bytes) in &self.all {
            pack.extend(header(*kind, bytes.len()));
            let mut encoder = ZlibEncoder::new(&mut pack, Compression::default());
            encoder.write_all(bytes).map_err(disk)?;
            encoder.finish().map_err(disk)?;
        }
        let mut hasher = gix::hash::hasher(HASH);
        hasher.update(&pack);
        let checksum = hasher.try_finalize().map_err(|error| unmade(&error))?;
        pack.extend(checksum.as_slice());
        Ok(pack)
    }
}

/// Returns kind and size: four bits of the size in the first byte, seven in each further one.
fn header(kind: Kind, len: usize) -> Vec<u8> {
    let kind = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let mut rest = len >> 4;
    let mut bytes = vec![(kind << 4) | low_bits(len, 0xf)];
    while rest > 0 {
        if let Some(last) = bytes.last_mut() {
            *last |= 0x80;
        }
        bytes.push(low_bits(rest, 0x7f));
        rest >>= 7;
    }
    bytes
}

fn low_bits(number: usize, mask: u8) -> u8 {
    number.to_le_bytes().first().copied().unwrap_or_default() & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_has_the_size_in_groups_of_bits() {
        assert_eq!(header(Kind::Blob, 5), [0x35]);
        assert_eq!(header(Kind::Tree, 16), [0xa0, 0x01]);
        assert_eq!(header(Kind::Commit, 0x1234), [0x94, 0xa3, 0x02]);
    }

    #[test]
    fn equal_objects_are_packed_once() {
        let mut objects = Objects::default();
        let first = objects.add(Kind::Blob, b"a".to_vec()).unwrap();
        assert_eq!(objects.add(Kind::Blob, b"a".to_vec()).unwrap(), first);
        assert_eq!(objects.pack().unwrap()[8..12], [0, 0, 0, 1]);
    }
}
