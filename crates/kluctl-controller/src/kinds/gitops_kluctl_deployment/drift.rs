//! The detection of drift.

use std::{collections::HashSet, time::Duration};

use engine::{CompareOptions, DeployOptions, Error, commands};
use objects::{ObjectId, ObjectRef};
use results::{ResultObject, deployed::gitops as inventory, status_json};

use super::{commands::Commands, spec};

/// Time after which a drift detection searches for orphans again, although nothing was deployed.
const ORPHANS_AGE: Duration = Duration::from_secs(600);

impl Commands<'_, '_> {
    /// Compares the cluster with the rendered objects, without changing it. Right after a deployment, that knows the outcome.
    pub(super) async fn detect_drift(&mut self, is_new: bool) -> Result<(), Error> {
        let (differing, orphans) = match self.after_deployment.take() {
            Some(after) => (HashSet::new(), after.orphans),
            None => self.compare(is_new).await?,
        };
        let options = DeployOptions {
            only: Some(differing),
            orphans: false,
            contents: false,
            ..self.options()
        };
        let mut result = {
            let (guard, previous) = (self.guard(), self.past().objects());
            commands::diff(&self.project(&guard, previous.as_deref()), &options).await?
        };
        result.objects.extend(orphans.into_iter().map(|reference| {
            let mut orphan = ResultObject::new(reference);
            orphan.orphan = true;
            orphan
        }));
        let drift = status_json::bounded(result.drift().to_json());
        let last = &mut self.status;
        if !status_json::is_same(last.last_drift_detection_result.as_ref(), &drift) {
            last.last_drift_detection_result = Some(drift);
        }
        last.last_drift_detection_result_message = Some(result.drift_message());
        Ok(())
    }

    /// Returns the objects that an apply would change, and those that are no longer rendered.
    async fn compare(&self, is_new: bool) -> Result<(HashSet<ObjectId>, Vec<ObjectRef>), Error> {
        let (cluster, rendered) = (&self.built.cluster, &self.built.rendered);
        let memory = &self.controller.parts.states;
        let age = memory.orphans_age(&self.key);
        let has_discriminator = rendered
            .target
            .discriminator
            .as_deref()
            .is_some_and(|text| !text.is_empty());
        // Without an index, a search is a list of every kind.
        let last = self.status.last_drift_detection_result.as_ref();
        let had_orphans = last.is_some_and(status_json::has_orphans);
        let is_due = is_new || had_orphans || age.is_none_or(|age| age > ORPHANS_AGE);
        let indexed = self.indexed().await;
        let kinds = self.searched(
            self.occasion(),
            &memory.last_deployment(&self.key),
            indexed.as_deref(),
        );
        let kinds = kinds.filter(|_| indexed.is_some() || !is_due);
        let orphans = has_discriminator && (is_due || kinds.is_some());
        let before = memory.take_seen(&self.key);
        let inclusion = spec::inclusion(&self.object.spec);
        let known = inventory::of(Some(&self.status)).objects();
        let options = CompareOptions {
            versions: Some(&before),
            orphans,
            force_apply: self.object.spec.force_apply,
            inclusion: Some(&inclusion),
            previous: known.as_deref(),
            kinds: kinds.as_ref(),
        };
        let comparison = engine::compare(cluster, rendered, options).await?;
        if is_due {
            memory.searched_orphans(&self.key);
        }
        let differing = comparison.to_apply();
        memory.compared(&self.key, comparison.versions);
        if orphans
            && kinds.is_none()
            && comparison.orphans.is_empty()
            && comparison.completeness.is_complete()
        {
            memory.swept(&self.key);
        }
        Ok((differing, comparison.orphans))
    }
}
