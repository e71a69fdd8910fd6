//! The source of an object: its current revision, and its signatures. Changes nothing.

use std::sync::Arc;

use api::{Fault, Reason};

use tokio_util::sync::CancellationToken;

use super::{Input, SourceReconciler};
use crate::{
    blocking, secrets,
    source_kind::{SourceKind, Verification},
};

/// A source with its current revision.
pub(super) struct Source<K: SourceKind> {
    pub(super) request: K::Request,
    pub(super) resolved: K::Resolved,
}

impl<K: SourceKind> SourceReconciler<K> {
    pub(super) async fn resolve(&self, pass: &Input<'_, K>) -> Result<Source<K>, Fault> {
        // Identities are asked for tokens at servers.
        let secrets = secrets::read::<K>(
            &self.shared.client,
            &self.shared.identities,
            pass.namespace,
            pass.object,
        );
        let secrets = pass.slot.lending(secrets).await?;
        let object = pass.object.clone();
        let request = tokio::task::spawn_blocking(move || K::request(&object, &secrets)).await;
        let request = request.unwrap_or_else(|error| {
            let message = format!("failed to configure authentication options: {error}");
            Err(Fault::retry(Reason::AuthenticationFailed, message))
        })?;
        let scope = pass.scope();
        let (kind, asked) = (Arc::clone(&self.kind), request.clone());
        let revoked = CancellationToken::new();
        let tokens = (scope.cancel, &revoked);
        let resolved = blocking::run_revocable(scope.namespace, scope.timeout, tokens, move |job| {
            kind.resolve(&asked, job)
        });
        let resolved = scope.slot.waiting(resolved).await;
        let resolved = resolved.map_err(|fault| blocking::revoked(&revoked, fault))?;
        Ok(Source { request, resolved })
    }

    /// Verifies the revision, if the object asks for it.
    pub(super) async fn verify(
        &self,
        pass: &Input<'_, K>,
        source: &Source<K>,
    ) -> Result<Option<Verification>, Fault> {
        if !K::verifies(pass.object) {
            return Ok(None);
        }
        let scope = pass.scope();
        let (request, resolved) = (source.request.clone(), source.resolved.clone());
        let kind = Arc::clone(&self.kind);
        let verified = blocking::run(scope.namespace, scope.timeout, scope.cancel, move |job| {
            kind.verify(&request, &resolved, job)
        });
        scope.slot.waiting(verified).await
    }
}
