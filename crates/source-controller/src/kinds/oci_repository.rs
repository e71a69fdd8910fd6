//! OCIRepository: a layer of an artifact in an OCI registry.
//!
//! - [`spec`] refuses invalid and unsupported fields, and chooses tags (pure);
//! - [`credentials`] interprets the Secrets (pure);
//! - [`verification`] verifies signatures;
//! - [`layer`] downloads, unpacks and packs a layer;
//! - [`charts`] has the requests for charts in registries;
//! - [`words`] has messages (pure).

mod charts;
mod credentials;
mod layer;
mod verification;
mod words;

use std::{future::Future, path::Path, sync::Arc};

use api::{
    Fault, Reason,
    revision::Style,
    source::{OCIRepository, OCIRepositoryStatus},
};
use artifact::{pack::Packed, storage::ArtifactWriter};
use cloud::Cloud;
use limits::ByteBudget;
use net::{AddressPolicy, Need, Proxies};
use oci::{Access, Client, Digest, Limits, Reference, Registry, Wanted, cosign::TrustedRoot};
use source_specs::{fields::given, oci_repository as spec};
use tokio::runtime::Handle;

use self::{
    layer::{Layer, LayerRule},
    spec::Selector,
};
use crate::{
    blocking::{self, Ended, Job, Purpose},
    identity::{Identities, Login},
    source_kind::{
        BuildError, Details, Identity, Inputs, KindSettings, Named, Pack, PackOptions, Resolve, SecretRole,
        SourceKind, SourceObject, SourceSecrets, SourceSpec, Verification, Verify, named, timeout,
    },
    temp_files::{Filled, Filling, Refusal, TempFiles},
};

pub(crate) struct OciRepositories {
    runtime: Handle,
    addresses: AddressPolicy,
    identities: Arc<Identities>,
    trusted_root: Option<Arc<TrustedRoot>>,
    chart_bytes: u64,
    disk: ByteBudget,
}

#[derive(Debug, Clone)]
pub(crate) struct OciRequest {
    url: String,
    reference: Reference,
    selector: Selector,
    rule: LayerRule,
    access: Access,
    proxies: Proxies,
    insecure: bool,
    trusted: verification::Trusted,
    fingerprint: String,
    /// The identity to log in with, unless there are credentials.
    identity: Option<Login>,
}

#[derive(Debug, Clone)]
pub(crate) struct OciResolved {
    url: String,
    tag: Option<String>,
    digest: Digest,
    /// True if the registry speaks no TLS, and need not.
    plain_http: bool,
}

impl OciResolved {
    fn revision(&self) -> String {
        match &self.tag {
            Some(tag) => format!("{tag}@{}", self.digest),
            None => self.digest.to_string(),
        }
    }
}

impl SourceObject for OciRepositories {
    type Object = OCIRepository;
    type Status = OCIRepositoryStatus;

    const DIRECTORY: &'static str = "ocirepository";

    fn spec(object: &OCIRepository) -> SourceSpec<'_> {
        let spec = &object.spec;
        SourceSpec {
            interval: spec.interval.as_duration(),
            timeout: timeout(spec.timeout),
            suspend: spec.suspend,
            ignore: spec.ignore.as_deref(),
        }
    }

    fn secrets(object: &OCIRepository) -> Named<'_> {
        let spec = &object.spec;
        let verify = spec.verify.as_ref();
        let keys = verify.and_then(|verify| verify.secret_ref.as_ref());
        let root = verify.and_then(|verify| verify.trusted_root_secret_ref.as_ref());
        named([
            (SecretRole::Credentials, spec.secret_ref.as_ref()),
            (SecretRole::Proxy, spec.proxy_secret_ref.as_ref()),
            (SecretRole::Certificates, spec.cert_secret_ref.as_ref()),
            (SecretRole::TrustedKeys, keys),
            (SecretRole::TrustedRoot, root),
        ])
    }

    fn secret_failure(object: &OCIRepository, role: SecretRole, fault: Fault) -> Fault {
        credentials::unreadable(&object.spec, role, fault)
    }

    fn validate(object: &OCIRepository) -> Result<(), Fault> {
        spec::validate(&object.spec)
    }
}

