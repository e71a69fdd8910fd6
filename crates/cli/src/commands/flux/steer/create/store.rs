//! The way of objects to the cluster or to stdout.

use anyhow::{Context as _, Result, ensure};
use cluster::ApplyOptions;
use fleet::Kind;
use objects::{ObjectRef, meta};
use yaml::{Map, Value};

use super::flags::CreateFlags;
use crate::{
    commands::flux::{
        Flux,
        steer::{
            fields::Identity,
            ready::{self, Expected},
        },
    },
    output,
    terminal::printable,
};

/// Field manager of created objects: flux's.
pub(super) const MANAGER: ApplyOptions<'static> = ApplyOptions::new("flux");

/// Prints an object as a document.
pub(super) fn export(object: &Value) -> Result<()> {
    output::print(&format!("---\n{}\n", yaml::print::goyaml(object).trim()))
}

/// Returns a Secret as the original prints it: with an empty line at the end.
pub(super) fn document(secret: &Value) -> String {
    format!("---\n{}\n", yaml::print::goyaml(secret))
}

/// The way of an object into the cluster, with the words about it.
pub(super) struct Creation {
    pub(super) subject: &'static str,
    /// The word for the created or updated object.
    pub(super) stored: &'static str,
    pub(super) expected: Expected,
}

impl Creation {
    pub(super) const fn of(subject: &'static str) -> Self {
        Self {
            subject,
            stored: subject,
            expected: Expected::Status,
        }
    }

    /// Creates or updates an object, and waits until it is ready.
    pub(super) fn run(&self, flux: &Flux, kind: &'static Kind, object: &Value) -> Result<Value> {
        flux.action(&format!("applying {}", self.subject));
        let (reference, is_new) = flux.block_on(upsert(flux, kind, object))?;
        let done = if is_new { "created" } else { "updated" };
        flux.success(&format!("{} {done}", self.stored));
        flux.waiting(&format!("waiting for {} reconciliation", self.subject));
        flux.block_on(ready::wait(flux, &reference, self.expected))
    }
}

/// Creates an object, or replaces labels and spec of the existing one. Returns true for a new object.
async fn upsert(flux: &Flux, kind: &Kind, object: &Value) -> Result<(ObjectRef, bool)> {
    let served = flux.served(kind).await?;
    let mut object = object.clone();
    if let Some(fields) = object.as_map_mut() {
        fields.insert("apiVersion", served.api_version());
    }
    let reference = ObjectRef::of(&object)?;
    let Some(mut live) = flux.cluster.get(&reference).await? else {
        let applied = flux.cluster.apply(&object, MANAGER).await?;
        warn(flux, &applied.warnings);
        return Ok((reference, true));
    };
    let labels = meta::metadata(&object)
        .and_then(|metadata| metadata.get("labels"))
        .cloned();
    let spec = object.get("spec").cloned().unwrap_or_default();
    let fields = live.as_map_mut().context("the object is no map")?;
    fields.insert("spec", spec);
    if let Some(metadata) = fields.get_or_insert_map("metadata") {
        match labels {
            Some(labels) => drop(metadata.insert("labels", labels)),
            None => drop(metadata.remove("labels")),
        }
    }
    let replaced = flux.cluster.replace(&live, MANAGER).await?;
    warn(flux, &replaced.warnings);
    Ok((reference, false))
}

fn warn(flux: &Flux, warnings: &[String]) {
    for warning in warnings {
        flux.warning(&printable(warning));
    }
}

/// Prints or stores a Secret.
pub(super) fn write_secret(
    create: &CreateFlags,
    what: &str,
    build: impl FnOnce(&Identity<'_>) -> Result<Value>,
) -> Result<()> {
    let secret = create.build(build)?;
    if create.export {
        return output::print(&document(&secret));
    }
    store_secret(&create.open()?, what, &secret)
}

pub(super) fn store_secret(flux: &Flux, what: &str, secret: &Value) -> Result<()> {
    flux.block_on(upsert_secret(flux, secret))?;
    let name = meta::text(secret, "name").unwrap_or_default();
    flux.action(&format!(
        "{what} '{name}' created in '{}' namespace",
        flux.namespace
    ));
    Ok(())
}

/// Creates a Secret, or sets the keys, labels and annotations of the existing one.
pub(super) async fn upsert_secret(flux: &Flux, secret: &Value) -> Result<()> {
    let reference = ObjectRef::of(secret)?;
    let live = flux.cluster.get(&reference).await?;
    let Some(live) = live else {
        flux.cluster.apply(secret, MANAGER).await?;
        return Ok(());
    };
    let is = live.get("type").and_then(Value::as_str).unwrap_or("Opaque");
    if let Some(wanted) = secret.get("type").and_then(Value::as_str) {
        ensure!(
            is == wanted,
            "the secret '{}' exists with the type {is}, which can't be changed to {wanted}: delete it first",
            reference.name
        );
    }
    let mut metadata = Map::new();
    for name in ["labels", "annotations"] {
        if let Some(value) = secret.pointer(&["metadata", name]) {
            metadata.insert(name, value.clone());
        }
    }
    let data = secret.get("stringData").cloned().unwrap_or_default();
    let mut patch = Map::from([("stringData", data)]);
    if !metadata.is_empty() {
        patch.insert("metadata", metadata);
    }
    let patch = cluster::Patch::Merge(Value::Map(patch));
    flux.cluster.patch(&reference, &patch, MANAGER.manager).await?;
    Ok(())
}
