//! `weir reconcile`: requests reconciliations, and waits for them.

mod sources;

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use api::annotation::RECONCILE_REQUESTED_AT;
use clap::Args;
use cluster::Patch;
use fleet::Kind;
use jiff::Timestamp;
use objects::{ObjectRef, meta};
use yaml::{Map, Value};

use super::{
    live::{self, MANAGER, Target},
    ready::{self, Progress},
};
use crate::{
    commands::flux::{ByKind, Flux, FluxFlags, KindCommand},
    terminal::printable,
    usage::boolean_flag,
};

const FORCE_AT: &str = "reconcile.fluxcd.io/forceAt";
const RESET_AT: &str = "reconcile.fluxcd.io/resetAt";

/// Time after which a message hints at a controller that doesn't answer.
const HINT_AFTER: Duration = Duration::from_secs(15);

const EXAMPLES: &str = "Examples:
  # Apply a Kustomization now, without waiting for its interval
  weir reconcile kustomization podinfo

  # Fetch its source before
  weir reconcile kustomization podinfo --with-source

  # Several objects: each is reported
  weir reconcile source git podinfo webapp

  # Install or upgrade a HelmRelease once more, though nothing changed
  weir reconcile helmrelease podinfo --force";

/// `weir reconcile KIND NAME`.
pub(crate) struct Reconcile;

/// Request reconciliations, and wait for them
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct ReconcileArgs {
    /// Names of the objects
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Reconcile the source before: for Kustomizations, HelmReleases, HelmCharts and KluctlDeployments
    #[arg(long)]
    with_source: bool,
    /// Install or upgrade a HelmRelease once, though nothing changed
    #[arg(long)]
    force: bool,
    /// Forget the failures of a HelmRelease, so that it is tried again
    #[arg(long)]
    reset: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

impl KindCommand for Reconcile {
    type Args = ReconcileArgs;
    const LISTS: bool = false;

    fn accepts(kind: &Kind) -> bool {
        // Requests to the KluctlDeployments of kluctl's own controller have another form: weir gitops reconcile.
        kind.features.reconciles && *kind != fleet::kind::GITOPS_KLUCTL_DEPLOYMENT
    }

    fn about(kind: &Kind) -> String {
        format!("Reconcile {} objects", kind.kind)
    }
}

/// Kind of a requested reconciliation.
#[derive(Clone, Copy, Default)]
struct Request {
    force: bool,
    reset: bool,
}

pub(crate) fn run(command: &ByKind<Reconcile>) -> Result<()> {
    let args = &command.args;
    let is_release = command
        .kinds
        .iter()
        .all(|kind| **kind == fleet::kind::HELM_RELEASE);
    ensure!(is_release || !args.force, "--force is for HelmReleases");
    ensure!(is_release || !args.reset, "--reset is for HelmReleases");
    let has_source = |kind: &&Kind| sources::of(kind).is_some();
    ensure!(
        !args.with_source || command.kinds.iter().copied().all(|kind| has_source(&kind)),
        "--with-source is for kinds that have a source"
    );
    let flux = Flux::open(&args.flux)?;
    let request = Request {
        force: args.force,
        reset: args.reset,
    };
    flux.block_on(reconcile_all(&flux, command, request))
}

/// An object after its request, or the failure of it.
type Asked<'a> = (&'a str, Result<Option<Waiting>>);

async fn reconcile_all(flux: &Flux, command: &ByKind<Reconcile>, request: Request) -> Result<()> {
    let names = live::distinct(&command.args.names);
    let mut asked: Vec<Asked<'_>> = Vec::new();
    for name in &names {
        let began = begin(flux, command, name, request).await;
        asked.push((name, began));
    }
    let ended = futures::future::join_all(asked.into_iter().map(async |(name, began)| match began {
        Ok(Some(waiting)) => (name, waiting.end(flux).await.map(Some)),
        Ok(None) => (name, Ok(None)),
        Err(error) => (name, Err(error)),
    }));
    let mut failures = Vec::new();
    for (name, outcome) in ended.await {
        let of = if names.len() == 1 {
            String::new()
        } else {
            format!("{name}: ")
        };
        match outcome {
            Ok(Some(message)) => flux.success(&format!("{of}{message}")),
            Ok(None) => {}
            Err(error) => failures.push((name, error)),
        }
    }
    live::report(flux, "reconciliation", names.len(), failures)
}