impl Identity for OciRepositories {
    fn service_account(object: &OCIRepository) -> Option<&str> {
        given(&object.spec.service_account_name)
    }

    fn cloud(object: &OCIRepository) -> Option<Cloud> {
        Cloud::parse(object.spec.provider.as_deref()?)
    }

    fn has_credentials(object: &OCIRepository) -> bool {
        object.spec.secret_ref.is_some()
    }
}

impl Resolve for OciRepositories {
    type Request = OciRequest;
    type Resolved = OciResolved;

    fn request(object: &OCIRepository, secrets: &SourceSecrets) -> Result<OciRequest, Fault> {
        let reference = spec::repository(&object.spec)?;
        let access = credentials::access(&object.spec, &reference, secrets)?;
        Self::request_with(object, reference, access, secrets)
    }

    fn server(request: &OciRequest) -> String {
        request.reference.host().to_owned()
    }

    fn resolve(&self, request: &OciRequest, job: &Job) -> Result<OciResolved, Fault> {
        self.run(
            job,
            "failed to determine artifact digest",
            self.resolve_reference(request, job),
        )
    }

    fn revision(resolved: &OciResolved, _: Style) -> String {
        resolved.revision()
    }

    fn file_name(resolved: &OciResolved) -> String {
        format!("{}.tar.gz", resolved.digest)
    }
}

impl Inputs for OciRepositories {
    fn config_changed(object: &OCIRepository) -> bool {
        let observed = object.status.as_ref();
        observed.is_none_or(|status| status.observed_layer_selector != object.spec.layer_selector)
    }

    fn observe(status: &mut OCIRepositoryStatus, object: &OCIRepository, verified: Option<&Verification>) {
        status
            .observed_layer_selector
            .clone_from(&object.spec.layer_selector);
        if object.spec.verify.is_some() {
            let past = object.status.as_ref();
            let past = past.and_then(|status| status.source_verification_fingerprint.clone());
            status.source_verification_fingerprint = match verified {
                Some(verified) => verified.fingerprint.clone(),
                None => past,
            };
        }
    }
}

impl Pack for OciRepositories {
    type Fetched = Filled<Layer>;

    fn fetch(
        &self,
        request: &OciRequest,
        resolved: &OciResolved,
        job: &Job,
        scratch: &Path,
    ) -> Result<Filled<Layer>, Fault> {
        let failed = format!("failed to pull artifact from '{}'", request.url);
        let pull = async |files: &TempFiles| {
            let registry = self.registry(request, resolved.plain_http, job).await?;
            let manifest = registry.manifest(&Wanted::Digest(resolved.digest.clone())).await;
            let manifest = manifest.map_err(|error| self.fault(request, &failed, &error))?;
            layer::download((&registry, job), &manifest, &request.rule, files, &failed).await
        };
        let filling = Filling {
            runtime: &self.runtime,
            job,
            disk: &self.disk,
            above: scratch,
            beside: None,
            refusal: Refusal {
                failed: &failed,
                reason: Reason::OCIArtifactPullFailed,
                remedy: "the layer and its files are counted, push a smaller one",
            },
        };
        filling.run(|files| self.run(job, &failed, pull(files)))
    }

    fn pack(
        layer: &Filled<Layer>,
        options: &PackOptions,
        out: &mut ArtifactWriter<'_>,
    ) -> Result<Packed, BuildError> {
        layer::pack(layer, options, out)
    }

    fn details(layer: &Filled<Layer>) -> Details {
        Details {
            metadata: layer.annotations.clone(),
            ..Details::default()
        }
    }
}

impl Verify for OciRepositories {
    fn verifies(object: &OCIRepository) -> bool {
        object.spec.verify.is_some()
    }

