//! Kills a controller after each of its writes, and compares the end state with an undisturbed run's.

use std::{
    path::{Path, PathBuf},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::{Controller, FaultProxy, Outcome, Repo, eventually, wait_gone};
use tokio::sync::Notify;

use crate::{
    bench::pairs::Deployer,
    cluster::{CONTROLLERS, NAMESPACE, TIMEOUT, TestCluster},
    report::Report,
};

const NAME: &str = "writes";
/// Time within which the state of an undisturbed run is reached: two intervals, with an allowance for a busy machine.
const CONVERGED: Duration = Duration::from_secs(60);
/// Most writes of a run, after which something must be wrong.
const MOST: usize = 60;
/// Time of the first commit, so that all runs have the same commits.
const COMMITTED: i64 = 1_700_000_000;

/// Creates, updates and deletes objects once for each write of a controller, which is killed after that write.
pub async fn play(report: &mut Report) -> Result<()> {
    for (killed, deployer) in [
        ("source-controller", Deployer::KluctlDeployment),
        ("kluctl-controller", Deployer::KluctlDeployment),
        ("kustomize-controller", Deployer::Kustomization),
    ] {
        let title = format!("{killed} is killed after each of its writes");
        report
            .step(&title, kill_after_each_write(killed, deployer))
            .await?;
    }
    Ok(())
}

async fn kill_after_each_write(name: &str, deployer: Deployer) -> Result<String> {
    let mut cluster = TestCluster::bare().await?;
    let proxy = Arc::new(FaultProxy::start(&cluster.plane)?);
    for &other in CONTROLLERS.iter().filter(|other| **other != name) {
        cluster.start(other, &["--enable-leader-election=false"]).await?;
    }
    let kubeconfig = cluster.plane.service_account_kubeconfig(NAMESPACE, name).await?;
    let mut launch = testkit::stack::launch(&cluster.plane, name).await?;
    launch = launch.run_by(&proxy.kubeconfig(&kubeconfig)?);
    launch = launch.flag("--enable-leader-election=false");
    let mut controller = launch.start().await?;
    let repo = cluster.git.repo(NAME)?;
    let storage = match name {
        "source-controller" => controller.storage_path(),
        _ => cluster.controller("source-controller")?.storage_path(),
    };
    let subject = Subject {
        cluster: &cluster,
        deployer,
        repo,
        storage,
    };
    let expected = subject.run(None).await?;
    let mut kills = 0;
    for write in 1..MOST {
        let killer = Killer::new(&proxy, write);
        if !killer.run(&mut controller, subject.run(Some(&expected))).await? {
            break;
        }
        kills += 1;
    }
    ensure!(kills > 3, "only {kills} writes were seen");
    controller.terminate().await?;
    cluster.stop().await?;
    Ok(format!("{kills} writes, each with the same end state"))
}

/// Kills a controller when a write has passed.
struct Killer {
    proxy: Arc<FaultProxy>,
    passed: Arc<Notify>,
    reached: Arc<AtomicBool>,
}

impl Killer {
    fn new(proxy: &Arc<FaultProxy>, write: usize) -> Self {
        let (passed, reached) = (Arc::<Notify>::default(), Arc::<AtomicBool>::default());
        let (seen, notify, flag) = (AtomicUsize::new(0), Arc::clone(&passed), Arc::clone(&reached));
        proxy.rule(move |request| {
            if flag.load(Ordering::SeqCst) {
                return Outcome::Hang;
            }
            // Its own Kubernetes events are no part of its state.
            let counts = request.is_write()
                && !request.path.contains("/events")
                && !request.path.contains("/tokenreviews");
            if !counts || seen.fetch_add(1, Ordering::SeqCst) + 1 < write {
                return Outcome::Pass;
            }
            flag.store(true, Ordering::SeqCst);
            notify.notify_one();
            // It reaches the API server; the controller never hears of it.
            Outcome::CutAnswer
        });
        Self {
            proxy: Arc::clone(proxy),
            passed,
            reached,
        }
    }

    /// Plays a run, and kills the controller in it. Returns false if the run had fewer writes.
    async fn run(
        self,
        controller: &mut Controller,
        run: impl Future<Output = Result<Value>>,
    ) -> Result<bool> {
        let kill = async {
            self.passed.notified().await;
            controller.kill().await?;
            self.proxy.heal();
            controller.restart().await
        };
        let (mut run, mut kill) = (pin!(run), pin!(kill));
        tokio::select! {
            ended = &mut run => {
                ended?;
                if self.reached.load(Ordering::SeqCst) {
                    kill.await?;
                }
            }
            killed = &mut kill => {
                killed?;
                run.await?;
            }
        }
        self.proxy.heal();
        Ok(self.reached.load(Ordering::SeqCst))
    }
}

/// The objects of a run.
struct Subject<'a> {
    cluster: &'a TestCluster,
    deployer: Deployer,
    repo: Repo,
    storage: PathBuf,
}

