//! Manifests that leave ignored fields of live objects as they are.

use std::{collections::HashMap, fmt, sync::Arc};

use cluster::Cluster;
use objects::{
    Error, ObjectRef,
    ignored::{Pointer, adapted},
};
use yaml::Value;

use crate::{LiveObjects, Owner, evaluate};

/// The rules by which an owner leaves fields of its objects to others. New objects are created with all fields. They are a user's, and are
/// evaluated on threads of the tenant.
pub trait IgnoredFields: fmt::Debug + Send + Sync {
    /// Returns the ignored fields of an object. Pure.
    ///
    /// # Errors
    /// If the rules take too much work.
    fn of(&self, manifest: &Value, live: &Value) -> Result<Vec<Pointer>, Error>;
}

/// Returns the manifests, by their positions, that differ from their live objects in an ignored field, as they are applied.
pub(super) async fn adapt(
    (cluster, owner): (&Cluster, &Owner),
    (manifests, refs): (&[Value], &[ObjectRef]),
    live: &LiveObjects,
    ignored: Option<&Arc<dyn IgnoredFields>>,
) -> Result<HashMap<usize, Value>, Error> {
    let mut found = HashMap::new();
    let Some(ignored) = ignored else {
        return Ok(found);
    };
    for (index, (manifest, reference)) in manifests.iter().zip(refs).enumerate() {
        let Some(live) = live.get(reference) else {
            continue;
        };
        let takeover = owner.takeover_of(manifest, &live).cloned();
        let (manager, manifest, ignored) = (owner.manager.clone(), manifest.clone(), Arc::clone(ignored));
        let adapted = evaluate(cluster, false, move || {
            let pointers = ignored.of(&manifest, &live)?;
            Ok(adapted(
                &manifest,
                &live,
                &pointers,
                (&manager, takeover.as_ref()),
            ))
        });
        if let Some(mut adapted) = adapted.await? {
            // It must be found again even if its labels are ignored.
            owner.mark(&mut adapted);
            found.insert(index, adapted);
        }
    }
    Ok(found)
}
