//! Taking over the fields of other managers, and removing the metadata that they left, before an apply.

use std::{sync::Arc, time::Duration};

use cluster::Patch;
use objects::{
    ObjectRef,
    takeover::{self, Takeover},
    vocabulary::is_marked,
};
use yaml::Value;

use crate::{Owner, Session};

const ATTEMPTS: u32 = 8;

impl Owner {
    /// Returns the patch that takes a live object over; `None` if there is nothing to take over, or a mark forbids it.
    pub(crate) fn takeover_patch(&self, manifest: &Value, live: &Value) -> Option<Value> {
        takeover::plan(live, &self.manager, self.takeover_of(manifest, live)?)
    }

    /// Returns the managers that are taken over; `None` if the manifest or the live object forbids it.
    pub(crate) fn takeover_of(&self, manifest: &Value, live: &Value) -> Option<&Takeover> {
        let merges = |object| is_marked(object, self.vocabulary.merge);
        (!merges(manifest) && !merges(live)).then_some(&self.takeover)
    }

    /// Returns true if the manifest or the live object asks for a new object where a change of an immutable field is refused.
    pub(crate) fn asks_for_recreation(&self, manifest: &Value, live: Option<&Value>) -> bool {
        let asks = |object| is_marked(object, self.vocabulary.recreate);
        asks(manifest) || live.is_some_and(asks)
    }
}

/// Takes an object over, and returns it as it is then; `None` if there was nothing to do. A dry run changes nothing.
pub(crate) async fn take_over(
    session: &Session<'_>,
    manifest: &Value,
    reference: &ObjectRef,
    live: &Arc<Value>,
) -> Result<Option<Arc<Value>>, cluster::Error> {
    if session.options.dry_run {
        return Ok(None);
    }
    let (cluster, owner) = (session.cluster, session.owner);
    let mut current = Arc::clone(live);
    for round in 0..ATTEMPTS {
        let Some(patch) = owner.takeover_patch(manifest, &current) else {
            // Somebody else did it meanwhile.
            return Ok((round > 0).then_some(current));
        };
        session.note_change();
        match cluster
            .patch(reference, &Patch::Json(patch), &owner.manager)
            .await
        {
            Ok(patched) => return Ok(Some(Arc::new(patched))),
            Err(error) if error.is_stale() && round + 1 < ATTEMPTS => {}
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        }
        cluster.pause(Duration::from_millis(20 << round)).await?;
        match cluster.get(reference).await? {
            Some(object) => current = Arc::new(object),
            None => return Ok(None),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use objects::{
        Marker, Vocabulary,
        takeover::{Operation, TakenManager},
    };
    use serde_json::json;

    use super::*;
    use crate::tests::owner;

    fn object(marks: &[(&str, &str)]) -> Value {
        let annotations: serde_json::Map<_, _> = marks
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        Value::from_json(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "a", "resourceVersion": "7", "annotations": annotations, "managedFields": [
                { "manager": "kubectl", "operation": "Apply", "fieldsV1": { "f:data": {} } },
            ] },
        }))
    }

    #[test]
    fn marks_of_the_manifest_and_of_the_live_object_count() {
        let merge = ("example.com/apply", "merge");
        let recreate = ("example.com/force", "enabled");
        let owner = Owner {
            takeover: Takeover {
                managers: vec![TakenManager {
                    name: "kubectl".into(),
                    is_prefix: true,
                    operation: Some(Operation::Apply),
                }],
                ..Takeover::default()
            },
            vocabulary: Vocabulary {
                merge: &[Marker::Either("example.com/apply", "merge")],
                recreate: &[Marker::Either("example.com/force", "enabled")],
                ..owner().vocabulary
            },
            ..owner()
        };
        let plain = object(&[]);
        for (manifest, live, takes, recreates) in [
            (&plain, &plain, true, false),
            (&object(&[merge, recreate]), &plain, false, true),
            (&plain, &object(&[merge, recreate]), false, true),
        ] {
            assert_eq!(owner.takeover_patch(manifest, live).is_some(), takes);
            assert_eq!(owner.takeover_of(manifest, live).is_some(), takes);
            assert_eq!(owner.asks_for_recreation(manifest, Some(live)), recreates);
        }
        assert!(!owner.asks_for_recreation(&plain, None));
    }
}
