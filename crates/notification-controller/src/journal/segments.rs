//! The segments of a journal in a directory.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use super::record::{self, Record};

/// Length from which the next segment begins, in bytes.
const LENGTH: u64 = 4 * 1024 * 1024;
/// Segments from which the live events of the oldest move to the newest.
const MANY: usize = 8;
/// The longest segment that is read, in bytes; none is written that is longer.
const LONGEST: u64 = 64 * 1024 * 1024;
const SUFFIX: &str = ".journal";

/// The segments of a directory, and which of them has which live event.
#[derive(Debug)]
pub(super) struct Segments {
    dir: PathBuf,
    /// Segments by number, with the number of their live events.
    segments: BTreeMap<u64, usize>,
    live: BTreeMap<u64, u64>,
    newest: u64,
    file: File,
    length: u64,
    next: u64,
    /// Events that ended, and whose record could not be written.
    unwritten: Vec<u64>,
    _lock: File,
}

type Live = Vec<(u64, Vec<u8>)>;

impl Segments {
    /// Opens a directory, which is made if it is missing, and returns its live events, the oldest first.
    pub(super) fn open(dir: &Path) -> io::Result<(Self, Live)> {
        fs::create_dir_all(dir)?;
        let lock = File::create(dir.join("lock"))?;
        lock.try_lock()
            .map_err(|_| io::Error::other("another process uses the journal"))?;
        let mut numbers = Vec::new();
        for entry in fs::read_dir(dir)? {
            let name = entry?.file_name();
            let number = name
                .to_str()
                .and_then(|name| name.strip_suffix(SUFFIX)?.parse::<u64>().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        let (mut payloads, mut next) = (BTreeMap::new(), 1);
        for number in &numbers {
            let bytes = read(&path(dir, *number))?;
            for record in record::decode(&bytes) {
                let (Record::Add(id, _) | Record::Done(id)) = record;
                next = next.max(id.saturating_add(1));
                match record {
                    Record::Add(id, payload) => drop(payloads.insert(id, (*number, payload.to_vec()))),
                    Record::Done(id) => drop(payloads.remove(&id)),
                }
            }
        }
        let mut segments: BTreeMap<u64, usize> = numbers.iter().map(|number| (*number, 0)).collect();
        let newest = numbers.last().map_or(1, |last| last.saturating_add(1));
        let mut live = BTreeMap::new();
        for (id, (number, _)) in &payloads {
            live.insert(*id, *number);
            *segments.entry(*number).or_default() += 1;
        }
        segments.insert(newest, 0);
        let file = create(dir, newest)?;
        let left = payloads
            .into_iter()
            .map(|(id, (_, payload))| (id, payload))
            .collect();
        let mut opened = Self {
            dir: dir.to_owned(),
            segments,
            live,
            newest,
            file,
            length: 0,
            next,
            unwritten: Vec::new(),
            _lock: lock,
        };
        opened.sweep();
        Ok((opened, left))
    }

    /// Returns the number of events that are not done.
    pub(super) fn live(&self) -> usize {
        self.live.len()
    }

    /// Returns the first ID that was never used.
    pub(super) fn next_id(&self) -> u64 {
        self.next
    }

    /// Writes records, and waits for the disk if there are new events.
    pub(super) fn write(&mut self, adds: &[(u64, Vec<u8>)], done: &[u64]) -> io::Result<()> {
        self.unwritten.extend_from_slice(done);
        let mut bytes = Vec::new();
        for id in &self.unwritten {
            record::encode(&Record::Done(*id), &mut bytes);
        }
        for (id, payload) in adds {
            record::encode(&Record::Add(*id, payload), &mut bytes);
        }
        self.append(&bytes, !adds.is_empty())?;
        for id in std::mem::take(&mut self.unwritten) {
            if let Some(number) = self.live.remove(&id)
                && let Some(count) = self.segments.get_mut(&number)
            {
                *count = count.saturating_sub(1);
            }
        }
        for (id, _) in adds {
            self.live.insert(*id, self.newest);
            *self.segments.entry(self.newest).or_default() += 1;
        }
        // The records are safe, whatever happens to the files now.
        if let Err(error) = self.tidy() {
            tracing::warn!(%error, "segments of the journal of events cannot be replaced");
        }
        Ok(())
    }

    /// Removes, begins and compacts segments as it is time.
    fn tidy(&mut self) -> io::Result<()> {
        self.sweep();
        if self.length > LENGTH {
            self.begin()?;
        }
        if self.segments.len() > MANY {
            self.compact()?;
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8], sync: bool) -> io::Result<()> {
        let written = self
            .file
            .write_all(bytes)
            .and_then(|()| if sync { self.file.sync_data() } else { Ok(()) });
        match written {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Nothing behind half a record can be read: the next one begins a segment.
                self.begin()?;
                Err(error)
            }
        }
    }

    /// Begins the next segment.
    fn begin(&mut self) -> io::Result<()> {
        let number = self.newest.saturating_add(1);
        self.file = create(&self.dir, number)?;
        (self.newest, self.length) = (number, 0);
        self.segments.insert(number, 0);
        Ok(())
    }

    /// Removes segments without live events, from the oldest: the ends of events are in later segments than the events.
    fn sweep(&mut self) {
        while let Some((number, 0)) = self
            .segments
            .first_key_value()
            .map(|(number, count)| (*number, *count))
            && number != self.newest
            && fs::remove_file(path(&self.dir, number)).is_ok()
        {
            self.segments.remove(&number);
        }
    }

    /// Moves the live events of the oldest segment to the newest.
    fn compact(&mut self) -> io::Result<()> {
        let Some((oldest, _)) = self
            .segments
            .first_key_value()
            .map(|(number, count)| (*number, *count))
        else {
            return Ok(());
        };
        let read = read(&path(&self.dir, oldest))?;
        let (mut bytes, mut moved) = (Vec::new(), Vec::new());
        for record in record::decode(&read) {
            if let Record::Add(id, _) = record
                && self.live.get(&id) == Some(&oldest)
            {
                record::encode(&record, &mut bytes);
                moved.push(id);
            }
        }
        self.append(&bytes, true)?;
        for id in moved {
            self.live.insert(id, self.newest);
            *self.segments.entry(self.newest).or_default() += 1;
        }
        self.segments.insert(oldest, 0);
        self.sweep();
        Ok(())
    }
}

fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:020}{SUFFIX}"))
}

