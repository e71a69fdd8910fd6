//! The cluster of a pass, and the faults of its work.

use std::{sync::Arc, time::Duration};

use api::Fault;
use cluster::{Cluster, WorkPermit};
use futures::{FutureExt as _, future::BoxFuture};
use runtime::{Pass, WorkSlot};

/// The permit of a pass, which waits for the cluster give back.
struct PassPermit(WorkSlot);

impl WorkPermit for PassPermit {
    fn pause(&self) {
        self.0.pause();
    }

    fn resume(&self) -> BoxFuture<'_, ()> {
        self.0.resume().boxed()
    }

    fn overdue(&self) -> BoxFuture<'_, ()> {
        self.0.overdue().boxed()
    }

    fn is_wanted_after(&self, held: Duration) -> bool {
        self.0.is_wanted_after(held)
    }
}

/// Returns the cluster for the requests of a pass: they end with it, and waits give back its permit.
pub fn working<O>(cluster: &Cluster, pass: &Pass<'_, O>) -> Cluster {
    let permit = PassPermit(pass.slot.clone());
    cluster
        .until(pass.cancel.clone())
        .waits_until(pass.superseded.clone())
        .working_with(Arc::new(permit))
}

/// Converts a fault with backoff to one that is retried after the retry interval.
pub fn retried_after(fault: Fault, retry: Duration) -> Fault {
    match fault.class {
        api::Class::Retry => Fault::wait(retry, fault.reason, fault.message),
        _ => fault,
    }
}