    fn keys_changed(object: &OCIRepository, request: &OciRequest) -> bool {
        let past = object.status.as_ref();
        let past = past.and_then(|status| status.source_verification_fingerprint.as_deref());
        object.spec.verify.is_some() && past != Some(request.fingerprint.as_str())
    }

    fn verify(
        &self,
        request: &OciRequest,
        resolved: &OciResolved,
        job: &Job,
    ) -> Result<Option<Verification>, Fault> {
        let failed = |why: String| {
            let message = format!("{}: {why}", request.trusted.failed());
            Fault::retry(Reason::VerificationError, message)
        };
        let verified = async {
            let registry = self.registry(request, resolved.plain_http, job).await;
            let registry = registry.map_err(|fault| fault.message)?;
            let root = self.trusted_root.as_deref();
            request.trusted.verify(&registry, request, resolved, root).await
        };
        let verified = blocking::wait(&self.runtime, job, verified);
        let is_signed = verified.map_err(|unfinished| failed(Ended(unfinished).to_string()))?;
        let is_signed = is_signed.map_err(failed)?;
        Ok(Some(Verification {
            message: is_signed.then(|| format!("verified signature of revision {}", resolved.revision())),
            fingerprint: Some(request.fingerprint.clone()),
        }))
    }
}

impl SourceKind for OciRepositories {
    fn new(settings: KindSettings) -> Self {
        Self {
            runtime: Handle::current(),
            addresses: settings.addresses,
            identities: settings.identities,
            trusted_root: settings.trusted_root,
            chart_bytes: settings.helm.chart,
            disk: settings.disk,
        }
    }
}

impl OciRepositories {
    fn request_with(
        object: &OCIRepository,
        reference: Reference,
        access: Access,
        secrets: &SourceSecrets,
    ) -> Result<OciRequest, Fault> {
        let spec = &object.spec;
        let (trusted, fingerprint) = verification::trusted(spec, secrets)?;
        let proxies = credentials::proxies(secrets)?;
        // The identity of the controller is for objects without credentials, not for objects with useless ones.
        let by_identity = Self::service_account(object).is_some() || !Self::has_credentials(object);
        let cloud = Self::cloud(object).filter(|_| by_identity && access.credentials.is_none());
        Ok(OciRequest {
            identity: cloud.map(|cloud| {
                let proxy = match &proxies {
                    Proxies::Only(proxy) => Some(proxy.clone()),
                    _ => None,
                };
                secrets.login(&object.metadata, cloud, proxy)
            }),
            url: spec.url.to_string(),
            selector: spec::selector(spec)?,
            rule: LayerRule::of(spec.layer_selector.as_ref()),
            access,
            proxies,
            insecure: spec.insecure,
            trusted,
            fingerprint,
            reference,
        })
    }

    async fn registry(&self, request: &OciRequest, plain_http: bool, job: &Job) -> Result<Registry, Fault> {
        let mut access = Access {
            plain_http,
            ..request.access.clone()
        };
        if let Some(login) = &request.identity {
            let host = request.reference.host();
            let found = self
                .identities
                .registry(login, host, credentials::tls(&access), job.timeout);
            let found = found.await;
            let found = found.map_err(|error| {
                let message = format!("failed to get credential from {}: {error}", login.cloud.name());
                Fault::retry(Reason::AuthenticationFailed, message)
            })?;
            access.credentials = Some(found);
        }
        let limits = Limits {
            timeout: job.timeout,
            archive_bytes: self.chart_bytes,
            ..Limits::default()
        };
        let proxies = request.proxies.clone();
        let client = Client::with_proxies(access, limits, self.addresses.clone(), proxies);
        let client = client.map_err(|error| {
            let message = format!("failed to generate transport for '{}': {error}", request.url);
            Fault::retry(Reason::AuthenticationFailed, message)
        })?;
        Ok(Registry::new(&client, request.reference.clone()))
    }

