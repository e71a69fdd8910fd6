//! `weir suspend` and `weir resume`.

use anyhow::{Context as _, Result, bail};
use clap::Args;
use cluster::Patch;
use fleet::{
    Kind,
    suspension::{AT, BY, REASON},
};
use jiff::Timestamp;
use yaml::{Map, Value};

use super::{
    live::{self, MANAGER, Target},
    ready,
    reconcile::success,
};
use crate::{
    commands::flux::{ByKind, Flux, FluxFlags, KindCommand},
    output::error_chain,
    usage::{boolean_flag, parse_bool},
};

/// Longest reason in bytes.
const MAX_REASON: usize = 1024;

const SUSPEND_EXAMPLES: &str = "Examples:
  # Stop the reconciliation of a Kustomization, and say why
  weir suspend kustomization podinfo --reason='load test until noon'

  # Stop several sources, or all of a namespace
  weir suspend source git podinfo webapp
  weir suspend source git --all -n apps";

const RESUME_EXAMPLES: &str = "Examples:
  # Go on with the reconciliation of a Kustomization, and wait for it
  weir resume kustomization podinfo

  # Go on with all of a namespace, and wait for each
  weir resume kustomization --all --wait -n apps";

/// `weir suspend KIND NAME`.
pub(crate) struct Suspend;

/// `weir resume KIND NAME`.
pub(crate) struct Resume;

/// Suspend objects: their controllers leave them alone until they are resumed
///
/// The annotations weir.io/suspended-by, -at and -reason say who did it, when, and why. An object that is not found is reported, but
/// does not fail the command.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = SUSPEND_EXAMPLES)]
pub(crate) struct SuspendArgs {
    /// Names of the objects
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// Suspend all objects of the kind in the namespace
    #[arg(long, help_heading = "Selection")]
    all: bool,
    /// Reason, for people who find the object suspended
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    flux: FluxFlags,
}

/// Resume suspended objects
///
/// A single object is waited for, several only with --wait. An object that is not found is reported, but does not fail the command.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = RESUME_EXAMPLES)]
pub(crate) struct ResumeArgs {
    /// Names of the objects
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// Resume all objects of the kind in the namespace
    #[arg(long, help_heading = "Selection")]
    all: bool,
    /// Wait until the objects are reconciled; the default for a single one
    #[arg(long, value_name = "BOOL", help_heading = "Waiting", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = parse_bool)]
    wait: Option<bool>,
    #[command(flatten)]
    flux: FluxFlags,
}

impl KindCommand for Suspend {
    type Args = SuspendArgs;
    const LISTS: bool = false;

    fn accepts(kind: &Kind) -> bool {
        kind.features.suspends
    }

    fn about(kind: &Kind) -> String {
        format!("Suspend {} objects", kind.kind)
    }
}

impl KindCommand for Resume {
    type Args = ResumeArgs;
    const LISTS: bool = false;

    fn accepts(kind: &Kind) -> bool {
        kind.features.suspends
    }

    fn about(kind: &Kind) -> String {
        format!("Resume {} objects", kind.kind)
    }
}

pub(crate) fn suspend(command: &ByKind<Suspend>) -> Result<()> {
    let args = &command.args;
    let reason = args.reason.as_deref().unwrap_or_default();
    if reason.len() > MAX_REASON {
        bail!("--reason is longer than {MAX_REASON} bytes");
    }
    let flux = Flux::open(&args.flux)?;
    flux.block_on(async {
        let note = Note {
            by: flux.cluster.user().await?,
            at: Timestamp::now().to_string(),
            reason,
        };
        suspend_all(&flux, command, &note).await
    })
}

/// The content of a suspended object's annotations.
struct Note<'a> {
    by: Option<String>,
    at: String,
    reason: &'a str,
}

async fn suspend_all(flux: &Flux, command: &ByKind<Suspend>, note: &Note<'_>) -> Result<()> {
    let args = &command.args;
    if args.names.is_empty() {
        let found = live::list(flux, &command.kinds).await?;
        if found.is_empty() {
            bail!("no objects found");
        }
        for target in found {
            suspend_one(flux, &target, note).await?;
        }
        return Ok(());
    }
    let names = live::distinct(&args.names);
    let mut failures = Vec::new();
    for name in &names {
        let suspended = async {
            let found = live::find(flux, &command.kinds, name).await?;
            if found.is_empty() {
                flux.failure(&missing(flux, &command.kinds, name));
            }
            for target in found {
                suspend_one(flux, &target, note).await?;
            }
            anyhow::Ok(())
        };
        if let Err(error) = suspended.await {
            failures.push((
                *name,
                error.context(format!("failed suspending {}", noun(&command.kinds))),
            ));
        }
    }
    live::report(flux, "suspension", names.len(), failures)
}

