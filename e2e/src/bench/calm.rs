//! Intervals without a change: the work of a controller that has nothing to do.

use std::time::{Duration, Instant};

use anyhow::Result;
use testkit::git::Step;

use crate::cluster::{NAMESPACE, TestCluster};

pub const INTERVALS: u32 = 10;
/// Time without a write after which the controller has nothing left to send.
const QUIET: Duration = Duration::from_secs(3);
/// Maximum time until it has sent everything.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Calm {
    pub name: String,
    pub intervals: u32,
    pub cpu: Duration,
    /// Its requests, those for its lease aside.
    pub requests: usize,
    pub writes: usize,
    /// Requests to the Git server: handshakes, lists of refs, and packs.
    pub git: [usize; 3],
}

impl Calm {
    /// Waits until a controller has nothing left to write, and measures some intervals of this length.
    pub async fn measure(
        cluster: &TestCluster,
        name: &str,
        interval: Duration,
        intervals: u32,
    ) -> Result<Self> {
        let controller = cluster.controller(name)?;
        end_of_requests(cluster, name).await?;
        let (mark, before) = (cluster.plane.audit_mark(), controller.usage()?.cpu);
        let asked = cluster.git.requests().len();
        // The work of intervals is measured, which nothing announces.
        tokio::time::sleep(interval * intervals).await;
        let cpu = controller.usage()?.cpu.saturating_sub(before);
        let git = cluster.git.requests();
        let (requests, writes) = requests_since(cluster, name, mark)?;
        let count = |step| {
            git.iter()
                .skip(asked)
                .filter(|request| request.step == step)
                .count()
        };
        Ok(Self {
            name: name.to_owned(),
            intervals,
            cpu,
            requests,
            writes,
            git: [Step::Info, Step::LsRefs, Step::Fetch].map(count),
        })
    }

    #[must_use]
    pub fn line(&self, objects: usize) -> String {
        let passes = u32::try_from(objects)
            .unwrap_or(u32::MAX)
            .saturating_mul(self.intervals);
        let cpu = self.cpu.as_secs_f64() * 1000.0 / f64::from(passes.max(1));
        format!(
            "{} intervals without a change: {cpu:.2} ms of CPU an object and interval, {} requests of the {}, {} of them write",
            self.intervals, self.requests, self.name, self.writes
        )
    }
}

/// Waits until a controller has sent all it had to send: Events follow their status.
pub async fn end_of_requests(cluster: &TestCluster, name: &str) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < TIMEOUT {
        let mark = cluster.plane.audit_mark();
        tokio::time::sleep(QUIET).await;
        if requests_since(cluster, name, mark)?.1 == 0 {
            return Ok(());
        }
    }
    Ok(())
}

/// Waits until the API servers of new control planes use less than a twentieth of a processor each: they build descriptions of their
/// definitions for some time after they are ready.
pub async fn end_of_start(clusters: &[&TestCluster]) -> Result<()> {
    let used = || -> Result<Vec<Duration>> {
        let usage = |cluster: &&TestCluster| Ok(cluster.plane.usage("kube-apiserver")?.cpu);
        clusters.iter().map(usage).collect()
    };
    let began = Instant::now();
    while began.elapsed() < TIMEOUT {
        let before = used()?;
        // Nothing tells the end of that work.
        tokio::time::sleep(QUIET).await;
        let mut both = used()?.into_iter().zip(before);
        if both.all(|(now, before)| now.saturating_sub(before) < QUIET / 20) {
            break;
        }
    }
    Ok(())
}

/// Returns the number of requests of a controller since a mark, those for its lease aside, and how many of them write. Reviews of
/// its own rights are created, but write nothing.
fn requests_since(cluster: &TestCluster, name: &str, mark: testkit::audit::Mark) -> Result<(usize, usize)> {
    let user = format!("system:serviceaccount:{NAMESPACE}:{name}");
    let entries = cluster.plane.audit_since(mark)?;
    let own = entries
        .iter()
        .filter(|entry| entry.user == user && entry.resource != "leases");
    Ok(own.fold((0, 0), |(requests, writes), entry| {
        let is_write = entry.is_write() && !entry.resource.starts_with("selfsubject");
        (requests + 1, writes + usize::from(is_write))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_the_time_of_an_object_and_interval() {
        let calm = Calm {
            name: "a-controller".to_owned(),
            intervals: INTERVALS,
            cpu: Duration::from_millis(500),
            requests: 3,
            writes: 1,
            git: [0; 3],
        };
        let line = calm.line(100);
        assert!(
            line.contains("0.50 ms")
                && line.contains("3 requests of the a-controller")
                && line.contains("1 of them write")
        );
        assert!(calm.line(0).contains("500.00 ms"));
    }
}
