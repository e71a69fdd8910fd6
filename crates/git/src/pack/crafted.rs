//! Packs that tests make byte by byte.

use std::io::Write as _;

use flate2::{Compression, write::ZlibEncoder};
use gix::{ObjectId, hash::Kind, objs};

pub(crate) fn entry(pack: &mut Vec<u8>, kind: u8, content: &[u8], base: &[u8]) {
    let mut size = content.len();
    let mut byte = kind << 4 | (size & 15) as u8;
    size >>= 4;
    while size > 0 {
        pack.push(byte | 0x80);
        byte = (size & 0x7f) as u8;
        size >>= 7;
    }
    pack.push(byte);
    pack.extend_from_slice(base);
    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::fast());
    deflate.write_all(content).unwrap();
    pack.extend(deflate.finish().unwrap());
}

/// Encodes a number as in deltas: seven bits a byte, the lowest first.
pub(crate) fn number_of(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Encodes the distance to a delta's base: seven bits a byte, the highest first, where each further byte adds one.
pub(crate) fn distance_of(mut distance: usize) -> Vec<u8> {
    let mut bytes = vec![(distance & 0x7f) as u8];
    while distance > 0x7f {
        distance = (distance >> 7) - 1;
        bytes.insert(0, (distance & 0x7f) as u8 | 0x80);
    }
    bytes
}

pub(crate) fn appending(base: usize, text: &str) -> Vec<u8> {
    let [low, high, ..] = base.to_le_bytes();
    let sizes = [number_of(base as u32), number_of((base + text.len()) as u32)].concat();
    // Copying no bytes would mean 64 KiB.
    let copy = if base > 0 { vec![0xb0, low, high] } else { vec![] };
    [&sizes, &copy, [text.len() as u8].as_slice(), text.as_bytes()].concat()
}

#[derive(Default)]
pub(crate) struct Crafted {
    entries: Vec<u8>,
    pub(crate) objects: Vec<(ObjectId, Vec<u8>)>,
    offsets: Vec<usize>,
}

impl Crafted {
    pub(crate) fn file(&mut self, content: &[u8]) {
        self.begin(content.to_vec());
        entry(&mut self.entries, 3, content, &[]);
    }

    /// Adds a file as delta of an earlier one, which is named by its hash or by its distance.
    pub(crate) fn longer(&mut self, base: usize, text: &str, by_name: bool) {
        let (id, content) = self.objects[base].clone();
        let delta = appending(content.len(), text);
        let distance = self.entries.len() - self.offsets[base];
        self.begin([content.as_slice(), text.as_bytes()].concat());
        match by_name {
            true => entry(&mut self.entries, 7, &delta, id.as_slice()),
            false => entry(&mut self.entries, 6, &delta, &distance_of(distance)),
        }
    }

    fn begin(&mut self, content: Vec<u8>) {
        self.offsets.push(self.entries.len());
        let id = objs::compute_hash(Kind::Sha1, objs::Kind::Blob, &content).unwrap();
        self.objects.push((id, content));
    }

    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend((self.objects.len() as u32).to_be_bytes());
        pack.extend(&self.entries);
        let mut hasher = gix::hash::hasher(Kind::Sha1);
        hasher.update(&pack);
        pack.extend(hasher.try_finalize().unwrap().as_slice());
        pack
    }
}