fn create(dir: &Path, number: u64) -> io::Result<File> {
    let file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(path(dir, number))?;
    // So that the file itself survives, too.
    File::open(dir)?.sync_all()?;
    Ok(file)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count() - 1
    }

    #[test]
    fn a_stuck_event_moves_and_segments_stay_few() {
        let dir = tempfile::tempdir().unwrap();
        let (mut segments, _) = Segments::open(dir.path()).unwrap();
        segments.write(&[(1, b"stuck".to_vec())], &[]).unwrap();
        let large = vec![b'x'; 1024 * 1024];
        for id in 2..60 {
            segments.write(&[(id, large.clone())], &[]).unwrap();
            segments.write(&[], &[id]).unwrap();
        }
        assert!(files(dir.path()) <= MANY, "{}", files(dir.path()));
        drop(segments);
        let (segments, live) = Segments::open(dir.path()).unwrap();
        assert_eq!((live, segments.next_id()), (vec![(1, b"stuck".to_vec())], 60));
    }

    #[test]
    fn torn_write_loses_nothing_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let (mut segments, _) = Segments::open(dir.path()).unwrap();
        segments
            .write(&[(1, b"a".to_vec()), (2, b"b".to_vec())], &[])
            .unwrap();
        segments.write(&[], &[1]).unwrap();
        let file = path(dir.path(), segments.newest);
        drop(segments);
        OpenOptions::new()
            .append(true)
            .open(&file)
            .unwrap()
            .write_all(&[9, 0, 0, 0, 7])
            .unwrap();
        let (mut segments, live) = Segments::open(dir.path()).unwrap();
        assert_eq!(live, [(2, b"b".to_vec())]);
        segments.write(&[(3, b"c".to_vec())], &[2]).unwrap();
        assert_eq!(files(dir.path()), 1);
        drop(segments);
        assert_eq!(Segments::open(dir.path()).unwrap().1, [(3, b"c".to_vec())]);
    }
}
