//! Measures pairs of GitRepository and KluctlDeployment or Kustomization: time, memory and CPU, beside the API server alone.

pub(crate) mod load;
pub mod original;
mod phase;
pub(crate) mod project;
mod reference;
mod table;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    time::Duration,
};

use anyhow::{Context as _, Result};
use futures::{TryStreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt as _,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::{Repo, process::Usage};

pub use self::{
    load::{Deployer, Load},
    phase::{CpuTimes, Phase},
};
use self::{
    phase::InProgress,
    reference::{Written, for_all},
};
use super::{
    calm::{self, Calm},
    measure::print,
};
use crate::cluster::TestCluster;

/// Number of concurrent API requests while the pairs are created, of the reference, too.
const CONCURRENT_REQUESTS: usize = 8;
/// Time after the last pass until the memory of an idle controller is read.
const IDLE: Duration = Duration::from_secs(60);
/// Length of an interval without a change, in seconds.
const INTERVAL: u64 = 6;
/// Number of pairs or objects from which on idle controllers are measured, too: it takes two minutes.
const MANY: usize = 200;
/// Default number of rounds. Machines are not equally fast at all times: each creation and each push is measured right before the
/// reference, and the fastest of both count.
const ROUNDS: u32 = 3;
/// Maximum time until all pairs are Ready.
const TIMEOUT: Duration = Duration::from_secs(900);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Loads, which are measured one after another: the number of pairs, and `x` and the number of objects of each (1, 3, or that
    /// many ConfigMaps)
    #[arg(long, value_delimiter = ',', value_name = "PAIRS[xOBJECTS]",
          default_values = ["1", "50", "200", "1000", "50x3", "200x3", "1x300", "1x1500", "1x5000"])]
    pairs: Vec<Load>,
    /// Number of creations, each on new control planes, and then of pushes; the fastest counts
    #[arg(long, value_name = "NUMBER", default_value_t = ROUNDS, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

pub async fn run(args: &Args) -> Result<()> {
    for load in &args.pairs {
        print(&Box::pin(measure(*load, args.rounds)).await?.table());
    }
    Ok(())
}

#[derive(Debug)]
pub struct Figures {
    pub load: Load,
    /// From the first creation until all are Ready, for each creation.
    pub created: Vec<Phase>,
    /// From the first announcement of a push until all are Ready at the new commit, for each push.
    pub pushed: Vec<Phase>,
    /// From the first request to reconcile until all are handled, without a change.
    pub unchanged: Phase,
    /// The reference after each creation: the API server alone is given the same objects, statuses and Events.
    pub created_alone: Vec<Phase>,
    /// The reference after each push.
    pub pushed_alone: Vec<Phase>,
    /// Mean time from the creation of a Pod until it is Ready, if there are Pods.
    pub pod: Option<Duration>,
    /// Resident memory of each controller in bytes: without objects, after the last pass (a minute after it, with many pairs), and
    /// the peak.
    pub memory: BTreeMap<String, [u64; 3]>,
    /// The intervals without a change, with many pairs.
    pub calm: Option<Calm>,
}

/// Two new control planes: one with the controllers, and one without for the reference.
struct Planes {
    cluster: TestCluster,
    alone: TestCluster,
    repos: Vec<Repo>,
    empty: BTreeMap<String, Usage>,
}

impl Planes {
    /// Starts them, makes the repositories of a load, and waits until they are idle.
    async fn start(load: Load) -> Result<Self> {
        let (mut cluster, alone) = (TestCluster::bare().await?, TestCluster::bare().await?);
        for &name in load.deployer.controllers() {
            cluster.start(name, &[]).await?;
        }
        let repos = project::repositories(&cluster, load)?;
        // A new API server is busy with itself, which would slow down the phase that comes first.
        calm::end_of_start(&[&cluster, &alone]).await?;
        Ok(Self {
            empty: usages(&cluster)?,
            cluster,
            alone,
            repos,
        })
    }

    async fn stop(self) -> Result<()> {
        self.alone.stop().await?;
        self.cluster.stop().await
    }
}

