//! The size of a received pack, which is known before any object of it is held in memory.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use flate2::{Decompress, FlushDecompress, Status, read::ZlibDecoder};
use gix::odb::pack::data::{Entry as PackEntry, entry::Header, header::decode};

use crate::{Error, Limits, clock::Clock, error::chain};

/// Bytes of memory for the index of an object.
const PER_OBJECT: u64 = 300;
/// Objects of a pack beside its files and directories: the commit, and tags that lead to it.
const OTHER_OBJECTS: u64 = 100;
/// Bytes of a pack that hold the sizes at the beginning of a delta.
const DELTA_HEAD: usize = 128;
/// Bytes of the header of a pack.
pub(crate) const PACK_HEADER: usize = 12;
/// Bytes of the hash that names the base of a delta.
const HASH_BYTES: usize = 20;
/// Bytes of a pack that are counted together. The index of a small one is among them.
const COUNTED: u64 = 64 << 10;
/// Bytes that are inflated at once.
const INFLATED: usize = 32 << 10;

/// A pack in a directory, before it is indexed.
#[derive(Debug)]
pub(crate) struct Spooled {
    pub(crate) path: PathBuf,
    /// Bytes that were counted for it.
    pub(crate) counted: u64,
}

/// Returns the file of a pack before it is indexed.
pub(crate) fn incoming(dir: &Path) -> PathBuf {
    dir.join("incoming")
}

/// Writes a pack into a directory, where it is measured before it is indexed. Its bytes are counted before they are written.
///
/// # Errors
/// Fails when the pack can't be read or written, or `count` does.
pub(crate) fn spool(
    pack: &mut dyn BufRead,
    dir: &Path,
    mut count: impl FnMut(u64) -> Result<(), Error>,
) -> Result<Spooled, Error> {
    let path = incoming(dir);
    let mut file = File::create(&path).map_err(disk)?;
    let (mut written, mut counted) = (0, 0);
    loop {
        let chunk = match pack.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            chunk => chunk.map_err(disk)?,
        };
        if chunk.is_empty() {
            break;
        }
        written += chunk.len() as u64;
        if written > counted {
            let more = written.next_multiple_of(COUNTED) - counted;
            count(more)?;
            counted += more;
        }
        file.write_all(chunk).map_err(disk)?;
        let len = chunk.len();
        pack.consume(len);
    }
    file.flush().map_err(disk)?;
    Ok(Spooled { path, counted })
}

/// Opens a pack that [`spool`] wrote, and returns it with its size in bytes.
pub(crate) fn open(path: &Path) -> Result<(BufReader<File>, u64), Error> {
    let file = File::open(path).map_err(disk)?;
    let bytes = file.metadata().map_err(disk)?.len();
    Ok((BufReader::with_capacity(64 << 10, file), bytes))
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
    let mut entries = Entries::open(path, clock, shown)?;
    let limit = |what, limit| Error::Limit {
        what,
        limit,
        of: format!(" by '{shown}'"),
    };
    let most = limits.entries as u64 + OTHER_OBJECTS;
    if u64::from(entries.left) > most {
        return Err(limit("objects of a pack", most));
    }
    let mut tally = Tally::default();
    while let Some(entry) = entries.next(limits.object_bytes)? {
        let size = match entry.header {
            Header::OfsDelta { .. } | Header::RefDelta { .. } => result_size(&file, &entry)
                .ok_or_else(|| entries.damaged(&format!("the delta at byte {}", entry.pack_offset)))?,
            _ => entry.decompressed_size,
        };
        if size > limits.object_bytes {
            return Err(limit("bytes of a file", limits.object_bytes));
        }
        tally.add(&entry, size);
    }
    Ok(tally.memory())
}

/// An object of a pack.
struct Entry {
    header: Header,
    pack_offset: u64,
    data_offset: u64,
    decompressed_size: u64,
}

/// The objects of a pack in their order. Nothing of an object is held, and none is inflated beyond the size that it announces.
struct Entries<'a> {
    pack: BufReader<File>,
    /// Objects that are left.
    left: u32,
    offset: u64,
    inflate: Decompress,
    buffer: Vec<u8>,
    clock: &'a Clock,
    shown: &'a str,
}

impl<'a> Entries<'a> {
    fn open(path: &Path, clock: &'a Clock, shown: &'a str) -> Result<Self, Error> {
        let mut entries = Self {
            pack: open(path)?.0,
            left: 0,
            offset: PACK_HEADER as u64,
            inflate: Decompress::new(true),
            buffer: vec![0; INFLATED],
            clock,
            shown,
        };
        let mut head = [0; PACK_HEADER];
        let read = entries.pack.read_exact(&mut head);
        read.map_err(|error| entries.damaged(&error.to_string()))?;
        let (_, left) = decode(&head).map_err(|error| entries.damaged(&chain(&error)))?;
        entries.left = left;
        Ok(entries)
    }

