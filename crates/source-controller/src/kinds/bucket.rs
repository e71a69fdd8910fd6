//! Bucket: the objects of a bucket of an S3-compatible service, AWS, Google Cloud Storage or Azure Blob Storage.
//!
//! - [`spec`] refuses invalid and unsupported fields (pure);
//! - [`credentials`] interprets the Secrets (pure);
//! - [`index`] has names and tags of the objects, and their digest (pure);
//! - [`layout`] makes paths of names (pure);
//! - [`listing`] and [`download`] ask the service.

mod credentials;
mod download;
mod index;
mod layout;
mod listing;

use std::{fs::File, future::Future, path::Path, sync::Arc};

use api::{
    Artifact, Fault, Reason,
    revision::Style,
    source::{Bucket, BucketStatus},
};
use artifact::{
    pack::{self, Packed},
    storage::ArtifactWriter,
};
use cloud::Cloud;
use limits::ByteBudget;
use net::Need;
use source_specs::{bucket as spec, fields::given};
use tokio::runtime::Handle;
use tree::ignore::Rules;

use self::{download::Snapshot, listing::Listed};
use crate::{
    blocking::{self, Job, Purpose},
    source_kind::{
        BuildError, Identity, Inputs, KindSettings, Named, Pack, PackOptions, Resolve, SecretRole,
        SourceKind, SourceObject, SourceSecrets, SourceSpec, Verify, Words, named, timeout,
    },
    temp_files::{Filled, Filling, Refusal},
};

const UNPACKED_BYTES: u64 = 1 << 30;

pub(crate) struct Buckets {
    runtime: Handle,
    context: bucket::Context,
    disk: ByteBudget,
}

#[derive(Debug, Clone)]
pub(crate) struct BucketRequest {
    settings: bucket::Settings,
    server: String,
    prefix: String,
    ignore: Option<String>,
}

impl SourceObject for Buckets {
    type Object = Bucket;
    type Status = BucketStatus;

    const DIRECTORY: &'static str = "bucket";

    fn spec(object: &Bucket) -> SourceSpec<'_> {
        let spec = &object.spec;
        SourceSpec {
            interval: spec.interval.as_duration(),
            timeout: timeout(spec.timeout),
            suspend: spec.suspend,
            ignore: spec.ignore.as_deref(),
        }
    }

    fn secrets(object: &Bucket) -> Named<'_> {
        let spec = &object.spec;
        let sts = spec.sts.as_ref();
        named([
            (SecretRole::Credentials, spec.secret_ref.as_ref()),
            (SecretRole::Certificates, spec.cert_secret_ref.as_ref()),
            (SecretRole::Proxy, spec.proxy_secret_ref.as_ref()),
            (
                SecretRole::TokenService,
                sts.and_then(|sts| sts.secret_ref.as_ref()),
            ),
            (
                SecretRole::TokenServiceCertificates,
                sts.and_then(|sts| sts.cert_secret_ref.as_ref()),
            ),
        ])
    }

    fn secret_failure(_: &Bucket, role: SecretRole, fault: Fault) -> Fault {
        credentials::unreadable(role, fault)
    }

    fn validate(object: &Bucket) -> Result<(), Fault> {
        spec::validate(&object.spec)
    }
}

impl Identity for Buckets {
    fn service_account(object: &Bucket) -> Option<&str> {
        given(&object.spec.service_account_name)
    }

    fn cloud(object: &Bucket) -> Option<Cloud> {
        Cloud::parse(object.spec.provider.as_deref()?)
    }

    fn has_credentials(object: &Bucket) -> bool {
        object.spec.secret_ref.is_some()
    }
}

impl Resolve for Buckets {
    type Request = BucketRequest;
    type Resolved = Listed;

    fn request(object: &Bucket, secrets: &SourceSecrets) -> Result<BucketRequest, Fault> {
        let settings = credentials::settings(&object.spec, secrets)?;
        Ok(BucketRequest {
            server: settings.server(),
            settings,
            prefix: object.spec.prefix.clone().unwrap_or_default(),
            ignore: object.spec.ignore.clone(),
        })
    }

    fn server(request: &BucketRequest) -> String {
        request.server.clone()
    }

    fn resolve(&self, request: &BucketRequest, job: &Job) -> Result<Listed, Fault> {
        let failed = format!(
            "indexation of objects from bucket '{}' failed",
            request.settings.name
        );
        self.run(job, &failed, listing::list(&self.context, request, job))
    }

    fn revision(listed: &Listed, style: Style) -> String {
        let hex = listed.digest();
        match style {
            Style::Rfc5 => format!("sha256:{hex}"),
            Style::Legacy => hex.to_owned(),
        }
    }

