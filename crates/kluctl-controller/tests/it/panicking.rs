//! Panics in the passes over one object, at each step and at many places of its work. The controller is `examples/panicking.rs`: the controller of the
//! product with kinds that panic on demand.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use kube::api::{Api, DeleteParams, DynamicObject};
use serde_json::{Value, json};
use testkit::{Controller, eventually, ready, wait_for, wait_gone};

use crate::{
    fixture::{Fixture, TIMEOUT, for_kind, grant, plane},
    gitops::Gitops,
    source::OfferedSource,
};

/// The object whose passes panic, and its neighbours.
const BAD: &str = "bad";
const GOOD: [&str; 3] = ["good-0", "good-1", "good-2"];
/// The longest delay after a failure.
const MAX_RETRY: Duration = Duration::from_secs(1);
/// Number of places in the middle of a pass to panic at.
const PLACES: f64 = 12.0;

/// Returns the path of the example, which is beside the folder of the test binaries.
fn program() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let profile = own.parent().and_then(|deps| deps.parent());
    let program = profile
        .context("this program has no folder")?
        .join("examples/panicking");
    ensure!(
        program.exists(),
        "the example isn't built: run `cargo build -p kluctl-controller --example panicking`"
    );
    Ok(program)
}

/// A controller with a project for each object of one kind, all in one repository.
struct Panics {
    shop: Gitops,
    /// The source of the projects; none for the kind that fetches them by itself.
    source: Option<OfferedSource>,
    objects: Api<DynamicObject>,
}

impl Panics {
    async fn start(prefix: &str, is_flux: bool) -> Result<Self> {
        let plane = plane().await?;
        let namespace = plane.namespace(prefix).await?;
        let kubeconfig = plane.service_account_kubeconfig(&namespace, "controller").await?;
        grant(plane, &namespace, "controller", &namespace).await?;
        // With one slot, a slot that is not given back stops all others.
        let controller = Controller::named("kluctl-controller")
            .program(program()?)
            .run_by(&kubeconfig)
            .namespace(&namespace)
            .flag("--watch-all-namespaces=false")
            .flag(&format!("--command-result-namespace={prefix}-results"))
            .flag("--concurrent=1")
            .flag("--min-retry-delay=200ms")
            .flag(&format!("--max-retry-delay={}s", MAX_RETRY.as_secs()))
            .start()
            .await?;
        let fixture = Fixture::of(plane, &namespace, namespace.clone(), controller).await?;
        let source = match is_flux {
            true => Some(fixture.source("shop", &[]).await?),
            false => None,
        };
        let version = match is_flux {
            true => "flux.kluctl.io/v1alpha1",
            false => "gitops.kluctl.io/v1beta1",
        };
        let object = json!({
            "apiVersion": version, "kind": "KluctlDeployment",
            "metadata": { "name": BAD, "namespace": namespace },
        });
        let (objects, _) = plane.api_for(object).await?;
        let shop = Gitops::of(fixture)?;
        Ok(Self {
            shop,
            source,
            objects,
        })
    }

    fn fixture(&self) -> &Fixture {
        &self.shop.fixture
    }

    /// Publishes a revision in which the ConfigMap of each project has this value.
    async fn publish(&self, value: &str) -> Result<()> {
        let mut all = Vec::new();
        for name in GOOD.iter().chain([&BAD]) {
            let files = self.fixture().other_maps(name, &[(name, value)]);
            all.extend(
                files
                    .into_iter()
                    .map(|(path, text)| (format!("{name}/{path}"), text)),
            );
        }
        match &self.source {
            Some(source) => source.offer(&all).await.map(drop),
            None => self.shop.push_files(&all, &[]).map(drop),
        }
    }

    async fn create(&self, name: &str) -> Result<()> {
        let spec = json!({ "interval": "1s", "retryInterval": "1s", "prune": true, "delete": true });
        match &self.source {
            Some(_) => {
                let deployment = self.fixture().deployment(name, "shop").spec(for_kind());
                let deployment = deployment.spec(spec).spec(json!({ "path": name }));
                self.fixture().plane.apply(deployment).await?;
                Ok(())
            }
            None => {
                let mut spec = spec;
                spec["source"] = json!({ "git": { "url": self.shop.repo.url(), "path": name } });
                self.shop.create(name, spec).await
            }
        }
    }

    /// Lets the passes over the bad object panic at this step from now on, or at none.
    fn panic_at(&self, step: Option<&str>) -> Result<()> {
        let dir = self.fixture().controller.dir();
        let line = step.map(|step| format!("{BAD} {step}\n")).unwrap_or_default();
        fs::write(dir.join("new"), line)?;
        fs::rename(dir.join("new"), dir.join("panics"))?;
        Ok(())
    }

    /// Returns the number of caught panics, as in the log.
    async fn count(&self) -> Result<f64> {
        let name = match self.source {
            Some(_) => "kluctldeployment",
            None => "kluctldeployment-gitops",
        };
        let series = format!("controller_runtime_reconcile_panics_total{{controller=\"{name}\"}}");
        self.fixture().controller.metric(&series).await
    }

    /// Waits until this number of further passes have panicked.
    async fn more(&self, panics: f64) -> Result<()> {
        let before = self.count().await?;
        eventually("panics", TIMEOUT, || async {
            let now = self.count().await?;
            ensure!(now >= before + panics, "{} so far", now - before);
            Ok(())
        })
        .await
    }

