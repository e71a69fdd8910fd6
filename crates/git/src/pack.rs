//! The size of a received pack, which is known before any object of it is held in memory.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use flate2::read::ZlibDecoder;
use gix::odb::pack::data::{
    entry::Header,
    input::{BytesToEntriesIter, Entry, EntryDataMode, Mode},
};

use crate::{Error, Limits, clock::Clock, error::chain};

/// Bytes of memory for the index of an object.
const PER_OBJECT: u64 = 300;
/// Objects of a pack beside its files and directories: the commit, and tags that lead to it.
const OTHER_OBJECTS: u64 = 100;
/// Bytes of a pack that hold the sizes at the beginning of a delta.
const DELTA_HEAD: usize = 128;

/// Writes a pack into a directory, where it is measured before it is indexed.
pub(crate) fn spool(pack: &mut dyn BufRead, dir: &Path) -> Result<PathBuf, Error> {
    let path = dir.join("incoming");
    let mut file = File::create(&path).map_err(disk)?;
    io::copy(pack, &mut file).map_err(disk)?;
    file.flush().map_err(disk)?;
    Ok(path)
}

/// Opens a pack that [`spool`] wrote.
pub(crate) fn open(path: &Path) -> Result<BufReader<File>, Error> {
    let file = File::open(path).map_err(disk)?;
    Ok(BufReader::with_capacity(64 << 10, file))
}

/// Removes a pack that [`spool`] wrote.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    std::fs::remove_file(path).map_err(disk)
}

#[expect(clippy::needless_pass_by_value, reason = "the function of a map_err")]
fn disk(error: io::Error) -> Error {
    Error::Disk(error.to_string())
}

/// Returns the bytes of memory that indexing and reading a pack takes at most. The index holds a resolved object together with all
/// objects that it is a delta of, directly and indirectly.
///
/// # Errors
/// Fails when the pack is damaged, an object is over its limit, or there are too many objects.
pub(crate) fn memory(path: &Path, limits: &Limits, clock: &Clock, shown: &str) -> Result<u64, Error> {
    let file = File::open(path).map_err(disk)?;
    let reader = open(path)?;
    let damaged = |why: String| Error::Protocol {
        url: shown.to_owned(),
        why: format!("the pack is damaged: {why}"),
    };
    let entries =
        BytesToEntriesIter::new_from_header(reader, Mode::AsIs, EntryDataMode::Ignore, gix::hash::Kind::Sha1)
            .map_err(|error| damaged(chain(&error)))?;
    let most = limits.entries as u64 + OTHER_OBJECTS;
    let mut tally = Tally::default();
    for entry in entries {
        clock.check()?;
        let entry = entry.map_err(|error| damaged(chain(&error)))?;
        let size = match entry.header {
            Header::OfsDelta { .. } | Header::RefDelta { .. } => result_size(&file, &entry)
                .ok_or_else(|| damaged(format!("the delta at byte {}", entry.pack_offset)))?,
            _ => entry.decompressed_size,
        };
        let limit = |what, limit| Error::Limit {
            what,
            limit,
            of: format!(" by '{shown}'"),
        };
        if size.max(entry.decompressed_size) > limits.object_bytes {
            return Err(limit("bytes of a file", limits.object_bytes));
        }
        tally.add(&entry, size);
        if tally.chains.len() as u64 > most {
            return Err(limit("objects of a pack", most));
        }
    }
    Ok(tally.memory())
}

#[derive(Default)]
struct Tally {
    /// Bytes of the object at an offset, with all objects that it is a delta of.
    chains: HashMap<u64, u64>,
    longest: u64,
    /// Bytes of all objects whose base is named by its hash, so that it is unknown here.
    unknown: u64,
    instructions: u64,
}

impl Tally {
    fn add(&mut self, entry: &Entry, size: u64) {
        let base = match entry.header {
            Header::OfsDelta { base_distance } => {
                let base = entry.pack_offset.saturating_sub(base_distance);
                self.chains.get(&base).copied().unwrap_or(0)
            }
            Header::RefDelta { .. } => {
                self.unknown = self.unknown.saturating_add(size);
                0
            }
            _ => 0,
        };
        if entry.header.is_base() {
            self.longest = self.longest.max(size);
        } else {
            self.instructions = self.instructions.max(entry.decompressed_size);
        }
        let chain = base.saturating_add(size);
        self.longest = self.longest.max(chain);
        self.chains.insert(entry.pack_offset, chain);
    }