fn noun(kinds: &[&'static Kind]) -> &'static str {
    kinds.first().map_or("object", |kind| kind.noun)
}

fn missing(flux: &Flux, kinds: &[&'static Kind], name: &str) -> String {
    let kind = kinds.first().map_or("object", |kind| kind.kind);
    format!("{kind} {name} not found in {} namespace", flux.namespace)
}

async fn suspend_one(flux: &Flux, target: &Target, note: &Note<'_>) -> Result<()> {
    let noun = target.kind.noun;
    let name = live::name(&target.object);
    flux.action(&format!(
        "suspending {noun} {name} in {} namespace",
        flux.namespace
    ));
    patch(flux, target, &suspension(&target.object, note)).await?;
    flux.success(&format!("{noun} suspended"));
    Ok(())
}

async fn patch(flux: &Flux, target: &Target, patch: &Map) -> Result<()> {
    let patch = Patch::Merge(Value::Map(patch.clone()));
    flux.cluster.patch(&target.reference, &patch, MANAGER).await?;
    Ok(())
}

/// Returns the patch that suspends an object. The note of an object that is suspended already stays, unless there is a new reason.
fn suspension(object: &Value, note: &Note<'_>) -> Map {
    let mut patch = Map::from([("spec", Map::from([("suspend", true)]))]);
    if live::is_suspended(object) && note.reason.is_empty() {
        return patch;
    }
    let reason = Some(note.reason).filter(|reason| !reason.is_empty());
    let annotations = Map::from([
        (BY, Value::from(note.by.as_deref())),
        (AT, Value::from(note.at.as_str())),
        (REASON, Value::from(reason)),
    ]);
    patch.insert("metadata", Map::from([("annotations", annotations)]));
    patch
}

/// Returns the patch that resumes an object, and removes the note.
fn resumption(object: &Value) -> Map {
    let mut patch = Map::from([("spec", Map::from([("suspend", Value::Null)]))]);
    let mut annotations = Map::new();
    for name in [BY, AT, REASON] {
        if objects::meta::annotation(object, name).is_some() {
            annotations.insert(name, Value::Null);
        }
    }
    if !annotations.is_empty() {
        patch.insert("metadata", Map::from([("annotations", annotations)]));
    }
    patch
}

pub(crate) fn resume(command: &ByKind<Resume>) -> Result<()> {
    let args = &command.args;
    let flux = Flux::open(&args.flux)?;
    flux.block_on(resume_all(&flux, command))
}

async fn resume_all(flux: &Flux, command: &ByKind<Resume>) -> Result<()> {
    let args = &command.args;
    let kind = command.kinds.first().map_or("object", |kind| kind.kind);
    let mut targets = Vec::new();
    if args.names.is_empty() {
        targets = live::list(flux, &command.kinds).await?;
        if targets.is_empty() {
            flux.failure(&format!(
                "no {kind} objects found in {} namespace",
                flux.namespace
            ));
        }
    }
    for name in live::distinct(&args.names) {
        let found = live::find(flux, &command.kinds, name).await?;
        if found.is_empty() {
            flux.failure(&format!(
                "{kind} object '{name}' not found in {} namespace",
                flux.namespace
            ));
        }
        targets.extend(found);
    }
    for target in &targets {
        let noun = target.kind.noun;
        let name = live::name(&target.object);
        flux.action(&format!("resuming {noun} {name} in {} namespace", flux.namespace));
        let resumed = patch(flux, target, &resumption(&target.object)).await;
        resumed.with_context(|| format!("resuming {noun} {name}"))?;
        flux.success(&format!("{noun} resumed"));
    }
    match args.wait.unwrap_or(args.names.len() == 1) {
        true => wait(flux, kind, targets).await,
        false => Ok(()),
    }
}

/// Waits for all objects at once, and prints their outcomes in the order of their names.
async fn wait(flux: &Flux, kind: &str, mut targets: Vec<Target>) -> Result<()> {
    targets.sort_by(|a, b| a.reference.name.cmp(&b.reference.name));
    let waits = targets.iter().map(async |target| {
        flux.waiting(&format!("waiting for {} reconciliation", target.kind.kind));
        let expected = ready::Expected::of(target.kind, &target.object);
        ready::wait(flux, &target.reference, expected).await
    });
    let mut failed = 0;
    for (target, ended) in targets.iter().zip(futures::future::join_all(waits).await) {
        let of = format!("{} {}", target.kind.kind, target.reference.name);
        match ended {
            Ok(object) => {
                flux.success(&format!("{of} reconciliation completed"));
                flux.success(&success(target.kind, &object));
            }
            Err(error) => {
                failed += 1;
                flux.failure(&format!("{of} reconciliation failed: {}", error_chain(&error)));
            }
        }
    }
    match failed {
        0 => Ok(()),
        failed => bail!("reconciliation failed for {failed} {kind}(s)"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn note(reason: &str) -> Note<'_> {
        Note {
            by: Some("carol".to_owned()),
            at: "t".to_owned(),
            reason,
        }
    }

    fn suspended(object: serde_json::Value, reason: &str) -> serde_json::Value {
        let patch = suspension(&Value::from_json(object), &note(reason));
        serde_json::from_str(&yaml::print::json(&Value::Map(patch))).unwrap()
    }

    #[test]
    fn suspension_says_who_and_why() {
        assert_eq!(
            suspended(json!({}), "load test"),
            json!({
                "spec": {"suspend": true},
                "metadata": {"annotations": {BY: "carol", AT: "t", REASON: "load test"}},
            })
        );
        let without = suspended(json!({}), "");
        assert_eq!(without["metadata"]["annotations"][REASON], json!(null));
        let again = json!({"spec": {"suspend": true}});
        assert_eq!(suspended(again.clone(), ""), json!({"spec": {"suspend": true}}));
        assert_eq!(
            suspended(again, "new")["metadata"]["annotations"][REASON],
            json!("new")
        );
    }

    #[test]
    fn resumption_removes_the_note() {
        let patch = |object| {
            let patch = resumption(&Value::from_json(object));
            serde_json::from_str::<serde_json::Value>(&yaml::print::json(&Value::Map(patch))).unwrap()
        };
        assert_eq!(patch(json!({})), json!({"spec": {"suspend": null}}));
        let noted = json!({"metadata": {"annotations": {BY: "carol", "other": "x"}}});
        assert_eq!(
            patch(noted),
            json!({"spec": {"suspend": null}, "metadata": {"annotations": {BY: null}}})
        );
    }
}
