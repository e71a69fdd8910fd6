//! The parts of a process that all its deploying kinds use.

use std::sync::Arc;

use api::Reason;
use cluster::access::KubeconfigRules;
use kube::Resource;
use runtime::{Context, EventDraft, Severity};

use crate::{
    Clusters, LabelIndex, PassThreads,
    idle::{DeploymentStates, KnownObjects},
    message,
};

/// The parts that a kind gets from its process. Clones share everything.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Client, flags, metrics and events of the process.
    pub ctx: Context,
    /// Connections to all clusters.
    pub clusters: Arc<Clusters>,
    /// The objects with an owner label.
    pub index: LabelIndex,
    /// Threads for builds.
    pub threads: PassThreads,
    /// The state of each object of the kind that no status has.
    pub states: Arc<DeploymentStates>,
}

impl Parts {
    /// Creates the parts of the first kind of a process. The index has the objects with all of these labels.
    #[must_use]
    pub fn start(ctx: &Context, kubeconfigs: KubeconfigRules, owner_labels: &[&str]) -> Self {
        let clusters = Arc::new(Clusters::new(ctx, kubeconfigs));
        Self {
            index: LabelIndex::start(ctx, clusters.local(), owner_labels),
            clusters,
            threads: PassThreads::default(),
            states: Arc::default(),
            ctx: ctx.clone(),
        }
    }

    /// Creates the parts of another kind of the same process, which has its own objects.
    #[must_use]
    pub fn of_another_kind(&self) -> Self {
        Self {
            states: Arc::default(),
            ..self.clone()
        }
    }

    /// Returns the deployed objects, as this process knows them without a request.
    #[must_use]
    pub fn known_objects(&self) -> KnownObjects<'_> {
        KnownObjects {
            index: &self.index,
            memory: &self.states,
        }
    }

    /// Records an event about the removal of an object, and logs it.
    pub fn report_removal<O: Resource<DynamicType = ()>>(
        &self,
        object: &O,
        severity: Severity,
        message: String,
    ) {
        self.report_removal_by(object, removal_event(severity, message));
    }

    /// As [`Parts::report_removal`], by an event of its own.
    pub(crate) fn report_removal_by<O: Resource<DynamicType = ()>>(&self, object: &O, event: EventDraft) {
        if event.severity == Severity::Error {
            tracing::warn!(message = %event.message, "removal");
        } else {
            tracing::info!(message = %event.message, "removal");
        }
        self.ctx.recorder().record(object, event);
    }
}

pub(crate) fn removal_event(severity: Severity, message: String) -> EventDraft {
    let reason = match severity {
        Severity::Error => Reason::Failed,
        _ => Reason::Succeeded,
    };
    EventDraft {
        severity,
        reason,
        message: message::limit(message, message::MESSAGE_BYTES),
        metadata: Default::default(),
    }
}
