//! The inputs of passes that left nothing to do.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{LabelIndex, LabelledObject, kind::Inputs};
use apply::AppliedVersions;
use kube::ResourceExt;
use parking_lot::Mutex;
use runtime::ObjectKey;

use super::{DeploymentStates, search};

/// Time after which a pass reads everything again; it varies by a tenth.
const FULL_PASS: Duration = Duration::from_secs(600);

/// The deployed objects, as this process knows them without a request.
#[derive(Debug, Clone, Copy)]
pub struct KnownObjects<'a> {
    /// The objects with a discriminator.
    pub index: &'a LabelIndex,
    /// The versions that were found equal to their manifests.
    pub memory: &'a DeploymentStates,
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
struct UnchangedPass<I> {
    until: Instant,
    spec: u64,
    /// Fingerprint of the objects with the owner label that were not applied, such as those that other controllers made.
    others: u64,
    inputs: Arc<Inputs<I>>,
}

/// The last passes of all objects that left nothing to do, with their inputs.
#[derive(Debug)]
pub struct UnchangedPasses<I>(Mutex<HashMap<ObjectKey, UnchangedPass<I>>>);

impl<I> Default for UnchangedPasses<I> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<I> UnchangedPasses<I> {
    /// Remembers a pass that left nothing to do, unless the objects with its owner label are not known, or it has none. `spec` is the
    /// fingerprint of its object.
    pub fn remember(&self, key: ObjectKey, spec: u64, objects: KnownObjects<'_>, inputs: Inputs<I>) {
        if inputs.owner.is_empty() {
            return;
        }
        let Some(others) = objects.others(&key, &inputs.owner) else {
            return;
        };
        let pass = UnchangedPass {
            until: Instant::now() + FULL_PASS.mul_f64(0.9 + fastrand::f64() / 5.0),
            spec,
            others,
            inputs: Arc::new(inputs),
        };
        self.0.lock().insert(key, pass);
    }

    /// Returns the inputs of the last pass over an object, if its deployed objects are as it left them.
    pub fn unchanged(&self, key: &ObjectKey, objects: KnownObjects<'_>) -> Option<Arc<Inputs<I>>> {
        // The lock ends before the objects are compared: there may be thousands.
        let (inputs, others) = {
            let passes = self.0.lock();
            let pass = passes.get(key).filter(|pass| pass.until > Instant::now())?;
            (Arc::clone(&pass.inputs), pass.others)
        };
        (objects.others(key, &inputs.owner) == Some(others)).then_some(inputs)
    }

    /// Returns the same as [`UnchangedPasses::unchanged`] if the spec has the fingerprint `spec`, too.
    pub fn of_spec(&self, key: &ObjectKey, spec: u64, objects: KnownObjects<'_>) -> Option<Arc<Inputs<I>>> {
        let is_same = self.0.lock().get(key).is_some_and(|pass| pass.spec == spec);
        if is_same {
            self.unchanged(key, objects)
        } else {
            None
        }
    }

    /// Replaces the inputs of the last pass over an object, if they are still `was`. Everything is read again when it would have been anyway.
    pub fn replace(&self, key: &ObjectKey, was: &Arc<Inputs<I>>, now: Inputs<I>) {
        if let Some(pass) = self.0.lock().get_mut(key)
            && Arc::ptr_eq(&pass.inputs, was)
        {
            pass.inputs = Arc::new(now);
        }
    }

    /// Forgets the last pass of an object: another one begins, or the object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
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

/// Returns a fingerprint of the wishes of users in an object: its spec, and annotations with requests. Pure.
pub fn spec_fingerprint(object: &impl ResourceExt) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.uid().hash(&mut hasher);
    object.meta().generation.hash(&mut hasher);
    object.annotations().hash(&mut hasher);
    hasher.finish()
}

/// Returns a fingerprint of everything that a deployment depends on. Pure.
pub fn fingerprint(value: impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
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
        spec_fingerprint(&serde_json::from_value::<DynamicObject>(object).unwrap())
    }

    #[test]
    fn spec_fingerprint_are_the_spec_and_the_annotations_of_an_object() {
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
