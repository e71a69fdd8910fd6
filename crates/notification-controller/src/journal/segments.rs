//! The segments of a journal in a directory.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::record::{self, Found, Record};

/// Length from which the next segment is started, in bytes.
const LENGTH: u64 = 4 * 1024 * 1024;
/// Length of all segments from which the live events of the oldest move to the newest, in bytes; at least twice the length of the live events.
const MUCH: u64 = 8 * LENGTH;
/// Maximum length of a segment, in bytes.
const LONGEST: u64 = 64 * 1024 * 1024;
/// Maximum number of attempts to read an event, which may move in the meantime.
const READS: usize = 3;
const SUFFIX: &str = ".journal";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    segment: u64,
    at: u64,
    length: u32,
}

/// Reads live events while others are written; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    dir: PathBuf,
    live: Arc<Mutex<BTreeMap<u64, Position>>>,
}

#[derive(Debug, Default)]
pub(super) struct OpenSegment(Option<(u64, File)>);

impl OpenSegment {
    /// Returns the file of a segment, which stays open until another one is requested.
    fn get(&mut self, dir: &Path, number: u64) -> Option<&File> {
        if self.0.as_ref().is_none_or(|(open, _)| *open != number) {
            self.0 = Some((number, File::open(path(dir, number)).ok()?));
        }
        self.0.as_ref().map(|(_, file)| file)
    }
}

impl Reader {
    /// Returns the payload of a live event, or `None` if it can't be read. It blocks.
    pub(super) fn read(&self, id: u64, open: &mut OpenSegment) -> Option<Vec<u8>> {
        // An event may move to another segment after its position was read.
        (0..READS).find_map(|_| {
            let position = self.live.lock().get(&id).copied()?;
            let mut bytes = vec![0; usize::try_from(position.length).ok()?];
            let file = open.get(&self.dir, position.segment)?;
            file.read_exact_at(&mut bytes, position.at).ok()?;
            match record::decode(&bytes).next()?.record {
                Record::Add(found, payload) if found == id => Some(payload.to_vec()),
                _ => None,
            }
        })
    }
}

#[derive(Debug, Default)]
struct Segment {
    live: usize,
    length: u64,
    /// It has ends of single deliveries.
    has_parts: bool,
}

#[derive(Debug)]
pub(super) struct Segments {
    reader: Reader,
    segments: BTreeMap<u64, Segment>,
    /// Length of the records of live events, in bytes.
    bytes: u64,
    newest: u64,
    file: File,
    next: u64,
    /// Ends of events and deliveries whose record could not be written.
    unwritten: Vec<Ended>,
    _lock: File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Event(u64),
    Part(u64, u64),
}

/// An event of an earlier process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Live<T> {
    pub(super) id: u64,
    pub(super) length: u32,
    pub(super) parts: Vec<u64>,
    pub(super) summary: T,
}

impl Segments {
    /// Opens a directory, which is made if it is missing, and returns its live events, the oldest first, each with the result of `summarize` for
    /// its payload.
    pub(super) fn open<T>(dir: &Path, summarize: impl Fn(&[u8]) -> T) -> io::Result<(Self, Vec<Live<T>>)> {
        fs::create_dir_all(dir)?;
        let lock = File::create(dir.join("lock"))?;
        lock.try_lock()
            .map_err(|_| io::Error::other("another process uses the journal"))?;
        let numbers = numbers(dir)?;
        let mut left = Leftovers::default();
        let mut segments = BTreeMap::new();
        for number in &numbers {
            let bytes = read(&path(dir, *number))?;
            let state = Segment {
                live: 0,
                length: bytes.len() as u64,
                has_parts: left.take(*number, &bytes, &summarize),
            };
            segments.insert(*number, state);
        }
        for (position, _) in left.events.values() {
            segments.entry(position.segment).or_default().live += 1;
        }
        let newest = numbers.last().map_or(1, |last| last.saturating_add(1));
        segments.insert(newest, Segment::default());
        let file = create(dir, newest)?;
        let positions = left.events.iter().map(|(id, (position, _))| (*id, *position));
        let live: BTreeMap<u64, Position> = positions.collect();
        let mut opened = Self {
            bytes: live.values().map(|position| u64::from(position.length)).sum(),
            reader: Reader {
                dir: dir.to_owned(),
                live: Arc::new(Mutex::new(live)),
            },
            segments,
            newest,
            file,
            next: left.next,
            unwritten: Vec::new(),
            _lock: lock,
        };
        opened.sweep();
        Ok((opened, left.into_live()))
    }

