//! Limits on the size and duration of downloads.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of an uncompressed index; default 512 MiB. An index is read as a stream: memory holds the entries of one chart
    /// only.
    pub index_bytes: u64,
    /// Bytes of an index, as it is sent, that is cached for further charts; default 64 MiB.
    pub cached_index_bytes: u64,
    /// Bytes of the entries of one chart; default 16 MiB.
    pub entry_bytes: u64,
    /// Bytes of a chart's archive; default 64 MiB.
    pub archive_bytes: u64,
    pub document_bytes: u64,
    /// Tags of a repository; default 100,000.
    pub tags: usize,
    /// Tags per page; default 1000.
    pub page: u32,
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            index_bytes: 512 << 20,
            cached_index_bytes: 64 << 20,
            entry_bytes: 16 << 20,
            archive_bytes: 64 << 20,
            document_bytes: 4 << 20,
            tags: 100_000,
            page: 1000,
            timeout: Duration::from_secs(5 * 60),
        }
    }
}
