//! The limits of a piece of work.

mod reservation;
#[cfg(test)]
mod tests;

pub use reservation::MemoryReservation;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Limits of a render or build. Each is a flag of the controllers.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Loop iterations, template instructions and the like; default 500 million.
    pub steps: u64,
    /// Bytes of rendered output; default 64 MiB.
    pub bytes: u64,
    /// Nesting of YAML documents; default 100.
    pub yaml_depth: u32,
    /// Bytes that YAML aliases may expand to; default 10 MiB.
    pub alias_bytes: u64,
    /// Nesting of includes, bases and libraries; default 50.
    pub include_depth: u32,
    /// Bytes of one file; default 5 MiB.
    pub file_bytes: u64,
    /// Number of rendered objects; default 20,000.
    pub objects: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 500_000_000,
            bytes: 64 << 20,
            yaml_depth: 100,
            alias_bytes: 10 << 20,
            include_depth: 50,
            file_bytes: 5 << 20,
            objects: 20_000,
        }
    }
}

/// Memory that the operations of a process share, of which one operation takes a part until it ends.
pub trait SharedMemory: fmt::Debug + Send + Sync {
    /// Takes bytes. Returns false if others hold them.
    fn take(&self, bytes: u64) -> bool;

    /// Gives back bytes that the operation took before.
    fn give_back(&self, bytes: u64);

    /// Returns true if the operation must end, because others need its bytes.
    fn is_revoked(&self) -> bool;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    #[error("the time limit of {0:?} was reached")]
    Time(Duration),
    #[error("cancelled")]
    Cancelled,
    #[error("other work holds the memory; it will be tried again")]
    Busy,
    /// A counter went over its limit.
    #[error("the limit of {limit} {what} was reached")]
    Limit {
        /// The counted unit in words for people, such as "rendered bytes".
        what: &'static str,
        limit: u64,
    },
}

/// Limits and counters of one operation, passed by reference through everything synchronous and polled in every loop. Clones
/// count together.
#[derive(Debug, Clone)]
pub struct Budget {
    limits: Limits,
    deadline: Option<(Instant, Duration)>,
    cancelled: Arc<AtomicBool>,
    steps: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
    objects: Arc<AtomicU64>,
    memory: Option<Arc<dyn SharedMemory>>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Budget {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            deadline: None,
            cancelled: Arc::default(),
            steps: Arc::default(),
            bytes: Arc::default(),
            objects: Arc::default(),
            memory: None,
        }
    }

    /// Sets a deadline, which counts from now.
    #[must_use]
    pub fn with_timeout(mut self, after: Duration) -> Self {
        self.deadline = Some((Instant::now() + after, after));
        self
    }

    /// Sets a flag whose setting ends the operation.
    #[must_use]
    pub fn with_cancellation(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancelled = flag;
        self
    }

    /// Takes the bytes of the operation out of memory that others share. They are given back with the last clone of the budget.
    #[must_use]
    pub fn with_memory(mut self, memory: Arc<dyn SharedMemory>) -> Self {
        self.memory = Some(memory);
        self
    }

    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Checks deadline, cancellation, and if others need the memory of the operation.
    pub fn check(&self) -> Result<(), Exceeded> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Exceeded::Cancelled);
        }
        if self.memory.as_ref().is_some_and(|memory| memory.is_revoked()) {
            return Err(Exceeded::Busy);
        }
        match self.deadline {
            Some((at, after)) if Instant::now() >= at => Err(Exceeded::Time(after)),
            _ => Ok(()),
        }
    }

    /// Counts `n` steps, and checks the deadline every 1,024 of them.
    #[inline]
    pub fn step(&self, n: u64) -> Result<(), Exceeded> {
        let before = self.steps.fetch_add(n, Ordering::Relaxed);
        let total = before.saturating_add(n);
        if before / 1024 == total / 1024 && total <= self.limits.steps {
            return Ok(());
        }
        self.check_steps(total)
    }

    #[cold]
    fn check_steps(&self, total: u64) -> Result<(), Exceeded> {
        if total > self.limits.steps {
            return Err(Exceeded::Limit {
                what: "steps",
                limit: self.limits.steps,
            });
        }
        self.check()
    }

    /// Takes `n` bytes of the shared memory, beside the limits of the operation.
    pub fn memory(&self, n: u64) -> Result<(), Exceeded> {
        match &self.memory {
            Some(memory) if !memory.take(n) => Err(Exceeded::Busy),
            _ => Ok(()),
        }
    }

    /// Counts `n` bytes of rendered output, and takes them out of the shared memory.
    pub fn output(&self, n: u64) -> Result<(), Exceeded> {
        let total = self.bytes.fetch_add(n, Ordering::Relaxed).saturating_add(n);
        if total > self.limits.bytes {
            return Err(Exceeded::Limit {
                what: "bytes of rendered output",
                limit: self.limits.bytes,
            });
        }
        self.memory(n)
    }

    pub fn objects(&self, n: u64) -> Result<(), Exceeded> {
        let total = self.objects.fetch_add(n, Ordering::Relaxed).saturating_add(n);
        if total > self.limits.objects {
            return Err(Exceeded::Limit {
                what: "objects",
                limit: self.limits.objects,
            });
        }
        Ok(())
    }

    /// Checks a nesting of includes or bases, the deadline and cancellation.
    pub fn include_depth(&self, depth: u32) -> Result<(), Exceeded> {
        if depth > self.limits.include_depth {
            let limit = u64::from(self.limits.include_depth);
            return Err(Exceeded::Limit {
                what: "nested includes",
                limit,
            });
        }
        self.check()
    }
}
