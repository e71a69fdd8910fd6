//! The contract between a kind of source and the skeleton that all kinds share.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use artifact::storage::ArtifactWriter;

use api::{
    Artifact, Condition, Fault, GoDuration, LocalObjectReference, Reason,
    revision::Style,
    source::{BucketStatus, GitRepositoryStatus, HelmChartStatus, HelmRepositoryStatus, OCIRepositoryStatus},
};
use artifact::{Algorithm, Storage, pack::Packed};
use cloud::Cloud;
use futures::stream::BoxStream;
use git::SshAlgorithms;
use kube::core::{NamespaceResourceScope, object::HasStatus};
use net::{AddressPolicy, Proxy};
use oci::cosign::TrustedRoot;
use runtime::{Context, Trigger};
use serde::{Serialize, de::DeserializeOwned};
use tree::{Budget, ByteBudget};

use crate::{
    blocking::Job,
    builder::BuildError,
    flags::HelmLimits,
    identity::{Identities, Login},
    secret::SecretData,
    status,
};

/// A kind of source: how an object is resolved to a revision, and how the revision is fetched and packed. Reading Secrets,
/// the storage, the decision what to build, status, conditions, events and finalizer are the same for all kinds.
///
/// `resolve`, `fetch` and `pack` block; each call runs on a thread of its own.
pub trait SourceKind: Send + Sync + Sized + 'static {
    type Object: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + HasStatus<Status = Self::Status>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static;
    type Status: CommonStatus
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug
        + Default
        + PartialEq
        + Send
        + Sync
        + 'static;
    /// Source to fetch and its credentials, from the spec and its Secret.
    type Request: Clone + Send + Sync + 'static;
    /// The revision that the request resolves to.
    type Resolved: Clone + Send + Sync + 'static;
    /// A fetched revision, ready to be packed.
    type Fetched: Send + 'static;

    const DIRECTORY: &'static str;
    /// Reason of Ready=True in the words of 2021 ([`Style::Legacy`]).
    const LEGACY_READY: Reason;
    /// True if the ignore rules act through the revision, so that changing them alone builds no artifact.
    const IGNORE_IN_REVISION: bool = false;

    /// Creates the kind. Called within an async runtime, which connections live on.
    fn new(settings: KindSettings) -> Self;

    /// Returns true if there is nothing to fetch for an object: others use its spec alone. It gets neither status nor finalizer. Pure.
    fn is_static(_: &Self::Object) -> bool {
        false
    }

    fn spec(object: &Self::Object) -> SourceSpec<'_>;

    /// Returns the Secrets that the spec names, in the order in which they are read.
    fn secrets(object: &Self::Object) -> Named<'_>;

    /// Returns the fault of a Secret or service account that can't be read, in the words of the kind.
    fn secret_failure(_: &Self::Object, _: SecretRole, fault: Fault) -> Fault {
        fault
    }

    /// Returns the fields of the object's status that all kinds have; defaults if it has none.
    fn past(object: &Self::Object) -> SourceStatus {
        object.status().map(CommonStatus::common).unwrap_or_default()
    }

    /// Refuses invalid and unsupported fields. Pure. A stalling fault that names field and value.
    fn validate(object: &Self::Object) -> Result<(), Fault>;

    /// Returns the request of an object. Pure; may take a second where a key has a password. Fails with a fault that names the field or the
    /// key of the Secret.
    fn request(object: &Self::Object, secrets: &SourceSecrets) -> Result<Self::Request, Fault>;

    /// Returns host and port of the server that is asked. Servers of a namespace share its permits to fetch. Pure.
    fn server(request: &Self::Request) -> String;

    /// Resolves the request to a revision. Called in every pass, so it should be cheap. Fails with a fault in the words of conditions.
    fn resolve(&self, request: &Self::Request, job: &Job) -> Result<Self::Resolved, Fault>;

    /// Returns the revision for status, conditions and events.
    fn revision(resolved: &Self::Resolved, style: Style) -> String;

    /// Returns the file name of the artifact.
    fn file_name(resolved: &Self::Resolved) -> String;

    /// Fetches the revision. What is fetched owns the temporary directories that it needs, which are made in `scratch`. Fails with a fault
    /// in the words of conditions.
    fn fetch(
        &self,
        request: &Self::Request,
        resolved: &Self::Resolved,
        job: &Job,
        scratch: &Path,
    ) -> Result<Self::Fetched, Fault>;

    /// Returns what was fetched, for sources that may change between resolving and fetching.
    fn fetched(_: &Self::Fetched, resolved: Self::Resolved) -> Self::Resolved {
        resolved
    }

    /// Packs a fetched revision into a tarball. Fails with a failure of packing, or a fault in the words of conditions.
    fn pack(
        fetched: &Self::Fetched,
        options: &PackOptions,
        out: &mut ArtifactWriter<'_>,
    ) -> Result<Packed, BuildError>;

    /// Returns the metadata of the artifact, such as the annotations of a manifest.
    fn metadata(_: &Self::Fetched) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Returns true if fields that only this kind has differ from those of the stored artifact, so that it is built again. Pure.
    fn config_changed(_: &Self::Object) -> bool {
        false
    }

    /// Returns true if what was resolved beside the revision differs from that of the stored artifact, so that it is built again. Pure.
    fn inputs_changed(_: &Self::Object, _: &Self::Resolved) -> bool {
        false
    }

    /// Sets the fields of the status that what was resolved beside the revision is recorded in, after a successful pass. Pure.
    fn observe_inputs(_: &mut Self::Status, _: &Self::Resolved) {}

    /// Returns requests for passes that come from elsewhere than the object's own watch.
    fn triggers(&self, _: &Context) -> Vec<BoxStream<'static, Trigger>> {
        Vec::new()
    }

    /// Sets the fields of the status that only this kind has, after a successful pass. The object still has its past status;
    /// `verified` is the verification of this pass, if there was one. After a failure they stay as they were. Pure.
    fn observe(_: &mut Self::Status, _: &Self::Object, _verified: Option<&Verification>) {}

    /// Returns true if the trusted keys differ from those of the last verification, so that it is repeated. Pure.
    fn keys_changed(_: &Self::Object, _: &Self::Request) -> bool {
        false
    }

    /// Verifies a revision before it is fetched. Called if [`SourceKind::verifies`] is true, and the revision, the object or the trusted
    /// keys changed since the last success. A kind that verifies what it fetched returns `None`, and implements
    /// [`SourceKind::verification`]. Fails with a fault with a reason that [`SourceKind::failure_conditions`] maps to SourceVerified.
    fn verify(&self, _: &Self::Request, _: &Self::Resolved, _: &Job) -> Result<Option<Verification>, Fault> {
        Ok(None)
    }

    /// Returns the verification of a fetched revision, for a kind that verifies while it fetches.
    fn verification(_: &Self::Fetched) -> Option<Verification> {
        None
    }

    /// Returns a short description of a fetched revision for the event of a new artifact, such as the subject of a commit.
    fn describe(fetched: &Self::Fetched) -> Option<String>;

    /// Returns further metadata of a fetched revision for the event of a new artifact.
    fn event_metadata(_: &Self::Fetched) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Returns reason and message of Ready=True.
    fn ready(_: &Self::Resolved, revision: &str) -> (Reason, String) {
        (
            Reason::Succeeded,
            format!("stored artifact for revision '{revision}'"),
        )
    }

    /// Returns reason and message of ArtifactOutdated.
    fn outdated(_: &Self::Object, _: &Self::Resolved, revision: &str) -> (Reason, String) {
        (Reason::NewRevision, format!("new upstream revision '{revision}'"))
    }

    /// Returns the reason of the event for a new artifact, or for the end of a failure, for kinds that have their own.
    fn event_reason(_: &Self::Resolved) -> Option<Reason> {
        None
    }

    /// Returns the message of the event for a new artifact, or for the end of a failure. `description` is that of
    /// [`SourceKind::describe`], if something was fetched.
    fn event_message(resolved: &Self::Resolved, artifact: &Artifact, description: Option<&str>) -> String;

    /// Returns the name of the service account whose pull secrets or token are used.
    fn service_account(_: &Self::Object) -> Option<&str> {
        None
    }

    /// Returns the cloud whose identity is used, of [`SourceKind::service_account`] if there is one; `None` if the provider is no
    /// cloud. Pure.
    fn cloud(_: &Self::Object) -> Option<Cloud> {
        None
    }

    /// Returns true if a Secret of the object takes the place of the identity of a cloud. Pure.
    fn has_credentials(_: &Self::Object) -> bool {
        false
    }

    /// Returns true if signatures are to be verified. Pure.
    fn verifies(_: &Self::Object) -> bool {
        false
    }

    /// Returns the condition types that a failure is reported in, beside Ready.
    fn failure_conditions(reason: Reason) -> &'static [&'static str] {
        status::failure_conditions(reason)
    }
}