    pub(super) fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// Returns the number of events that are not done.
    pub(super) fn live(&self) -> usize {
        self.reader.live.lock().len()
    }

    /// Returns the length of the records of all events that are not done, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next
    }

    /// Writes records, and waits for the disk if there are new events. Returns the bytes of the events that ended.
    pub(super) fn write(&mut self, adds: &[(u64, Vec<u8>)], ended: &[Ended]) -> io::Result<u64> {
        self.unwritten.extend_from_slice(ended);
        let (mut bytes, mut added) = (Vec::new(), Vec::new());
        for ended in &self.unwritten {
            let record = match ended {
                Ended::Event(id) => Record::Done(*id),
                Ended::Part(id, part) => Record::Part(*id, *part),
            };
            record::encode(&record, &mut bytes);
        }
        for (id, payload) in adds {
            let at = bytes.len();
            record::encode(&Record::Add(*id, payload), &mut bytes);
            added.push((*id, at, bytes.len() - at));
        }
        let begin = self.append(&bytes, !adds.is_empty())?;
        let before = self.bytes;
        for ended in std::mem::take(&mut self.unwritten) {
            match ended {
                Ended::Event(id) => self.remove(id),
                Ended::Part(..) => self.segments.entry(self.newest).or_default().has_parts = true,
            }
        }
        let released = before.saturating_sub(self.bytes);
        for (id, at, length) in added {
            self.insert(id, begin, at, length);
        }
        // The records are safe, even if the following clean-up fails.
        if let Err(error) = self.tidy() {
            tracing::warn!(%error, "segments of the journal of events cannot be replaced");
        }
        Ok(released)
    }

    fn insert(&mut self, id: u64, begin: u64, at: usize, length: usize) {
        self.remove(id);
        let position = Position {
            segment: self.newest,
            at: begin + at as u64,
            length: u32::try_from(length).unwrap_or(u32::MAX),
        };
        self.bytes += u64::from(position.length);
        self.segments.entry(position.segment).or_default().live += 1;
        self.reader.live.lock().insert(id, position);
    }

    fn remove(&mut self, id: u64) {
        let Some(position) = self.reader.live.lock().remove(&id) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(u64::from(position.length));
        if let Some(segment) = self.segments.get_mut(&position.segment) {
            segment.live = segment.live.saturating_sub(1);
        }
    }

    fn length(&self) -> u64 {
        self.segments
            .get(&self.newest)
            .map_or(0, |segment| segment.length)
    }

    fn tidy(&mut self) -> io::Result<()> {
        self.sweep();
        if self.length() > LENGTH {
            self.begin()?;
        }
        // One round over all segments leaves nothing but live events.
        for _ in 0..self.segments.len() {
            let all: u64 = self.segments.values().map(|segment| segment.length).sum();
            if all <= MUCH.max(2 * self.bytes) {
                break;
            }
            self.compact()?;
            if self.length() > LENGTH {
                self.begin()?;
            }
        }
        Ok(())
    }

    /// Appends bytes to the newest segment, and returns their offset.
    fn append(&mut self, bytes: &[u8], sync: bool) -> io::Result<u64> {
        let written = self
            .file
            .write_all(bytes)
            .and_then(|()| if sync { self.file.sync_data() } else { Ok(()) });
        match written {
            Ok(()) => {
                let segment = self.segments.entry(self.newest).or_default();
                let begin = segment.length;
                segment.length += bytes.len() as u64;
                Ok(begin)
            }
            Err(error) => {
                // Nothing after half a record can be read: the next record starts a segment.
                self.begin()?;
                Err(error)
            }
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        let number = self.newest.saturating_add(1);
        self.file = create(&self.reader.dir, number)?;
        self.newest = number;
        self.segments.insert(number, Segment::default());
        Ok(())
    }

    /// Removes segments without live events, from the oldest: the ends of events are in later segments than the events.
    fn sweep(&mut self) {
        while let Some((number, 0)) = self
            .segments
            .first_key_value()
            .map(|(number, segment)| (*number, segment.live))
            && number != self.newest
            && self.take_over(number).is_ok()
            && fs::remove_file(path(&self.reader.dir, number)).is_ok()
        {
            self.segments.remove(&number);
        }
    }

    fn compact(&mut self) -> io::Result<()> {
        let oldest = self.segments.first_key_value().map(|(number, _)| *number);
        let Some(oldest) = oldest.filter(|number| *number != self.newest) else {
            return Ok(());
        };
        let read = read(&path(&self.reader.dir, oldest))?;
        let (mut bytes, mut moved) = (Vec::new(), Vec::new());
        for Found { record, .. } in record::decode(&read) {
            if let Record::Add(id, _) = record
                && self
                    .reader
                    .live
                    .lock()
                    .get(&id)
                    .is_some_and(|position| position.segment == oldest)
            {
                let at = bytes.len();
                record::encode(&record, &mut bytes);
                moved.push((id, at, bytes.len() - at));
            }
        }
        let begin = self.append(&bytes, true)?;
        for (id, at, length) in moved {
            self.insert(id, begin, at, length);
        }
        self.sweep();
        Ok(())
    }

    /// Repeats the ends of deliveries of a segment that is about to be removed, if their events are live.
    fn take_over(&mut self, number: u64) -> io::Result<()> {
        if !self
            .segments
            .get(&number)
            .is_some_and(|segment| segment.has_parts)
        {
            return Ok(());
        }
        let read = read(&path(&self.reader.dir, number))?;
        let mut bytes = Vec::new();
        for Found { record, .. } in record::decode(&read) {
            if let Record::Part(id, _) = record
                && self.reader.live.lock().contains_key(&id)
            {
                record::encode(&record, &mut bytes);
            }
        }
        if !bytes.is_empty() {
            self.append(&bytes, false)?;
            self.segments.entry(self.newest).or_default().has_parts = true;
        }
        Ok(())
    }
}

