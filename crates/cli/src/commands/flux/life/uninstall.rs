//! `weir uninstall`: removes the controllers, and leaves the objects that they deployed.
//!
//! The controllers are stopped first: one that still runs would delete its deployments.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use cluster::{Cluster, DeleteOptions, Deleted, Detail, Patch, Propagation};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use objects::{ObjectRef, meta};
use yaml::{Map, Value};

use super::{MANAGER, found, rollout::line};
use crate::{
    commands::flux::{Flux, FluxFlags},
    usage::boolean_flag,
};

/// Remove the controllers; their deployments stay
///
/// Deletes the controllers, their rights, and all their objects in all namespaces, without the finalizers that would delete their
/// deployments. Stored results of deployments go with their namespace.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct UninstallArgs {
    /// Keep the namespaces of the controllers and of stored results
    #[arg(long)]
    keep_namespace: bool,
    /// Only print the objects that would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Don't ask
    #[arg(short, long)]
    silent: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

const EXAMPLES: &str = "\
Examples:
  # What would be deleted?
  weir uninstall --dry-run

  # Keep the Secrets of the namespace
  weir uninstall --keep-namespace -s";

/// Kinds of the controllers and their rights, in the order of deletion.
const KINDS: &[(&str, &str, &str)] = &[
    ("apps", "v1", "Deployment"),
    ("", "v1", "Service"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("", "v1", "ServiceAccount"),
    ("", "v1", "ResourceQuota"),
    (RBAC, "v1", "RoleBinding"),
    (RBAC, "v1", "Role"),
    (RBAC, "v1", "ClusterRoleBinding"),
    (RBAC, "v1", "ClusterRole"),
];
const RBAC: &str = "rbac.authorization.k8s.io";
const NAMESPACES: (&str, &str, &str) = ("", "v1", "Namespace");
const PARALLEL: usize = 16;

pub(crate) fn run(args: &UninstallArgs) -> Result<()> {
    let flux = Flux::open(&args.flux)?;
    if !args.silent && !args.dry_run {
        confirm(&flux)?;
    }
    let removal = Removal {
        flux: &flux,
        dry_run: args.dry_run,
        timeout: args.flux.timeout,
    };
    flux.block_on(removal.run(args.keep_namespace))
}

fn confirm(flux: &Flux) -> Result<()> {
    let question = format!(
        "Are you sure you want to delete the controllers in {} and all their objects?",
        flux.namespace
    );
    ensure!(
        flux.terminal.ask_or(&question, "--silent"),
        "uninstall was not confirmed"
    );
    Ok(())
}

struct Removal<'a> {
    flux: &'a Flux,
    dry_run: bool,
    timeout: Duration,
}