/// Settings of the controller that kinds need.
#[derive(Clone)]
pub struct KindSettings {
    pub client: kube::Client,
    pub storage: Arc<Storage>,
    /// Delay before the next attempt if another object is missing.
    pub requeue_dependency: Duration,
    pub addresses: AddressPolicy,
    /// The algorithms for SSH servers.
    pub ssh: SshAlgorithms,
    pub(crate) identities: Arc<Identities>,
    /// The sigstore of signatures by identities whose object names none.
    pub(crate) trusted_root: Option<Arc<TrustedRoot>>,
    pub helm: HelmLimits,
    /// Directory for temporary files.
    pub scratch: PathBuf,
    /// The bytes of the temporary files of all kinds.
    pub disk: ByteBudget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecretRole {
    Credentials,
    /// Address of a proxy, and its credentials.
    Proxy,
    /// CA bundle and client certificate for the source.
    Certificates,
    TokenService,
    /// CA bundle and client certificate for a token service.
    TokenServiceCertificates,
    TrustedKeys,
    TrustedRoot,
    /// The service account, its pull secrets and its token.
    ServiceAccount,
}

pub(crate) type Named<'a> = Vec<(SecretRole, &'a str)>;

/// Returns a string of a spec unless it is empty, which is as good as absent.
pub(crate) fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

