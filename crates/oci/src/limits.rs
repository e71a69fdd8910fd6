//! Limits on the size and duration of downloads.

use std::time::Duration;

/// Limits on the size and duration of downloads.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest size of an uncompressed index, in bytes (default: 512 MiB). An index is read as a stream:
    /// only the entries of one chart are held in memory.
    pub index_bytes: u64,
    /// The largest size of an index, as it is sent, that is kept for further charts, in bytes (default: 64
    /// MiB).
    pub kept_index_bytes: u64,
    /// The largest size of the entries of one chart, in bytes (default: 16 MiB).
    pub entry_bytes: u64,
    /// The largest size of a chart's archive, in bytes (default: 64 MiB).
    pub archive_bytes: u64,
    /// The largest size of a manifest, a page of tags or a token, in bytes (default: 4 MiB).
    pub document_bytes: u64,
    /// The largest number of tags of a repository (default: 100,000).
    pub tags: usize,
    /// The number of tags to request per page (default: 1000).
    pub page: u32,
    /// The time limit of one request, including its response (default: 5 minutes).
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            index_bytes: 512 << 20,
            kept_index_bytes: 64 << 20,
            entry_bytes: 16 << 20,
            archive_bytes: 64 << 20,
            document_bytes: 4 << 20,
            tags: 100_000,
            page: 1000,
            timeout: Duration::from_secs(5 * 60),
        }
    }
}