    /// Waits until the neighbours have deployed this value, twice their interval and the delay of a busy machine at most.
    async fn others_deploy(&self, value: &str) -> Result<()> {
        let began = Instant::now();
        for name in GOOD {
            self.fixture().holds(name, value).await?;
        }
        let took = began.elapsed();
        ensure!(took < Duration::from_secs(20), "the neighbours took {took:?}");
        Ok(())
    }

    /// Waits until the bad object says that a pass panicked, where, and nothing of its message.
    async fn reported(&self) -> Result<()> {
        let object = wait_for(&self.objects, BAD, "InternalError", TIMEOUT, |object| {
            let ready = ready(object);
            ready["reason"] == "InternalError"
                && ready["status"] == "False"
                && ready["observedGeneration"] == json!(object.metadata.generation)
        });
        let ready = ready(&object.await?);
        let message = ready["message"].as_str().unwrap_or_default();
        ensure!(message.contains("examples/panicking.rs:"), "{message}");
        ensure!(!message.contains(BAD) && !message.contains("polls"), "{message}");
        Ok(())
    }

    /// Ends the panics, and waits until the bad object has deployed this value, which it does by itself.
    async fn recovers(&self, value: &str) -> Result<()> {
        self.panic_at(None)?;
        self.fixture().holds(BAD, value).await?;
        wait_for(&self.objects, BAD, "its recovery", TIMEOUT, |object| {
            let ready = ready(object);
            ready["status"] == "True" && ready["reason"] == "ReconciliationSucceeded"
        })
        .await?;
        Ok(())
    }
}

fn logged_panics(controller: &Controller) -> Vec<Value> {
    let mut entries = controller.log_entries();
    entries.retain(|entry| {
        entry["msg"]
            .as_str()
            .is_some_and(|text| text.starts_with("a panic"))
    });
    entries
}

/// Lets passes over one object panic at each step, while its neighbours get new revisions.
async fn panic_everywhere(panics: &Panics) -> Result<()> {
    panics.publish("0").await?;
    for name in GOOD.iter().chain([&BAD]) {
        panics.create(name).await?;
    }
    panics.others_deploy("0").await?;
    panics.recovers("0").await?;
    for (value, (step, count)) in (1..).zip([("validate", 3.0), ("midway", PLACES), ("end", 3.0)]) {
        let value = format!("{value}");
        panics.panic_at(Some(step))?;
        let (began, before) = (Instant::now(), panics.count().await?);
        panics.publish(&value).await?;
        panics.reported().await.context(step)?;
        panics.others_deploy(&value).await.context(step)?;
        panics.more(count).await.context(step)?;
        // Doubled delays from 200 ms on, then the longest one, each a quarter shorter at most.
        let most = 4.0 + began.elapsed().as_secs_f64() / (0.75 * MAX_RETRY.as_secs_f64());
        let counted = panics.count().await? - before;
        ensure!(counted <= most, "{step}: {counted} panics are no backoff");
        panics.recovers(&value).await.context(step)?;
    }
    Ok(())
}

/// Lets the question if anything is due panic: the pass reads everything instead.
async fn panic_when_settled(panics: &Panics) -> Result<()> {
    panics.panic_at(Some("settled"))?;
    panics.more(3.0).await?;
    panics.publish("settled").await?;
    panics.others_deploy("settled").await?;
    panics.fixture().holds(BAD, "settled").await?;
    panics.recovers("settled").await
}

/// Lets the removal panic: the object stays until it can be cleaned up.
async fn panic_at_removal(panics: &Panics) -> Result<()> {
    panics.panic_at(Some("finalize"))?;
    panics.objects.delete(BAD, &DeleteParams::default()).await?;
    panics.more(3.0).await?;
    panics.reported().await?;
    panics.publish("removal").await?;
    panics.others_deploy("removal").await?;
    ensure!(panics.fixture().has(BAD).await?, "it was half removed");
    panics.panic_at(None)?;
    wait_gone(&panics.objects, BAD, TIMEOUT).await?;
    ensure!(!panics.fixture().has(BAD).await?, "its ConfigMap is left");
    Ok(())
}

async fn check(prefix: &str, is_flux: bool) -> Result<()> {
    let panics = Panics::start(prefix, is_flux).await?;
    let process = panics.fixture().controller.process();
    panic_everywhere(&panics).await?;
    panic_when_settled(&panics).await.context("settled")?;
    panic_at_removal(&panics).await.context("removal")?;
    let controller = &panics.fixture().controller;
    ensure!(controller.is_running() && controller.process().pid == process.pid);
    let logged = f64::from(u32::try_from(logged_panics(controller).len())?);
    let counted = panics.count().await?;
    ensure!(
        (logged - counted).abs() < f64::EPSILON,
        "{counted} panics were counted, {logged} are in the log"
    );
    for name in GOOD {
        let object = panics.objects.get(name).await?;
        ensure!(ready(&object)["status"] == "True", "{name}: {:?}", object.data);
    }
    // Passes that hold a lock for ever would keep it from its end.
    ensure!(controller.terminate().await?.success());
    Ok(())
}

#[tokio::test]
async fn panics_over_one_flux_deployment_delay_no_other_and_end_with_their_cause() -> Result<()> {
    check("panics-flux", true).await
}

#[tokio::test]
async fn panics_over_one_gitops_deployment_delay_no_other_and_end_with_their_cause() -> Result<()> {
    check("panics-gitops", false).await
}
