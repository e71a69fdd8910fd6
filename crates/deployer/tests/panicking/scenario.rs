//! Panics in the passes over one object, at each step and at many points of its work, while its neighbours get new revisions. The controller
//! is an example of its crate, with the kind of `kind.rs`.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use kube::api::{Api, DeleteParams, DynamicObject};
use serde_json::{Value, json};
use testkit::{Controller, eventually, ready, wait_for, wait_gone};

/// The object whose passes panic, and its neighbours.
pub(crate) const BAD: &str = "bad";
pub(crate) const GOOD: [&str; 3] = ["good-0", "good-1", "good-2"];
/// With one slot, a slot that is not given back stops all others.
pub(crate) const FLAGS: [&str; 3] = [
    "--concurrent=1",
    "--min-retry-delay=200ms",
    "--max-retry-delay=1s",
];
/// The longest delay after a failure.
const MAX_RETRY: Duration = Duration::from_secs(1);
/// Number of points in the middle of a pass to panic at.
const PLACES: f64 = 12.0;
/// Timeout of every wait, for a busy machine.
const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

/// A controller, and objects of one kind that deploy a ConfigMap each from one source.
pub(crate) trait Subject {
    fn controller(&self) -> &Controller;

    /// Returns the label of the kind in metrics.
    fn kind(&self) -> &'static str;

    fn objects(&self) -> &Api<DynamicObject>;

    /// Publishes a revision in which the ConfigMap of each object has this value.
    async fn publish(&self, value: &str) -> Result<()>;

    async fn create(&self, name: &str) -> Result<()>;

    /// Waits until the ConfigMap of an object has this value.
    async fn holds(&self, name: &str, value: &str) -> Result<()>;

    async fn has(&self, name: &str) -> Result<bool>;
}

/// Returns the path of an example, which is beside the folder of the test binaries.
pub(crate) fn example(package: &str, name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let profile = own.parent().and_then(|deps| deps.parent());
    let program = profile.context("this program has no folder")?;
    let program = program.join("examples").join(name);
    ensure!(
        program.exists(),
        "the example isn't built: run `cargo build -p {package} --example {name}`"
    );
    Ok(program)
}

/// Lets the passes over the bad object panic at this step from now on, or at none.
fn panic_at(subject: &impl Subject, step: Option<&str>) -> Result<()> {
    let dir = subject.controller().dir();
    let line = step.map(|step| format!("{BAD} {step}\n")).unwrap_or_default();
    fs::write(dir.join("new"), line)?;
    fs::rename(dir.join("new"), dir.join("panics"))?;
    Ok(())
}

/// Returns the number of caught panics, as in the metrics.
async fn count(subject: &impl Subject) -> Result<f64> {
    let kind = subject.kind();
    let series = format!("controller_runtime_reconcile_panics_total{{controller=\"{kind}\"}}");
    subject.controller().metric(&series).await
}

/// Waits until this number of further passes have panicked.
async fn more(subject: &impl Subject, panics: f64) -> Result<()> {
    let before = count(subject).await?;
    eventually("panics", TIMEOUT, || async {
        let now = count(subject).await?;
        ensure!(now >= before + panics, "{} so far", now - before);
        Ok(())
    })
    .await
}

/// Waits until the neighbours have deployed this value.
async fn others_deploy(subject: &impl Subject, value: &str) -> Result<()> {
    for name in GOOD {
        subject.holds(name, value).await?;
    }
    Ok(())
}

/// Waits until the bad object says that a pass panicked, where, and nothing of its message.
async fn reported(subject: &impl Subject) -> Result<()> {
    let object = wait_for(subject.objects(), BAD, "InternalError", TIMEOUT, |object| {
        let ready = ready(object);
        ready["reason"] == "InternalError"
            && ready["status"] == "False"
            && ready["observedGeneration"] == json!(object.metadata.generation)
    });
    let ready = ready(&object.await?);
    let message = ready["message"].as_str().unwrap_or_default();
    ensure!(message.contains("panicking/kind.rs:"), "{message}");
    ensure!(!message.contains(BAD) && !message.contains("polls"), "{message}");
    Ok(())
}

