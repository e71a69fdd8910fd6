//! The objects of a KluctlDeployment: its status has their kinds and namespaces, and their labels say that they are its objects.

use std::collections::{BTreeSet, HashSet};

use anyhow::{Context as _, Result};
use api::kluctl::{KluctlDeployment, gitops};
use cluster::Detail;
use fleet::{Kind, kind};
use objects::{ObjectId, ObjectRef};
use results::deployed;
use yaml::Value;

use crate::commands::flux::Flux;

const LABEL: &str = "kluctl.io/discriminator";

pub(super) async fn objects(flux: &Flux, of: &Kind, object: &Value) -> Result<Vec<ObjectId>> {
    let (discriminator, deployed) = match *of == kind::GITOPS_KLUCTL_DEPLOYMENT {
        true => of_gitops(object)?,
        false => of_flux(object)?,
    };
    if discriminator.is_empty() {
        return Ok(Vec::new());
    }
    // Without a list, objects of all kinds may be its objects.
    let kinds = deployed.as_ref().map(|objects| {
        let pairs = objects
            .iter()
            .map(|object| (object.group.clone(), object.kind.clone()));
        pairs.collect::<HashSet<_>>()
    });
    let namespaces: BTreeSet<String> = deployed
        .iter()
        .flatten()
        .filter_map(|object| object.namespace.clone())
        .collect();
    let namespaces: Vec<String> = namespaces.into_iter().collect();
    let is_wanted = |group: &str, kind: &str| {
        kinds
            .as_ref()
            .is_none_or(|kinds| kinds.contains(&(group.to_owned(), kind.to_owned())))
    };
    let listing = flux
        .cluster
        .list_labelled(LABEL, &discriminator, &namespaces, |resource| {
            is_wanted(&resource.group, &resource.kind).then_some(Detail::Metadata)
        })
        .await?;
    for gap in listing.gaps.iter().filter(|gap| gap.kind.is_some()) {
        flux.warning(&gap.to_string());
    }
    let mut ids: Vec<ObjectId> = listing
        .objects
        .iter()
        .filter_map(|object| ObjectRef::of(object).ok())
        .map(|reference| reference.id())
        .collect();
    ids.sort_by(|a, b| key(a).cmp(&key(b)));
    Ok(ids)
}

fn key(id: &ObjectId) -> (&Option<String>, &str, &str) {
    (&id.namespace, &id.kind, &id.name)
}

type Known = (String, Option<Vec<ObjectRef>>);

fn of_gitops(object: &Value) -> Result<Known> {
    let deployment: gitops::KluctlDeployment =
        serde_json::from_value(object.to_json()).context("the KluctlDeployment can't be read")?;
    let status = deployment.status.as_ref();
    let discriminator = object.pointer(&["status", "targetKey", "discriminator"]);
    let discriminator = discriminator.and_then(Value::as_str).unwrap_or_default();
    Ok((discriminator.to_owned(), deployed::gitops::of(status).objects()))
}

fn of_flux(object: &Value) -> Result<Known> {
    let deployment: KluctlDeployment =
        serde_json::from_value(object.to_json()).context("the KluctlDeployment can't be read")?;
    let discriminator = object.pointer(&["status", "discriminator"]);
    let discriminator = discriminator.and_then(Value::as_str).unwrap_or_default();
    Ok((
        discriminator.to_owned(),
        deployed::flux::deployed_objects(&deployment),
    ))
}
