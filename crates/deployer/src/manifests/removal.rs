//! The removal of the objects that a deleted object deployed.

use api::{Fault, Reason};
use apply::{Confirmation, DeletionOptions, Membership, OrphanSearch, Pruned, SetWaited, delete_all};
use runtime::{Pass, Severity};

use super::{ManifestDeployer, ManifestKind, deletion, outcome};
use crate::{RemovalFailure, removal::Remains};

impl<K: ManifestKind> ManifestDeployer<K> {
    /// Deletes the deployed objects, unless they are to stay.
    pub(super) async fn remove_deployed(&self, pass: &Pass<'_, K::Object>) -> Result<(), RemovalFailure<()>> {
        let (object, spec) = (pass.object, K::spec(pass.object));
        let owner = self.owner(object);
        let Membership::Inventory { objects: known, .. } = &owner.membership else {
            return Ok(());
        };
        if !spec.delete || spec.deploy.suspend || known.is_empty() {
            let left = "what was deployed stays: nothing is to be deleted";
            self.parts
                .report_removal(object, Severity::Trace, left.to_owned());
            return Ok(());
        }
        if let Some(why) = self.kind.stays(object, known).await? {
            self.parts.report_removal(object, Severity::Error, why);
            return Ok(());
        }
        let cluster = self.cluster(pass).await?;
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
                self.parts.report_removal(object, Severity::Info, message);
            }
            if let Some(waited) = deleted.waited.as_ref().filter(|waited| !waited.is_ready()) {
                let message = format!(
                    "failed to wait for resources termination: {}",
                    outcome::quoted(waited)
                );
                self.parts.report_removal(object, Severity::Error, message);
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
        let own = spec.kube_config.is_none().then_some(pass.namespace);
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
