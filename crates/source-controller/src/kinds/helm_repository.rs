//! HelmRepository: the index of a Helm repository. Registries (type `oci`) have none: charts are asked for by their own objects.
//!
//! - [`spec`] refuses invalid and unsupported fields (pure);
//! - [`credentials`] interprets the Secrets (pure);
//! - [`known`] remembers the tags of indexes.

mod credentials;
mod known;

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use api::{
    Artifact, Fault, Reason, condition_type as types,
    revision::Style,
    source::{HelmRepository, HelmRepositoryStatus},
};
use artifact::{
    pack::{self, Packed},
    storage::ArtifactWriter,
};
use limits::{ByteBudget, TenantPermits};
use net::{AddressPolicy, Need};
use oci::{Access, Client, IndexFile, Limits, Repository};
use source_specs::helm_repository as spec;
use tokio::runtime::Handle;

use self::known::KnownIndexes;
use crate::{
    blocking::{self, Job, Purpose},
    flags::HelmLimits,
    permits,
    source_kind::{
        BuildError, Identity, Inputs, KindSettings, Named, Pack, PackOptions, Resolve, SecretRole,
        SourceKind, SourceObject, SourceSecrets, SourceSpec, Verify, Words, failure_conditions, named,
        timeout,
    },
    temp_files::{Filled, Filling, Refusal, TempFiles},
};

const FETCHING: &str = "failed to fetch Helm repository index";
const READING: &str = "failed to load Helm repository from index YAML";
const YAML: &str = "index.yaml";
const JSON: &str = "index.json";
/// Maximum bytes of the entries of a single chart in memory.
const ENTRY_BYTES: u64 = 8 << 20;

pub(crate) struct HelmRepositories {
    runtime: Handle,
    addresses: AddressPolicy,
    sizes: HelmLimits,
    scratch: PathBuf,
    disk: ByteBudget,
    processors: TenantPermits,
    known: KnownIndexes,
}

#[derive(Debug, Clone)]
pub(crate) struct HelmRequest {
    display_url: String,
    url: String,
    server: String,
    access: Access,
    /// Digest of the stored index.
    stored: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct HelmIndex {
    display_url: String,
    file: IndexFile,
    /// Its content, unless it is the stored one.
    fetched: Option<Arc<Filled<FetchedIndex>>>,
}

enum Download {
    /// The server sent nothing: it is the last one.
    Known,
    Stored(IndexFile),
    New(FetchedIndex),
}

/// A fetched index: as JSON, in a file with the lifetime of its directory.
#[derive(Debug)]
pub(crate) struct FetchedIndex {
    file: IndexFile,
    json: PathBuf,
}

impl SourceObject for HelmRepositories {
    type Object = HelmRepository;
    type Status = HelmRepositoryStatus;

    const DIRECTORY: &'static str = "helmrepository";

    fn is_static(object: &HelmRepository) -> bool {
        object.spec.is_oci()
    }

    fn spec(object: &HelmRepository) -> SourceSpec<'_> {
        let spec = &object.spec;
        SourceSpec {
            interval: spec::interval(spec),
            timeout: timeout(spec.timeout),
            suspend: spec.suspend,
            ignore: None,
        }
    }

    fn secrets(object: &HelmRepository) -> Named<'_> {
        named([
            (SecretRole::Credentials, object.spec.secret_ref.as_ref()),
            (SecretRole::Certificates, object.spec.cert_secret_ref.as_ref()),
        ])
    }

    fn validate(object: &HelmRepository) -> Result<(), Fault> {
        spec::validate(&object.spec)
    }
}

impl Identity for HelmRepositories {}

impl Resolve for HelmRepositories {
    type Request = HelmRequest;
    type Resolved = HelmIndex;

    fn request(object: &HelmRepository, secrets: &SourceSecrets) -> Result<HelmRequest, Fault> {
        let spec = &object.spec;
        let url = spec::url(spec)?;
        Ok(HelmRequest {
            display_url: spec.url.to_string(),
            server: spec::server(&url),
            url: url.into(),
            access: credentials::access(spec, secrets)?,
            stored: object.status.as_ref().and_then(stored_digest),
        })
    }

    fn server(request: &HelmRequest) -> String {
        request.server.clone()
    }

    /// Downloads the index: its digest is the revision. A new one is converted at once, so that it is downloaded once. A server that gives
    /// indexes tags need not send a known one.
    fn resolve(&self, request: &HelmRequest, job: &Job) -> Result<HelmIndex, Fault> {
        let known = self.known.get(&request.url, &request.access);
        let filling = self.filling(job, &self.scratch);
        let filled = filling.run(|files| self.download_new(request, job, files, known.as_ref()))?;
        let Filled { content, files } = filled;
        let (file, fetched) = match (content, known) {
            (Download::New(content), _) => {
                let file = content.file.clone();
                (file, Some(Arc::new(Filled { content, files })))
            }
            (Download::Stored(file), _) | (Download::Known, Some(file)) => (file, None),
            (Download::Known, None) => {
                let message =
                    format!("{FETCHING}: the server answered 304 Not Modified to an unconditional request");
                return Err(Fault::retry(Reason::Failed, message));
            }
        };
        self.known
            .insert(&job.namespace, (&request.url, &request.access), &file);
        Ok(HelmIndex {
            display_url: request.display_url.clone(),
            file,
            fetched,
        })
    }

