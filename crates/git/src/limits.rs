//! Limits of one session.

use std::time::Duration;

/// Limits of one session; exceeding one is [`crate::Error::Limit`], which names it.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one list of refs; default 16 MiB.
    pub refs_bytes: u64,
    pub pack_bytes: u64,
    /// Bytes of a single object; default 100 MiB.
    pub object_bytes: u64,
    pub entries: usize,
    /// Bytes of all paths of the tree; default 32 MiB. A name has at most 255 bytes.
    pub path_bytes: usize,
    pub depth: usize,
    /// Maximum time without a byte from the server; default 30 s.
    pub silence: Duration,
    /// Minimum pace; default 60 KiB in 60 s.
    pub slowest: Pace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    pub bytes: u64,
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            refs_bytes: 16 << 20,
            pack_bytes: 1 << 30,
            object_bytes: 100 << 20,
            entries: 200_000,
            path_bytes: 32 << 20,
            depth: 100,
            silence: Duration::from_secs(30),
            slowest: Pace {
                bytes: 60 << 10,
                time: Duration::from_secs(60),
            },
        }
    }
}