struct Leftovers<T> {
    events: BTreeMap<u64, (Position, T)>,
    parts: BTreeMap<u64, Vec<u64>>,
    next: u64,
}

impl<T> Default for Leftovers<T> {
    fn default() -> Self {
        Self {
            events: BTreeMap::new(),
            parts: BTreeMap::new(),
            next: 1,
        }
    }
}

impl<T> Leftovers<T> {
    /// Adds the records of a segment, and returns true if it has ends of single deliveries.
    fn take(&mut self, segment: u64, bytes: &[u8], summarize: impl Fn(&[u8]) -> T) -> bool {
        let mut has_parts = false;
        for Found { at, length, record } in record::decode(bytes) {
            let (Record::Add(id, _) | Record::Done(id) | Record::Part(id, _)) = record;
            self.next = self.next.max(id.saturating_add(1));
            match record {
                Record::Add(id, payload) => {
                    let position = Position {
                        segment,
                        at: at as u64,
                        length: u32::try_from(length).unwrap_or(u32::MAX),
                    };
                    self.events.insert(id, (position, summarize(payload)));
                }
                Record::Done(id) => {
                    self.events.remove(&id);
                    self.parts.remove(&id);
                }
                Record::Part(id, part) => {
                    has_parts = true;
                    self.parts.entry(id).or_default().push(part);
                }
            }
        }
        has_parts
    }

    fn into_live(mut self) -> Vec<Live<T>> {
        let live = self.events.into_iter().map(|(id, (position, summary))| Live {
            id,
            length: position.length,
            parts: self.parts.remove(&id).unwrap_or_default(),
            summary,
        });
        live.collect()
    }
}

/// Returns the numbers of the segments of a directory, the oldest first.
fn numbers(dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_suffix(SUFFIX)?.parse::<u64>().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:020}{SUFFIX}"))
}

fn create(dir: &Path, number: u64) -> io::Result<File> {
    let file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(path(dir, number))?;
    // Syncs the directory entry of the file, too.
    File::open(dir)?.sync_all()?;
    Ok(file)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