impl Removal<'_> {
    async fn run(&self, keep_namespace: bool) -> Result<()> {
        let (flux, cluster) = (self.flux, &self.flux.cluster);
        let selector = found::selector(&flux.namespace);
        flux.action(&format!("deleting components in {} namespace", flux.namespace));
        for kind in KINDS {
            let objects = found::list(cluster, *kind, None, &selector).await?;
            self.delete_all(&objects).await?;
        }
        let kind = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let definitions = found::list(cluster, kind, None, &selector).await?;
        flux.action("deleting finalizers in all namespaces");
        for definition in &definitions {
            self.strip(definition).await?;
        }
        flux.action("deleting custom resource definitions");
        self.delete_all(&definitions).await?;
        if !keep_namespace {
            let namespaces = found::list(cluster, NAMESPACES, None, &selector).await?;
            self.delete_all(&namespaces).await?;
        }
        match self.dry_run {
            true => flux.success("uninstall finished (dry run): nothing was deleted"),
            false => flux.success("uninstall finished"),
        }
        Ok(())
    }

    /// Deletes objects, and waits until they are gone: Deployments with their Pods, namespaces with all that is in them.
    async fn delete_all(&self, objects: &[Value]) -> Result<()> {
        let mut gone = Vec::new();
        for object in objects {
            let reference = ObjectRef::of(object)?;
            let options = DeleteOptions {
                dry_run: self.dry_run,
                uid: meta::uid(object),
                propagation: Propagation::Foreground,
                ..DeleteOptions::default()
            };
            let deleted = self.flux.cluster.delete(&reference, options).await;
            match deleted.with_context(|| format!("delete {}", line(&reference)))? {
                Deleted::Yes => {
                    let text = format!("{} deleted{}", line(&reference), self.suffix());
                    self.flux.success(&text);
                    gone.push((reference, meta::uid(object).map(str::to_owned)));
                }
                Deleted::AlreadyGone | Deleted::Changed => {}
            }
        }
        if self.dry_run {
            return Ok(());
        }
        for (reference, uid) in gone {
            self.flux
                .cluster
                .wait_gone(&reference, uid.as_deref(), self.timeout)
                .await?;
        }
        Ok(())
    }

    /// Removes the finalizers of all objects of a kind.
    async fn strip(&self, definition: &Value) -> Result<()> {
        let cluster = &self.flux.cluster;
        let Some((group, version, kind)) = stored_kind(definition) else {
            return Ok(());
        };
        let served = match cluster.kind(group, version, kind).await {
            Ok(served) => served,
            Err(cluster::Error::NoMatch { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let objects = cluster
            .list_selected(&served, None, "", Detail::Metadata, found::MOST)
            .await?;
        let marked = objects.iter().filter(|object| has_finalizers(object));
        let references: Vec<ObjectRef> = marked.map(ObjectRef::of).collect::<Result<_, _>>()?;
        let stripped: Vec<ObjectRef> = stream::iter(references)
            .map(|reference| self.strip_one(cluster, reference))
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await?;
        for reference in stripped {
            let text = format!("{} finalizers deleted{}", line(&reference), self.suffix());
            self.flux.success(&text);
        }
        Ok(())
    }

    async fn strip_one(&self, cluster: &Cluster, reference: ObjectRef) -> Result<ObjectRef> {
        if !self.dry_run {
            let metadata = Map::from([("finalizers", Value::Null)]);
            let patch = Patch::Merge(Map::from([("metadata", metadata)]).into());
            match cluster.patch(&reference, &patch, MANAGER).await {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error).context("remove finalizers"),
            }
        }
        Ok(reference)
    }

    fn suffix(&self) -> &'static str {
        match self.dry_run {
            true => " (dry run)",
            false => "",
        }
    }
}

/// Returns group, stored version and kind of a definition.
fn stored_kind(definition: &Value) -> Option<(&str, &str, &str)> {
    let text = |path: &[&str]| definition.pointer(path).and_then(Value::as_str);
    let versions = definition.pointer(&["spec", "versions"])?.as_seq()?;
    let is = |version: &&Value, field: &str| version.get(field).and_then(Value::as_bool) == Some(true);
    let served = || versions.iter().filter(|version| is(version, "served"));
    let version = served()
        .find(|version| is(version, "storage"))
        .or_else(|| served().next())?;
    let version = version.get("name")?.as_str()?;
    Some((
        text(&["spec", "group"])?,
        version,
        text(&["spec", "names", "kind"])?,
    ))
}

fn has_finalizers(object: &Value) -> bool {
    let finalizers = object.pointer(&["metadata", "finalizers"]);
    finalizers
        .and_then(Value::as_seq)
        .is_some_and(|list| !list.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn stored_kind_prefers_the_stored_version_among_served_ones() {
        let definition = |versions: serde_json::Value| {
            Value::from_json(
                json!({ "spec": { "group": "g.io", "names": { "kind": "K" }, "versions": versions } }),
            )
        };
        let both = definition(json!([
            { "name": "v2", "served": true },
            { "name": "v1", "served": true, "storage": true },
        ]));
        assert_eq!(stored_kind(&both), Some(("g.io", "v1", "K")));
        let unserved =
            definition(json!([{ "name": "v1", "storage": true }, { "name": "v2", "served": true }]));
        assert_eq!(stored_kind(&unserved), Some(("g.io", "v2", "K")));
        assert_eq!(stored_kind(&definition(json!([]))), None);
    }
}
