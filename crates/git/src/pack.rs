//! The memory that a received pack needs, which is known before any object is decoded.

#[cfg(test)]
pub(crate) mod crafted;
pub(crate) mod spool;

use std::{
    collections::HashMap,
    io::{BufRead, Read},
};

use flate2::{Decompress, FlushDecompress, Status, read::ZlibDecoder};
use gix::odb::pack::data::{Entry as PackEntry, entry::Header, header::decode};

use crate::{Error, Limits, clock::Clock, error::chain};
use spool::{Spooled, disk};

const PER_OBJECT: u64 = 300;
/// Objects of a pack beside its files and directories: the commit and its tags.
const OTHER_OBJECTS: u64 = 100;
/// Compressed bytes of a delta that contain the sizes at its start: the tables of a block of deflate take up to 290 bytes.
const DELTA_HEAD: usize = 512;
pub(crate) const PACK_HEADER: usize = 12;
const HASH_BYTES: usize = 20;
/// Bytes of an index without objects, and per object.
const INDEX: (u64, u64) = (1072, 28);
const INFLATED: usize = 32 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needed {
    /// For indexing and reading it. A resolved object is in memory together with all its direct and indirect bases and their
    /// deltas.
    pub(crate) work: u64,
    pub(crate) index: u64,
}

/// Measures a pack.
pub(crate) fn measure(
    pack: &Spooled,
    limits: &Limits,
    clock: &Clock,
    safe_url: &str,
) -> Result<Needed, Error> {
    let mut entries = Entries::open(pack, clock, safe_url)?;
    let limit = |what, limit| Error::Limit {
        what,
        limit,
        of: format!(" by '{safe_url}'"),
    };
    let most = limits.entries as u64 + OTHER_OBJECTS;
    if u64::from(entries.left) > most {
        return Err(limit("objects of a pack", most));
    }
    let mut tally = Tally::default();
    while let Some(entry) = entries.next(limits.object_bytes)? {
        let size = match entry.header {
            Header::OfsDelta { .. } | Header::RefDelta { .. } => result_size(pack, &entry)
                .ok_or_else(|| entries.damaged(&format!("the delta at byte {}", entry.pack_offset)))?,
            _ => entry.decompressed_size,
        };
        if size > limits.object_bytes {
            return Err(limit("bytes of a file", limits.object_bytes));
        }
        tally.add(&entry, size);
    }
    entries.end()?;
    Ok(tally.needed())
}

struct Entry {
    header: Header,
    pack_offset: u64,
    data_offset: u64,
    decompressed_size: u64,
}

/// Reads the objects of a pack in order. None stays in memory, and none is inflated beyond its announced size.
struct Entries<'a> {
    pack: Box<dyn BufRead + 'a>,
    left: u32,
    offset: u64,
    inflate: Decompress,
    buffer: Vec<u8>,
    clock: &'a Clock,
    safe_url: &'a str,
}

impl<'a> Entries<'a> {
    fn open(pack: &'a Spooled, clock: &'a Clock, safe_url: &'a str) -> Result<Self, Error> {
        let mut entries = Self {
            pack: pack.reader()?,
            left: 0,
            offset: PACK_HEADER as u64,
            inflate: Decompress::new(true),
            buffer: vec![0; INFLATED],
            clock,
            safe_url,
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
            url: self.safe_url.to_owned(),
            why: format!("the pack is damaged: {why}"),
        }
    }

    /// Returns the next object.
    ///
    /// # Errors
    /// Fails if the object announces more than `most` bytes, before it is inflated, if it has another size than announced, and
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
                of: format!(" by '{}'", self.safe_url),
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

    fn end(&mut self) -> Result<(), Error> {
        let read = self.pack.read_exact(&mut [0; HASH_BYTES]);
        read.map_err(|_| self.damaged("its checksum is cut off"))
    }

