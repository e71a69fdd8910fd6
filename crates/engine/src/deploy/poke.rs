//! Replacement of images in live objects, and nothing else.

use std::{sync::Arc, time::Duration};

use apply::{LiveObjects, OrphanSearch, Query};
use cluster::{Applied, ApplyOptions, Cluster};
use futures::{StreamExt as _, stream};
use kluctl::{Item, Rendered};
use objects::{IgnoreTexts, ObjectRef};
use yaml::Value;

use super::{
    live,
    outcome::changed,
    owner::{MANAGER, VOCABULARY, owner},
};
use crate::{DeployOptions, Error, PARALLEL};
use results::{Command, CommandResult, ObjectError};

const ATTEMPTS: u32 = 8;

/// The paths of pod specs in the kinds that have containers.
const POD_SPECS: [&[&str]; 3] = [
    &["spec", "template", "spec"],
    &["spec", "jobTemplate", "spec", "template", "spec"],
    &["spec"],
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PokedImage {
    pub object: ObjectRef,
    pub container: String,
    pub image: String,
}

impl PokedImage {
    /// Returns the images that templates asked for, in the containers that got them.
    #[must_use]
    pub fn requested(rendered: &Rendered) -> Vec<Self> {
        let images = rendered.images.iter().filter_map(|seen| {
            let (item, object) = seen.position;
            let object = rendered.items.get(item)?.objects.get(object)?;
            Some(Self {
                object: ObjectRef::of(object).ok()?,
                container: seen.container.clone()?,
                image: seen.result_image.clone(),
            })
        });
        images.collect()
    }
}

/// Replaces the images of containers in live objects. Objects that don't exist are warnings.
pub async fn poke_images(
    cluster: &Cluster,
    rendered: &Rendered,
    images: &[PokedImage],
    options: &DeployOptions,
) -> Result<CommandResult, Error> {
    let discriminator = rendered.target.discriminator.as_deref();
    let mut result = CommandResult::new(Command::PokeImages, options.dry_run, discriminator);
    let refs = live::references(rendered)?;
    let is_included = |object: &Value| live::includes(&options.inclusion, object);
    let query = Query {
        refs: &refs,
        all: &refs,
        orphans: Some(OrphanSearch {
            filter: Some(&is_included),
            previous: options.previous.as_deref(),
            kinds: options.kinds.as_ref(),
        }),
        renamed: &live::renamed_kinds(rendered),
        seen: None,
        assumes: None,
    };
    let live = &apply::fetch(cluster, &owner(discriminator), query).await?;
    result.warnings.extend(live::unreadable_warning(live));
    result
        .warnings
        .extend(live::listing_warnings(&live.gaps, live.restriction));
    result.completeness = live.completeness.clone();
    let pokes = rendered.items.iter().flat_map(|item| {
        let objects = item
            .objects
            .iter()
            .filter_map(|object| Some((object, ObjectRef::of(object).ok()?)));
        objects.map(move |(manifest, reference)| (item, manifest, reference))
    });
    let pokes = pokes.filter_map(|(item, manifest, reference)| {
        let wanted: Vec<&PokedImage> = images.iter().filter(|image| image.object == reference).collect();
        (!wanted.is_empty()).then_some((item, manifest, reference, wanted))
    });
    let pokes = pokes.map(|(item, manifest, reference, wanted)| async move {
        let poked = poke(
            cluster,
            live.get(&reference).as_deref(),
            &reference,
            &wanted,
            options.dry_run,
        )
        .await;
        (item, manifest, reference, poked)
    });
    // Collected, because a stream that holds the closure can't be proven to be Send.
    let mut work = stream::iter(pokes.collect::<Vec<_>>()).buffer_unordered(PARALLEL);
    while let Some((item, manifest, reference, poked)) = work.next().await {
        let rendered = (item, manifest, &reference);
        note(&mut result, (cluster, live), rendered, poked, options).await?;
    }
    drop(work);
    if cluster.cancellation().is_cancelled() {
        return Err(Error::Cancelled);
    }
    crate::listing::list_rendered(&mut result, rendered, live, options);
    crate::listing::list_orphans(&mut result, live);
    Ok(result.finish())
}

async fn note(
    result: &mut CommandResult,
    (cluster, live): (&Cluster, &LiveObjects),
    (item, manifest, reference): (&Item, &Value, &ObjectRef),
    poked: Result<Option<Applied>, cluster::Error>,
    options: &DeployOptions,
) -> Result<(), Error> {
    let applied = match poked {
        Ok(Some(applied)) => applied,
        Ok(None) => {
            let message = "remote object not found, skipped image replacement";
            result.warnings.push(ObjectError::of(reference, message));
            return Ok(());
        }
        Err(error) => {
            let failed = ObjectError::of(reference, error.to_string());
            result.errors.push(failed.denied(error.is_denied()));
            return Ok(());
        }
    };
    let warnings = applied.warnings.into_iter();
    result
        .warnings
        .extend(warnings.map(|text| ObjectError::of(reference, text)));
    let rules = item.rules.ignore_for_diff.iter().chain(&options.hidden);
    let ignored = IgnoreTexts::of(manifest, &VOCABULARY, rules);
    let after = Arc::new(applied.object);
    let states = (live.get(reference), Arc::clone(&after));
    let mut object = changed(cluster, reference, ignored, states, options.show_secrets).await?;
    object.is_applied = true;
    if options.contents {
        object.applied = Some(after);
    }
    result.objects.push(object);
    Ok(())
}

/// Sets the images in the current state of the object; returns `None` if it does not exist.
async fn poke(
    cluster: &Cluster,
    before: Option<&Value>,
    reference: &ObjectRef,
    images: &[&PokedImage],
    dry_run: bool,
) -> Result<Option<Applied>, cluster::Error> {
    let Some(before) = before else { return Ok(None) };
    let options = ApplyOptions {
        dry_run,
        ..ApplyOptions::new(MANAGER)
    };
    let mut live = before.clone();
    for round in 0..ATTEMPTS {
        let mut object = live.clone();
        if !set_images(&mut object, images) {
            let warnings = Vec::new();
            return Ok(Some(Applied { object, warnings }));
        }
        match cluster.replace(&object, options).await {
            Ok(applied) => return Ok(Some(applied)),
            Err(error) if error.is_stale() => {}
            Err(error) => return Err(error),
        }
        cluster.pause(Duration::from_millis(20 << round)).await?;
        match cluster.get(reference).await? {
            Some(current) => live = current,
            None => return Ok(None),
        }
    }
    Err(cluster::Error::Malformed {
        what: format!("replace {reference}"),
        reason: "the object is changed by others all the time: try again later".to_owned(),
    })
}

/// Sets the images of the named containers; returns true if anything changed.
fn set_images(object: &mut Value, images: &[&PokedImage]) -> bool {
    let mut changed = false;
    for pods in POD_SPECS {
        let Some(pods) = object.pointer_mut(pods) else {
            continue;
        };
        for list in ["containers", "initContainers"] {
            let containers = pods.get_mut(list).and_then(Value::as_seq_mut);
            for container in containers.into_iter().flatten().filter_map(Value::as_map_mut) {
                let name = container.get_str("name").unwrap_or_default();
                let Some(wanted) = images.iter().find(|image| image.container == name) else {
                    continue;
                };
                if container.get_str("image") != Some(&wanted.image) {
                    container.insert("image", wanted.image.as_str());
                    changed = true;
                }
            }
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn set_images_changes_the_named_containers() {
        let containers = json!([{"name": "a", "image": "old"}, {"name": "b", "image": "old"}]);
        for object in [
            json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": containers}}}}),
            json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": {"initContainers": containers}}}}}}),
            json!({"kind": "Pod", "spec": {"containers": containers}}),
        ] {
            let mut value = Value::from_json(object);
            let image = PokedImage {
                object: ObjectRef {
                    group: String::new(),
                    version: "v1".to_owned(),
                    kind: "Pod".to_owned(),
                    namespace: None,
                    name: "p".to_owned(),
                },
                container: "b".to_owned(),
                image: "new".to_owned(),
            };
            assert!(set_images(&mut value, &[&image]));
            let text = value.to_json().to_string();
            assert_eq!(
                (text.matches("old").count(), text.matches("new").count()),
                (1, 1),
                "{text}"
            );
            assert!(!set_images(&mut value, &[&image]), "once is enough");
        }
    }
}