    fn revision(index: &HelmIndex, style: Style) -> String {
        match style {
            Style::Rfc5 => index.file.digest.to_string(),
            Style::Legacy => hex(&index.file),
        }
    }

    fn file_name(index: &HelmIndex) -> String {
        format!("index-{}.yaml", hex(&index.file))
    }
}

impl Inputs for HelmRepositories {}

impl Pack for HelmRepositories {
    type Fetched = Arc<Filled<FetchedIndex>>;

    fn fetch(
        &self,
        request: &HelmRequest,
        index: &HelmIndex,
        job: &Job,
        scratch: &Path,
    ) -> Result<Self::Fetched, Fault> {
        if let Some(fetched) = &index.fetched {
            return Ok(Arc::clone(fetched));
        }
        let filling = self.filling(job, scratch);
        filling.run(|files| self.index(request, job, files)).map(Arc::new)
    }

    fn is_fetched(index: &HelmIndex) -> bool {
        index.fetched.is_some()
    }

    fn fetched(fetched: &Self::Fetched, index: HelmIndex) -> HelmIndex {
        HelmIndex {
            file: fetched.file.clone(),
            fetched: None,
            ..index
        }
    }

    fn pack(
        fetched: &Self::Fetched,
        options: &PackOptions,
        out: &mut ArtifactWriter<'_>,
    ) -> Result<Packed, BuildError> {
        options.budget.check()?;
        let json = File::open(&fetched.json).map_err(|error| disk(&error))?;
        Ok(pack::copy(json, options.algorithm, u64::MAX, out)?)
    }
}

impl Verify for HelmRepositories {}

impl Words for HelmRepositories {
    const LEGACY_READY: Reason = Reason::IndexationSucceed;

    fn ready(_: &HelmIndex, revision: &str) -> (Reason, String) {
        (
            Reason::Succeeded,
            format!("stored artifact: revision '{revision}'"),
        )
    }

    fn outdated(_: &HelmRepository, _: &HelmIndex, revision: &str) -> (Reason, String) {
        (Reason::NewRevision, format!("new index revision '{revision}'"))
    }

    fn event_message(index: &HelmIndex, artifact: &Artifact, _: Option<&str>) -> String {
        let size = artifact.size.and_then(|size| u64::try_from(size).ok());
        let size = size.map_or_else(
            || "unknown size".to_owned(),
            |size| format!("size {}", human(size)),
        );
        format!("stored fetched index of {size} from '{}'", index.display_url)
    }

    fn failure_conditions(reason: Reason) -> &'static [&'static str] {
        match reason {
            Reason::Failed | Reason::IndexationFailed => &[types::FETCH_FAILED],
            reason => failure_conditions(reason),
        }
    }
}

impl SourceKind for HelmRepositories {
    fn new(settings: KindSettings) -> Self {
        Self {
            runtime: Handle::current(),
            addresses: settings.addresses,
            sizes: settings.helm,
            scratch: settings.scratch,
            disk: settings.disk,
            processors: settings.processors,
            known: KnownIndexes::default(),
        }
    }
}

impl HelmRepositories {
    pub(super) fn repository(&self, request: &HelmRequest, job: &Job) -> Result<Repository, Fault> {
        let failed = |error: &oci::Error| {
            let message = format!("failed to construct Helm client: {error}");
            Fault::retry(Reason::AuthenticationFailed, message)
        };
        let limits = Limits {
            // The timeout of the job ends it, in words that give advice.
            timeout: job.timeout.saturating_add(Duration::from_secs(1)),
            index_bytes: self.sizes.index,
            archive_bytes: self.sizes.chart,
            entry_bytes: ENTRY_BYTES,
            ..Limits::default()
        };
        let client = Client::new(request.access.clone(), limits, self.addresses.clone());
        let client = client.map_err(|error| failed(&error))?;
        Repository::new(&client, &request.url).map_err(|error| failed(&error))
    }

