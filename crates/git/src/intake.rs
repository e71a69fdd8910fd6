//! Bounds of what servers send: bytes, memory and pace, for every transport.

use std::{
    io,
    sync::{
        Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tree::{ByteBudgetError, Share, Tenant};

use crate::{Error, Holdings, Pace, clock::Clock, holdings::Held, lock::lock};

/// Bytes of memory that a byte of a list of refs becomes: the shortest line has 47 bytes.
const REFS_GROWTH: u64 = 8;
/// Bytes of memory that are taken for the handshake before a list of refs, which has one or two lines.
const HANDSHAKE: u64 = 1 << 20;
/// Bytes of memory that are taken for the paths of a pack together with its own: some ten thousand paths.
const PATHS: u64 = 8 << 20;

/// Maximum number of answers for one purpose: a pack needs a single one if nothing is there yet, and few to agree about what is.
const MAX_ANSWERS: u32 = 64;

/// The shares of a tenant, and what the pass of a session holds of them.
pub(crate) struct Shares {
    pub(crate) memory: Tenant,
    pub(crate) disk: Tenant,
    pub(crate) holdings: Holdings,
}

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
    disk: Tenant,
    holdings: Holdings,
    /// The memory of the lists of refs of this session, until a pack is allowed.
    refs: Mutex<Option<Share>>,
    /// Initial value of `allowance`, and its name.
    limit: Mutex<(u64, &'static str)>,
    /// The first failure; gix only passes its message on.
    failure: Mutex<Option<Error>>,
}

impl Intake {
    pub(crate) fn new(shown: String, clock: Clock, of_tenant: Shares, slowest: Pace) -> Self {
        let Shares {
            memory,
            disk,
            holdings,
        } = of_tenant;
        Self {
            shown,
            clock,
            slowest,
            stretch: Mutex::default(),
            allowance: AtomicU64::new(0),
            answers: AtomicU32::new(0),
            memory,
            disk,
            holdings,
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

    /// Lets the next answers bring `bytes` of a pack in all, which go to memory or to the disk.
    pub(crate) fn allow_pack(&self, bytes: u64) {
        *lock(&self.refs) = None;
        self.set_allowance(bytes, "bytes of a pack");
    }

    /// Takes the memory of the longest list of refs at once, as far as the pass leaves it. No list is held while it is waited for, so that
    /// sessions with lists never wait for each other.
    pub(crate) fn reserve_refs(&self, bytes: u64) -> Result<(), Error> {
        *lock(&self.refs) = None;
        let needed = bytes.saturating_mul(REFS_GROWTH).saturating_add(HANDSHAKE);
        let left = self
            .memory
            .most()
            .saturating_sub(self.held(|held| held.memory.reserved()));
        let mut share = self.memory.share();
        let reserved = self.clock.wait_for_own(share.reserve(needed.min(left)))?;
        reserved.map_err(|why| self.no_room("the list of refs", why))?;
        *lock(&self.refs) = Some(share);
        Ok(())
    }

    /// Takes bytes of memory for an indexed pack, beyond those of an earlier one of the pass, and some for its paths, waiting for those that
    /// others hold.
    pub(crate) fn take_memory(&self, bytes: u64) -> Result<(), Error> {
        self.held(|held| {
            let more = bytes.saturating_sub(held.pack);
            let left = self.memory.most().saturating_sub(held.memory.bytes());
            let reserved = held.memory.reserve(more.saturating_add(PATHS).min(left));
            let reserved = self.clock.wait_for_own(reserved)?;
            let grown = reserved.and_then(|()| held.memory.try_grow(more));
            grown.map_err(|why| self.no_room("the pack", why))?;
            held.pack += more;
            Ok(())
        })
    }

    /// Takes what [`Intake::take_memory`] does if nothing must be waited for, and returns true then.
    pub(crate) fn try_take_memory(&self, bytes: u64) -> bool {
        self.held(|held| {
            let more = bytes.saturating_sub(held.pack);
            let reserved = self.clock.runtime().block_on(async {
                let reserved = held.memory.reserve(more.saturating_add(PATHS));
                tokio::time::timeout(Duration::ZERO, reserved).await
            });
            let is_there = matches!(reserved, Ok(Ok(()))) && held.memory.try_grow(more).is_ok();
            held.pack += if is_there { more } else { 0 };
            is_there
        })
    }

    /// Takes bytes of memory for a pack that is kept there, and returns true if they are free.
    pub(crate) fn try_keep(&self, bytes: u64) -> bool {
        self.held(|held| {
            let is_there = held.memory.try_grow(bytes).is_ok();
            held.kept += if is_there { bytes } else { 0 };
            is_there
        })
    }

    /// Returns the bytes of memory of packs that are kept there.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.held(|held| held.kept)
    }

    /// Gives back bytes of memory of a pack that was kept there.
    pub(crate) fn give_back_kept(&self, bytes: u64) {
        self.held(|held| {
            held.kept = held.kept.saturating_sub(bytes);
            held.memory.shrink(bytes);
        });
    }

    /// Counts bytes of temporary files.
    pub(crate) fn take_disk(&self, bytes: u64) -> Result<(), Error> {
        let grown = self.held(|held| held.disk.try_grow(bytes));
        grown.map_err(|why| self.no_space(why))
    }

    /// Takes the space of the largest pack at once, as far as the pass leaves it, waiting for what others hold.
    pub(crate) fn reserve_disk(&self, bytes: u64) -> Result<(), Error> {
        self.held(|held| {
            let left = self.disk.most().saturating_sub(held.disk.bytes());
            let reserved = self.clock.wait_for_own(held.disk.reserve(bytes.min(left)))?;
            reserved.map_err(|why| self.no_space(why))
        })
    }

    /// Returns the bytes of temporary files of the pass.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.held(|held| held.disk.bytes())
    }

    /// Gives back bytes of temporary files that were removed.
    pub(crate) fn give_back_disk(&self, bytes: u64) {
        self.held(|held| held.disk.shrink(bytes));
    }

    /// Returns what the pass holds.
    pub(crate) fn holdings(&self) -> Holdings {
        self.holdings.clone()
    }

    /// Works with what the pass holds, which one fetch at a time does.
    fn held<T>(&self, work: impl FnOnce(&mut Held) -> T) -> T {
        self.holdings.with(&self.memory, &self.disk, work)
    }

    fn no_space(&self, why: ByteBudgetError) -> Error {
        Error::Space {
            url: self.shown.clone(),
            why,
        }
    }

    fn no_room(&self, what: &'static str, why: ByteBudgetError) -> Error {
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
