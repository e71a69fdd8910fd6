//! `weir create`: creates or updates objects from flags, and waits until they are ready, or prints them.

mod alert;
mod credentials;
mod flags;
mod helmrelease;
mod image;
mod kustomization;
mod secret;
mod source;
mod store;
mod tenant;

use anyhow::Result;
use clap::Subcommand;
use fleet::Kind;
use yaml::Value;

use super::ready::{self, Expected};
use crate::{deferred::Deferred, terminal::printable};
use flags::CreateFlags;
use store::{Creation, export};

/// Subcommands of `weir create`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create or update a source
    #[command(subcommand)]
    Source(source::Command),
    /// Create or update a Kustomization
    #[command(visible_alias = "ks")]
    Kustomization(Deferred<kustomization::KustomizationArgs>),
    /// Create or update a HelmRelease
    #[command(visible_alias = "hr")]
    Helmrelease(Deferred<helmrelease::HelmReleaseArgs>),
    /// Create or update an Alert
    Alert(Deferred<alert::AlertArgs>),
    /// Create or update a Provider
    AlertProvider(Deferred<alert::ProviderArgs>),
    /// Create or update a Receiver
    Receiver(Deferred<alert::ReceiverArgs>),
    /// Create or update a tenant
    Tenant(Deferred<tenant::TenantArgs>),
    /// Create or update a Secret for the controllers
    #[command(subcommand)]
    Secret(secret::Command),
    /// Create or update objects of the image automation
    #[command(subcommand)]
    Image(image::Command),
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Source(command) => source::run(command),
        Command::Kustomization(args) => kustomization(args),
        Command::Helmrelease(args) => helmrelease(args),
        Command::Alert(args) => alert(args),
        Command::AlertProvider(args) => provider(args),
        Command::Receiver(args) => receiver(args),
        Command::Tenant(args) => tenant::run(args),
        Command::Secret(command) => secret::run(command),
        Command::Image(command) => image::run(command),
    }
}

fn kustomization(args: &kustomization::KustomizationArgs) -> Result<()> {
    let create = &args.create;
    let object = args.object(&create.namespace()?)?;
    if create.export {
        return export(&object);
    }
    let flux = create.open()?;
    flux.generated("generating Kustomization");
    let created = Creation::of("Kustomization").run(&flux, &fleet::kind::KUSTOMIZATION, &object)?;
    flux.success(&format!("Kustomization {} is ready", create.name));
    let revision = text(&created, &["status", "lastAppliedRevision"]);
    flux.success(&format!("applied revision {}", printable(revision)));
    Ok(())
}

fn helmrelease(args: &helmrelease::HelmReleaseArgs) -> Result<()> {
    let create = &args.create;
    let object = args.object(&create.namespace()?)?;
    if create.export {
        return export(&object);
    }
    let flux = create.open()?;
    flux.generated("generating HelmRelease");
    let created = Creation::of("HelmRelease").run(&flux, &fleet::kind::HELM_RELEASE, &object)?;
    flux.success(&format!("HelmRelease {} is ready", create.name));
    let revision = ready::revision(&fleet::kind::HELM_RELEASE, &created).unwrap_or_default();
    flux.success(&format!("applied revision {}", printable(revision)));
    Ok(())
}

fn alert(args: &alert::AlertArgs) -> Result<()> {
    let object = args.object(&args.create.namespace()?)?;
    create_static(&args.create, &fleet::kind::ALERT, &object)
}

fn provider(args: &alert::ProviderArgs) -> Result<()> {
    let object = args.object(&args.create.namespace()?)?;
    create_static(&args.create, &fleet::kind::PROVIDER, &object)
}

/// Creates an object to which the original's controller writes no status.
fn create_static(create: &CreateFlags, kind: &'static Kind, object: &Value) -> Result<()> {
    if create.export {
        return export(object);
    }
    let flux = create.open()?;
    flux.generated(&format!("generating {}", kind.kind));
    let creation = Creation {
        expected: Expected::MaybeStatus,
        ..Creation::of(kind.kind)
    };
    creation.run(&flux, kind, object)?;
    flux.success(&format!("{} {} is ready", kind.kind, create.name));
    Ok(())
}

fn receiver(args: &alert::ReceiverArgs) -> Result<()> {
    let create = &args.create;
    let object = args.object(&create.namespace()?)?;
    if create.export {
        return export(&object);
    }
    let flux = create.open()?;
    flux.generated("generating Receiver");
    let created = Creation::of("Receiver").run(&flux, &fleet::kind::RECEIVER, &object)?;
    flux.success(&format!("Receiver {} is ready", create.name));
    let path = text(&created, &["status", "webhookPath"]);
    flux.success(&format!("generated webhook URL {}", printable(path)));
    Ok(())
}

fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}
