//! The removal of the objects that a deleted object deployed.

use api::{
    Fault, Reason, condition_type,
    conditions::{self, HasConditions as _},
};
use apply::{Confirmation, DeletionOptions, Membership, OrphanSearch, Pruned, SetWaited, delete_all};
use kube::core::object::HasStatus as _;
use runtime::{EventDraft, Pass, Severity};

use super::{ManifestDeployer, ManifestKind, deletion, outcome};
use crate::{RemovalFailure, parts::removal_event, removal::Remains, working};

/// The reasons of Ready that events of a removal have, too.
const REASONS: [Reason; 11] = [
    Reason::ReconciliationSucceeded,
    Reason::ReconciliationFailed,
    Reason::Progressing,
    Reason::BuildFailed,
    Reason::PruneFailed,
    Reason::ArtifactFailed,
    Reason::HealthCheckFailed,
    Reason::HealthCheckCanceled,
    Reason::DependencyNotReady,
    Reason::InvalidCELExpression,
    Reason::AccessDenied,
];

/// Returns an event of a removal: as in the originals, with the reason of the condition Ready and the metadata of the last revision.
fn event<K: ManifestKind>(status: Option<&K::Status>, severity: Severity, message: String) -> EventDraft {
    let event = removal_event(severity, message);
    let Some(status) = status else { return event };
    let ready = conditions::get(status.conditions(), condition_type::READY);
    let reason = ready.and_then(|ready| REASONS.into_iter().find(|one| one.as_str() == ready.reason));
    EventDraft {
        reason: reason.unwrap_or(event.reason),
        metadata: K::event_metadata(status),
        ..event
    }
}

impl<K: ManifestKind> ManifestDeployer<K> {
    fn report(&self, object: &K::Object, severity: Severity, message: String) {
        let event = event::<K>(object.status(), severity, message);
        self.parts.report_removal_by(object, event);
    }

    /// Deletes the deployed objects, unless they are to stay.
    pub(super) async fn remove_deployed(&self, pass: &Pass<'_, K::Object>) -> Result<(), RemovalFailure<()>> {
        let (object, spec) = (pass.object, K::spec(pass.object));
        let owner = self.owner(object);
        let Membership::Inventory { objects: known, .. } = &owner.membership else {
            return Ok(());
        };
        if !spec.delete || spec.deploy.suspend || known.is_empty() {
            let left = "what was deployed stays: nothing is to be deleted";
            self.report(object, Severity::Trace, left.to_owned());
            return Ok(());
        }
        if let Some(why) = self.kind.stays(object, known).await? {
            self.report(object, Severity::Error, why);
            return Ok(());
        }
        let target = self.target(pass).await;
        let target = target.map_err(|error| RemovalFailure::of_cluster(&error))?;
        let cluster = working(&target.cluster, pass);
        let search = OrphanSearch {
            previous: Some(known),
            ..OrphanSearch::default()
        };
        let options = DeletionOptions {
            confirmation: match spec.awaits_deletion {
                true => Confirmation::Together(spec.wait_timeout),
                false => Confirmation::None,
            },
            ..deletion()
        };
        let deleted = delete_all(&cluster, &owner, search, options).await;
        let deleted = deleted.map_err(|error| Fault::retry(Reason::PruneFailed, error.to_string()))?;
        if is_deleted(&deleted) {
            let message = K::removed(&deleted);
            if !message.is_empty() {
                self.report(object, Severity::Info, message);
            }
            if let Some(waited) = deleted.waited.as_ref().filter(|waited| !waited.is_ready()) {
                let message = format!(
                    "failed to wait for resources termination: {}",
                    outcome::quoted(waited)
                );
                self.report(object, Severity::Error, message);
            }
            return Ok(());
        }
        let failed = deleted
            .outcomes
            .iter()
            .filter_map(|one| Some((one, one.result.as_ref().err()?)));
        let errors = failed.map(|(one, error)| (Some(&one.reference), error.is_forbidden()));
        let remains = Remains {
            gaps: deleted.completeness.gaps(),
            errors: errors.collect(),
            known,
        };
        let own = (!spec.is_remote()).then_some(pass.namespace);
        Err(RemovalFailure {
            left: remains.left(),
            denied: remains.left_for_lack_of_rights(own),
            ..Fault::retry(Reason::PruneFailed, outcome::undeleted(&deleted)).into()
        })
    }
}

/// Returns true if all objects were deleted, even if some are not gone yet.
fn is_deleted(deleted: &Pruned) -> bool {
    let in_time = deleted.waited.as_ref().is_none_or(SetWaited::is_ready);
    deleted.is_complete()
        || (!in_time
            && deleted.completeness.is_complete()
            && deleted.outcomes.iter().all(|outcome| outcome.result.is_ok()))
}
