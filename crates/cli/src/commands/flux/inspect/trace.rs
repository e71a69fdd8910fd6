//! `weir trace`.

mod layers;
mod resource;

use anyhow::{Context as _, Result, bail, ensure};
use api::group;
use clap::Args;
use fleet::{kind::HELM_GROUP, report::Block};
use objects::ObjectRef;
use yaml::Value;

use super::{
    super::{Flux, FluxFlags},
    read,
};
use crate::{output, terminal::printable, usage::boolean_flag};

/// Maximum number of owners between an object and one that a controller applied.
const OWNERS: usize = 10;
const DISCRIMINATOR: &str = "kluctl.io/discriminator";

const EXAMPLES: &str = "Examples:
  # Where a Deployment comes from
  weir trace deployment my-app -n apps

  # Several objects
  weir trace pod/redis-0 cm/redis -n redis

  # An object of a kind that others have the name of
  weir trace my-app --kind Deployment --api-version apps/v1 -n apps";

/// Show which objects of Flux and kluctl an object in the cluster comes from
///
/// Follows the labels and owners of the object to the Kustomization, HelmRelease or KluctlDeployment that applied it, and to its
/// source. Objects are given as KIND NAME..., KIND/NAME..., or as NAME with --kind and --api-version.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct TraceArgs {
    /// Kind and names, such as: deployment my-app, or pod/redis-0 cm/redis
    #[arg(value_name = "OBJECT", required = true)]
    objects: Vec<String>,
    /// Kind of the object
    #[arg(
        long,
        value_name = "KIND",
        help_heading = "Selection",
        requires = "api_version"
    )]
    kind: Option<String>,
    /// API version of the object, such as apps/v1
    #[arg(long, value_name = "VERSION", help_heading = "Selection", requires = "kind")]
    api_version: Option<String>,
    #[command(flatten)]
    flux: FluxFlags,
}

pub(crate) fn run(args: &TraceArgs) -> Result<()> {
    let flux = Flux::open(&args.flux)?;
    flux.block_on(trace_all(&flux, args))
}

async fn trace_all(flux: &Flux, args: &TraceArgs) -> Result<()> {
    let references = match args.kind.as_deref().zip(args.api_version.as_deref()) {
        Some(named) => vec![resource::exact(flux, named, &args.objects).await?],
        None => resource::resolve(flux, &args.objects).await?,
    };
    // The original repeats the word of the flag.
    let word = args.kind.as_deref();
    let mut failures = 0;
    let last = references.len().saturating_sub(1);
    for (index, reference) in references.iter().enumerate() {
        match trace(flux, reference, word.unwrap_or(&reference.kind)).await {
            Ok(report) => output::print(&printable(&report))?,
            Err(error) => {
                failures += 1;
                let namespace = reference.namespace.as_deref().unwrap_or_default();
                flux.failure(&format!(
                    "failed to trace {}/{} in namespace {namespace}: {error:#}",
                    reference.kind, reference.name
                ));
            }
        }
        if index < last {
            output::print("---\n")?;
        }
    }
    ensure!(failures == 0, "{failures} objects could not be traced");
    Ok(())
}

async fn trace(flux: &Flux, reference: &ObjectRef, kind: &str) -> Result<String> {
    let object = flux
        .cluster
        .get(reference)
        .await?
        .context("failed to find object")?;
    let owner = owner(flux, &object).await?;
    let width = if owner.group == HELM_GROUP { 16 } else { 17 };
    let mut head = Block::new(width);
    head.add("Object", &format!("{kind}/{}", reference.name));
    head.add_some("Namespace", read::text(&object, &["metadata", "namespace"]));
    head.add("Status", "Managed by Flux");
    let mut report = format!("\n{}", head.text());
    for layer in layers::of(flux, &owner).await? {
        report.push_str("---\n");
        report.push_str(layer.text());
    }
    Ok(report)
}

/// The object that applied another one.
struct Owner {
    group: &'static str,
    /// Namespace and name; for kluctl, the discriminator.
    namespace: String,
    name: String,
}

/// Finds the object that applied this one, or an owner of it.
async fn owner(flux: &Flux, object: &Value) -> Result<Owner> {
    let mut queue = vec![object.clone()];
    for _ in 0..OWNERS {
        let Some(object) = queue.pop() else { break };
        if let Some(owner) = labelled(&object) {
            return Ok(owner);
        }
        let namespace = object.pointer(&["metadata", "namespace"]).and_then(Value::as_str);
        let owners = object
            .pointer(&["metadata", "ownerReferences"])
            .and_then(Value::as_seq);
        for owner in owners.unwrap_or_default() {
            let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
            let (group, version) = objects::split_api_version(text("apiVersion"));
            let reference = ObjectRef {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: text("kind").to_owned(),
                namespace: namespace.map(str::to_owned),
                name: text("name").to_owned(),
            };
            queue.extend(flux.cluster.get(&reference).await?);
        }
    }
    bail!("object not managed by Flux")
}

/// Returns the object that the labels name.
fn labelled(object: &Value) -> Option<Owner> {
    let label = |key: &str| {
        object
            .pointer(&["metadata", "labels", key])
            .and_then(Value::as_str)
    };
    for group in [group::KUSTOMIZE, HELM_GROUP] {
        if let Some(name) = label(&format!("{group}/name")) {
            return Some(Owner {
                group,
                namespace: label(&format!("{group}/namespace"))
                    .unwrap_or_default()
                    .to_owned(),
                name: name.to_owned(),
            });
        }
    }
    label(DISCRIMINATOR).map(|discriminator| Owner {
        group: group::GITOPS_KLUCTL,
        namespace: String::new(),
        name: discriminator.to_owned(),
    })
}
