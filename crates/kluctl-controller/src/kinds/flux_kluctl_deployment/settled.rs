//! Remembers passes that left nothing to do. As long as the watches show that all they read is as it was, a pass that is only due by its
//! interval needs no request and no render: drift is seen by the index of labelled objects, which knows the version of each.
//!
//! The last pass must have succeeded, with an artifact of a watched source, on the cluster of the controller, with an index, without
//! dependencies, and with a render that depends on nothing but the artifact. All others read everything at each interval, and so does each
//! object every ten minutes, in case a watch missed something.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use api::kluctl::{KluctlDeployment, KluctlDeploymentStatus};
use engine::AppliedVersions;
use references::{LabelledObject, SourceArtifact};
use runtime::{ObjectKey, Outcome, Requeue};

use super::{Controller, consumer::key, plan::Period, prepare::Prepared, source::ProjectSource, spec};
use crate::common::search;

/// Time after which a pass reads everything again; it varies by a tenth.
const FULL_PASS: Duration = Duration::from_secs(600);

/// A pass that left nothing to do.
#[derive(Debug, Clone)]
struct SettledPass {
    until: Instant,
    /// Time until the next pass.
    interval: Duration,
    discriminator: String,
    artifact: SourceArtifact,
    /// Fingerprint of the labelled objects that were not applied, such as those that other controllers made.
    others: u64,
}

/// The last passes of all objects, as far as they left nothing to do.
#[derive(Debug, Default)]
pub(super) struct SettledPasses(Mutex<HashMap<ObjectKey, SettledPass>>);

impl SettledPasses {
    /// Forgets the last pass of an object: another one begins, or the object is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, SettledPass>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controller {
    /// Remembers a pass with its outcome, if it left nothing to do.
    pub(super) fn settle(
        &self,
        object: &KluctlDeployment,
        artifact: &ProjectSource,
        prepared: &Prepared,
        outcome: &Outcome<KluctlDeploymentStatus>,
    ) {
        let (key, spec) = (key(object), &object.spec);
        let is_done = outcome.fault.is_none() && matches!(outcome.requeue, Requeue::Interval(_));
        let is_watched = spec.kube_config.is_none() && spec.depends_on.is_empty() && !prepared.reads_outside;
        let (Some(artifact), Some(discriminator)) = (artifact.artifact(), prepared.discriminator()) else {
            return;
        };
        if !is_done || !is_watched || discriminator.is_empty() || self.is_dry_run(object) {
            return;
        }
        let Some(others) = self.others(&key, discriminator) else {
            return;
        };
        let pass = SettledPass {
            until: Instant::now() + FULL_PASS.mul_f64(0.9 + fastrand::f64() / 5.0),
            interval: shortest_period(object),
            discriminator: discriminator.to_owned(),
            artifact: artifact.clone(),
            others,
        };
        self.settled.lock().insert(key, pass);
    }

    /// Returns the time until the next pass over an object, if all is as its last pass left it.
    pub(super) fn still_settled(&self, key: &ObjectKey) -> Option<Duration> {
        let pass = self.settled.lock().get(key).cloned()?;
        let is_same = pass.until > Instant::now()
            && self.successors.contains(key) == Some(false)
            && self.references.still_offers(&pass.artifact)
            && self.others(key, &pass.discriminator) == Some(pass.others);
        is_same.then_some(pass.interval)
    }

    /// Returns a fingerprint of the labelled objects that were not applied; `None` if an applied one may have changed.
    fn others(&self, key: &ObjectKey, discriminator: &str) -> Option<u64> {
        let indexed = self.deployed.known(discriminator)?;
        self.memory.with_seen(key, |seen| others(seen, &indexed))?
    }
}

/// Returns the shortest time after which something is due by the spec. Pure.
fn shortest_period(object: &KluctlDeployment) -> Duration {
    let spec = &object.spec;
    let periods = [
        Some(spec::deploy_period(spec)),
        spec.validate.then(|| spec::validate_period(spec)),
    ];
    let every = periods.into_iter().flatten().filter_map(|period| match period {
        Period::Every(period) => Some(period),
        Period::Never => None,
    });
    every.fold(spec::interval(spec), Duration::min)
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

#[cfg(test)]
mod tests {
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
}
