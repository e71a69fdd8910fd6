//! Remembers passes that left nothing to do. As long as the watches show that all they read is as it was, a pass that is only due by its
//! interval needs no render, and no request to the API server but for the objects that the render read as variables. Drift is seen by the
//! index of labelled objects, which knows the version of each. Every object is read ten minutes after its last complete pass at the latest,
//! in case a watch missed something.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use engine::{AppliedVersions, ReadObjects};
use kube::ResourceExt;
use references::{LabelIndex, LabelledObject};
use runtime::{ObjectKey, WorkSlot};
use tokio_util::sync::CancellationToken;
use tree::{Record, Tree};

use super::{memory::Memory, search};

/// Time after which a pass reads everything again; it varies by a tenth.
const FULL_PASS: Duration = Duration::from_secs(600);

/// The deployed objects, as this process knows them without a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownObjects<'a> {
    /// The objects with a discriminator.
    pub(crate) index: &'a LabelIndex,
    /// The versions that were found equal to their manifests.
    pub(crate) memory: &'a Memory,
}

impl KnownObjects<'_> {
    /// Returns a fingerprint of the labelled objects that were not applied; `None` if an applied one may have changed.
    fn others(self, key: &ObjectKey, discriminator: &str) -> Option<u64> {
        let indexed = self.index.known(discriminator)?;
        self.memory.with_seen(key, |seen| others(seen, &indexed))?
    }
}

/// A pass that left nothing to do.
#[derive(Debug)]
struct SettledPass<R> {
    until: Instant,
    discriminator: String,
    /// Fingerprint of the labelled objects that were not applied, such as those that other controllers made.
    others: u64,
    /// The other things that the pass read.
    read: Arc<R>,
}

/// The last passes of all objects, as far as they left nothing to do, with what else they read.
#[derive(Debug)]
pub(crate) struct SettledPasses<R>(Mutex<HashMap<ObjectKey, SettledPass<R>>>);

impl<R> Default for SettledPasses<R> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<R> SettledPasses<R> {
    /// Remembers a pass that left nothing to do, unless the objects with its discriminator are not known, or it has none.
    pub(crate) fn remember(&self, key: ObjectKey, discriminator: &str, objects: KnownObjects<'_>, read: R) {
        if discriminator.is_empty() {
            return;
        }
        let Some(others) = objects.others(&key, discriminator) else {
            return;
        };
        let pass = SettledPass {
            until: Instant::now() + FULL_PASS.mul_f64(0.9 + fastrand::f64() / 5.0),
            discriminator: discriminator.to_owned(),
            others,
            read: Arc::new(read),
        };
        self.lock().insert(key, pass);
    }

    /// Returns what the last pass over an object read besides its objects, if they are as it left them.
    pub(crate) fn unchanged(&self, key: &ObjectKey, objects: KnownObjects<'_>) -> Option<Arc<R>> {
        let passes = self.lock();
        let pass = passes.get(key)?;
        let is_same =
            pass.until > Instant::now() && objects.others(key, &pass.discriminator) == Some(pass.others);
        is_same.then(|| Arc::clone(&pass.read))
    }

    /// Replaces what the last pass over an object read, if that is still `was`. Everything is read again when it would have been anyway.
    pub(crate) fn replace(&self, key: &ObjectKey, was: &Arc<R>, now: R) {
        if let Some(pass) = self
            .lock()
            .get_mut(key)
            .filter(|pass| Arc::ptr_eq(&pass.read, was))
        {
            pass.read = Arc::new(now);
        }
    }

    /// Forgets the last pass of an object: another one begins, or the object is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, SettledPass<R>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if the objects that a render read are as it saw them. An error is for the pass to report.
pub(crate) async fn are_unchanged(objects: &ReadObjects, slot: &WorkSlot, timeout: Duration) -> bool {
    if objects.is_empty() {
        return true;
    }
    let unchanged = tokio::time::timeout(timeout, objects.are_unchanged());
    slot.waiting(unchanged).await.unwrap_or(false)
}

/// Returns a fingerprint of the indexed objects that were not applied; `None` if an applied one is missing or has another version, and if
/// none was applied. Pure.
fn others(applied: &AppliedVersions, indexed: &[LabelledObject]) -> Option<u64> {
    let (mut found, mut others) = (0, 0_u64);
    // An object without a name stands for a kind that can't be watched.
    for object in indexed.iter().filter(|object| !object.key.name.is_empty()) {
        let id = search::id(object);
        match applied.version(&id) {
            Some(version) if version == object.version => found += 1,
            Some(_) => return None,
            None => {
                let mut hasher = DefaultHasher::new();
                id.hash(&mut hasher);
                others = others.wrapping_add(hasher.finish());
            }
        }
    }
    (found > 0 && found == applied.len()).then_some(others)
}

/// Returns a fingerprint of what users wrote in an object: its spec, and annotations with requests. Pure.
pub(crate) fn wishes(object: &impl ResourceExt) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.uid().hash(&mut hasher);
    object.meta().generation.hash(&mut hasher);
    object.annotations().hash(&mut hasher);
    hasher.finish()
}

