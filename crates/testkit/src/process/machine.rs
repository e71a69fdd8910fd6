//! Processor time of the whole machine, as the kernel counts it.

use anyhow::{Context as _, Result};

/// Times of all processors since boot, in clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineTimes {
    /// Without work.
    idle: u64,
    /// Without work but for a disk that has to answer.
    waiting: u64,
    all: u64,
}

impl MachineTimes {
    pub fn now() -> Result<Self> {
        let stat = std::fs::read_to_string("/proc/stat").context("can't read /proc/stat")?;
        Self::parse(&stat).context("/proc/stat has no line of all processors")
    }

    /// Reads the first line: user, nice, system, idle, waiting, two kinds of interrupts, and time that the host took.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<u64> = line
            .split_ascii_whitespace()
            .take(8)
            .filter_map(|time| time.parse().ok())
            .collect();
        Some(Self {
            idle: *times.get(3)?,
            waiting: *times.get(4)?,
            all: times.iter().sum(),
        })
    }

    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            idle: self.idle.saturating_sub(earlier.idle),
            waiting: self.waiting.saturating_sub(earlier.waiting),
            all: self.all.saturating_sub(earlier.all),
        }
    }

    /// Returns the share of time without work, from 0 to 1.
    #[must_use]
    pub fn idle_share(self) -> f64 {
        share(self.idle + self.waiting, self.all)
    }

    /// Returns the saturated part of the machine; `None` if more of everything would not have made the time shorter.
    #[must_use]
    pub fn saturated(self) -> Option<&'static str> {
        match () {
            () if self.idle_share() < 0.1 => Some("CPU"),
            () if share(self.waiting, self.all) > 0.25 => Some("disk"),
            () => None,
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_between() {
        let [before, busy] = [
            "cpu  10 0 10 70 10 0 0 0 9 9\n",
            "cpu  60 0 55 74 11 0 0 0 99 9\n",
        ]
        .map(MachineTimes::parse);
        let times = busy.unwrap().since(before.unwrap());
        assert_eq!((times.idle, times.waiting, times.all), (4, 1, 100));
        assert!((times.idle_share() - 0.05).abs() < 1e-9);
        assert_eq!(times.saturated(), Some("CPU"));
        let times = |idle, waiting| MachineTimes {
            idle,
            waiting,
            all: 100,
        };
        assert_eq!(times(10, 50).saturated(), Some("disk"));
        assert_eq!(times(50, 10).saturated(), None);
        assert_eq!(MachineTimes::parse("intr 1\n"), None);
    }
}