    fn memory(&self) -> u64 {
        let objects = (self.chains.len() as u64).saturating_mul(PER_OBJECT);
        [self.longest, self.unknown, self.instructions, objects]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// Returns the size of the object that a delta makes: the second of the two numbers that it begins with.
fn result_size(file: &File, entry: &Entry) -> Option<u64> {
    let mut head = [0; DELTA_HEAD];
    let read = file
        .read_at(&mut head, entry.pack_offset + u64::from(entry.header_size))
        .ok()?;
    let mut inflated = Vec::new();
    let inflate = ZlibDecoder::new(head.get(..read)?).take(20);
    // The input is cut off; what came until then counts.
    let _ = { inflate }.read_to_end(&mut inflated);
    let mut bytes = inflated.into_iter();
    number(&mut bytes)?;
    number(&mut bytes)
}

/// Reads a number of seven bits a byte, the lowest first.
fn number(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let byte = bytes.next()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use flate2::{Compression, write::ZlibEncoder};

    use super::*;
    use crate::Call;

    /// Appends an entry: its type, its size, what comes before its content, and the content.
    fn entry(pack: &mut Vec<u8>, kind: u8, content: &[u8], base: &[u8]) {
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

    /// A pack with a file of `size` zeros, and `count` deltas that copy it and what they are deltas of.
    fn chain(size: u32, count: u32, by_name: bool) -> Vec<u8> {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend((count + 1).to_be_bytes());
        let mut last = pack.len();
        entry(&mut pack, 3, &vec![0; size as usize], &[]);
        for _ in 0..count {
            let varint = |mut value: u32| {
                let mut bytes = Vec::new();
                while value > 0x7f {
                    bytes.push((value & 0x7f) as u8 | 0x80);
                    value >>= 7;
                }
                bytes.push(value as u8);
                bytes
            };
            let [low, middle, high, _] = size.to_le_bytes();
            let delta = [varint(size), varint(size), vec![0xf0, low, middle, high]].concat();
            let (at, distance) = (pack.len(), pack.len() - last);
            match by_name {
                true => entry(&mut pack, 7, &delta, &[7; 20]),
                false if distance < 128 => entry(&mut pack, 6, &delta, &[distance as u8]),
                false => {
                    let distance = distance - 128;
                    let bytes = [(distance >> 14) - 1, distance >> 7 & 0x7f, distance & 0x7f];
                    let bytes = [bytes[0] as u8 | 0x80, bytes[1] as u8 | 0x80, bytes[2] as u8];
                    entry(&mut pack, 6, &delta, &bytes);
                }
            }
            last = at;
        }
        pack.extend([0; 20]);
        pack
    }

    fn measured(pack: &[u8], limits: &Limits) -> Result<u64, Error> {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let call = Call::new(Duration::from_secs(60));
        let clock = Clock::start(runtime.handle().clone(), &call, "u".to_owned());
        let dir = tempfile::tempdir().unwrap();
        let path = spool(&mut io::Cursor::new(pack), dir.path()).unwrap();
        memory(&path, limits, &clock, "u")
    }

    #[test]
    fn memory_counts_all_objects_of_a_chain_of_deltas() {
        let size = 8 << 20;
        for by_name in [false, true] {
            let pack = chain(size, 100, by_name);
            assert!(pack.len() < 100_000, "{}", pack.len());
            let memory = measured(&pack, &Limits::default()).unwrap();
            assert!(
                (100..104).contains(&(memory / u64::from(size))),
                "{by_name} {memory}"
            );
        }
        let alone = measured(&chain(size, 0, false), &Limits::default()).unwrap();
        assert!(alone < 9 << 20, "{alone}");
    }

    #[test]
    fn objects_are_bounded_in_size_and_number() {
        let limits = Limits {
            object_bytes: 1 << 20,
            entries: 10,
            ..Limits::default()
        };
        let error = |pack: &[u8]| measured(pack, &limits).unwrap_err().to_string();
        assert!(error(&chain(2 << 20, 1, false)).contains("bytes of a file"));
        assert!(error(&chain(1 << 10, 200, true)).contains("objects of a pack"));
        assert!(error(b"PACK").contains("the pack is damaged"));
    }

    #[test]
    fn numbers_have_seven_bits_a_byte() {
        let read = |bytes: &[u8]| number(&mut bytes.iter().copied());
        assert_eq!(read(&[5]), Some(5));
        assert_eq!(read(&[0x91, 0x2e]), Some(0x1711));
        assert_eq!(read(&[0x80]), None);
        assert_eq!(read(&[0xff; 10]), None);
    }
}