/// Measures the creations of a load, each on new control planes. Returns the last planes, the statuses and events written there, and the
/// phases with and without controllers.
async fn create_each(load: Load, rounds: u32) -> Result<(Planes, Written, [Vec<Phase>; 2])> {
    let (mut created, mut alone) = (Vec::new(), Vec::new());
    loop {
        let number = created.len() + 1;
        say(load, "starting the control planes and making the repositories");
        let planes = Planes::start(load).await?;
        say(load, &format!("creation {number} of {rounds}"));
        created.push(create(&planes.cluster, load, &planes.repos).await?);
        let written = Written::since(&Written::default(), &planes.cluster, load).await?;
        say(
            load,
            &format!("creation {number} of {rounds}, the API server alone"),
        );
        alone.push(reference::create_all(&planes.alone, load, &written).await?);
        if number >= usize::try_from(rounds)? {
            return Ok((planes, written, [created, alone]));
        }
        planes.stop().await?;
    }
}

fn say(load: Load, what: &str) {
    print(&format!("{}: {what}", table::title(load)));
}

/// Measures a load: each creation on new control planes, and then some pushes. Each phase is measured on another control plane without
/// controllers right after it, since machines are not equally fast at all times. Prints the progress.
pub async fn measure(load: Load, rounds: u32) -> Result<Figures> {
    let (planes, mut written, [created, created_alone]) = create_each(load, rounds).await?;
    let Planes {
        cluster,
        alone,
        repos,
        empty,
    } = planes;
    let (mut pushed, mut pushed_alone) = (Vec::new(), Vec::new());
    for number in 1..=rounds {
        say(load, &format!("push {number} of {rounds}"));
        pushed.push(push(&cluster, load, &repos, number).await?);
        written = Written::since(&written, &cluster, load).await?;
        say(load, &format!("push {number} of {rounds}, the API server alone"));
        pushed_alone.push(reference::push_all(&alone, load, number, &written).await?);
    }
    alone.stop().await?;
    say(load, "reconciling without a change");
    let unchanged = reconcile(&cluster, load).await?;
    if load.pairs >= MANY {
        say(load, &format!("waiting for {} s without work", IDLE.as_secs()));
        // The memory of idle controllers is measured, so there is no event to wait for.
        tokio::time::sleep(IDLE).await;
    }
    let usage = usages(&cluster)?;
    let calm = match load.pairs.max(load.objects) >= MANY {
        true => {
            say(load, "waiting for ten intervals");
            Some(keep_calm(&cluster, load).await?)
        }
        false => None,
    };
    let pod = mean_start(&cluster).await?;
    cluster.stop().await?;
    Ok(Figures {
        load,
        created,
        pushed,
        unchanged,
        created_alone,
        pushed_alone,
        pod,
        memory: usage
            .into_iter()
            .map(|(name, now)| {
                let figures = figures_of(empty.get(&name), &now);
                (name, figures)
            })
            .collect(),
        calm,
    })
}

fn figures_of(empty: Option<&Usage>, now: &Usage) -> [u64; 3] {
    [empty.map_or(0, |usage| usage.resident), now.resident, now.peak]
}

async fn create(cluster: &TestCluster, load: Load, repos: &[Repo]) -> Result<Phase> {
    let heads = project::heads(load, repos)?;
    let phase = InProgress::now(cluster)?;
    for_all(load.sources(), |index| async move {
        let url = repos.get(index).context("a repository is missing")?.url();
        cluster.apply_repository(&project::name(index), &url, "1h").await
    })
    .await?;
    for_all(load.pairs, |index| load.apply(cluster, index)).await?;
    all_ready(cluster, load, &heads).await?;
    phase.end_of_work(cluster).await
}

/// Pushes to all repositories, announces the pushes, and waits until all are applied. The phase begins with the first announcement.
async fn push(cluster: &TestCluster, load: Load, repos: &[Repo], number: u32) -> Result<Phase> {
    for (index, repo) in repos.iter().enumerate() {
        project::push(load, index, number, repo)?;
    }
    let heads = project::heads(load, repos)?;
    let (repositories, requested) = (&cluster.repositories(), &project::announcement(number));
    let phase = InProgress::now(cluster)?;
    for_all(load.sources(), |index| async move {
        let (params, patch) = (PatchParams::default(), Patch::Merge(requested));
        repositories.patch(&project::name(index), &params, &patch).await?;
        Ok(())
    })
    .await?;
    all_ready(cluster, load, &heads).await?;
    phase.end_of_work(cluster).await
}