    /// Makes a client of the repository, after finding out if an insecure registry speaks TLS: true if it does not.
    async fn open(&self, request: &OciRequest, job: &Job) -> Result<(Registry, bool), Fault> {
        let registry = self.registry(request, false, job).await?;
        if !request.insecure {
            return Ok((registry, false));
        }
        let spoken = registry.speaks_tls().await;
        match spoken.map_err(|error| fault("failed to determine artifact digest", &error))? {
            true => Ok((registry, false)),
            false => Ok((self.registry(request, true, job).await?, true)),
        }
    }

    async fn resolve_reference(&self, request: &OciRequest, job: &Job) -> Result<OciResolved, Fault> {
        let failed = "failed to determine artifact digest";
        let (registry, plain_http) = self.open(request, job).await?;
        let tag = match &request.selector {
            Selector::Digest(digest) => {
                let known = registry.digest(&Wanted::Digest(digest.clone())).await;
                known.map_err(|error| self.fault(request, failed, &error))?;
                return Ok(OciResolved {
                    url: request.url.clone(),
                    tag: None,
                    digest: digest.clone(),
                    plain_http,
                });
            }
            Selector::Tag(tag) => tag.clone(),
            Selector::Semver(range) => {
                let failed = format!("failed to determine the artifact tag for '{}'", request.url);
                let tags = registry.tags().await.map_err(|error| Fault {
                    reason: Reason::ReadOperationFailed,
                    ..self.fault(request, &failed, &error)
                })?;
                range
                    .newest(tags)
                    .map_err(|why| Fault::retry(Reason::ReadOperationFailed, format!("{failed}: {why}")))?
            }
        };
        let digest = registry.digest(&Wanted::Tag(tag.clone())).await;
        Ok(OciResolved {
            url: request.url.clone(),
            digest: digest.map_err(|error| self.fault(request, failed, &error))?,
            tag: Some(tag),
            plain_http,
        })
    }

    /// Returns the fault of a failed request to the registry. Refused credentials of a cloud are evicted: they may have been revoked.
    fn fault(&self, request: &OciRequest, failed: &str, error: &oci::Error) -> Fault {
        if let (oci::Error::Unauthorized { .. }, Some(login)) = (error, &request.identity) {
            self.identities.forget_registry(login, request.reference.host());
        }
        fault(failed, error)
    }

    fn run<T>(
        &self,
        job: &Job,
        failed: &str,
        requests: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let purpose = Purpose {
            failed,
            reason: Reason::OCIArtifactPullFailed,
            remedy: remedy(Need::LongerTimeout),
        };
        blocking::request(&self.runtime, job, purpose, requests)
    }
}

/// Returns the fault of a failed request to the registry; its message starts with `failed`.
fn fault(failed: &str, error: &oci::Error) -> Fault {
    let remedy = error.need().map(remedy);
    let remedy = remedy.map(|remedy| format!(": {remedy}")).unwrap_or_default();
    Fault::retry(
        Reason::OCIArtifactPullFailed,
        format!("{failed}: {error}{remedy}"),
    )
}

fn remedy(need: Need) -> &'static str {
    match need {
        Need::Credentials => "name a secret of the type kubernetes.io/dockerconfigjson in spec.secretRef",
        Need::OtherCredentials => "check the credentials in the secret of spec.secretRef",
        Need::CaBundle => "add the registry's CA to the secret of spec.certSecretRef as ca.crt",
        Need::ValidCaBundle => "check ca.crt in the secret of spec.certSecretRef",
        Need::ClientCertificate => "add tls.crt and tls.key to the secret of spec.certSecretRef",
        Need::ValidClientCertificate => "check tls.crt and tls.key in the secret of spec.certSecretRef",
        Need::FewerRequests => "raise spec.interval",
        _ => "raise spec.timeout or check the registry",
    }
}

#[cfg(test)]
mod tests;
