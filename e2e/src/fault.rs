//! Kills the controllers in the middle of deployments, and checks that the cluster ends up as after an undisturbed run.

pub mod events;
pub mod quiet;
pub mod servers;
pub mod walk;
pub mod writes;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use testkit::{
    Repo,
    controller::{SHORT_LEASE, SHORT_LEASE_DURATION},
    eventually,
};

use crate::{
    cluster::{CONTROLLERS, TIMEOUT, TestCluster},
    report::Report,
};

/// A store that keeps the current artifact only.
const STORE: [&str; 2] = ["--artifact-retention-records=1", "--artifact-retention-ttl=1s"];
const INTERVAL: Duration = Duration::from_secs(10);
const NAME: &str = "crash";

/// Names of the deployment's objects with their UIDs.
type Objects = BTreeMap<String, String>;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seed of the moments of the kills; default: a random one, which is printed
    #[arg(long)]
    seed: Option<u64>,
    /// Number of kills
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Plays one kind of faults only
    #[arg(long, value_enum)]
    only: Option<FaultKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FaultKind {
    /// All controllers are killed at seeded moments
    Kills,
    /// A controller is killed after each of its writes
    Writes,
    /// The notification-controller is killed while it takes events
    Events,
    /// Git servers fail in every way
    Servers,
    /// Random specs that the schema accepts
    Walk,
    /// Nothing changes for ten intervals
    Quiet,
}

pub async fn run(args: &Args) -> Result<()> {
    let mut report = Report::new();
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let played = play_all(&mut report, seed, args).await;
    report.print(&report.table());
    played
}

async fn play_all(report: &mut Report, seed: u64, args: &Args) -> Result<()> {
    let wanted = |kind| args.only.is_none_or(|only| only == kind);
    if wanted(FaultKind::Kills) {
        play(report, seed, args.rounds).await?;
    }
    if wanted(FaultKind::Writes) {
        writes::play(report).await?;
    }
    if wanted(FaultKind::Events) {
        events::accepted_events_survive(report, seed).await?;
    }
    if wanted(FaultKind::Servers) {
        servers::fetches_keep_their_pace(report).await?;
    }
    if wanted(FaultKind::Walk) {
        walk::walk_over_specs(report, seed).await?;
    }
    if wanted(FaultKind::Quiet) {
        Box::pin(quiet::nothing_happens_while_nothing_changes(report)).await?;
    }
    Ok(())
}

/// Plays `rounds` rounds; the seed decides the moments of the kills.
pub async fn play(report: &mut Report, seed: u64, rounds: u32) -> Result<()> {
    report.print(&format!(
        "seed {seed}, {rounds} rounds (SEED={seed} repeats them)"
    ));
    let mut random = fastrand::Rng::with_seed(seed);
    let mut cluster = TestCluster::bare().await?;
    for &name in CONTROLLERS {
        let store: &[&str] = if name == "source-controller" { &STORE } else { &[] };
        cluster.start(name, &[&SHORT_LEASE[..], store].concat()).await?;
    }
    let repo = cluster.git.repo(NAME)?;
    let mut undisturbed = Vec::new();
    report
        .step("two states are deployed without disturbance", async {
            let commit = push(&repo, 0)?;
            cluster.apply_repository(NAME, &repo.url(), "2s").await?;
            let interval = format!("{}s", INTERVAL.as_secs());
            cluster
                .apply_deployment(NAME, NAME, json!({"interval": interval, "target": "only"}))
                .await?;
            cluster.ready(NAME, &commit).await?;
            undisturbed.push(objects(&cluster).await?);
            cluster.ready(NAME, &push(&repo, 1)?).await?;
            undisturbed.push(objects(&cluster).await?);
            cluster.ready(NAME, &push(&repo, 2)?).await?;
            Ok(format!(
                "{} and {} objects",
                undisturbed[0].len(),
                undisturbed[1].len()
            ))
        })
        .await?;
    let lasting: Objects = undisturbed[0]
        .iter()
        .filter(|(name, _)| undisturbed[1].contains_key(*name))
        .map(own)
        .collect();
    for round in 0..rounds {
        let moment = Duration::from_millis(random.u64(0..1_500));
        let title = format!(
            "round {}: killed {} ms after the push",
            round + 1,
            moment.as_millis()
        );
        let number = round + 3;
        report
            .step(&title, async {
                let mark = cluster.plane.audit_mark();
                let commit = push(&repo, number)?;
                tokio::time::sleep(moment).await;
                for controller in &cluster.controllers {
                    controller.kill().await?;
                }
                for controller in &mut cluster.controllers {
                    controller.restart().await?;
                }
                let restarted = Instant::now();
                cluster.ready(NAME, &commit).await?;
                let took = restarted.elapsed();
                ensure!(
                    took < SHORT_LEASE_DURATION + 2 * INTERVAL,
                    "it took {took:?} after the restart, more than the old lease and two intervals"
                );
                let expected = undisturbed.get(number as usize % 2).context("two states")?;
                let names: BTreeSet<&String> = expected.keys().collect();
                converged(&cluster, &names, &lasting).await?;
                no_rendered_object_was_deleted(&cluster, mark, &names)?;
                store_is_clean(&cluster).await?;
                Ok(format!(
                    "the same {} objects {:.1} s after the restart",
                    names.len(),
                    took.as_secs_f32()
                ))
            })
            .await?;
    }
    cluster.stop().await
}