/// Returns the references that are set.
pub(crate) fn named<'a>(
    references: impl IntoIterator<Item = (SecretRole, Option<&'a LocalObjectReference>)>,
) -> Named<'a> {
    let set = references.into_iter();
    set.filter_map(|(role, reference)| Some((role, reference?.name.as_str())))
        .collect()
}

/// The contents of the Secrets that the spec of an object names.
#[derive(Default)]
pub struct SourceSecrets {
    roles: HashMap<SecretRole, SecretData>,
    /// The service account of [`SourceKind::service_account`].
    pub(crate) service_account: Option<ServiceAccountData>,
}

impl SourceSecrets {
    #[must_use]
    pub fn get(&self, role: SecretRole) -> Option<&SecretData> {
        self.roles.get(&role)
    }

    /// Returns the identity of a cloud: the service account, or else the controller.
    pub(crate) fn login(&self, cloud: Cloud, proxy: Option<Proxy>) -> Login {
        let account = self.service_account.as_ref();
        Login {
            cloud,
            workload: account.and_then(|account| account.workload.clone()),
            proxy,
        }
    }
}

impl FromIterator<(SecretRole, SecretData)> for SourceSecrets {
    fn from_iter<T: IntoIterator<Item = (SecretRole, SecretData)>>(secrets: T) -> Self {
        Self {
            roles: secrets.into_iter().collect(),
            service_account: None,
        }
    }
}

#[derive(Default)]
pub(crate) struct ServiceAccountData {
    /// Its pull secrets, in their order, without missing ones.
    pub pull_secrets: Vec<SecretData>,
    /// Its identity of [`SourceKind::cloud`].
    pub(crate) workload: Option<cloud::WorkloadLogin>,
}

