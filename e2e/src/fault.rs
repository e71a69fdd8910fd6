//! Kills the controllers in the middle of deployments, and checks that the cluster ends up as after an undisturbed run.

pub mod compaction;
pub mod events;
pub mod quiet;
pub mod rights;
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
/// Kustomizations of a list whose revision is compacted.
const LISTED: usize = 5_000;
/// The namespaces of the objects of a KluctlDeployment and of a Kustomization.
const NAMESPACES: [&str; 2] = ["crash-test", "crash-kustomization"];

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
    /// Each right of the kustomize-controller is missing
    Rights,
    /// The revision of a long list is compacted
    Compaction,
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
    if wanted(FaultKind::Rights) {
        Box::pin(rights::every_right_is_needed(report)).await?;
    }
    if wanted(FaultKind::Compaction) {
        Box::pin(compaction::long_lists_begin_anew(report, LISTED)).await?;
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
            let spec = json!({"interval": interval, "path": "kustomization"});
            cluster.apply_kustomization(NAME, NAME, spec).await?;
            ready(&cluster, &commit).await?;
            undisturbed.push(objects(&cluster).await?);
            ready(&cluster, &push(&repo, 1)?).await?;
            undisturbed.push(objects(&cluster).await?);
            ready(&cluster, &push(&repo, 2)?).await?;
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
                ready(&cluster, &commit).await?;
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

/// Waits until both deployments are Ready at a commit.
async fn ready(cluster: &TestCluster, commit: &str) -> Result<()> {
    cluster.ready(NAME, commit).await?;
    cluster.applied(NAME, commit).await?;
    Ok(())
}

/// Pushes the state with this number. Even and odd states hold different objects, and all differ in their values.
fn push(repo: &Repo, number: u32) -> Result<String> {
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
        );
    for (namespace, [first, others]) in NAMESPACES
        .into_iter()
        .zip([["namespace", "objects"], ["kustomization", "kustomization"]])
    {
        for (name, object) in state(namespace, number) {
            let dir = if name == "namespace" { first } else { others };
            commit = commit.write(&format!("{dir}/{name}.yaml"), object.to_string());
        }
    }
    commit.push()
}

/// Returns the objects of a state in a namespace, by the names of their files.
fn state(namespace: &str, number: u32) -> Vec<(String, Value)> {
    let config = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
               "data": {"number": number.to_string()}})
    };
    let workload = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": 1 + number % 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"number": number.to_string()}},
                "spec": {"containers": [{"name": "web", "image": "registry.invalid/web:1"}]},
            },
        },
    });
    let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let mut objects = vec![("namespace".to_owned(), own), ("web".to_owned(), workload)];
    let odd = if number % 2 == 1 { 5 } else { 0 };
    let names = (0..10).map(|index| format!("config-{index}"));
    for name in names.chain((0..odd).map(|index| format!("odd-{index}"))) {
        let object = config(&name);
        objects.push((name, object));
    }
    objects
}

/// Returns the objects of both deployments.
async fn objects(cluster: &TestCluster) -> Result<Objects> {
    let mut objects = Objects::new();
    let owners = [
        "kluctl.io/discriminator=crash-test",
        "kustomize.toolkit.fluxcd.io/name=crash",
    ];
    for owner in owners {
        for kind in ["namespaces", "configmaps", "deployments.apps"] {
            let args = ["get", kind, "-A", "-l", owner, "-o", "json"];
            let list: Value = serde_json::from_str(&cluster.plane.kubectl(&args).await?)?;
            for item in list["items"].as_array().into_iter().flatten() {
                let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
                let [kind, namespace, name] = ["/kind", "/metadata/namespace", "/metadata/name"].map(text);
                let uid = text("/metadata/uid").to_owned();
                objects.insert(format!("{kind}/{namespace}/{name}"), uid);
            }
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
        // A namespace is in none.
        let namespace = if kind == "Namespace" {
            ""
        } else {
            entry.namespace.as_str()
        };
        let name = format!("{kind}/{namespace}/{}", entry.name);
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
