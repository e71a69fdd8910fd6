//! A process id that isn't mistaken for the next process that gets the same number.

use std::{fmt, str::FromStr, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// One process: its id and the moment it started (in clock ticks since boot; 0 on systems without /proc).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub pid: u32,
    started: u64,
}

impl Identity {
    #[must_use]
    pub fn current() -> Self {
        let pid = std::process::id();
        Self::of(pid).unwrap_or(Self { pid, started: 0 })
    }

    /// The running process with this id; none if there is none, or only its unread exit status.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let (identity, state) = Self::read(pid)?;
        (!matches!(state.as_str(), "Z" | "X")).then_some(identity)
    }

    /// A child of this process whose exit status hasn't been read, so that its id can't be reused.
    pub(crate) fn of_child(pid: u32) -> Self {
        Self::read(pid).map_or(Self { pid, started: 0 }, |(identity, _)| identity)
    }

    /// The process with this id, and its state as the kernel names it.
    fn read(pid: u32) -> Option<(Self, String)> {
        if !cfg!(target_os = "linux") {
            let known = Self { pid, started: 0 };
            return test_kill_process(known.raw()?)
                .is_ok()
                .then(|| (known, String::new()));
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in the second field may hold anything, so fields are counted from its closing parenthesis.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
        let started = fields.get(19)?.parse().ok()?;
        Some((Self { pid, started }, (*fields.first()?).to_owned()))
    }

    #[must_use]
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid) == Some(*self)
    }

    /// Sends a signal. A process that is gone already is not an error.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let Some(pid) = self.is_alive().then(|| self.raw()).flatten() else {
            return Ok(());
        };
        match kill_process(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => {
                Err(anyhow!(errno)).with_context(|| format!("can't send {signal:?} to process {pid:?}"))
            }
        }
    }

    /// Waits, blocking, until it has ended; says whether it has.
    #[must_use]
    pub fn wait_gone(&self, at_most: Duration) -> bool {
        let deadline = std::time::Instant::now() + at_most;
        while self.is_alive() {
            if std::time::Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    fn raw(self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.pid).ok()?)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.pid, self.started)
    }
}

impl FromStr for Identity {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (pid, started) = text
            .split_once('.')
            .with_context(|| format!("'{text}' names no process"))?;
        Ok(Self {
            pid: pid.parse()?,
            started: started.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_itself_and_no_other_of_the_same_number() {
        let me = Identity::current();
        assert!(me.is_alive());
        assert_eq!(me.to_string().parse::<Identity>().expect("parses"), me);
        let namesake = Identity {
            started: me.started + 1,
            ..me
        };
        assert!(!cfg!(target_os = "linux") || !namesake.is_alive());
    }

    #[test]
    fn an_ended_process_is_gone_even_before_its_status_is_read() {
        let mut child = std::process::Command::new("true").spawn().expect("true starts");
        // It may have ended already, which is as good.
        let identity = Identity::of(child.id());
        let gone = identity.is_none_or(|identity| identity.wait_gone(Duration::from_secs(10)));
        assert!(!cfg!(target_os = "linux") || gone);
        child.wait().expect("is reaped");
    }
}