impl ServiceAccountData {
    pub(crate) fn without_pull_secrets(self) -> Self {
        Self {
            pull_secrets: Vec::new(),
            ..self
        }
    }
}

/// A successful verification of signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Message of the condition SourceVerified. `None` if a policy accepts the revision without a trusted signature: the condition is
    /// removed then, and each pass verifies.
    pub message: Option<String>,
    /// Changes with the trusted keys, if the kind records them.
    pub fingerprint: Option<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct SourceSpec<'a> {
    /// Interval of looking for changes.
    pub interval: Duration,
    /// Timeout of resolving, and of fetching.
    pub timeout: Duration,
    pub suspend: bool,
    /// Lines as in `.gitignore`; replace the default excludes.
    pub ignore: Option<&'a str>,
}

const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the timeout for the server of a source from its spec: default 60 seconds, at least 1 ms.
pub(crate) fn timeout(given: Option<GoDuration>) -> Duration {
    let given = given.map(GoDuration::as_duration);
    given.unwrap_or(TIMEOUT).max(Duration::from_millis(1))
}

/// Checks that the interval of a source is positive. Fails with a stalling fault that names the field.
pub(crate) fn check_interval(interval: Duration) -> Result<(), Fault> {
    match interval.is_zero() {
        true => Err(Fault::stall(
            Reason::InvalidSpec,
            "spec.interval: it must be more than nothing",
        )),
        false => Ok(()),
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceStatus {
    /// Generation of the last finished pass; -1 before the first.
    pub observed_generation: Option<i64>,
    pub conditions: Vec<Condition>,
    pub artifact: Option<Artifact>,
    /// URL of the latest artifact.
    pub url: Option<String>,
    /// Ignore rules of the stored artifact.
    pub observed_ignore: Option<String>,
    /// Last handled value of the annotation `reconcile.fluxcd.io/requestedAt`.
    pub last_handled_reconcile_at: Option<String>,
}

/// A status with the fields that all kinds have.
pub trait CommonStatus {
    fn common(&self) -> SourceStatus;

    /// Sets the common fields, and leaves the others.
    fn set_common(&mut self, common: SourceStatus);
}

/// Implements [`CommonStatus`] for statuses that have the fields under the same names; `observed_ignore` is named for statuses that have
/// it.
macro_rules! common_fields {
    ($($status:ty { $($field:ident)? })*) => {$(
        impl CommonStatus for $status {
            fn common(&self) -> SourceStatus {
                SourceStatus {
                    observed_generation: self.observed_generation,
                    conditions: self.conditions.clone(),
                    artifact: self.artifact.clone(),
                    url: self.url.clone(),
                    last_handled_reconcile_at: self.last_handled_reconcile_at.clone(),
                    observed_ignore: None$(.or_else(|| self.$field.clone()))?,
                }
            }

            fn set_common(&mut self, common: SourceStatus) {
                self.observed_generation = common.observed_generation;
                self.conditions = common.conditions;
                self.artifact = common.artifact;
                self.url = common.url;
                self.last_handled_reconcile_at = common.last_handled_reconcile_at;
                $(self.$field = common.$field;)?
            }
        }
    )*};
}

common_fields! {
    GitRepositoryStatus { observed_ignore }
    OCIRepositoryStatus { observed_ignore }
    BucketStatus { observed_ignore }
    HelmRepositoryStatus {}
    HelmChartStatus {}
}

#[derive(Debug)]
pub struct PackOptions {
    /// The ignore rules of the spec.
    pub ignore: Option<String>,
    pub algorithm: Algorithm,
    pub budget: Budget,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_defaults_to_a_minute_and_is_never_unlimited() {
        assert_eq!(timeout(None), Duration::from_secs(60));
        let negative = Some(GoDuration::from_secs(-1));
        assert_eq!(timeout(negative), Duration::from_millis(1));
        assert_eq!(timeout(Some(GoDuration::from_secs(5))), Duration::from_secs(5));
    }
}
