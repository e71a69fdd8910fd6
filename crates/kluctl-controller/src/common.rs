//! Parts that both kinds of KluctlDeployment share.

pub(crate) mod sharers;

use std::sync::Arc;

use api::{Fault, Reason};
use deployer::{
    RemovalFailure,
    claims::{ForeignOwners, Refusal},
    removal::Remains,
};
use engine::Confirm;
use futures::{FutureExt as _, future::BoxFuture};
use objects::ObjectRef;

#[derive(Debug)]
pub(crate) struct BuildReads(engine::ReadObjects);

impl BuildReads {
    pub(crate) fn shared(read: engine::ReadObjects) -> Arc<dyn deployer::ReadObjects> {
        Arc::new(Self(read))
    }
}

impl deployer::ReadObjects for BuildReads {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn are_unchanged(&self) -> BoxFuture<'_, bool> {
        self.0.are_unchanged().boxed()
    }
}

/// Fails if a removal left objects. `known` are those that were deployed, `own` is the namespace of their owner, if they are in its cluster.
pub(crate) fn check_removed<R>(
    result: &results::CommandResult,
    known: &[ObjectRef],
    own: Option<&str>,
) -> Result<(), RemovalFailure<R>> {
    let Some(why) = result.failure().or_else(|| result.completeness.message()) else {
        return Ok(());
    };
    let remains = remains(result, known);
    Err(RemovalFailure {
        left: remains.left(),
        denied: remains.left_for_lack_of_rights(own),
        ..Fault::retry(Reason::Failed, why).into()
    })
}

/// Returns the objects that a removal left. `known` are those that were deployed.
fn remains<'a>(result: &'a results::CommandResult, known: &'a [ObjectRef]) -> Remains<'a> {
    let errors = result.errors.iter();
    Remains {
        gaps: result.completeness.gaps(),
        errors: errors
            .map(|error| (error.reference.as_ref(), error.denied))
            .collect(),
        known,
    }
}

#[derive(Debug)]
pub(crate) struct OwnerCheck<'a>(pub(crate) ForeignOwners<'a>);

impl OwnerCheck<'_> {
    pub(crate) fn refusal(self) -> Option<Refusal> {
        self.0.refusal()
    }
}

impl Confirm for OwnerCheck<'_> {
    fn changes<'a>(&'a self, _: &'a results::CommandResult) -> BoxFuture<'a, bool> {
        std::future::ready(true).boxed()
    }

    fn deletions<'a>(&'a self, objects: &'a [ObjectRef]) -> BoxFuture<'a, bool> {
        self.0.allows(objects).boxed()
    }
}
