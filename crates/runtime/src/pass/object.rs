//! The object of a pass ([ADR 39](../../../../docs/adr/0039-reads-from-the-cache-of-the-api-server.md)).

use kube::{
    Api,
    api::{DynamicObject, GetParams},
};

use super::{ObjectMemory, ReconciledKind};
use crate::{
    live::Live,
    queue::ObjectKey,
    reconciler::Reconciler,
    report::{self, Report},
    work::with_timeout,
};

impl<R: Reconciler> ReconciledKind<R> {
    pub(super) async fn object(
        &self,
        api: &Api<Live>,
        key: &ObjectKey,
        memory: &ObjectMemory,
    ) -> Result<DynamicObject, Report> {
        let known = memory.newest.max(memory.seen);
        if let Some(Live(object)) = known.and_then(|known| self.cache.get(key, known)) {
            return Ok(object);
        }
        match with_timeout(read(api, &key.name, known)).await {
            Ok(Some(Live(live))) => Ok(live),
            Ok(None) => Err(report::GONE),
            Err(error) => {
                tracing::error!(%error, "cannot read the object");
                Err(report::RETRY)
            }
        }
    }
}

/// Reads an object in a state that is not older than `known`, a resourceVersion of it. The API server answers from its cache, which takes a
/// third of the processor time of a read from etcd (docs/adr/0039). etcd is read if no version is known, or if the cache stays behind it.
async fn read(api: &Api<Live>, name: &str, known: Option<u64>) -> Result<Option<Live>, kube::Error> {
    let Some(known) = known else {
        return api.get_opt(name).await;
    };
    match api.get_with(name, &GetParams::at(&known.to_string())).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        // The answer to a version that the cache doesn't reach in time.
        Err(kube::Error::Api(status)) if status.code == 504 => api.get_opt(name).await,
        Err(error) => Err(error),
    }
}
