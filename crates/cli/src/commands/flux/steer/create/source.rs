//! `weir create source`.

mod bucket;
mod chart;
mod flags;
mod git;
mod helm;
mod oci;

use anyhow::{Context as _, Result, ensure};
use clap::Subcommand;
use yaml::{Map, Value};

use super::{
    credentials::read_optional,
    secret,
    store::{Creation, export, upsert_secret},
};
use crate::{
    commands::flux::{
        Flux,
        steer::{fields::Identity, ready::Expected},
    },
    deferred::Deferred,
};

pub(super) use chart::chart_source;

/// Subcommands of `weir create source`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create or update a GitRepository
    Git(Deferred<git::GitArgs>),
    /// Create or update a Bucket
    Bucket(Deferred<bucket::BucketArgs>),
    /// Create or update an OCIRepository
    Oci(Deferred<oci::OciArgs>),
    /// Create or update a HelmRepository
    Helm(Deferred<helm::HelmArgs>),
    /// Create or update a HelmChart
    Chart(Deferred<chart::ChartArgs>),
}

pub(super) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Git(args) => git(args),
        Command::Bucket(args) => bucket(args),
        Command::Oci(args) => oci(args),
        Command::Helm(args) => helm(args),
        Command::Chart(args) => chart(args),
    }
}

fn git(args: &git::GitArgs) -> Result<()> {
    let create = &args.source.create;
    let mut object = args.object(&create.namespace()?)?;
    if create.export {
        return export(&object);
    }
    let flux = create.open()?;
    flux.generated("generating GitRepository source");
    if args.secret_ref.is_none()
        && let Some(stored) = git_secret(args, &flux)?
    {
        set_secret(&mut object, &stored);
    }
    let created = Creation::of("GitRepository source").run(&flux, &fleet::kind::GIT_REPOSITORY, &object)?;
    fetched(&flux, "GitRepository source reconciliation completed", &created)
}

/// Stores the credentials of the flags; `None` if there are none.
fn git_secret(args: &git::GitArgs, flux: &Flux) -> Result<Option<String>> {
    let name = &args.source.create.name;
    if secret::scheme(&args.url)? == "http" && !args.login.is_empty() {
        flux.warning("insecure configuration: credentials configured for an HTTP URL");
    }
    let credentials = secret::GitSecret {
        url: &args.url,
        login: &args.login,
        key: &args.key,
        bearer_token: "",
        authorities: read_optional(args.ca_file.as_deref(), "TLS CA file")?,
    };
    let Some(data) = credentials.optional()? else {
        return Ok(None);
    };
    if let Some(known_hosts) = data.get_str("known_hosts") {
        flux.success(&format!("collected public key from SSH server:\n{known_hosts}"));
    }
    if let Some(key) = data.get_str("identity.pub") {
        flux.generated(&format!("deploy key: {key}"));
        let question = "Have you added the deploy key to your repository?";
        ensure!(
            args.silent || flux.terminal.ask_or(question, "--silent"),
            "aborting"
        );
    }
    flux.action("applying secret with repository credentials");
    let identity = Identity {
        name,
        namespace: &flux.namespace,
        labels: &Map::new(),
    };
    flux.block_on(upsert_secret(flux, &identity.secret("", data)))?;
    flux.success("authentication configured");
    Ok(Some(name.clone()))
}

fn bucket(args: &bucket::BucketArgs) -> Result<()> {
    let create = &args.source.create;
    let namespace = create.namespace()?;
    let mut object = args.object(&namespace)?;
    if create.export {
        return export(&object);
    }
    let flux = create.open()?;
    flux.generated("generating Bucket source");
    if let Some(stored) = args.secret(&namespace)? {
        flux.action("applying secret with the bucket credentials");
        store_and_refer(&flux, &stored, &mut object)?;
        flux.success("authentication configured");
    }
    let created = Creation::of("Bucket source").run(&flux, &fleet::kind::BUCKET, &object)?;
    fetched(&flux, "Bucket source reconciliation completed", &created)
}

fn oci(args: &oci::OciArgs) -> Result<()> {
    let create = &args.source.create;
    let object = args.object(&create.namespace()?)?;
    if create.export {
        return export(&object);
    }
    let flux = create.open()?;
    let created = Creation::of("OCIRepository").run(&flux, &fleet::kind::OCI_REPOSITORY, &object)?;
    fetched(&flux, "OCIRepository reconciliation completed", &created)
}

fn helm(args: &helm::HelmArgs) -> Result<()> {
    let create = &args.source.create;
    let namespace = create.namespace()?;
    let mut object = args.object(&namespace)?;
    if create.export {
        return export(&object);
    }
    let flux = create.open()?;
    flux.generated("generating HelmRepository source");
    if let Some(stored) = args.secret(&namespace)? {
        flux.action("applying secret with repository credentials");
        store_and_refer(&flux, &stored, &mut object)?;
        if args.pass_credentials
            && let Some(spec) = object.get_mut("spec").and_then(Value::as_map_mut)
        {
            spec.insert("passCredentials", true);
        }
        flux.success("authentication configured");
    }
    // An OCI registry has no index to fetch, so its object has no status.
    let creation = Creation {
        stored: "source",
        expected: match args.is_oci() {
            true => Expected::NoStatus,
            false => Expected::Status,
        },
        ..Creation::of("HelmRepository source")
    };
    let created = creation.run(&flux, &fleet::kind::HELM_REPOSITORY, &object)?;
    let completed = "HelmRepository source reconciliation completed";
    if args.is_oci() {
        flux.success(completed);
        return Ok(());
    }
    fetched(&flux, completed, &created)
}

fn chart(args: &chart::ChartArgs) -> Result<()> {
    let create = &args.source.create;
    let object = args.object(&create.namespace()?)?;
    if create.export {
        return export(&object);
    }
    let flux = create.open()?;
    flux.generated("generating HelmChart source");
    let creation = Creation {
        stored: "source",
        ..Creation::of("HelmChart source")
    };
    let created = creation.run(&flux, &fleet::kind::HELM_CHART, &object)?;
    fetched(&flux, "HelmChart source reconciliation completed", &created)
}

/// Stores a Secret, and lets the source refer to it.
fn store_and_refer(flux: &Flux, secret: &Value, source: &mut Value) -> Result<()> {
    flux.block_on(upsert_secret(flux, secret))?;
    set_secret(source, objects::meta::text(secret, "name").unwrap_or_default());
    Ok(())
}

fn set_secret(object: &mut Value, name: &str) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_map_mut) {
        spec.insert("secretRef", Map::from([("name", name)]));
    }
}

/// Prints the revision of a source that is ready.
fn fetched(flux: &Flux, completed: &str, created: &Value) -> Result<()> {
    flux.success(completed);
    let revision = created
        .pointer(&["status", "artifact", "revision"])
        .and_then(Value::as_str);
    let revision = revision.with_context(|| format!("{completed} but no artifact was found"))?;
    flux.success(&format!(
        "fetched revision: {}",
        crate::terminal::printable(revision)
    ));
    Ok(())
}
