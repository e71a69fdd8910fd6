//! Memory and CPU use of a process, as the kernel counts it.

use std::time::Duration;

use anyhow::{Context as _, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Resident memory now, in bytes (`VmRSS`).
    pub resident: u64,
    /// Resident memory of its own now, in bytes (`RssAnon`): without the pages of files, such as the program, which the system can
    /// take back at any time.
    pub private: u64,
    /// The most resident memory so far, in bytes (`VmHWM`).
    pub peak: u64,
    /// Processor time of the process itself, user and system.
    pub cpu: Duration,
    /// Processor time of its ended and awaited children.
    pub children_cpu: Duration,
}

impl Usage {
    pub fn of(pid: u32) -> Result<Self> {
        let read = |name: &str| {
            std::fs::read_to_string(format!("/proc/{pid}/{name}"))
                .with_context(|| format!("can't read /proc/{pid}/{name}: process {pid} isn't running"))
        };
        let status = read("status")?;
        let stat = read("stat")?;
        let fields: Vec<&str> = stat
            .rsplit_once(") ")
            .map(|(_, rest)| rest.split(' ').collect())
            .unwrap_or_default();
        let hertz = rustix::param::clock_ticks_per_second().max(1);
        let ticks = |index: usize| {
            fields
                .get(index)
                .and_then(|field| field.parse::<u64>().ok())
                .unwrap_or_default()
        };
        let time = |ticks: u64| Duration::from_millis(ticks * 1000 / hertz);
        Ok(Self {
            resident: kibibytes(&status, "VmRSS:"),
            private: kibibytes(&status, "RssAnon:"),
            peak: kibibytes(&status, "VmHWM:"),
            cpu: time(ticks(11) + ticks(12)),
            children_cpu: time(ticks(13) + ticks(14)),
        })
    }
}

/// The bytes that a line such as `VmRSS:  1234 kB` names.
fn kibibytes(status: &str, key: &str) -> u64 {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .unwrap_or_default();
    line.split_ascii_whitespace()
        .next()
        .and_then(|number| number.parse::<u64>().ok())
        .unwrap_or_default()
        * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_status_are_read() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(
            (kibibytes(status, "VmRSS:"), kibibytes(status, "VmHWM:")),
            (1024 * 1024, 2048 * 1024)
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_uses_memory() {
        let usage = Usage::of(std::process::id()).expect("runs");
        assert!(usage.resident > 0 && usage.peak >= usage.resident, "{usage:?}");
    }
}
