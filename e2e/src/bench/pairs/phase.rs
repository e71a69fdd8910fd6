//! A phase of a load: its time, and the work of everybody who took part.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use testkit::{
    audit::Entry,
    process::{MachineTimes, Usage},
};

use crate::{
    bench::calm,
    cluster::{CONTROLLERS, NAMESPACE, TestCluster},
};

pub(super) const GIT_SERVER: &str = "git server";
/// Name of this program: it writes the objects, watches them, and starts `git upload-pack` for each request.
const BENCH: &str = "this program";
/// Components of the control plane that take part in each write.
const COMPONENTS: [&str; 3] = ["kube-apiserver", "etcd", "kube-controller-manager"];

pub type CpuTimes = BTreeMap<String, Duration>;

#[derive(Debug, Clone, Default)]
pub struct Phase {
    pub time: Duration,
    /// CPU times of the controllers, the components of the control plane, the Git server and this program.
    pub cpu: CpuTimes,
    /// Times of the machine's processors, without those after the end.
    pub machine: MachineTimes,
    /// Number of requests to the API server, watches and those for leases aside, by user and verb.
    pub requests: BTreeMap<(String, String), usize>,
    /// Number of them that write.
    pub writes: usize,
}

impl Phase {
    pub(super) fn all_requests(&self) -> usize {
        self.requests.values().sum()
    }
}

pub(super) struct InProgress {
    at: Instant,
    cpu: CpuTimes,
    machine: MachineTimes,
    audit_mark: testkit::audit::Mark,
}

impl InProgress {
    pub(super) fn now(cluster: &TestCluster) -> Result<Self> {
        Ok(Self {
            at: Instant::now(),
            cpu: cpu_times(cluster)?,
            machine: MachineTimes::now()?,
            audit_mark: cluster.plane.audit_mark(),
        })
    }

    /// Ends the phase. Events follow the statuses that are waited for: the CPU times and requests include them, the time doesn't.
    pub(super) async fn end_of_work(self, cluster: &TestCluster) -> Result<Phase> {
        let (time, machine) = (self.at.elapsed(), MachineTimes::now()?.since(self.machine));
        for &name in CONTROLLERS {
            calm::end_of_requests(cluster, name).await?;
        }
        Ok(Phase {
            time,
            machine,
            ..self.end(cluster)?
        })
    }

    pub(super) fn end(self, cluster: &TestCluster) -> Result<Phase> {
        let (time, machine) = (self.at.elapsed(), MachineTimes::now()?.since(self.machine));
        let mut cpu = cpu_times(cluster)?;
        for (name, time) in &mut cpu {
            *time = time.saturating_sub(self.cpu.get(name).copied().unwrap_or_default());
        }
        let entries = cluster.plane.audit_since(self.audit_mark)?;
        let (requests, writes) = count(&entries);
        Ok(Phase {
            time,
            cpu,
            machine,
            requests,
            writes,
        })
    }
}

/// Counts requests by user and verb, and those that write. Accounts of the controllers go by the names of these.
fn count(entries: &[Entry]) -> (BTreeMap<(String, String), usize>, usize) {
    let account = format!("system:serviceaccount:{NAMESPACE}:");
    let (mut requests, mut writes) = (BTreeMap::new(), 0);
    let counted = entries
        .iter()
        .filter(|entry| entry.verb != "watch" && entry.resource != "leases");
    for entry in counted {
        let user = entry.impersonated.as_ref().unwrap_or(&entry.user);
        let user = user.strip_prefix(&account).unwrap_or(user).to_owned();
        *requests.entry((user, entry.verb.clone())).or_default() += 1;
        writes += usize::from(entry.is_write());
    }
    (requests, writes)
}

/// Returns the CPU times so far of the running controllers, the components of the control plane, the Git server and this program.
fn cpu_times(cluster: &TestCluster) -> Result<CpuTimes> {
    let mut times = CpuTimes::new();
    for controller in &cluster.controllers {
        times.insert(controller.name().to_owned(), controller.usage()?.cpu);
    }
    for name in COMPONENTS {
        times.insert(name.to_owned(), cluster.plane.usage(name)?.cpu);
    }
    let own = Usage::of(std::process::id()).context("this process")?;
    times.insert(BENCH.to_owned(), own.cpu);
    // git upload-pack runs as a child of this process.
    times.insert(GIT_SERVER.to_owned(), own.children_cpu);
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_user_and_verb() {
        let entry = |user: &str, verb: &str, resource: &str| Entry {
            user: user.to_owned(),
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            ..Entry::default()
        };
        let ours = "system:serviceaccount:flux-system:kluctl-controller";
        let deployed = Entry {
            impersonated: Some("system:serviceaccount:flux-system:deployer".to_owned()),
            ..entry(ours, "patch", "configmaps")
        };
        let entries = [
            entry(ours, "get", "gitrepositories"),
            entry(ours, "watch", "gitrepositories"),
            entry(ours, "update", "leases"),
            entry(ours, "get", "secrets"),
            entry("admin", "create", "secrets"),
            deployed,
        ];
        let (requests, writes) = count(&entries);
        let found: Vec<_> = requests
            .iter()
            .map(|((user, verb), count)| (user.as_str(), verb.as_str(), *count))
            .collect();
        let expected = [
            ("admin", "create", 1),
            ("deployer", "patch", 1),
            ("kluctl-controller", "get", 2),
        ];
        assert_eq!(found, expected);
        assert_eq!(writes, 2);
    }
}
