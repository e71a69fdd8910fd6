//! Runs asynchronous work from the blocking thread of a render.

use std::thread;

use cluster::Cluster;
use kluctl::CallbackError;
use objects::ObjectRef;
use tokio::{runtime::Handle, sync::oneshot};
use tokio_util::sync::CancellationToken;

use super::{external_reads::ExternalReads, slots::RenderPermit};

/// The runtime and the cancellation of one render, for code that runs on the blocking thread of that render.
#[derive(Debug, Clone)]
pub(crate) struct BlockingContext {
    runtime: Handle,
    cancelled: CancellationToken,
    /// The cluster whose operation waits meanwhile, if it has a permit to give back.
    cluster: Option<Cluster>,
    permit: Option<RenderPermit>,
    external_reads: ExternalReads,
}

impl BlockingContext {
    /// Creates a context that ends when `cancelled` is cancelled. Must be called within a Tokio runtime.
    pub(crate) fn new(cancelled: CancellationToken) -> Self {
        Self {
            runtime: Handle::current(),
            cancelled,
            cluster: None,
            permit: None,
            external_reads: ExternalReads::default(),
        }
    }

    /// Records reads from outside of the project in `external_reads`.
    pub(crate) fn noting(self, external_reads: &ExternalReads) -> Self {
        Self {
            external_reads: external_reads.clone(),
            ..self
        }
    }

    /// Returns the same context for reads of the cluster's kinds and version, and of objects that are noted with their versions.
    pub(crate) fn unnoted(&self) -> Self {
        self.clone().noting(&ExternalReads::default())
    }

    pub(crate) fn note_object(&self, reference: ObjectRef, version: Option<String>) {
        self.external_reads.note_object(reference, version);
    }

    /// Gives the permit of the render back while a future is waited for.
    pub(crate) fn giving_back(self, permit: &RenderPermit) -> Self {
        Self {
            permit: Some(permit.clone()),
            ..self
        }
    }

    /// Lets futures count as waits of an operation on this cluster.
    pub(crate) fn waiting_on(self, cluster: &Cluster) -> Self {
        Self {
            cluster: Some(cluster.clone()),
            ..self
        }
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> Result<T, CallbackError> {
        self.external_reads.note();
        let wait = async {
            match &self.permit {
                Some(permit) => permit.waiting(future).await,
                None => future.await,
            }
        };
        // The permit to render is taken before the operation's, as at the start of a render: a holder of the second never waits for the
        // first.
        let wait = self.cancelled.run_until_cancelled(wait);
        let output = match &self.cluster {
            Some(cluster) => self.runtime.block_on(cluster.waiting(wait)),
            None => self.runtime.block_on(wait),
        };
        output.ok_or_else(|| CallbackError::new("cancelled"))
    }

    /// Blocks until work that uses the network without futures ends, and returns its output. If a permit is given back, the work has
    /// a thread of its own. It must end soon after the render is cancelled.
    pub(crate) fn block_on_thread<T: Send>(
        &self,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, CallbackError> {
        if self.permit.is_none() && self.cluster.is_none() {
            self.external_reads.note();
            return Ok(work());
        }
        thread::scope(|scope| {
            let (send, receive) = oneshot::channel();
            let work = || drop(send.send(work()));
            let started = thread::Builder::new()
                .name("fetch".to_owned())
                .spawn_scoped(scope, work);
            started.map_err(|error| CallbackError::new(format!("failed to start a thread: {error}")))?;
            let output = self.block_on(receive)?;
            output.map_err(|_| CallbackError::new("internal error: fetching broke down"))
        })
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Returns the token that is cancelled when the render ends or its caller is gone.
    pub(crate) fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }
}