/// Requests the reconciliation of an object; `None` if it has none.
async fn begin(
    flux: &Flux,
    command: &ByKind<Reconcile>,
    name: &str,
    request: Request,
) -> Result<Option<Waiting>> {
    let targets = live::find(flux, &command.kinds, name).await?;
    let Some(target) = targets.into_iter().next() else {
        let hint = match command.kinds.first() {
            Some(kind) if kind.kind == "KluctlDeployment" => {
                "; KluctlDeployments of gitops.kluctl.io are reconciled by weir gitops reconcile"
            }
            _ => "",
        };
        bail!("{}{hint}", live::not_found(flux, &command.kinds, name));
    };
    if live::is_static(&target.object) {
        flux.success("reconciliation not supported by the object");
        return Ok(None);
    }
    live::check_active(&target.object)?;
    if command.args.with_source {
        for source in sources::chain(flux, &target).await? {
            let of = format!("{} {}", source.reference.kind, source.reference.name);
            one(flux, source).await.with_context(|| format!("source {of}"))?;
        }
    }
    ask(flux, target, request).await.map(Some)
}

/// Reconciles one object, from the request to the answer.
async fn one(flux: &Flux, target: Target) -> Result<()> {
    if live::is_static(&target.object) {
        flux.success("reconciliation not supported by the object");
        return Ok(());
    }
    live::check_active(&target.object)?;
    let waiting = ask(flux, target, Request::default()).await?;
    let message = waiting.end(flux).await?;
    flux.success(&message);
    Ok(())
}

/// Annotates an object.
async fn ask(flux: &Flux, target: Target, request: Request) -> Result<Waiting> {
    let reference = &target.reference;
    flux.action(&format!(
        "annotating {} {} in {} namespace",
        reference.kind,
        reference.name,
        reference.namespace.as_deref().unwrap_or_default()
    ));
    let now = Timestamp::now().to_string();
    let annotations = annotations(&now, request);
    let patch = Map::from([("metadata", Map::from([("annotations", annotations)]))]);
    flux.cluster
        .patch(reference, &Patch::Merge(Value::Map(patch)), MANAGER)
        .await?;
    flux.success(&format!("{} annotated", reference.kind));
    flux.waiting(&format!("waiting for {} reconciliation", reference.kind));
    Ok(Waiting {
        before: handled(&target.object).map(str::to_owned),
        kind: target.kind,
        reference: target.reference,
    })
}

fn annotations(now: &str, request: Request) -> Map {
    let mut annotations = Map::from([(RECONCILE_REQUESTED_AT, now)]);
    if request.force {
        annotations.insert(FORCE_AT, now);
    }
    if request.reset {
        annotations.insert(RESET_AT, now);
    }
    annotations
}

/// Returns the last request that the controller has handled.
fn handled(object: &Value) -> Option<&str> {
    object
        .pointer(&["status", "lastHandledReconcileAt"])
        .and_then(Value::as_str)
}

/// A requested reconciliation.
struct Waiting {
    kind: &'static Kind,
    reference: ObjectRef,
    /// The last request that was handled before.
    before: Option<String>,
}

impl Waiting {
    /// Waits until the request is handled, and returns the message of success.
    async fn end(&self, flux: &Flux) -> Result<String> {
        let reference = &self.reference;
        let of = format!("{} {}", reference.kind, reference.name);
        let hint = async {
            if flux.cluster.pause(HINT_AFTER).await.is_ok()
                && let Ok(Some(object)) = flux.cluster.get(reference).await
                && handled(&object) == self.before.as_deref()
            {
                flux.warning(&format!(
                    "the controller has not answered the request for {of} yet: it may be busy, not running, or watching other namespaces only"
                ));
            }
            std::future::pending::<()>().await;
        };
        let polled = ready::poll(flux, reference, &of, |object| {
            self.judge(object, Timestamp::now())
        });
        let object = tokio::select! {
            object = polled => object?,
            () = hint => bail!("the wait ended"),
        };
        check_ready(self.kind, &object)?;
        Ok(success(self.kind, &object))
    }

    /// Decides about a live object. flux takes the answer to any request, also to an earlier one that its user did not wait for.
    fn judge(&self, object: &Value, now: Timestamp) -> Progress {
        let handled = handled(object);
        let newest = object
            .pointer(&["metadata", "annotations", RECONCILE_REQUESTED_AT])
            .and_then(Value::as_str);
        match handled == self.before.as_deref() || newest.is_some_and(|newest| handled != Some(newest)) {
            true => Progress::Waiting(String::new()),
            false => ready::computed(object, now),
        }
    }
}

fn check_ready(kind: &Kind, object: &Value) -> Result<()> {
    let ready = ready::condition(object, "Ready").context("status can't be determined")?;
    if ready.get("status").and_then(Value::as_str) == Some("True") {
        return Ok(());
    }
    let message = printable(ready::message(object));
    match sources::of(kind) {
        Some(_) => bail!("{} reconciliation failed: {message}", kind.kind),
        None => bail!("{} reconciliation failed: '{message}'", kind.kind),
    }
}

