//! Many GitRepositories: created at once, and without a change afterwards.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use api::{conditions, source::GitRepository};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use testkit::{Repo, eventually, process::Usage};

use super::{Cpu, NAME};
use crate::{
    bench::{
        calm::{self, Calm},
        measure::{mebibytes, print},
        pairs::{Load, all, project},
    },
    cluster::{TIMEOUT, TestCluster},
};

const CONCURRENT_REQUESTS: usize = 8;
/// Time without work until the memory of the idle controller is read.
const IDLE: Duration = Duration::from_secs(60);
/// Milliseconds of an interval for each object, so that `git upload-pack` leaves time to the others.
const OF_AN_OBJECT: usize = 30;
/// Shortest interval, in seconds.
const SHORTEST: u64 = 6;
/// Seconds of all intervals that are measured.
const MEASURED: u64 = 60;

pub(super) async fn measure(objects: usize) -> Result<String> {
    let title = format!("{objects} GitRepositories, each of its own repository");
    print(&format!("{title}: making the repositories"));
    let mut cluster = TestCluster::bare().await?;
    cluster.start(NAME, &[]).await?;
    let empty = cluster.controller(NAME)?.usage()?;
    let load = Load::kluctl(objects, 1);
    let repos: Vec<Repo> = (0..objects)
        .map(|index| project::repository(&cluster, load, index))
        .collect::<Result<_>>()?;
    print(&format!("{title}: creating"));
    let before = Cpu::read(&cluster)?;
    let began = Instant::now();
    each(objects, |index| create(&cluster, index, repos.get(index))).await?;
    let taken = began.elapsed();
    ready(&cluster, objects).await?;
    let created = began.elapsed();
    let cpu = Cpu::read(&cluster)?.since(before);
    print(&format!("{title}: waiting for {} s without work", IDLE.as_secs()));
    // The memory of an idle controller is measured, so there is no event to wait for.
    tokio::time::sleep(IDLE).await;
    let usage = cluster.controller(NAME)?.usage()?;
    print(&format!("{title}: waiting for intervals"));
    let calm = keep_calm(&cluster, objects).await?;
    let restarted = restart(&mut cluster, objects).await?;
    cluster.stop().await?;
    Ok(format!(
        "\n{title}\n  created, until all are Ready {:>7.2} s, of which the API server took {:.2} s to take them\n  \
         CPU {:.2} s of ours, {:.2} s of the Git server, {:.2} s of the API server\n  \
         memory {} without objects, peak {:.1} MiB, {} after a minute, {} a minute after a restart\n  {}\n  \
         requests to the Git server in these intervals: {}",
        created.as_secs_f64(),
        taken.as_secs_f64(),
        cpu.controller.as_secs_f64(),
        cpu.git.as_secs_f64(),
        cpu.api.as_secs_f64(),
        memory(empty),
        mebibytes(usage.peak),
        memory(usage),
        memory(restarted),
        calm.line(objects),
        requests(calm.git),
    ))
}

async fn each<F>(objects: usize, step: impl Fn(usize) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    stream::iter((0..objects).map(step))
        .buffer_unordered(CONCURRENT_REQUESTS)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

async fn create(cluster: &TestCluster, index: usize, repo: Option<&Repo>) -> Result<()> {
    let url = repo.context("a repository is missing")?.url();
    cluster.apply_repository(&project::name(index), &url, "1h").await
}

async fn ready(cluster: &TestCluster, objects: usize) -> Result<()> {
    let is_ready = |_: &str, object: &GitRepository| {
        object.status.as_ref().is_some_and(|status| {
            status.artifact.is_some()
                && status.observed_generation == object.metadata.generation
                && conditions::is_true(&status.conditions, "Ready")
        })
    };
    let names = (0..objects).map(project::name).collect();
    all(cluster.repositories(), names, is_ready).await
}

/// Shortens the intervals, and measures some of them without a change. They are long again afterwards.
async fn keep_calm(cluster: &TestCluster, objects: usize) -> Result<Calm> {
    let interval = interval(objects);
    set_interval(cluster, objects, &format!("{interval}s")).await?;
    let intervals = u32::try_from(MEASURED / interval)?.max(1);
    let calm = Calm::measure(cluster, NAME, Duration::from_secs(interval), intervals).await?;
    set_interval(cluster, objects, "1h").await?;
    Ok(calm)
}

async fn set_interval(cluster: &TestCluster, objects: usize, interval: &str) -> Result<()> {
    let changed = json!({"spec": {"interval": interval}});
    let (repositories, changed) = (&cluster.repositories(), &changed);
    each(objects, |index| async move {
        let (params, patch) = (PatchParams::default(), Patch::Merge(changed));
        repositories.patch(&project::name(index), &params, &patch).await?;
        Ok(())
    })
    .await?;
    ready(cluster, objects).await
}

fn interval(objects: usize) -> u64 {
    let seconds = objects.saturating_mul(OF_AN_OBJECT).div_ceil(1000);
    SHORTEST.max(seconds as u64)
}

/// Starts the controller anew, and reads its use a minute after it has looked at all objects.
async fn restart(cluster: &mut TestCluster, objects: usize) -> Result<Usage> {
    let controller = cluster.controllers.iter_mut().find(|one| one.name() == NAME);
    let controller = controller.context("it was not started")?;
    controller.terminate().await?;
    controller.restart().await?;
    let controller = cluster.controller(NAME)?;
    let passes = r#"controller_runtime_reconcile_total{controller="gitrepository",result="requeue_after"}"#;
    eventually("a pass over each object", TIMEOUT, || async {
        let done = controller.metric(passes).await?;
        ensure!(done >= f64::from(u32::try_from(objects)?), "{done} passes");
        Ok(())
    })
    .await?;
    calm::end_of_requests(cluster, NAME).await?;
    // The memory of an idle controller is measured, so there is no event to wait for.
    tokio::time::sleep(IDLE).await;
    controller.usage()
}

/// Returns the resident memory of a process as text, with the part that doesn't belong to files such as its program.
fn memory(usage: Usage) -> String {
    format!(
        "{:.1} MiB ({:.1} private)",
        mebibytes(usage.resident),
        mebibytes(usage.private)
    )
}

fn requests([handshakes, lists, packs]: [usize; 3]) -> String {
    format!("{handshakes} handshakes, {lists} lists of refs, {packs} packs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_many_objects_are_longer() {
        assert_eq!([1, 200, 1000].map(interval), [6, 6, 30]);
        assert!(requests([1, 2, 0]).contains("2 lists of refs, 0 packs"));
    }
}