    fn damaged(&self, why: &str) -> Error {
        Error::Protocol {
            url: self.shown.to_owned(),
            why: format!("the pack is damaged: {why}"),
        }
    }

    /// Returns the next object, after the last one `None`.
    ///
    /// # Errors
    /// Fails if the object announces more than `most` bytes, before any of it is inflated, if it has another size than it announces, and
    /// at the end of the call.
    fn next(&mut self, most: u64) -> Result<Option<Entry>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.clock.check()?;
        let at = self.offset;
        let read = PackEntry::from_read(&mut self.pack, at, HASH_BYTES);
        let entry = read.map_err(|error| self.damaged(&error.to_string()))?;
        let size = entry.decompressed_size;
        if size > most {
            return Err(Error::Limit {
                what: "bytes of a file",
                limit: most,
                of: format!(" by '{}'", self.shown),
            });
        }
        self.offset = entry.data_offset;
        self.skip(at, size)?;
        Ok(Some(Entry {
            header: entry.header,
            pack_offset: at,
            data_offset: entry.data_offset,
            decompressed_size: size,
        }))
    }

    /// Reads the compressed content of the object at a position, which must inflate to so many bytes.
    fn skip(&mut self, at: u64, size: u64) -> Result<(), Error> {
        let wrong = |why: &str| format!("the object at byte {at} {why}");
        let most = compressed_at_most(size);
        self.inflate.reset(true);
        loop {
            self.clock.check()?;
            let chunk = self.pack.fill_buf().map_err(disk)?;
            let is_end = chunk.is_empty();
            let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
            let inflated = self
                .inflate
                .decompress(chunk, &mut self.buffer, FlushDecompress::None);
            let read = self.inflate.total_in() - read;
            self.pack.consume(usize::try_from(read).unwrap_or(usize::MAX));
            self.offset += read;
            let status = inflated.map_err(|error| self.damaged(&wrong(&error.to_string())))?;
            let stuck = read == 0 && self.inflate.total_out() == written;
            match (status, self.inflate.total_out()) {
                (_, total) if total > size => {
                    return Err(self.damaged(&wrong(&format!(
                        "has more than the {size} bytes that it announces"
                    ))));
                }
                (Status::StreamEnd, total) if total == size => return Ok(()),
                (Status::StreamEnd, total) => {
                    return Err(self.damaged(&wrong(&format!("has {total} bytes and announces {size}"))));
                }
                _ if self.inflate.total_in() > most => {
                    return Err(self.damaged(&wrong(&format!("is compressed to more than {most} bytes"))));
                }
                _ if is_end || stuck => return Err(self.damaged(&wrong("is cut off"))),
                _ => {}
            }
        }
    }
}

/// Returns the most bytes that an object of so many is compressed to. The index holds them; what doesn't compress grows by a few bytes.
fn compressed_at_most(size: u64) -> u64 {
    size.saturating_mul(2).saturating_add(4 << 10)
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
    let read = file.read_at(&mut head, entry.data_offset).ok()?;
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

    use testkit::git::{pack_bomb, padded_pack};

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
        let spooled = spool(&mut io::Cursor::new(pack), dir.path(), |_| Ok(())).unwrap();
        memory(&spooled.path, limits, &clock, "u")
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
    fn objects_are_never_inflated_beyond_what_they_announce() {
        let limits = Limits::default();
        let error = |pack: &[u8]| measured(pack, &limits).unwrap_err();
        let announced = 10 << 30;
        let refused = error(&pack_bomb(announced, 1));
        assert!(
            matches!(refused, Error::Limit { limit, .. } if limit == limits.object_bytes),
            "{refused}"
        );
        let (short, long) = (error(&pack_bomb(100, 64)), error(&pack_bomb(100 << 20, 64)));
        let why = "the object at byte 12 has more than the 100 bytes that it announces";
        assert!(short.to_string().contains(why), "{short}");
        assert!(
            long.to_string().contains("the object at byte 12 is cut off"),
            "{long}"
        );
        let padded = error(&padded_pack(100, 1)).to_string();
        assert!(
            padded.contains("the object at byte 12 is compressed to more than"),
            "{padded}"
        );
        let mut endless = b"PACK\0\0\0\x02".to_vec();
        endless.extend(u32::MAX.to_be_bytes());
        assert!(error(&endless).to_string().contains("objects of a pack"));
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