/// Returns the message about an object that is ready.
pub(super) fn success(kind: &Kind, object: &Value) -> String {
    if *kind == fleet::kind::IMAGE_REPOSITORY {
        let tags = object.pointer(&["status", "lastScanResult", "tagCount"]);
        return format!(
            "scan fetched {} tags",
            tags.and_then(Value::as_i64).unwrap_or_default()
        );
    }
    let revision = ready::revision(kind, object).map(printable);
    match revision {
        Some(revision) if kind.is_source() => format!("fetched revision {revision}"),
        // An OCI registry of charts is not fetched.
        None if kind.is_source() => printable(ready::message(object)),
        Some(revision) => format!("applied revision {revision}"),
        None => match kind.family {
            Some(_) => printable(ready::message(object)),
            None => format!("{} reconciliation completed", meta_kind(object)),
        },
    }
}

fn meta_kind(object: &Value) -> &str {
    let kind = object.get("kind").and_then(Value::as_str);
    kind.unwrap_or_else(|| meta::text(object, "name").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn waiting(before: Option<&str>) -> Waiting {
        Waiting {
            kind: &fleet::kind::KUSTOMIZATION,
            reference: ObjectRef {
                group: "kustomize.toolkit.fluxcd.io".to_owned(),
                version: "v1".to_owned(),
                kind: "Kustomization".to_owned(),
                namespace: Some("n".to_owned()),
                name: "a".to_owned(),
            },
            before: before.map(str::to_owned),
        }
    }

    fn object(handled: Option<&str>, ready: &str) -> Value {
        Value::from_json(json!({
            "kind": "Kustomization", "metadata": {"generation": 1},
            "status": {
                "observedGeneration": 1, "lastHandledReconcileAt": handled, "lastAppliedRevision": "main@sha1:1",
                "conditions": [{"type": "Ready", "status": ready, "message": "m"}],
            },
        }))
    }

    #[test]
    fn handled_request_is_an_answer_unless_a_newer_one_is_pending() {
        let judged = |before, object: &Value| waiting(before).judge(object, Timestamp::UNIX_EPOCH);
        let none = Progress::Waiting(String::new());
        assert_eq!(judged(None, &object(None, "True")), none);
        assert_eq!(judged(Some("1"), &object(Some("1"), "True")), none);
        assert_eq!(judged(Some("1"), &object(Some("2"), "True")), Progress::Ready);
        assert_eq!(
            judged(Some("1"), &object(Some("2"), "False")),
            Progress::Waiting("m".to_owned())
        );
        let requested = |newest: &str| {
            let annotations = Map::from([(RECONCILE_REQUESTED_AT, newest)]);
            let mut object = object(Some("2"), "True");
            let metadata = object.get_mut("metadata").and_then(Value::as_map_mut).unwrap();
            metadata.insert("annotations", annotations);
            object
        };
        assert_eq!(judged(Some("1"), &requested("2")), Progress::Ready);
        assert_eq!(judged(Some("1"), &requested("3")), none);
    }

    #[test]
    fn messages_are_those_of_the_kind() {
        let applied = object(None, "True");
        assert_eq!(
            success(&fleet::kind::KUSTOMIZATION, &applied),
            "applied revision main@sha1:1"
        );
        assert_eq!(success(&fleet::kind::GIT_REPOSITORY, &applied), "m");
        let scanned = Value::from_json(json!({"status": {"lastScanResult": {"tagCount": 3}}}));
        assert_eq!(
            success(&fleet::kind::IMAGE_REPOSITORY, &scanned),
            "scan fetched 3 tags"
        );
        let receiver = Value::from_json(json!({"kind": "Receiver", "status": {}}));
        assert_eq!(
            success(&fleet::kind::RECEIVER, &receiver),
            "Receiver reconciliation completed"
        );
        assert!(check_ready(&fleet::kind::KUSTOMIZATION, &applied).is_ok());
        let failed = check_ready(&fleet::kind::KUSTOMIZATION, &object(None, "False")).unwrap_err();
        assert_eq!(failed.to_string(), "Kustomization reconciliation failed: m");
        let failed = check_ready(&fleet::kind::RECEIVER, &object(None, "False")).unwrap_err();
        assert_eq!(failed.to_string(), "Receiver reconciliation failed: 'm'");
        assert!(check_ready(&fleet::kind::RECEIVER, &receiver).is_err());
    }

    #[test]
    fn requests_have_one_time() {
        let force = Request {
            force: true,
            reset: true,
        };
        assert_eq!(
            annotations("t", Request::default()),
            Map::from([(RECONCILE_REQUESTED_AT, "t")])
        );
        assert_eq!(
            annotations("t", force),
            Map::from([(RECONCILE_REQUESTED_AT, "t"), (FORCE_AT, "t"), (RESET_AT, "t")])
        );
    }
}
