//! Measures many small pairs of GitRepository and KluctlDeployment: time, memory and CPU.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, pin_mut, stream};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::json;
use testkit::{Repo, process::Usage};

use super::measure::{mebibytes, print};
use crate::cluster::{CONTROLLERS, TestCluster, is_at, is_ready};

/// Number of concurrent API requests while the pairs are created.
const CONCURRENT_REQUESTS: usize = 8;
/// Time after the last pass until the memory of an idle controller is read.
const IDLE: Duration = Duration::from_secs(60);

/// Arguments of `e2e bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Numbers of pairs, which are measured one after another
    #[arg(long, value_delimiter = ',', default_values_t = [50, 200])]
    pairs: Vec<usize>,
}

/// Measures each number of pairs and prints its table.
///
/// # Errors
/// Returns an error if the pairs do not become Ready.
pub async fn run(args: &Args) -> Result<()> {
    for pairs in &args.pairs {
        let figures = measure(*pairs).await?;
        print(&figures.table());
    }
    Ok(())
}

/// The results of one number of pairs.
#[derive(Debug)]
pub struct Figures {
    /// The number of pairs.
    pub pairs: usize,
    /// Time from the first creation until all are Ready.
    pub created: Duration,
    /// Time from the first push until all are Ready at the new commit.
    pub pushed: Duration,
    /// Resident memory of each controller in bytes: without objects, a minute after the last pass, and the peak.
    pub memory: BTreeMap<&'static str, [u64; 3]>,
    /// CPU time of each controller, the API server and the Git server.
    pub cpu: BTreeMap<String, Duration>,
}

/// Measures with this many pairs on a new control plane, and prints the progress.
///
/// # Errors
/// Returns an error if the pairs do not become Ready.
pub async fn measure(pairs: usize) -> Result<Figures> {
    let mut cluster = TestCluster::bare().await?;
    for &name in CONTROLLERS {
        cluster.start(name, &[]).await?;
    }
    let empty = memory(&cluster)?;
    print(&format!("{pairs} pairs: making the repositories"));
    let repos: Vec<Repo> = (0..pairs)
        .map(|index| make(&cluster, index))
        .collect::<Result<_>>()?;
    let before = peers(&cluster)?;
    print(&format!("{pairs} pairs: creating"));
    let begin = Instant::now();
    let heads: BTreeMap<String, String> = repos
        .iter()
        .enumerate()
        .map(|(index, repo)| Ok((pair(index), repo.rev("main")?)))
        .collect::<Result<_>>()?;
    let cluster_ref = &cluster;
    stream::iter(
        repos
            .iter()
            .enumerate()
            .map(|(index, repo)| create(cluster_ref, index, repo)),
    )
    .buffer_unordered(CONCURRENT_REQUESTS)
    .try_collect::<Vec<()>>()
    .await?;
    all_ready(&cluster, &heads).await?;
    let created = begin.elapsed();
    print(&format!("{pairs} pairs: pushing"));
    let begin = Instant::now();
    let mut heads = BTreeMap::new();
    for (index, repo) in repos.iter().enumerate() {
        heads.insert(
            pair(index),
            repo.change("Another value")
                .write("app/config.yaml", config(index, 2))
                .push()?,
        );
    }
    all_ready(&cluster, &heads).await?;
    let pushed = begin.elapsed();
    let after = peers(&cluster)?;
    print(&format!(
        "{pairs} pairs: waiting for {} s without work",
        IDLE.as_secs()
    ));
    // The memory of idle controllers is measured, so there is no event to wait for.
    tokio::time::sleep(IDLE).await;
    let usage = usages(&cluster)?;
    let memory = CONTROLLERS
        .iter()
        .map(|name| {
            let now = usage.get(name).copied();
            let start = empty.get(name).copied().unwrap_or_default();
            (
                *name,
                [
                    start,
                    now.map_or(0, |now| now.resident),
                    now.map_or(0, |now| now.peak),
                ],
            )
        })
        .collect();
    let cpu = after.iter().map(|(name, at)| {
        (
            name.clone(),
            at.saturating_sub(before.get(name).copied().unwrap_or_default()),
        )
    });
    let figures = Figures {
        pairs,
        created,
        pushed,
        memory,
        cpu: cpu.collect(),
    };
    cluster.stop().await?;
    Ok(figures)
}

