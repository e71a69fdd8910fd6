//! Limits of the cache and its downloads.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Limits {
    pub download_bytes: u64,
    pub unpacked_bytes: u64,
    pub entries: u64,
    /// True to skip links; by default a tarball with links is refused. Nothing is ever unpacked through a link.
    pub skip_links: bool,
    /// Bytes of unused artifacts in the cache; default 256 MiB.
    pub cache_bytes: u64,
    /// Bytes of all tarballs and unpacked artifacts on disk; default 3 GiB. The artifacts of a namespace take three quarters of the space that
    /// others leave.
    pub disk_bytes: u64,
    /// Time that unused artifacts stay; default 15 minutes.
    pub cache_age: Duration,
    /// Limits of reading the unpacked tree.
    pub tree: tree::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            download_bytes: 1 << 30,
            unpacked_bytes: 1 << 30,
            entries: 200_000,
            skip_links: false,
            cache_bytes: 256 << 20,
            disk_bytes: 3 << 30,
            cache_age: Duration::from_secs(15 * 60),
            tree: tree::Limits::default(),
        }
    }
}
