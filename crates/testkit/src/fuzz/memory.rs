//! Measures the memory that a case of a search takes, on Linux. Elsewhere nothing is measured.

use std::fs;

/// Growth of the peak memory that every case may cause, in bytes: buffers, caches, and tests that run beside it.
const FREE: u64 = 256 << 20;
/// Growth beyond [`FREE`] that a case may cause for each byte of its input.
const PER_BYTE: u64 = 1024;
/// Resident memory of the process at which a search is aborted, in bytes, so that it does not take the whole machine.
pub(super) const ABORT: u64 = 4 << 30;

/// Resident memory before a case.
#[derive(Debug, Clone, Copy)]
pub(super) struct Baseline {
    before: Option<u64>,
}

impl Baseline {
    /// Forgets the peak so far, and reads the resident memory.
    pub(super) fn start() -> Self {
        let reset = fs::write("/proc/self/clear_refs", "5");
        Self {
            before: reset.ok().and_then(|()| field("VmRSS:")),
        }
    }

    /// Returns an error message if the case with an input of this many bytes took too much.
    pub(super) fn exceeded(self, input: usize) -> Option<String> {
        excess(self.growth()?, input)
    }

    fn growth(self) -> Option<u64> {
        Some(field("VmHWM:")?.saturating_sub(self.before?))
    }
}

pub(super) fn resident() -> Option<u64> {
    field("VmRSS:")
}

fn field(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

fn excess(grown: u64, input: usize) -> Option<String> {
    let allowed = FREE + PER_BYTE * input as u64;
    (grown > allowed).then(|| {
        format!(
            "it took {} MiB of memory for {input} bytes of input, at most {} MiB are allowed ({} MiB and {PER_BYTE} bytes for each byte)",
            grown >> 20,
            allowed >> 20,
            FREE >> 20
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_counts_from_the_free_part_and_the_input() {
        assert_eq!(excess(256 << 20, 0), None);
        assert_eq!(excess(300 << 20, 60 << 10), None);
        let message = excess(300 << 20, 1).unwrap();
        assert!(message.starts_with("it took 300 MiB"), "{message}");
    }

    #[test]
    fn memory_of_a_case_is_measured() {
        let memory = Baseline::start();
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        if let Some(growth) = memory.growth() {
            // Other tests may free memory meanwhile.
            assert!(growth > 32 << 20, "{growth}");
        }
        drop(block);
    }
}
