//! Our controllers as processes, started as in a cluster: with a kubeconfig, flags and JSON logs.

mod launch;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::Value;

pub use launch::{Launch, SHORT_LEASE, SHORT_LEASE_DURATION, find_program};

use crate::{
    http,
    process::{Group, Identity, Usage},
    progress::say,
    statuses::StatusCheck,
    wait::{WAIT_TIMEOUT, eventually},
};

/// Listen addresses of a controller. Not every controller uses all of them.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    pub metrics: SocketAddr,
    pub health: SocketAddr,
    pub storage: SocketAddr,
    pub events: SocketAddr,
    pub receiver: SocketAddr,
}

/// A controller process. Unless it is detached, dropping it kills it and removes its files,
/// and panics if it wrote a status that breaks a rule: see [`crate::statuses`].
#[derive(Debug)]
pub struct Controller {
    name: String,
    program: PathBuf,
    args: Vec<String>,
    bounded: bool,
    env: Vec<(String, String)>,
    addresses: Addresses,
    group: Group,
    process: Identity,
    statuses: Option<StatusCheck>,
}

impl Drop for Controller {
    #[expect(clippy::panic, reason = "dropping returns no error, and the test has to fail")]
    fn drop(&mut self) {
        let broken = self.statuses.take().map(|check| check.broken());
        let broken = broken.unwrap_or_default();
        if broken.is_empty() {
            return;
        }
        let message = format!("{} broke rules of statuses:\n{}", self.name, broken.join("\n"));
        // A second panic would hide the first.
        match std::thread::panicking() {
            true => say(format_args!("{message}")),
            false => panic!("{message}"),
        }
    }
}

impl Controller {
    pub fn named(name: &str) -> Launch {
        Launch::new(name)
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Returns the URL for posting events (notification-controller).
    #[must_use]
    pub fn events_url(&self) -> String {
        format!("http://{}/", self.addresses.events)
    }

    #[must_use]
    pub fn storage_path(&self) -> PathBuf {
        self.group.dir().join("storage")
    }

    #[must_use]
    pub fn process(&self) -> Identity {
        self.process
    }

    #[must_use]
    pub fn is_running(&self) -> bool {
        self.process.is_alive()
    }

    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.process.pid)
    }

    pub async fn metrics(&self) -> Result<String> {
        let answer = http::client(None)?
            .get(format!("http://{}/metrics", self.addresses.metrics))
            .send()
            .await?;
        Ok(answer.error_for_status()?.text().await?)
    }

    /// Asks the liveness probe. Fails if the kubelet would restart the container.
    pub async fn check_liveness(&self) -> Result<()> {
        let url = format!("http://{}/healthz", self.addresses.health);
        http::client(None)?.get(url).send().await?.error_for_status()?;
        Ok(())
    }

    /// Returns the value of the first series with this prefix, such as `up{a="b"}`.
    pub async fn metric(&self, series: &str) -> Result<f64> {
        let text = self.metrics().await?;
        let line = text.lines().find(|line| line.starts_with(series));
        let line = line.with_context(|| format!("{} has no metric {series}", self.name))?;
        Ok(line.rsplit(' ').next().unwrap_or_default().parse()?)
    }

    /// Returns everything that it has printed, over all restarts.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log_file()).unwrap_or_default()).into_owned()
    }

    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.group.log(&self.name)
    }

    #[must_use]
    pub fn log_entries(&self) -> Vec<Value> {
        let entries = self.log();
        entries
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(Value::is_object)
            .collect()
    }

    /// Waits for a log entry for which the predicate holds, among those so far and those to come.
    pub async fn wait_log(
        &self,
        what: &str,
        at_most: Duration,
        predicate: impl Fn(&Value) -> bool + Copy,
    ) -> Result<Value> {
        eventually(what, at_most, || async move {
            let found = self.log_entries().into_iter().find(predicate);
            found.with_context(|| format!("{} last said:\n{}", self.name, self.group.tail(&self.name)))
        })
        .await
    }

    /// Waits until its readiness probe succeeds.
    pub async fn wait_ready(&self, at_most: Duration) -> Result<()> {
        let client = http::client(None)?;
        let url = format!("http://{}/readyz", self.addresses.health);
        let what = format!("{} to be ready", self.name);
        let ready = eventually(&what, at_most, || async {
            if let Some(status) = self.group.exited(&self.name) {
                return Ok(Err(status));
            }
            client.get(&url).send().await?.error_for_status()?;
            Ok(Ok(()))
        });
        let last = || format!("{} last said:\n{}", self.name, self.group.tail(&self.name));
        match ready.await.with_context(last)? {
            Ok(()) => Ok(()),
            Err(status) => bail!("{} ended with {status}; {}", self.name, last()),
        }
    }

    /// Asks it to end (SIGTERM) and returns its exit status.
    pub async fn terminate(&self) -> Result<ExitStatus> {
        self.process.signal(Signal::TERM)?;
        self.exit().await
    }

    /// Kills it at once (SIGKILL).
    pub async fn kill(&self) -> Result<ExitStatus> {
        self.process.signal(Signal::KILL)?;
        self.exit().await
    }

    /// Stops it from running for a while (SIGSTOP), as a machine that has no time for it.
    pub fn pause(&self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Lets a paused process go on (SIGCONT).
    pub fn resume(&self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Waits until it has ended by itself, and returns its exit status.
    pub async fn exit(&self) -> Result<ExitStatus> {
        let what = format!("{} to end", self.name);
        eventually(&what, WAIT_TIMEOUT, || async {
            self.group.exited(&self.name).context("it still runs")
        })
        .await
    }

    /// Starts it again, with the same flags, addresses and files, after it has ended; waits until it is ready.
    pub async fn restart(&mut self) -> Result<()> {
        ensure!(!self.is_running(), "{} still runs", self.name);
        self.spawn()?;
        self.wait_ready(WAIT_TIMEOUT).await
    }

    fn spawn(&mut self) -> Result<()> {
        let mut command = match self.bounded {
            true => Command::new("sh"),
            false => Command::new(&self.program),
        };
        if self.bounded {
            // A write beyond the limit fails, as on a full disk, instead of ending the process.
            command
                .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
                .arg(&self.program);
        }
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(key, value)| (key, value)))
            .current_dir(self.group.dir());
        self.process = self.group.spawn(&self.name, &mut command)?;
        Ok(())
    }

    /// Lets writes of files fail beyond this size in bytes, as on a full disk; none lets them succeed again. It has to be started with
    /// [`Launch::bounded_files`]. Its log is such a file, too.
    #[cfg(target_os = "linux")]
    pub fn limit_files(&self, most: Option<u64>) -> Result<()> {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        ensure!(self.bounded, "{} ends at a large file", self.name);
        let limit = Rlimit {
            current: most,
            maximum: None,
        };
        let pid = Pid::from_raw(i32::try_from(self.process.pid)?);
        prlimit(pid, Resource::Fsize, limit)
            .with_context(|| format!("can't bound files of {}", self.name))?;
        Ok(())
    }

    #[must_use]
    pub fn dir(&self) -> &Path {
        self.group.dir()
    }
}
