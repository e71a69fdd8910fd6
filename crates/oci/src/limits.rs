//! What is taken in at most.

use std::time::Duration;

/// What is taken in at most.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of an index, unpacked. It is read as a stream: only the entries of one chart are held.
    pub index_bytes: u64,
    /// Bytes of an index, as it is sent, that is kept for further charts.
    pub kept_index_bytes: u64,
    /// Bytes of the entries of one chart.
    pub entry_bytes: u64,
    /// Bytes of a chart's archive.
    pub archive_bytes: u64,
    /// Bytes of a manifest, a page of tags or a token.
    pub document_bytes: u64,
    /// Tags of a repository.
    pub tags: usize,
    /// Tags that are asked for at once.
    pub page: u32,
    /// How long one request may take, its answer included.
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
