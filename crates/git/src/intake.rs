//! Bounds of what servers send: bytes, memory and pace, for every transport.

use std::{
    io,
    sync::{
        Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Instant,
};

use tree::{MemoryError, Share, Tenant};

use crate::{Error, Pace, clock::Clock, wire::lock};

/// Bytes of memory that a byte of a list of refs becomes: the shortest line has 47 bytes.
const REFS_GROWTH: u64 = 8;
/// Bytes of memory that are taken for the handshake before a list of refs, which has one or two lines.
const HANDSHAKE: u64 = 1 << 20;
/// Bytes of memory that are taken for the paths of a pack together with its own: some ten thousand paths.
const PATHS: u64 = 8 << 20;

/// Maximum number of answers for one purpose: a pack needs a single one if nothing is there yet, and few to agree about what is.
const MAX_ANSWERS: u32 = 64;

/// Bounds of what a session may still receive, and its first failure.
pub(crate) struct Intake {
    /// The URL of the repository in messages.
    shown: String,
    clock: Clock,
    /// The slowest transfer.
    slowest: Pace,
    /// Start of the current stretch of an answer, and the bytes that came since.
    stretch: Mutex<Option<(Instant, u64)>>,
    /// Bytes that answers may still bring.
    allowance: AtomicU64,
    /// Number of answers since it was set.
    answers: AtomicU32,
    memory: Tenant,
    /// The memory of the lists of refs of this session, until a pack is allowed.
    refs: Mutex<Option<Share>>,
    /// Initial value of `allowance`, and its name.
    limit: Mutex<(u64, &'static str)>,
    /// The first failure; gix only passes its message on.
    failure: Mutex<Option<Error>>,
}

impl Intake {
    pub(crate) fn new(shown: String, clock: Clock, memory: Tenant, slowest: Pace) -> Self {
        Self {
            shown,
            clock,
            slowest,
            stretch: Mutex::default(),
            allowance: AtomicU64::new(0),
            answers: AtomicU32::new(0),
            memory,
            refs: Mutex::default(),
            limit: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// Begins a new answer, whose pace is measured from its first bytes. Fails if a server lets itself be asked again and again.
    pub(crate) fn begin(&self) -> Result<(), Error> {
        *lock(&self.stretch) = None;
        match self.answers.fetch_add(1, Ordering::Relaxed) < MAX_ANSWERS {
            true => Ok(()),
            false => Err(Error::Protocol {
                url: self.shown.clone(),
                why: format!("it has answered {MAX_ANSWERS} requests without sending what they ask for"),
            }),
        }
    }

    /// Lets the next answers bring `bytes` of refs in all, which are counted in memory.
    pub(crate) fn allow_refs(&self, bytes: u64) {
        lock(&self.refs).get_or_insert_with(|| self.memory.share());
        self.set_allowance(bytes, "bytes of a list of refs");
    }

    /// Lets the next answers bring `bytes` of a pack in all, which go to the disk.
    pub(crate) fn allow_pack(&self, bytes: u64) {
        *lock(&self.refs) = None;
        self.set_allowance(bytes, "bytes of a pack");
    }

    /// Takes the memory of the longest list of refs at once. Nothing is held while it is waited for, so that sessions with lists
    /// never wait for each other.
    pub(crate) fn reserve_refs(&self, bytes: u64) -> Result<(), Error> {
        *lock(&self.refs) = None;
        let needed = bytes.saturating_mul(REFS_GROWTH).saturating_add(HANDSHAKE);
        let share = self.reserve(needed, "the list of refs")?;
        *lock(&self.refs) = Some(share);
        Ok(())
    }

    /// Takes bytes of memory for an indexed pack, and some for its paths, waiting for those that others hold.
    pub(crate) fn take_memory(&self, bytes: u64) -> Result<Share, Error> {
        let mut share = self.reserve(bytes.saturating_add(PATHS), "the pack")?;
        let grown = share.try_grow(bytes);
        grown.map_err(|why| self.no_room("the pack", why))?;
        Ok(share)
    }

    /// Returns a share without any bytes yet.
    pub(crate) fn no_memory(&self) -> Share {
        self.memory.share()
    }

    /// Reserves bytes, or the most that a tenant may have.
    fn reserve(&self, bytes: u64, what: &'static str) -> Result<Share, Error> {
        let mut share = self.memory.share();
        let reserved = share.reserve(bytes.min(self.memory.most()));
        let reserved = self.clock.wait_for_own(reserved)?;
        reserved.map_err(|why| self.no_room(what, why))?;
        Ok(share)
    }

    fn no_room(&self, what: &'static str, why: MemoryError) -> Error {
        Error::Memory {
            url: self.shown.clone(),
            what,
            why,
        }
    }

    fn set_allowance(&self, bytes: u64, what: &'static str) {
        *lock(&self.limit) = (bytes, what);
        self.answers.store(0, Ordering::Relaxed);
        self.allowance.store(bytes, Ordering::Relaxed);
    }

    /// The failure behind an error of gix, if it was ours.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        lock(&self.failure).take()
    }

    pub(crate) fn fail(&self, error: Error) -> io::Error {
        let text = error.to_string();
        lock(&self.failure).get_or_insert(error);
        io::Error::other(text)
    }

    /// Fails if an answer is so slow that it holds up others: less than the slowest pace in a stretch of that time.
    fn check_pace(&self, len: u64) -> Result<(), Error> {
        let now = Instant::now();
        let mut stretch = lock(&self.stretch);
        let (since, before) = stretch.unwrap_or((now, 0));
        let bytes = before + len;
        if now.saturating_duration_since(since) < self.slowest.time {
            *stretch = Some((since, bytes));
            return Ok(());
        }
        *stretch = Some((now, 0));
        if bytes >= self.slowest.bytes {
            return Ok(());
        }
        let time = self.slowest.time.as_secs_f32();
        Err(Error::Network {
            url: self.shown.clone(),
            why: format!("the server is too slow: it sent {bytes} bytes in {time} s"),
        })
    }

    /// Counts bytes of an answer.
    pub(crate) fn take(&self, len: u64) -> Result<(), Error> {
        self.check_pace(len)?;
        let spent = |left: u64| left.checked_sub(len);
        if self
            .allowance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent)
            .is_err()
        {
            let (limit, what) = *lock(&self.limit);
            return Err(Error::Limit {
                what,
                limit,
                of: format!(" by '{}'", self.shown),
            });
        }
        if let Some(share) = &mut *lock(&self.refs) {
            let grown = share.try_grow(len.saturating_mul(REFS_GROWTH));
            grown.map_err(|why| self.no_room("the list of refs", why))?;
        }
        Ok(())
    }
}