    /// Reads the compressed object at a position, which must inflate to exactly `size` bytes.
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

/// Returns the maximum compressed size of an object. Incompressible content grows by a few bytes.
fn compressed_at_most(size: u64) -> u64 {
    size.saturating_mul(2).saturating_add(4 << 10)
}

#[derive(Default)]
struct Tally {
    chains: HashMap<u64, u64>,
    longest: u64,
    /// Bytes of all objects whose base is named by its hash, so that its offset is unknown, and of their deltas.
    unknown: u64,
}

impl Tally {
    fn add(&mut self, entry: &Entry, size: u64) {
        let own = match entry.header.is_base() {
            true => size,
            false => size.saturating_add(entry.decompressed_size),
        };
        let base = match entry.header {
            Header::OfsDelta { base_distance } => {
                let base = entry.pack_offset.saturating_sub(base_distance);
                self.chains.get(&base).copied().unwrap_or(0)
            }
            Header::RefDelta { .. } => {
                self.unknown = self.unknown.saturating_add(own);
                0
            }
            _ => 0,
        };
        let chain = base.saturating_add(own);
        self.longest = self.longest.max(chain);
        self.chains.insert(entry.pack_offset, chain);
    }

    fn needed(&self) -> Needed {
        let objects = self.chains.len() as u64;
        let work = [self.longest, self.unknown, objects.saturating_mul(PER_OBJECT)];
        Needed {
            work: work.into_iter().fold(0, u64::saturating_add),
            index: INDEX.0.saturating_add(objects.saturating_mul(INDEX.1)),
        }
    }
}

fn result_size(pack: &Spooled, entry: &Entry) -> Option<u64> {
    let mut head = [0; DELTA_HEAD];
    let read = pack.read_at(&mut head, entry.data_offset).ok()?;
    let mut inflated = Vec::new();
    let inflate = ZlibDecoder::new(head.get(..read)?).take(20);
    // The input is cut off; the bytes until then count.
    let _ = { inflate }.read_to_end(&mut inflated);
    let mut bytes = inflated.into_iter();
    number(&mut bytes)?;
    number(&mut bytes)
}

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

    use testkit::git::{pack_bomb, padded_pack};

    use super::{
        crafted::{distance_of, entry, number_of},
        *,
    };
    use crate::Call;

    fn chain(size: u32, count: u32, by_name: bool) -> Vec<u8> {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend((count + 1).to_be_bytes());
        let mut last = pack.len();
        entry(&mut pack, 3, &vec![0; size as usize], &[]);
        for _ in 0..count {
            let [low, middle, high, _] = size.to_le_bytes();
            let delta = [number_of(size), number_of(size), vec![0xf0, low, middle, high]].concat();
            let (at, distance) = (pack.len(), pack.len() - last);
            match by_name {
                true => entry(&mut pack, 7, &delta, &[7; 20]),
                false => entry(&mut pack, 6, &delta, &distance_of(distance)),
            }
            last = at;
        }
        pack.extend([0; 20]);
        pack
    }

    fn measured(pack: &[u8], limits: &Limits) -> Result<u64, Error> {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let call = Call::new(Duration::from_secs(60));
        let clock = call.start_clock(runtime.handle().clone(), "u".to_owned());
        let needed = measure(&Spooled::InMemory(pack.to_vec()), limits, &clock, "u")?;
        Ok(needed.work)
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
    fn sizes_of_a_delta_may_stand_behind_long_tables_of_deflate() {
        // Many bytes with frequencies that differ in no order need long tables.
        let mut state = 1u64;
        let inserted = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let byte = ((state >> 33) & (state >> 41)) as u8;
            byte.wrapping_mul(167).wrapping_add(13)
        });
        let sizes = [number_of(100), number_of(70_000)].concat();
        let delta: Vec<u8> = sizes.into_iter().chain(inserted.take(60_000)).collect();
        let mut pack = b"PACK\0\0\0\x02\0\0\0\x02".to_vec();
        entry(&mut pack, 3, &[0; 100], &[]);
        let distance = distance_of(pack.len() - 12);
        entry(&mut pack, 6, &delta, &distance);
        pack.extend([0; 20]);
        let memory = measured(&pack, &Limits::default()).unwrap();
        assert!((70_000..200_000).contains(&memory), "{memory}");
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