impl Subject<'_> {
    /// Creates, updates and deletes the objects, and returns their state before the deletion, which has to be the expected one.
    async fn run(&self, expected: Option<&Value>) -> Result<Value> {
        let (cluster, deployments) = (self.cluster, self.deployer.api(self.cluster));
        let first = push(&self.repo, 0)?;
        cluster.apply_repository(NAME, &self.repo.url(), "2s").await?;
        self.deploy().await?;
        self.ready(&first).await?;
        self.ready(&push(&self.repo, 1)?).await?;
        let state = match expected {
            None => self.state().await?,
            Some(expected) => {
                eventually("the state of the undisturbed run", CONVERGED, || async {
                    let state = self.state().await?;
                    ensure!(state == *expected, "it is\n{state:#}\ninstead of\n{expected:#}");
                    Ok(state)
                })
                .await?
            }
        };
        deployments.delete(NAME, &Default::default()).await?;
        wait_gone(&deployments, NAME, TIMEOUT).await?;
        cluster.repositories().delete(NAME, &Default::default()).await?;
        wait_gone(&cluster.repositories(), NAME, TIMEOUT).await?;
        let labels = self.labels();
        let args = ["get", "configmaps", "-n", NAMESPACE, "-l", labels, "-o", "name"];
        let left = cluster.plane.kubectl(&args).await?;
        ensure!(left.trim().is_empty(), "objects are left behind: {left}");
        no_file_is_left(&self.storage)?;
        Ok(state)
    }

    async fn deploy(&self) -> Result<()> {
        let mut spec = json!({"interval": "5s", "retryInterval": "2s"});
        match self.deployer {
            Deployer::KluctlDeployment => {
                spec["target"] = "only".into();
                spec["delete"] = true.into();
                self.cluster.apply_deployment(NAME, NAME, spec).await
            }
            Deployer::Kustomization => {
                spec["path"] = "objects".into();
                self.cluster.apply_kustomization(NAME, NAME, spec).await
            }
        }
    }

    async fn ready(&self, commit: &str) -> Result<()> {
        match self.deployer {
            Deployer::KluctlDeployment => self.cluster.ready(NAME, commit).await.map(drop),
            Deployer::Kustomization => self.cluster.applied(NAME, commit).await.map(drop),
        }
    }

    /// Returns the labels of deployed objects.
    fn labels(&self) -> &'static str {
        match self.deployer {
            Deployer::KluctlDeployment => "kluctl.io/discriminator=writes",
            Deployer::Kustomization => "kustomize.toolkit.fluxcd.io/name=writes",
        }
    }

    async fn state(&self) -> Result<Value> {
        let deployments = match self.deployer {
            Deployer::KluctlDeployment => "kluctldeployments",
            Deployer::Kustomization => "kustomizations",
        };
        let mut state = Vec::new();
        for kind in ["gitrepositories", deployments, "configmaps"] {
            let mut args = vec![
                "get",
                kind,
                "-n",
                NAMESPACE,
                "--show-managed-fields",
                "-o",
                "json",
            ];
            if kind == "configmaps" {
                args.extend(["-l", self.labels()]);
            }
            let mut list: Value = serde_json::from_str(&self.cluster.plane.kubectl(&args).await?)?;
            state.push(list["items"].take());
        }
        let mut state = Value::Array(state);
        normalize(&mut state);
        Ok(state)
    }
}

/// Checks that no artifact and no temporary file is left in the storage; locks are files without content.
fn no_file_is_left(storage: &Path) -> Result<()> {
    let mut found = Vec::new();
    super::files(storage, storage, &mut found)?;
    found.retain(|path| !path.ends_with(".lock"));
    ensure!(found.is_empty(), "files are left in the storage: {found:?}");
    Ok(())
}

fn push(repo: &Repo, number: i64) -> Result<String> {
    let map = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE},
               "data": {"number": number.to_string()}})
    };
    let only = if number == 0 { "old" } else { "new" };
    repo.change(&format!("state {number}"))
        .orphan()
        .clear()
        .at(COMMITTED + number)
        .write(
            ".kluctl.yaml",
            "discriminator: writes\ntargets:\n  - name: only\n",
        )
        .write("deployment.yaml", "deployments:\n  - path: objects\n")
        .write("objects/kept.yaml", map("kept").to_string())
        .write(&format!("objects/{only}.yaml"), map(only).to_string())
        .push()
}

/// Makes two runs comparable byte by byte, apart from fields that cannot be equal:
///
/// - `uid` and `resourceVersion`, which the API server chooses;
/// - times in conditions, artifacts and managed fields, and the order of managed fields, which are sorted by them;
/// - `id` of results, a random number;
/// - the number and duration of passes in a history;
/// - `rawResult`, which lists the changes of one attempt: one that is repeated after a kill finds less to change;
/// - the duration at the end of a message.
///
/// Everything else is equal, generations and the owners of all fields included.
fn normalize(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for name in [
                "uid",
                "resourceVersion",
                "rawResult",
                "totalReconciliations",
                "lastReconciledDuration",
            ] {
                map.remove(name);
            }
            // Results have random identifiers; inventories have a version beside each.
            if !map.contains_key("v") {
                map.remove("id");
            }
            map.values_mut().for_each(normalize);
            if let Some(Value::Array(managed)) = map.get_mut("managedFields") {
                managed.sort_by_key(Value::to_string);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::String(text) if is_time(text) => *text = "TIME".to_owned(),
        Value::String(text) => {
            if let Some((start, _)) = text.split_once("finished in ") {
                *text = format!("{start}finished");
            }
        }
        _ => {}
    }
}

fn is_time(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok()
}