    fn file_name(listed: &Listed) -> String {
        format!("{}.tar.gz", listed.digest())
    }
}

impl Inputs for Buckets {
    const IGNORE_IN_REVISION: bool = true;
}

impl Pack for Buckets {
    type Fetched = Filled<Snapshot>;

    fn fetch(
        &self,
        request: &BucketRequest,
        listed: &Listed,
        job: &Job,
        scratch: &Path,
    ) -> Result<Filled<Snapshot>, Fault> {
        let failed = format!("fetch from bucket '{}' failed", request.settings.name);
        let filling = Filling {
            runtime: &self.runtime,
            job,
            disk: &self.disk,
            above: scratch,
            beside: None,
            refusal: Refusal {
                failed: &failed,
                reason: Reason::BucketOperationFailed,
                remedy: "set spec.prefix, or leave out objects with spec.ignore",
            },
        };
        filling.run(|files| self.run(job, &failed, download::download(request, listed, files)))
    }

    fn fetched(snapshot: &Filled<Snapshot>, listed: Listed) -> Listed {
        listed.with_index(Arc::clone(&snapshot.index))
    }

    fn pack(
        snapshot: &Filled<Snapshot>,
        options: &PackOptions,
        out: &mut ArtifactWriter<'_>,
    ) -> Result<Packed, BuildError> {
        // The rules were applied to the listing.
        let items = options.planned(pack::plan(snapshot.items(), &Rules::new(), &options.budget)?);
        let open = |item: &pack::Item<download::Content>| {
            options.budget.check()?;
            let opened = snapshot.path(&item.content).map_or_else(
                || Err(std::io::ErrorKind::NotFound.into()),
                |path| {
                    let file = File::open(path)?;
                    Ok((file.metadata()?.len(), file))
                },
            );
            opened.map_err(|error: std::io::Error| {
                let message = format!("failed to read a fetched object: {error}");
                BuildError::Fault(Fault::retry(Reason::DirectoryCreationFailed, message))
            })
        };
        pack::pack_streams(&items, open, options.algorithm, UNPACKED_BYTES, out)
    }
}

impl Verify for Buckets {}

impl Words for Buckets {
    const LEGACY_READY: Reason = Reason::BucketOperationSucceed;

    fn ready(_: &Listed, revision: &str) -> (Reason, String) {
        (
            Reason::Succeeded,
            format!("stored artifact: revision '{revision}'"),
        )
    }

    fn event_message(listed: &Listed, _: &Artifact, _: Option<&str>) -> String {
        format!(
            "stored artifact with {} fetched files from '{}' bucket",
            listed.index().len(),
            listed.bucket_name()
        )
    }
}

impl SourceKind for Buckets {
    fn new(settings: KindSettings) -> Self {
        Self {
            runtime: Handle::current(),
            disk: settings.disk,
            context: bucket::Context {
                ambient: settings.identities.ambient().clone(),
                ..bucket::Context::new(settings.addresses)
            },
        }
    }
}

impl Buckets {
    fn run<T>(
        &self,
        job: &Job,
        failed: &str,
        requests: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let purpose = Purpose {
            failed,
            reason: Reason::BucketOperationFailed,
            remedy: remedy(Need::LongerTimeout),
        };
        blocking::request(&self.runtime, job, purpose, requests)
    }
}

/// Returns the fault of a failed request; its message starts with `failed`.
fn fault(failed: &str, error: &bucket::Error) -> Fault {
    let reason = match error {
        bucket::Error::Credentials(_) => Reason::AuthenticationFailed,
        error => match error.need() {
            Some(Need::ValidCaBundle | Need::ValidClientCertificate) => Reason::AuthenticationFailed,
            _ => Reason::BucketOperationFailed,
        },
    };
    let remedy = error.need().map(remedy);
    let remedy = remedy.map(|remedy| format!(": {remedy}")).unwrap_or_default();
    Fault::retry(reason, format!("{failed}: {error}{remedy}"))
}

fn remedy(need: Need) -> &'static str {
    match need {
        Need::Credentials | Need::OtherCredentials => {
            "check the credentials in the secret of spec.secretRef, and that they allow listing and reading objects"
        }
        Need::CaBundle => "add the server's CA to the secret of spec.certSecretRef as ca.crt",
        Need::ValidCaBundle => "check ca.crt in the secret of spec.certSecretRef",
        Need::ClientCertificate => "add tls.crt and tls.key to the secret of spec.certSecretRef",
        Need::ValidClientCertificate => "check tls.crt and tls.key in the secret of spec.certSecretRef",
        Need::FewerRequests => "raise spec.interval",
        _ => "raise spec.timeout or check the server",
    }
}

#[cfg(test)]
mod tests;
