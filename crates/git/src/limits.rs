//! Limits of one session.

use std::time::Duration;

/// The limits of one session; a breach is [`crate::Error::Limit`], which names the limit.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one list of refs; default 16 MiB.
    pub refs_bytes: u64,
    /// Bytes of the pack that the server sends.
    pub pack_bytes: u64,
    /// Bytes of a single object; default 100 MiB.
    pub object_bytes: u64,
    /// Files, directories and links in the tree.
    pub entries: usize,
    /// Bytes of all paths of the tree; default 32 MiB. A name has at most 255 bytes, as on disks.
    pub path_bytes: usize,
    /// Directories above a file.
    pub depth: usize,
    /// Longest time without a byte from the server; default 30 s.
    pub silence: Duration,
    /// The slowest transfer; default 60 KiB in 60 s.
    pub slowest: Pace,
}

/// An amount of bytes in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Minimum number of bytes.
    pub bytes: u64,
    /// Length of the time.
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