    fn filling<'a>(&'a self, job: &'a Job, above: &'a Path) -> Filling<'a> {
        Filling {
            runtime: &self.runtime,
            job,
            disk: &self.disk,
            above,
            beside: None,
            refusal: Refusal {
                failed: FETCHING,
                reason: Reason::Failed,
                remedy: "the index is counted twice, as YAML and as JSON, serve a smaller one",
            },
        }
    }

    fn download_new(
        &self,
        request: &HelmRequest,
        job: &Job,
        files: &TempFiles,
        known: Option<&IndexFile>,
    ) -> Result<Download, Fault> {
        let Some(file) = self.download_yaml(request, job, files, known)? else {
            return Ok(Download::Known);
        };
        if request.stored.as_deref() == Some(hex(&file).as_str()) {
            return Ok(Download::Stored(file));
        }
        let json = self.convert(request, job, files)?;
        Ok(Download::New(FetchedIndex { file, json }))
    }

    fn index(&self, request: &HelmRequest, job: &Job, files: &TempFiles) -> Result<FetchedIndex, Fault> {
        let file = self.download_yaml(request, job, files, None)?;
        let file = file.ok_or_else(|| Fault::retry(Reason::Failed, FETCHING))?;
        let json = self.convert(request, job, files)?;
        Ok(FetchedIndex { file, json })
    }

    fn download_yaml(
        &self,
        request: &HelmRequest,
        job: &Job,
        files: &TempFiles,
        known: Option<&IndexFile>,
    ) -> Result<Option<IndexFile>, Fault> {
        let file = files.create(YAML).map_err(|error| disk(&error))?;
        let mut out = BufWriter::new(file);
        let fetched = self.download(request, job, &mut out, known)?;
        out.flush().map_err(|error| disk(&error))?;
        Ok(fetched)
    }

    /// Replaces the downloaded index by JSON, and returns its file.
    fn convert(&self, request: &HelmRequest, job: &Job, files: &TempFiles) -> Result<PathBuf, Fault> {
        let repository = self.repository(request, job)?;
        let processor = permits::processor(&self.processors, &self.runtime, job)?;
        let written = files.create(JSON).map_err(|error| disk(&error))?;
        let raw = File::open(files.path().join(YAML)).map_err(|error| disk(&error))?;
        let mut out = BufWriter::new(written);
        let converted = repository.write_json(BufReader::new(raw), &mut out);
        converted.map_err(|error| match error {
            oci::Error::Disk { source, .. } => disk(&source),
            error => Fault::retry(Reason::IndexationFailed, format!("{READING}: {error}")),
        })?;
        out.flush().map_err(|error| disk(&error))?;
        drop(processor);
        files.remove(YAML).map_err(|error| disk(&error))?;
        Ok(files.path().join(JSON))
    }

    /// Downloads the index; `None` if it is the known one.
    fn download(
        &self,
        request: &HelmRequest,
        job: &Job,
        out: impl io::Write,
        known: Option<&IndexFile>,
    ) -> Result<Option<IndexFile>, Fault> {
        let repository = self.repository(request, job)?;
        let purpose = Purpose {
            failed: FETCHING,
            reason: Reason::Failed,
            remedy: remedy(Need::LongerTimeout),
        };
        blocking::request(&self.runtime, job, purpose, async {
            let downloaded = repository.download_index(out, known).await;
            downloaded.map_err(fault)
        })
    }
}

/// Returns the digest of an index in hexadecimal digits, without its algorithm.
fn hex(index: &IndexFile) -> String {
    let digest = index.digest.to_string();
    digest.trim_start_matches("sha256:").to_owned()
}

fn stored_digest(status: &HelmRepositoryStatus) -> Option<String> {
    let revision = &status.artifact.as_ref()?.revision;
    Some(revision.trim_start_matches("sha256:").to_owned())
}

fn fault(error: oci::Error) -> Fault {
    if let oci::Error::Disk { source, .. } = error {
        return disk(&source);
    }
    let remedy = match &error {
        oci::Error::TooLarge { .. } => {
            Some("the flag --helm-index-max-size of the controller sets the limit")
        }
        error => error.need().map(remedy),
    };
    let remedy = remedy.map(|remedy| format!(": {remedy}")).unwrap_or_default();
    let malformed = matches!(error, oci::Error::Malformed { .. });
    match malformed {
        true => Fault::retry(Reason::IndexationFailed, format!("{READING}: {error}{remedy}")),
        false => Fault::retry(Reason::Failed, format!("{FETCHING}: {error}{remedy}")),
    }
}

fn disk(error: &io::Error) -> Fault {
    let message = format!("failed to use the temporary working directory: {error}");
    Fault::retry(Reason::DirectoryCreationFailed, message)
}

fn remedy(need: Need) -> &'static str {
    match need {
        Need::Credentials | Need::OtherCredentials => {
            "check username and password in the secret of spec.secretRef"
        }
        Need::CaBundle => "add the server's CA to the secret of spec.certSecretRef as ca.crt",
        Need::ValidCaBundle => "check ca.crt in the secret of spec.certSecretRef",
        Need::ClientCertificate => "add tls.crt and tls.key to the secret of spec.certSecretRef",
        Need::ValidClientCertificate => "check tls.crt and tls.key in the secret of spec.certSecretRef",
        Need::FewerRequests => "raise spec.interval",
        _ => "raise spec.timeout or check the server",
    }
}

/// Returns a size with four digits and a decimal unit, as in the original: `30.88kB`.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let whole = value.log10().floor().max(0.0);
    let decimals = (3.0 - whole).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text.as_str(),
    };
    format!("{text}{}", UNITS.get(unit).unwrap_or(&"B"))
}

#[cfg(test)]
mod tests;