fn own(entry: (&String, &String)) -> (String, String) {
    (entry.0.clone(), entry.1.clone())
}

/// Pushes the state with this number. Even and odd states hold different objects, and all differ in their values.
fn push(repo: &Repo, number: u32) -> Result<String> {
    let config = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "crash-test"},
               "data": {"number": number.to_string()}})
    };
    let workload = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "crash-test"},
        "spec": {
            "replicas": 1 + number % 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"number": number.to_string()}},
                "spec": {"containers": [{"name": "web", "image": "registry.invalid/web:1"}]},
            },
        },
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "crash-test"}});
    let mut commit = repo
        .change(&format!("state {number}"))
        .clear()
        .write(
            ".kluctl.yaml",
            "discriminator: crash-test\ntargets:\n  - name: only\n    context: default\n",
        )
        .write(
            "deployment.yaml",
            "deployments:\n  - path: namespace\n  - barrier: true\n  - path: objects\n",
        )
        .write("namespace/namespace.yaml", namespace.to_string())
        .write("objects/web.yaml", workload.to_string());
    for index in 0..10 {
        commit = commit.write(
            &format!("objects/config-{index}.yaml"),
            config(&format!("config-{index}")).to_string(),
        );
    }
    if number % 2 == 1 {
        for index in 0..5 {
            commit = commit.write(
                &format!("objects/odd-{index}.yaml"),
                config(&format!("odd-{index}")).to_string(),
            );
        }
    }
    commit.push()
}

async fn objects(cluster: &TestCluster) -> Result<Objects> {
    let mut objects = Objects::new();
    for kind in ["namespaces", "configmaps", "deployments.apps"] {
        let args = [
            "get",
            kind,
            "-A",
            "-l",
            "kluctl.io/discriminator=crash-test",
            "-o",
            "json",
        ];
        let list: Value = serde_json::from_str(&cluster.plane.kubectl(&args).await?)?;
        for item in list["items"].as_array().into_iter().flatten() {
            let text = |pointer: &str| {
                item.pointer(pointer)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            objects.insert(
                format!("{}/{}", text("/kind"), text("/metadata/name")),
                text("/metadata/uid"),
            );
        }
    }
    Ok(objects)
}

/// Waits until the cluster holds the expected objects, and the lasting ones with their old UIDs.
async fn converged(cluster: &TestCluster, expected: &BTreeSet<&String>, lasting: &Objects) -> Result<()> {
    eventually("the objects of the undisturbed run", 2 * INTERVAL, || async {
        let now = objects(cluster).await?;
        let names: BTreeSet<&String> = now.keys().collect();
        ensure!(names == *expected, "there are {names:?}, not {expected:?}");
        for (name, uid) in lasting {
            ensure!(
                now.get(name) == Some(uid),
                "{name} was replaced: {:?} instead of {uid}",
                now.get(name)
            );
        }
        Ok(())
    })
    .await
}

fn no_rendered_object_was_deleted(
    cluster: &TestCluster,
    mark: testkit::audit::Mark,
    needed: &BTreeSet<&String>,
) -> Result<()> {
    for entry in cluster.plane.audit_since(mark)? {
        let kind = match entry.resource.as_str() {
            "configmaps" => "ConfigMap",
            "deployments" => "Deployment",
            "namespaces" => "Namespace",
            _ => continue,
        };
        let name = format!("{kind}/{}", entry.name);
        if entry.verb.starts_with("delete") && needed.contains(&name) {
            bail!(
                "{name} was deleted by {} at {}, though the last render holds it",
                entry.user,
                entry.at
            );
        }
    }
    Ok(())
}

/// Checks that the artifact store holds the artifacts of statuses only: no other revision, no temporary file.
async fn store_is_clean(cluster: &TestCluster) -> Result<()> {
    let root = cluster.controller("source-controller")?.storage_path();
    let what = "the artifact store to hold only what statuses name";
    eventually(what, TIMEOUT, || async {
        let repository = cluster.repositories().get(NAME).await?;
        let artifact = repository
            .status
            .and_then(|status| status.artifact)
            .context("no artifact")?;
        let mut found = Vec::new();
        files(&root, &root, &mut found)?;
        found.retain(|path| !path.ends_with("/latest.tar.gz") && !path.ends_with(".lock"));
        found.sort_unstable();
        // The hashes of its directories are beside it.
        let named = [artifact.path.clone(), format!("{}.directories", artifact.path)];
        ensure!(
            found == named,
            "the store holds {found:?}, the status names {}",
            artifact.path
        );
        Ok(())
    })
    .await
}

fn files(root: &Path, dir: &Path, found: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            files(root, &path, found)?;
        } else {
            found.push(path.strip_prefix(root)?.display().to_string());
        }
    }
    Ok(())
}