/// Ends the panics, and waits until the bad object has deployed this value, which it does by itself.
async fn recovers(subject: &impl Subject, value: &str) -> Result<()> {
    panic_at(subject, None)?;
    subject.holds(BAD, value).await?;
    wait_for(subject.objects(), BAD, "its recovery", TIMEOUT, |object| {
        let ready = ready(object);
        ready["status"] == "True" && ready["reason"] == "ReconciliationSucceeded"
    })
    .await?;
    Ok(())
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

/// Lets passes over one object panic at each step.
async fn panic_everywhere(subject: &impl Subject) -> Result<()> {
    subject.publish("0").await?;
    for name in GOOD.iter().chain([&BAD]) {
        subject.create(name).await?;
    }
    others_deploy(subject, "0").await?;
    recovers(subject, "0").await?;
    for (value, (step, panics)) in (1..).zip([("validate", 3.0), ("midway", PLACES), ("unchanged", 3.0)]) {
        let value = format!("{value}");
        panic_at(subject, Some(step))?;
        let (began, before) = (Instant::now(), count(subject).await?);
        subject.publish(&value).await?;
        reported(subject).await.context(step)?;
        others_deploy(subject, &value).await.context(step)?;
        more(subject, panics).await.context(step)?;
        // Doubled delays from 200 ms on, then the longest one, each a quarter shorter at most.
        let most = 4.0 + began.elapsed().as_secs_f64() / (0.75 * MAX_RETRY.as_secs_f64());
        let counted = count(subject).await? - before;
        ensure!(counted <= most, "{step}: {counted} panics are no backoff");
        recovers(subject, &value).await.context(step)?;
    }
    Ok(())
}

/// Lets the question if anything is due panic: the pass reads everything instead.
async fn panic_in_the_check_for_changes(subject: &impl Subject) -> Result<()> {
    panic_at(subject, Some("unchanged"))?;
    more(subject, 3.0).await?;
    subject.publish("unchanged").await?;
    others_deploy(subject, "unchanged").await?;
    subject.holds(BAD, "unchanged").await?;
    recovers(subject, "unchanged").await
}

/// Lets the removal panic: the object stays until it can be cleaned up.
async fn panic_at_removal(subject: &impl Subject) -> Result<()> {
    panic_at(subject, Some("finalize"))?;
    subject.objects().delete(BAD, &DeleteParams::default()).await?;
    more(subject, 3.0).await?;
    reported(subject).await?;
    subject.publish("removal").await?;
    others_deploy(subject, "removal").await?;
    ensure!(subject.has(BAD).await?, "it was half removed");
    panic_at(subject, None)?;
    wait_gone(subject.objects(), BAD, TIMEOUT).await?;
    ensure!(!subject.has(BAD).await?, "its ConfigMap is left");
    Ok(())
}

/// Lets the passes over the bad object panic everywhere, and ends the controller.
pub(crate) async fn play(subject: &impl Subject) -> Result<()> {
    let controller = subject.controller();
    let process = controller.process();
    panic_everywhere(subject).await?;
    panic_in_the_check_for_changes(subject)
        .await
        .context("unchanged")?;
    panic_at_removal(subject).await.context("removal")?;
    ensure!(controller.is_running() && controller.process().pid == process.pid);
    let logged = f64::from(u32::try_from(logged_panics(controller).len())?);
    let counted = count(subject).await?;
    ensure!(
        (logged - counted).abs() < f64::EPSILON,
        "{counted} panics were counted, {logged} are in the log"
    );
    for name in GOOD {
        let object = subject.objects().get(name).await?;
        ensure!(ready(&object)["status"] == "True", "{name}: {:?}", object.data);
    }
    // Passes that hold a lock for ever would keep it from its end.
    ensure!(controller.terminate().await?.success());
    Ok(())
}