impl Figures {
    /// Returns the figures as a table.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "\n{} pairs: all Ready {:.1} s after creation, all applied {:.1} s after the pushes\n",
            self.pairs,
            self.created.as_secs_f32(),
            self.pushed.as_secs_f32()
        );
        let _ = writeln!(
            text,
            "  {:<26} {:>11} {:>11} {:>11} {:>9}",
            "", "empty", "idle", "peak", "CPU"
        );
        for (name, [empty, idle, peak]) in &self.memory {
            let cpu = self.cpu.get(*name).copied().unwrap_or_default();
            let _ = writeln!(
                text,
                "  {name:<26} {:>7.1} MiB {:>7.1} MiB {:>7.1} MiB {:>7.1} s",
                mebibytes(*empty),
                mebibytes(*idle),
                mebibytes(*peak),
                cpu.as_secs_f32()
            );
        }
        for (name, cpu) in self
            .cpu
            .iter()
            .filter(|(name, _)| !CONTROLLERS.contains(&name.as_str()))
        {
            let _ = writeln!(text, "  {name:<26} {:>45.1} s", cpu.as_secs_f32());
        }
        text
    }
}

fn pair(index: usize) -> String {
    format!("pair-{index}")
}

fn config(index: usize, value: u32) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": pair(index), "namespace": "default"},
           "data": {"value": value.to_string(), "target": "{{ target.name }}"}})
    .to_string()
}

fn make(cluster: &TestCluster, index: usize) -> Result<Repo> {
    let name = pair(index);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
                         "spec": {"selector": {"app": name}, "ports": [{"port": 80, "protocol": "TCP"}]}});
    let workload = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "registry.invalid/app:1"}]},
            },
        },
    });
    let repo = cluster.git.repo(&name)?;
    repo.change("A small project")
        .write(
            ".kluctl.yaml",
            format!("discriminator: {name}\ntargets:\n  - name: only\n    context: default\n"),
        )
        .write("deployment.yaml", "deployments:\n  - path: app\n")
        .write("app/config.yaml", config(index, 1))
        .write("app/service.yaml", service.to_string())
        .write("app/workload.yaml", workload.to_string())
        .push()?;
    Ok(repo)
}

async fn create(cluster: &TestCluster, index: usize, repo: &Repo) -> Result<()> {
    let name = pair(index);
    cluster.apply_repository(&name, &repo.url(), "30s").await?;
    cluster
        .apply_deployment(&name, &name, json!({"interval": "5m", "target": "only"}))
        .await
}

/// Waits until every pair is Ready at its commit; at most ten minutes.
async fn all_ready(cluster: &TestCluster, heads: &BTreeMap<String, String>) -> Result<()> {
    let mut missing: BTreeMap<&str, &str> = heads
        .iter()
        .map(|(name, head)| (name.as_str(), head.as_str()))
        .collect();
    let watch = async {
        let events = watcher(cluster.deployments(), watcher::Config::default())
            .default_backoff()
            .applied_objects();
        pin_mut!(events);
        while !missing.is_empty() {
            let Some(object) = events.try_next().await? else {
                break;
            };
            let name = object.metadata.name.as_deref().unwrap_or_default();
            if missing
                .get(name)
                .is_some_and(|head| is_ready(&object) && is_at(&object, head))
            {
                missing.remove(name);
            }
        }
        anyhow::Ok(())
    };
    let waited = tokio::time::timeout(Duration::from_secs(600), watch).await;
    match waited {
        Ok(done) => done,
        Err(_) => anyhow::bail!(
            "not Ready after ten minutes: {:?}",
            missing.keys().take(10).collect::<Vec<_>>()
        ),
    }
}

fn usages(cluster: &TestCluster) -> Result<BTreeMap<&'static str, Usage>> {
    CONTROLLERS
        .iter()
        .map(|name| Ok((*name, cluster.controller(name)?.usage()?)))
        .collect()
}

fn memory(cluster: &TestCluster) -> Result<BTreeMap<&'static str, u64>> {
    Ok(usages(cluster)?
        .into_iter()
        .map(|(name, usage)| (name, usage.resident))
        .collect())
}

/// Returns the CPU time so far of the controllers, the API server and the Git server.
fn peers(cluster: &TestCluster) -> Result<BTreeMap<String, Duration>> {
    let mut times: BTreeMap<String, Duration> = usages(cluster)?
        .into_iter()
        .map(|(name, usage)| (name.to_owned(), usage.cpu))
        .collect();
    times.insert(
        "kube-apiserver".to_owned(),
        cluster.plane.usage("kube-apiserver")?.cpu,
    );
    let own = Usage::of(std::process::id()).context("this process")?;
    // git http-backend runs as a child of this process.
    times.insert("git server".to_owned(), own.children_cpu);
    Ok(times)
}
