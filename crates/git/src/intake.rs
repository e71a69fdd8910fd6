//! Limits of server answers: bytes, memory and pace, for every transport.

use std::{
    io,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use limits::{ByteBudgetError, Share, Tenant};
use parking_lot::Mutex;

use crate::{Error, Pace, Reservations, clock::Clock, reservations::Reserved};

/// Bytes of memory per byte of a list of refs: the shortest line has 47 bytes.
const REFS_GROWTH: u64 = 8;
/// Bytes of memory for the handshake before a list of refs, which has one or two lines.
const HANDSHAKE: u64 = 1 << 20;
/// Bytes of memory that are reserved for the paths of a pack: about ten thousand.
const PATHS: u64 = 8 << 20;

/// Fewest bytes that are reserved for another attempt, halved.
const FIRST_RESERVATION: u64 = 1 << 20;

/// Maximum number of answers for one purpose: a pack needs one without negotiation, and a few with it.
const MAX_ANSWERS: u32 = 64;

pub(crate) struct Shares {
    pub(crate) memory: Tenant,
    pub(crate) disk: Tenant,
    pub(crate) reservations: Reservations,
}

pub(crate) struct Intake {
    safe_url: String,
    clock: Clock,
    slowest: Pace,
    /// Start of the current interval of an answer, and the bytes received since.
    stretch: Mutex<Option<(Instant, u64)>>,
    allowance: AtomicU64,
    answers: AtomicU32,
    memory: Tenant,
    disk: Tenant,
    reservations: Reservations,
    /// Memory of this session's lists of refs, until a pack is allowed.
    refs: Mutex<Option<Share>>,
    /// Bytes of memory that the last refused list of refs needed until then.
    refused_refs: AtomicU64,
    /// Bytes of temporary files that the last refused pack needed until then.
    refused_disk: AtomicU64,
    /// Initial value of `allowance`, and its name.
    limit: Mutex<(u64, &'static str)>,
    failure: Mutex<Option<Error>>,
}

impl Intake {
    pub(crate) fn new(safe_url: String, clock: Clock, of_tenant: Shares, slowest: Pace) -> Self {
        let Shares {
            memory,
            disk,
            reservations,
        } = of_tenant;
        Self {
            safe_url,
            clock,
            slowest,
            stretch: Mutex::default(),
            allowance: AtomicU64::new(0),
            answers: AtomicU32::new(0),
            memory,
            disk,
            reservations,
            refs: Mutex::default(),
            refused_refs: AtomicU64::new(0),
            refused_disk: AtomicU64::new(0),
            limit: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// Starts a new answer, whose pace is measured from its first bytes. Fails if there were too many answers.
    pub(crate) fn begin(&self) -> Result<(), Error> {
        *self.stretch.lock() = None;
        match self.answers.fetch_add(1, Ordering::Relaxed) < MAX_ANSWERS {
            true => Ok(()),
            false => Err(Error::Protocol {
                url: self.safe_url.clone(),
                why: format!("it has answered {MAX_ANSWERS} requests without sending what they ask for"),
            }),
        }
    }

    pub(crate) fn allow_refs(&self, bytes: u64) {
        self.refs.lock().get_or_insert_with(|| self.memory.share());
        self.set_allowance(bytes, "bytes of a list of refs");
    }

    pub(crate) fn allow_pack(&self, bytes: u64) {
        *self.refs.lock() = None;
        self.set_allowance(bytes, "bytes of a pack");
    }

    /// Reserves twice the memory that the last list of refs was refused, as far as the pass has not reserved it, and at most enough for
    /// a list of `bytes`. The session has no list while it waits, so that sessions with lists never wait for each other.
    pub(crate) fn reserve_refs(&self, bytes: u64) -> Result<(), Error> {
        *self.refs.lock() = None;
        let most = bytes.saturating_mul(REFS_GROWTH);
        let needed = more_than(self.refused_refs.load(Ordering::Relaxed), most).saturating_add(HANDSHAKE);
        let left = self
            .memory
            .most()
            .saturating_sub(self.with_reserved(|own| own.memory.reserved()));
        let mut share = self.memory.share();
        let reserved = self.clock.wait_for_own(share.reserve(needed.min(left)))?;
        reserved.map_err(|why| self.out_of_memory("the list of refs", why))?;
        *self.refs.lock() = Some(share);
        Ok(())
    }

    /// Reserves memory for an indexed pack, beyond an earlier one of the pass, and for its paths. Waits for memory that others
    /// have.
    pub(crate) fn take_memory(&self, bytes: u64) -> Result<(), Error> {
        self.with_reserved(|own| {
            let more = bytes.saturating_sub(own.pack);
            let left = self.memory.most().saturating_sub(own.memory.bytes());
            let reserved = own.memory.reserve(more.saturating_add(PATHS).min(left));
            let reserved = self.clock.wait_for_own(reserved)?;
            let grown = reserved.and_then(|()| own.memory.try_grow(more));
            grown.map_err(|why| self.out_of_memory("the pack", why))?;
            own.pack += more;
            Ok(())
        })
    }

    /// Does the same as [`Intake::take_memory`] without waiting. Returns false if it would have to wait.
    pub(crate) fn try_take_memory(&self, bytes: u64) -> bool {
        self.with_reserved(|own| {
            let more = bytes.saturating_sub(own.pack);
            let reserved = self.clock.runtime().block_on(async {
                let reserved = own.memory.reserve(more.saturating_add(PATHS));
                tokio::time::timeout(Duration::ZERO, reserved).await
            });
            let is_there = matches!(reserved, Ok(Ok(()))) && own.memory.try_grow(more).is_ok();
            own.pack += if is_there { more } else { 0 };
            is_there
        })
    }

    pub(crate) fn try_take_small_pack(&self, bytes: u64) -> bool {
        self.with_reserved(|own| {
            let is_there = own.memory.try_grow(bytes).is_ok();
            own.small_packs += if is_there { bytes } else { 0 };
            is_there
        })
    }

    pub(crate) fn small_pack_bytes(&self) -> u64 {
        self.with_reserved(|own| own.small_packs)
    }

    pub(crate) fn release_small_pack(&self, bytes: u64) {
        self.with_reserved(|own| {
            own.small_packs = own.small_packs.saturating_sub(bytes);
            own.memory.shrink(bytes);
        });
    }

    pub(crate) fn take_disk(&self, bytes: u64) -> Result<(), Error> {
        let grown = self.with_reserved(|own| {
            let (before, grown) = (own.disk.bytes(), own.disk.try_grow(bytes));
            let needed = if grown.is_ok() {
                0
            } else {
                before.saturating_add(bytes)
            };
            self.refused_disk.store(needed, Ordering::Relaxed);
            grown
        });
        grown.map_err(|why| self.no_space(why))
    }

    /// Reserves twice the space that the last pack was refused, at most `most` bytes, as far as the pass has not reserved it. Waits for
    /// space that others have.
    pub(crate) fn reserve_disk(&self, most: u64) -> Result<(), Error> {
        let refused = self.refused_disk.load(Ordering::Relaxed);
        self.with_reserved(|own| {
            let needed = more_than(refused.saturating_sub(own.disk.bytes()), most);
            let left = self.disk.most().saturating_sub(own.disk.bytes());
            let reserved = self.clock.wait_for_own(own.disk.reserve(needed.min(left)))?;
            reserved.map_err(|why| self.no_space(why))
        })
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        self.with_reserved(|own| own.disk.bytes())
    }

    pub(crate) fn release_disk(&self, bytes: u64) {
        self.with_reserved(|own| own.disk.shrink(bytes));
    }

    pub(crate) fn reservations(&self) -> Reservations {
        self.reservations.clone()
    }

    /// Works with the reservations of the pass; only one fetch at a time does.
    fn with_reserved<T>(&self, work: impl FnOnce(&mut Reserved) -> T) -> T {
        self.reservations.with(&self.memory, &self.disk, work)
    }

    fn no_space(&self, why: ByteBudgetError) -> Error {
        Error::Space {
            url: self.safe_url.clone(),
            why,
        }
    }

    fn out_of_memory(&self, what: &'static str, why: ByteBudgetError) -> Error {
        Error::Memory {
            url: self.safe_url.clone(),
            what,
            why,
        }
    }

    fn set_allowance(&self, bytes: u64, what: &'static str) {
        *self.limit.lock() = (bytes, what);
        self.answers.store(0, Ordering::Relaxed);
        self.allowance.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.failure.lock().take()
    }

    pub(crate) fn fail(&self, error: Error) -> io::Error {
        let text = error.to_string();
        self.failure.lock().get_or_insert(error);
        io::Error::other(text)
    }

    /// Fails if an answer is slower than the minimum pace.
    fn check_pace(&self, len: u64) -> Result<(), Error> {
        let now = Instant::now();
        let mut stretch = self.stretch.lock();
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
            url: self.safe_url.clone(),
            why: format!("the server is too slow: it sent {bytes} bytes in {time} s"),
        })
    }

    pub(crate) fn take(&self, len: u64) -> Result<(), Error> {
        self.check_pace(len)?;
        let spent = |left: u64| left.checked_sub(len);
        if self
            .allowance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent)
            .is_err()
        {
            let (limit, what) = *self.limit.lock();
            return Err(Error::Limit {
                what,
                limit,
                of: format!(" by '{}'", self.safe_url),
            });
        }
        if let Some(share) = &mut *self.refs.lock() {
            let bytes = len.saturating_mul(REFS_GROWTH);
            let grown = share.try_grow(bytes);
            if grown.is_err() {
                let needed = share.bytes().saturating_add(bytes);
                self.refused_refs.store(needed, Ordering::Relaxed);
            }
            grown.map_err(|why| self.out_of_memory("the list of refs", why))?;
        }
        Ok(())
    }
}

/// Returns the bytes to reserve for the next attempt of an answer that was refused `needed` bytes: the size of the rest is unknown.
fn more_than(needed: u64, most: u64) -> u64 {
    needed.max(FIRST_RESERVATION).saturating_mul(2).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_after_a_refusal_reserve_twice_of_what_they_needed_up_to_the_limit() {
        const MIB: u64 = 1 << 20;
        let most = 100 * MIB;
        let reserved = [0, MIB, 20 * MIB, 60 * MIB, u64::MAX].map(|needed| more_than(needed, most) / MIB);
        assert_eq!(reserved, [2, 2, 40, 100, 100]);
        assert_eq!(more_than(MIB, MIB), MIB);
    }
}