/// Repeats the calls of a record on other files. Returns true if a render would read the same from them.
pub(crate) async fn holds(record: Arc<Record>, files: Arc<dyn Tree>, cancel: &CancellationToken) -> bool {
    let cancelled = cancel.child_token();
    let _end = cancelled.clone().drop_guard();
    let compare = move || record.holds_on(&*files, || cancelled.is_cancelled());
    tokio::task::spawn_blocking(compare).await.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;
    use objects::ObjectId;
    use serde_json::json;
    use yaml::Value;

    use super::*;

    fn labelled(name: &str, version: &str) -> LabelledObject {
        LabelledObject {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            key: ObjectKey::new("apps", name),
            version: version.to_owned(),
        }
    }

    fn applied(objects: &[(&str, &str)]) -> AppliedVersions {
        let mut applied = AppliedVersions::default();
        for (name, version) in objects {
            let live = Value::from_json(json!({ "metadata": { "resourceVersion": version } }));
            let id = ObjectId {
                group: String::new(),
                kind: "ConfigMap".to_owned(),
                namespace: Some("apps".to_owned()),
                name: (*name).to_owned(),
            };
            applied.remember(id, &live, &live);
        }
        applied
    }

    #[test]
    fn others_are_known_only_while_all_applied_objects_have_their_versions() {
        let two = applied(&[("a", "1"), ("b", "2")]);
        let (a, b) = (labelled("a", "1"), labelled("b", "2"));
        let alone = others(&two, &[a.clone(), b.clone()]);
        assert_eq!(alone, Some(0));
        assert_eq!(others(&two, &[a.clone(), labelled("", ""), b.clone()]), alone);
        assert_eq!(others(&two, std::slice::from_ref(&a)), None, "one is gone");
        assert_eq!(
            others(&two, &[a.clone(), labelled("b", "3")]),
            None,
            "one changed"
        );
        assert_eq!(others(&applied(&[]), &[]), None, "nothing is known");
        let more = others(&two, &[labelled("x", "1"), a.clone(), b.clone()]);
        assert!(more.is_some() && more != alone);
        assert_eq!(more, others(&two, &[b.clone(), a.clone(), labelled("x", "7")]));
        assert_ne!(more, others(&two, &[a, b, labelled("y", "1")]), "another one");
    }

    fn fingerprint(change: impl FnOnce(&mut serde_json::Value)) -> u64 {
        let mut object = json!({
            "apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment",
            "metadata": { "name": "shop", "namespace": "apps", "uid": "a", "generation": 1 },
            "spec": { "interval": "1m" },
        });
        change(&mut object);
        wishes(&serde_json::from_value::<DynamicObject>(object).unwrap())
    }

    #[test]
    fn wishes_are_the_spec_and_the_annotations_of_an_object() {
        let same = fingerprint(|_| {});
        for (pointer, value, is_same) in [
            ("/metadata/resourceVersion", json!("7"), true),
            ("/metadata/labels", json!({ "team": "a" }), true),
            ("/status", json!({ "lastAttemptedRevision": "x" }), true),
            ("/metadata/generation", json!(2), false),
            ("/metadata/uid", json!("b"), false),
            (
                "/metadata/annotations",
                json!({ "reconcile.fluxcd.io/requestedAt": "now" }),
                false,
            ),
        ] {
            let changed = fingerprint(|object| {
                let (parent, name) = pointer.rsplit_once('/').unwrap();
                object.pointer_mut(parent).unwrap()[name] = value;
            });
            assert_eq!(changed == same, is_same, "{pointer}");
        }
    }
}
