//! Images that are deployed in place of those that templates request.

use std::collections::{BTreeSet, HashMap};

use cluster::Cluster;
use futures::{StreamExt as _, stream};
use kluctl::{Rendered, RequestedImage};
use objects::{
    ObjectRef,
    path::{self, Key},
    secrets,
};
use yaml::Value;

use crate::{Error, PARALLEL};
use results::ResultObject;

/// Returns, for each image that templates request, the image that is deployed in its place; `None` if the request is only a
/// part of a field, or if the object is missing or may not be read.
pub async fn deployed_images(cluster: &Cluster, rendered: &Rendered) -> Result<Vec<Option<String>>, Error> {
    let wanted: BTreeSet<ObjectRef> = rendered
        .images
        .iter()
        .filter(|seen| seen.field.is_some())
        .filter_map(|seen| holder(rendered, seen))
        .collect();
    let reads = wanted.into_iter().map(|reference| async move {
        let found = cluster.get(&reference).await;
        (reference, found)
    });
    // Collected, because a stream that holds the closure can't be proven to be Send.
    let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(PARALLEL);
    let mut live: HashMap<ObjectRef, Value> = HashMap::new();
    while let Some((reference, found)) = reads.next().await {
        match found {
            Ok(object) => live.extend(object.map(|object| (reference, object))),
            Err(error) if error.is_forbidden() || matches!(error, cluster::Error::InvalidName { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let runs = |seen: &RequestedImage| running(seen, live.get(&holder(rendered, seen)?)?);
    Ok(rendered.images.iter().map(runs).collect())
}

/// Returns the requested images in the form of results. The deployed image is taken from the objects' state before the
/// command, if the result has it.
pub(crate) fn listed(rendered: &Rendered, objects: &[ResultObject]) -> Vec<Value> {
    if rendered.images.is_empty() {
        return Vec::new();
    }
    let before: HashMap<&ObjectRef, &Value> = objects
        .iter()
        .filter_map(|object| Some((&object.reference, object.remote.as_deref()?)))
        .collect();
    let entry = |seen: &RequestedImage| {
        let live = holder(rendered, seen).and_then(|reference| before.get(&reference).copied());
        let running = live.and_then(|live| running(seen, live));
        Value::Map(seen.to_map(running.as_deref()))
    };
    rendered.images.iter().map(entry).collect()
}

fn holder(rendered: &Rendered, seen: &RequestedImage) -> Option<ObjectRef> {
    let (item, object) = seen.position;
    ObjectRef::of(rendered.items.get(item)?.objects.get(object)?).ok()
}

/// Returns the deployed image. Containers are matched by name, because injected containers shift their positions.
fn running(seen: &RequestedImage, live: &Value) -> Option<String> {
    if secrets::is_secret(&seen.object) {
        return None;
    }
    let found = match (&seen.container, seen.field.as_deref()?) {
        (Some(name), [list @ .., Key::Index(_), field]) => {
            let mut containers = path::get(live, list)?.as_seq()?.iter();
            let is_it = |container: &&Value| container.get("name").and_then(Value::as_str) == Some(name);
            path::get(containers.find(is_it)?, std::slice::from_ref(field))
        }
        (_, field) => path::get(live, field),
    };
    found?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    #[test]
    fn deployed_image_is_found_by_the_container_name() {
        let key = |key: &Json| match key.as_u64() {
            Some(index) => Key::Index(index as usize),
            None => Key::from(key.as_str().unwrap_or_default()),
        };
        let live = json!({"kind": "Pod", "metadata": {"annotations": {"image": "noted:1"}}, "spec": {"containers": [
            {"name": "injected", "image": "side:1"}, {"name": "main", "image": "main:1"}]}});
        let live = Value::from_json(live);
        for (container, field, expected) in [
            (
                Some("main"),
                Some(json!(["spec", "containers", 0, "image"])),
                Some("main:1"),
            ),
            (
                Some("gone"),
                Some(json!(["spec", "containers", 0, "image"])),
                None,
            ),
            (
                None,
                Some(json!(["spec", "containers", 0, "image"])),
                Some("side:1"),
            ),
            (
                None,
                Some(json!(["metadata", "annotations", "image"])),
                Some("noted:1"),
            ),
            (None, Some(json!(["metadata", "annotations"])), None),
            (Some("main"), None, None),
        ] {
            let seen = |kind: &str| RequestedImage {
                image: "main".to_owned(),
                result_image: "main:2".to_owned(),
                object: ObjectRef {
                    group: String::new(),
                    version: "v1".to_owned(),
                    kind: kind.to_owned(),
                    namespace: None,
                    name: "p".to_owned(),
                },
                container: container.map(str::to_owned),
                tags: Vec::new(),
                dir: String::new(),
                position: (0, 0),
                field: field
                    .as_ref()
                    .and_then(Json::as_array)
                    .map(|keys| keys.iter().map(key).collect()),
            };
            assert_eq!(
                running(&seen("Pod"), &live).as_deref(),
                expected,
                "{container:?} {field:?}"
            );
            assert_eq!(running(&seen("Secret"), &live), None);
        }
    }
}
