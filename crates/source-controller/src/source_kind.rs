//! The contract between a kind of source and the skeleton that all kinds share: a trait for each step of a pass.

mod inputs;
mod object;
mod pack;
mod resolve;
mod secrets;
mod status;
mod verify;
mod words;

use std::{path::PathBuf, sync::Arc, time::Duration};

use artifact::Storage;
use futures::stream::BoxStream;
use git::SshAlgorithms;
use limits::{ByteBudget, TenantPermits};
use net::AddressPolicy;
use oci::cosign::TrustedRoot;
use runtime::{Context, Trigger};

pub(crate) use self::{
    inputs::Inputs,
    object::{SourceObject, SourceSpec, timeout},
    pack::{BuildError, Details, Pack, PackOptions},
    resolve::Resolve,
    secrets::{Identity, Named, SecretRole, ServiceAccountData, SourceSecrets, named},
    status::{CommonStatus, SourceStatus},
    verify::{Verification, Verify},
    words::{Words, failure_conditions},
};
use crate::{flags::HelmLimits, identity::Identities};

/// A kind of source. Reading Secrets, the storage, the decisions, status, conditions, events and finalizer are the same for all kinds.
pub(crate) trait SourceKind: Identity + Inputs + Pack + Verify + Words {
    /// Creates the kind. Called within an async runtime, which connections live on.
    fn new(settings: KindSettings) -> Self;

    /// Returns requests for passes from other sources than the object's own watch. Default: none.
    fn triggers(&self, _: &Context) -> Vec<BoxStream<'static, Trigger>> {
        Vec::new()
    }
}

/// Settings of the controller that kinds need.
#[derive(Clone)]
pub(crate) struct KindSettings {
    pub(crate) client: kube::Client,
    pub(crate) storage: Arc<Storage>,
    /// Delay before the next attempt if another object is missing.
    pub(crate) requeue_dependency: Duration,
    pub(crate) addresses: AddressPolicy,
    /// The algorithms for SSH servers.
    pub(crate) ssh: SshAlgorithms,
    pub(crate) identities: Arc<Identities>,
    /// The sigstore of signatures by identities whose object names none.
    pub(crate) trusted_root: Option<Arc<TrustedRoot>>,
    pub(crate) helm: HelmLimits,
    /// Directory for temporary files.
    pub(crate) scratch: PathBuf,
    /// The bytes of the temporary files of all kinds.
    pub(crate) disk: ByteBudget,
    pub(crate) processors: TenantPermits,
}
