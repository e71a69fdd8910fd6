//! The bytes of the ledger of memory, by a flag or the limit of the container.

use std::path::Path;

use crate::flags::bytes;

/// Bytes of the ledger where the container has no limit.
const WITHOUT_LIMIT: u64 = 512 << 20;
/// Limits of the container by version 2 and 1 of control groups.
const LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];
/// A limit above this is none: version 1 has no word for it.
const LARGEST: u64 = 1 << 50;

/// Sets the ledger of the process. `given` is a flag; without one, the ledger has half of the limit of the container, or 512 MiB.
pub(crate) fn set(given: Option<u64>) {
    let bytes = given.unwrap_or_else(|| part(LIMITS.iter().find_map(|path| limit(Path::new(path)))));
    if limits::set_process_memory(bytes) {
        tracing::debug!(bytes, "the work for all namespaces shares this memory");
    }
}

fn part(limit: Option<u64>) -> u64 {
    limit.map_or(WITHOUT_LIMIT, |limit| limit / 2)
}

fn limit(path: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.trim().parse().ok().filter(|limit| *limit < LARGEST)
}

/// Parses the size of the ledger.
pub(crate) fn size(text: &str) -> Result<u64, &'static str> {
    let bytes = bytes::parse(text).ok().filter(|bytes| *bytes > 0);
    bytes.ok_or("it must be a positive number of bytes, as in 512Mi")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_is_half_of_the_limit_of_the_container() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("memory.max");
        for (text, bytes) in [
            ("1073741824\n", 512 << 20),
            ("2147483648", 1 << 30),
            ("max\n", WITHOUT_LIMIT),
            ("9223372036854771712\n", WITHOUT_LIMIT),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(part(limit(&path)), bytes, "{text}");
        }
        assert_eq!(part(limit(&dir.path().join("none"))), WITHOUT_LIMIT);
    }

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("1", Ok(1)),
            ("64Ki", Ok(64 << 10)),
            ("512Mi", Ok(512 << 20)),
            ("2G", Ok(2_000_000_000)),
        ] {
            assert_eq!(size(text), expected, "{text}");
        }
        for text in ["", "0", "-1", "Mi", "1.5Gi", "1Pi", "99999999999Gi"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
