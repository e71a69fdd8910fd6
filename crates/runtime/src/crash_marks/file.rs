//! The file of the marks: a header, and a slot of fixed size for each mark, which is written by one system call.

use std::{
    fs::{File, OpenOptions, TryLockError},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    Subject,
    blame::{CAPACITY, Mark},
};

const SLOT: usize = 32;
const SIZE: usize = SLOT * (CAPACITY + 1);
const MAGIC: u64 = u64::from_le_bytes(*b"weirpass");
const VERSION: u64 = 1;
/// Number of processes of one controller and scope that may share a directory.
const PROCESSES: usize = 16;
/// Of a slot that is in use, so that no mark is all zeros.
const USED: u8 = 1;

/// The marks on disk. The lock on the file, which ends with the process, keeps other processes from it.
#[derive(Debug)]
pub(super) struct MarkFile {
    file: File,
    path: PathBuf,
    scope: u64,
}

impl MarkFile {
    /// Opens the first file that no living process has, and returns its marks: none if it is new, damaged or foreign.
    pub(super) fn open(dir: &Path, controller: &str, scope: &str) -> io::Result<(Self, Vec<Mark>)> {
        std::fs::create_dir_all(dir)?;
        let scope = checksum(&scope);
        // The name may be a flag.
        let controller = controller.replace('/', "-");
        for number in 0..PROCESSES {
            let path = dir.join(format!("{controller}-{scope:016x}-{number}.passes"));
            let mut options = OpenOptions::new();
            options
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600);
            let file = options.open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error),
            }
            let file = Self { file, path, scope };
            let marks = file.read()?;
            return Ok((file, marks));
        }
        Err(io::Error::other("other processes have all of its files"))
    }

    fn read(&self) -> io::Result<Vec<Mark>> {
        let length = self.file.metadata()?.len();
        if length == 0 {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; SIZE];
        let is_whole = length == SIZE as u64 && self.file.read_exact_at(&mut bytes, 0).is_ok();
        let (slots, _) = bytes.as_chunks::<SLOT>();
        let used = slots
            .split_first()
            .filter(|(header, _)| is_whole && **header == self.header());
        let Some((_, slots)) = used else {
            tracing::warn!(path = %self.path.display(), "the file of passes in progress is damaged or foreign: it is ignored");
            return Ok(Vec::new());
        };
        let used = slots.iter().filter(|slot| **slot != [0; SLOT]);
        let marks: Vec<_> = used.map(decode).collect();
        let damaged = marks.iter().filter(|mark| mark.is_none()).count();
        if damaged > 0 {
            tracing::warn!(damaged, path = %self.path.display(), "damaged marks of passes in progress are ignored");
        }
        Ok(marks.into_iter().flatten().collect())
    }

    fn header(&self) -> [u8; SLOT] {
        slot(MAGIC, self.scope, VERSION)
    }

    /// Writes the whole file, also the empty slots, so that no later write needs space.
    pub(super) fn rewrite<'a>(&self, marks: impl Iterator<Item = Option<&'a Mark>>) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(SIZE);
        bytes.extend(self.header());
        bytes.extend(marks.flat_map(encode));
        self.file.set_len(bytes.len() as u64)?;
        self.file.write_all_at(&bytes, 0)
    }

    pub(super) fn write(&self, number: usize, mark: Option<&Mark>) -> io::Result<()> {
        self.file
            .write_all_at(&encode(mark), ((number + 1) * SLOT) as u64)
    }

    pub(super) fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

fn encode(mark: Option<&Mark>) -> [u8; SLOT] {
    let Some(mark) = mark else { return [0; SLOT] };
    let flags = [
        USED,
        u8::from(mark.is_running),
        mark.points,
        mark.survived,
        0,
        0,
        0,
        0,
    ];
    slot(mark.subject.object, mark.subject.state, u64::from_le_bytes(flags))
}

fn decode(bytes: &[u8; SLOT]) -> Option<Mark> {
    let (words, _) = bytes.as_chunks::<8>();
    let [object, state, flags, _] = words else {
        return None;
    };
    let [object, state] = [object, state].map(|word| u64::from_le_bytes(*word));
    let [USED, is_running, points, survived, ..] = *flags else {
        return None;
    };
    let mark = Mark {
        subject: Subject { object, state },
        is_running: is_running != 0,
        points,
        survived,
    };
    (encode(Some(&mark)) == *bytes).then_some(mark)
}

/// Three words and their checksum.
fn slot(one: u64, two: u64, three: u64) -> [u8; SLOT] {
    let words = [one, two, three, checksum(&[one, two, three])];
    let mut bytes = [0; SLOT];
    for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    bytes
}

fn checksum(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