fn names(load: Load) -> BTreeSet<String> {
    (0..load.pairs).map(project::name).collect()
}

async fn patch_all(cluster: &TestCluster, load: Load, patch: &Value) -> Result<()> {
    let objects = &load.deployer.api(cluster);
    for_all(load.pairs, |index| async move {
        let params = PatchParams::default();
        objects
            .patch(&project::name(index), &params, &Patch::Merge(patch))
            .await?;
        Ok(())
    })
    .await
}

async fn reconcile(cluster: &TestCluster, load: Load) -> Result<Phase> {
    let requested = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "unchanged"}}});
    let phase = InProgress::now(cluster)?;
    patch_all(cluster, load, &requested).await?;
    let handled = |_: &str, object: &DynamicObject| {
        object.data["status"]["lastHandledReconcileAt"] == "unchanged" && load::is_ready(object)
    };
    all(load.deployer.api(cluster), names(load), handled).await?;
    phase.end_of_work(cluster).await
}

async fn keep_calm(cluster: &TestCluster, load: Load) -> Result<Calm> {
    let shorter = json!({"spec": {"interval": format!("{INTERVAL}s")}});
    patch_all(cluster, load, &shorter).await?;
    let is_ready = |_: &str, object: &DynamicObject| load::is_ready(object);
    all(load.deployer.api(cluster), names(load), is_ready).await?;
    let (interval, controller) = (Duration::from_secs(INTERVAL), load.deployer.controller());
    Calm::measure(cluster, controller, interval, calm::INTERVALS).await
}

async fn all_ready(cluster: &TestCluster, load: Load, heads: &BTreeMap<String, String>) -> Result<()> {
    let at_head = |name: &str, object: &DynamicObject| {
        load::is_ready(object)
            && heads
                .get(name)
                .is_some_and(|head| load.deployer.is_at(object, head))
    };
    all(load.deployer.api(cluster), names(load), at_head).await
}

pub(crate) async fn all<K>(
    api: Api<K>,
    mut missing: BTreeSet<String>,
    holds: impl Fn(&str, &K) -> bool,
) -> Result<()>
where
    K: kube::Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let watch = async {
        let events = watcher(api, watcher::Config::default())
            .default_backoff()
            .applied_objects();
        pin_mut!(events);
        while !missing.is_empty() {
            let Some(object) = events.try_next().await? else {
                break;
            };
            let name = object.name_any();
            if missing.contains(&name) && holds(&name, &object) {
                missing.remove(&name);
            }
        }
        anyhow::Ok(())
    };
    match tokio::time::timeout(TIMEOUT, watch).await {
        Ok(done) => done,
        Err(_) => anyhow::bail!(
            "not Ready after {} s: {:?}",
            TIMEOUT.as_secs(),
            missing.iter().take(10).collect::<Vec<_>>()
        ),
    }
}

/// Returns the mean time from the creation of a Pod until it is Ready, if there are Pods.
async fn mean_start(cluster: &TestCluster) -> Result<Option<Duration>> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "default");
    let pods = pods.list(&ListParams::default()).await?;
    let taken = |pod: &Pod| {
        let created = pod.metadata.creation_timestamp.as_ref()?.0;
        let conditions = pod.status.as_ref()?.conditions.as_ref()?;
        let ready = conditions
            .iter()
            .find(|one| one.type_ == "Ready" && one.status == "True")?;
        let since = ready.last_transition_time.as_ref()?.0.duration_since(created);
        Duration::try_from(since).ok()
    };
    let times: Vec<Duration> = pods.items.iter().filter_map(taken).collect();
    let count = u32::try_from(times.len())?;
    Ok((count > 0).then(|| times.iter().sum::<Duration>() / count.max(1)))
}

fn usages(cluster: &TestCluster) -> Result<BTreeMap<String, Usage>> {
    let running = cluster.controllers.iter();
    running
        .map(|controller| Ok((controller.name().to_owned(), controller.usage()?)))
        .collect()
}
