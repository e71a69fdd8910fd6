//! Finding name and version of the current chart of a source.

use std::{io::BufReader, path::Path, sync::Arc, time::Duration};

use api::{
    Artifact, Fault, Reason, condition_type as types, conditions,
    source::{Bucket, GitRepository, HelmChartStatus, HelmRepository, OCIRepository, OCIRepositorySpec},
};
use artifact::{FetchLimits, open_stored, unpack_selected};
use helm::chart::{Package, identity, with_build};
use oci::Entry;
use source_specs::helm_repository::{registry_spec, supported};
use tree::{Budget, Disk, Limits, Tree as _, TreePath};

use super::{
    ChartRequest, HelmCharts, ResolvedChart,
    build_metadata::build_metadata,
    failure, origin,
    source::ChartArtifact,
    spec::{self, Origin},
};
use crate::{
    blocking::{self, Job, Purpose},
    kinds::{
        helm_repository::{HelmRepositories, HelmRequest},
        oci_repository::{OciRepositories, OciRequest, OciResolved},
    },
    permits, secrets,
    source_kind::{Resolve as _, SourceObject as _, Verification, Verify as _, timeout},
    temp_files::{Filling, Refusal, TempFiles},
};

pub(super) const LONGEST: Duration = Duration::from_secs(5 * 60);

const UNPACKING: &str = "failed to read the artifact of the source";
pub(super) const UNPACKED: &str = "artifact";

#[derive(Clone)]
pub(super) enum ChartLocation {
    /// The stored one is up to date. It is looked up again when it is missing in the storage.
    Unknown,
    /// An archive in the index of a repository.
    Repository(Box<Remote<HelmRequest, Entry>>),
    Registry(Box<Remote<OciRequest, OciResolved>>),
    Directory(Arc<TempFiles>),
}

#[derive(Clone)]
pub(super) struct Remote<R, F> {
    pub(super) asked: R,
    pub(super) found: F,
    pub(super) timeout: Duration,
}

impl<R, F> Remote<R, F> {
    pub(super) fn within(&self, job: &Job) -> Job {
        Job {
            timeout: self.timeout,
            ..job.clone()
        }
    }
}

struct Found {
    name: String,
    version: String,
    source_revision: Option<String>,
    source: Option<ChartArtifact>,
    is_directory: bool,
    location: ChartLocation,
}

impl HelmCharts {
    /// Looks up the chart, unless nothing changed since the last success.
    pub(super) fn lookup(&self, request: &ChartRequest, job: &Job) -> Result<ResolvedChart, Fault> {
        self.find_chart(request, job, |revision| request.known(revision))
    }

    /// Looks up the chart, also if nothing changed.
    pub(super) fn lookup_again(&self, request: &ChartRequest, job: &Job) -> Result<ResolvedChart, Fault> {
        self.find_chart(request, job, |_| None)
    }

    fn find_chart<'a>(
        &self,
        request: &'a ChartRequest,
        job: &Job,
        known: impl Fn(&str) -> Option<&'a HelmChartStatus>,
    ) -> Result<ResolvedChart, Fault> {
        let found = match spec::origin(&request.spec)? {
            Origin::HelmRepository => {
                let repository: HelmRepository = self.source(request, job)?;
                if repository.spec.is_oci() {
                    self.in_registry(request, &repository, job)?
                } else {
                    let artifact = repository
                        .status
                        .as_ref()
                        .and_then(|status| status.artifact.as_ref());
                    let artifact = self.artifact(request, artifact)?;
                    if let Some(past) = known(&artifact.revision) {
                        return Ok(request.unchanged(past));
                    }
                    self.in_index(request, &repository, artifact, job)?
                }
            }
            Origin::GitRepository | Origin::Bucket => {
                let artifact = self.source_artifact(request, job)?;
                let artifact = self.artifact(request, artifact.as_ref())?;
                let unchanged =
                    known(&artifact.revision).filter(|past| self.is_seen(request, past, artifact));
                if let Some(past) = unchanged {
                    return Ok(request.unchanged(past));
                }
                self.in_artifact(request, artifact, job)?
            }
        };
        let seen = self.seen.get(&request.namespace, &request.name);
        let chart = request.resolved(found, seen.as_ref())?;
        if let Some(source) = chart.source.clone().filter(|_| request.has_stored(&chart)) {
            self.seen.remember(&request.namespace, &request.name, source);
        }
        Ok(chart)
    }

    /// Returns true if the stored chart was packaged from this artifact, or was found to be up to date in it.
    fn is_seen(&self, request: &ChartRequest, past: &HelmChartStatus, artifact: &Artifact) -> bool {
        let source = Some(ChartArtifact::new(artifact));
        let stored = past.artifact.as_ref().and_then(ChartArtifact::of_stored);
        stored == source || self.seen.get(&request.namespace, &request.name) == source
    }

    pub(super) fn asked<T>(
        &self,
        job: &Job,
        requests: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let purpose = Purpose {
            failed: "failed to get source",
            reason: Reason::SourceUnavailable,
            remedy: "check the API server",
        };
        blocking::request(&self.runtime, job, purpose, requests)
    }

    fn source<K>(&self, request: &ChartRequest, job: &Job) -> Result<K, Fault>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let name = &request.spec.source_ref.name;
        let read = origin::read(&self.client, &request.namespace, name, self.requeue_dependency);
        self.asked(job, read)
    }

    fn source_artifact(&self, request: &ChartRequest, job: &Job) -> Result<Option<Artifact>, Fault> {
        Ok(match spec::origin(&request.spec)? {
            Origin::Bucket => {
                let bucket: Bucket = self.source(request, job)?;
                bucket.status.and_then(|status| status.artifact)
            }
            _ => {
                let repository: GitRepository = self.source(request, job)?;
                repository.status.and_then(|status| status.artifact)
            }
        })
    }

    fn artifact<'a>(
        &self,
        request: &ChartRequest,
        artifact: Option<&'a Artifact>,
    ) -> Result<&'a Artifact, Fault> {
        artifact.ok_or_else(|| self.without_artifact(request))
    }

    fn without_artifact(&self, request: &ChartRequest) -> Fault {
        let source = &request.spec.source_ref;
        origin::without_artifact(&source.kind, &source.name, self.requeue_dependency)
    }

    fn in_index(
        &self,
        request: &ChartRequest,
        repository: &HelmRepository,
        artifact: &Artifact,
        job: &Job,
    ) -> Result<Found, Fault> {
        let lost = || self.without_artifact(request);
        let digest = origin::digest(artifact).ok_or_else(lost)?;
        let opened = open_stored(&self.storage, &artifact.path, &digest);
        let index = opened.map_err(|error| storage(&error))?.ok_or_else(lost)?;
        let asked = self.helm_request(&request.namespace, repository, job)?;
        let client = self.repositories.repository(&asked, job)?;
        let chart = &request.spec.chart;
        let processor = permits::processor(&self.processors, &self.runtime, job)?;
        let entry = client.find_stored(BufReader::new(index), chart, &request.spec.version);
        drop(processor);
        let entry = entry.map_err(|error| failure::unfound(chart, &request.spec.version, &error))?;
        Ok(Found {
            name: chart.clone(),
            version: entry.version.clone(),
            source_revision: Some(artifact.revision.clone()),
            source: None,
            is_directory: false,
            location: ChartLocation::Repository(Box::new(Remote {
                asked,
                found: entry,
                timeout: within(job, repository).timeout,
            })),
        })
    }

    pub(super) fn helm_request(
        &self,
        namespace: &str,
        repository: &HelmRepository,
        job: &Job,
    ) -> Result<HelmRequest, Fault> {
        let read = secrets::read::<HelmRepositories>(&self.client, &self.identities, namespace, repository);
        let secrets = self.asked(job, read)?;
        HelmRepositories::validate(repository)?;
        HelmRepositories::request(repository, &secrets)
    }

    /// Makes the request to a registry, with the Secrets of the HelmRepository and the keys of the chart.
    pub(super) fn registry_request(
        &self,
        namespace: &str,
        repository: &OCIRepository,
        job: &Job,
    ) -> Result<OciRequest, Fault> {
        let read = secrets::read::<OciRepositories>(&self.client, &self.identities, namespace, repository);
        let secrets = self.asked(job, read)?;
        OciRepositories::validate(repository)?;
        OciRepositories::chart_request(repository, &secrets)
    }

    fn in_registry(
        &self,
        request: &ChartRequest,
        repository: &HelmRepository,
        job: &Job,
    ) -> Result<Found, Fault> {
        supported(&repository.spec)?;
        let spec = &request.spec;
        let asked = OCIRepository::new(
            &spec.source_ref.name,
            registry_spec(&repository.spec, &spec.chart),
        );
        let asked = OCIRepository {
            spec: OCIRepositorySpec {
                verify: spec.verify.clone(),
                ..asked.spec
            },
            ..asked
        };
        let job = &within(job, repository);
        let asked = self.registry_request(&request.namespace, &asked, job)?;
        let (tag, version) = self.tag(&asked, &spec.chart, &spec.version, job)?;
        let asked = asked.with_tag(tag);
        let resolved = self.registries.resolve(&asked, job).map_err(failure::pull)?;
        let name = spec.chart.rsplit('/').next().unwrap_or(&spec.chart);
        Ok(Found {
            name: name.to_owned(),
            version,
            source_revision: None,
            source: None,
            is_directory: false,
            location: ChartLocation::Registry(Box::new(Remote {
                asked,
                found: resolved,
                timeout: job.timeout,
            })),
        })
    }

    /// Returns the tag of the newest version in a range, and the version. An exact version needs no list of tags.
    pub(super) fn tag(
        &self,
        asked: &OciRequest,
        chart: &str,
        range: &str,
        job: &Job,
    ) -> Result<(String, String), Fault> {
        if is_exact(range) {
            return Ok((range.replace('+', "_"), range.to_owned()));
        }
        let tags = self.registries.chart_tags(asked, job).map_err(failure::pull)?;
        let newest = oci::newest(oci::versions_of_tags(tags), |version| version, range);
        let missing = || oci::Error::NoVersion {
            chart: chart.to_owned(),
            range: range.to_owned(),
            url: String::new(),
        };
        let found = newest.and_then(|found| found.ok_or_else(missing));
        // Nothing wakes the chart when the registry gets another tag.
        let version = found.map_err(|error| failure::retried(failure::unfound(chart, range, &error)))?;
        Ok((version.replace('+', "_"), version))
    }

    fn in_artifact(&self, request: &ChartRequest, artifact: &Artifact, job: &Job) -> Result<Found, Fault> {
        let filling = Filling {
            runtime: &self.runtime,
            job,
            disk: &self.disk,
            above: &self.scratch,
            beside: None,
            refusal: Refusal {
                failed: UNPACKING,
                reason: Reason::StorageOperationFailed,
                remedy: "leave out files with spec.ignore of the source",
            },
        };
        let unpacked = filling.run(|files| self.unpack(request, artifact, (job, files)))?;
        let (name, version, is_directory) = self.identity(request, unpacked.files.path())?;
        Ok(Found {
            name,
            version,
            source_revision: Some(artifact.revision.clone()),
            source: Some(ChartArtifact::new(artifact)),
            is_directory,
            location: ChartLocation::Directory(Arc::new(unpacked.files)),
        })
    }

    fn unpack(
        &self,
        request: &ChartRequest,
        artifact: &Artifact,
        (job, files): (&Job, &TempFiles),
    ) -> Result<(), Fault> {
        let processor = permits::processor(&self.processors, &self.runtime, job)?;
        let lost = || self.without_artifact(request);
        let digest = origin::digest(artifact).ok_or_else(lost)?;
        let limits = self.unpacking();
        let size = artifact.size.and_then(|size| u64::try_from(size).ok());
        files.expect_unpacked(size.unwrap_or_default(), limits.unpacked_bytes);
        let mut take = |_: &TreePath, bytes| {
            permits::check(job, Some(&processor))?;
            let taken = files.take(bytes);
            taken.map_err(|why| artifact::Error::Refused(why.to_string()))?;
            Ok(true)
        };
        let root = files.path().join(UNPACKED);
        let unpacked = unpack_selected(
            &self.storage,
            &artifact.path,
            &digest,
            &root,
            (&limits, &mut take),
        );
        unpacked.map_err(|error| storage(&error))?.ok_or_else(lost)?;
        Ok(())
    }

    /// Reads name and version of the chart in an unpacked artifact, and returns true if it is a directory.
    fn identity(&self, request: &ChartRequest, dir: &Path) -> Result<(String, String, bool), Fault> {
        let root = dir.join(UNPACKED);
        let invalid = |why: String| failure::build(Reason::InvalidChartReference, &why);
        let tree = Disk::open(&root, &self.limits()).map_err(|error| invalid(error.to_string()))?;
        let path = TreePath::confined(&request.spec.chart);
        let budget = Budget::new(self.limits());
        if tree.is_file(&path) {
            let data = tree.read(&path).map_err(|error| invalid(error.to_string()))?;
            let package = Package::from_archive(&data, path.name(), self.sizes.chart_file, &budget);
            let package = package.map_err(|error| invalid(error.to_string()))?;
            Ok((package.name().to_owned(), package.version().to_owned(), false))
        } else {
            let data = tree.read(&path.child("Chart.yaml"));
            let data = data.map_err(|error| invalid(format!("no chart at path '{path}': {error}")))?;
            let (name, version) = identity(&data, &budget).map_err(|error| invalid(error.to_string()))?;
            Ok((name, version, true))
        }
    }

    pub(super) fn verify_chart(
        &self,
        chart: &ResolvedChart,
        job: &Job,
    ) -> Result<Option<Verification>, Fault> {
        let failed = |fault| failure::reworded(Reason::ChartVerificationError, "", fault);
        let ChartLocation::Registry(location) = &chart.location else {
            let why = "only charts of a HelmRepository of the type oci can be verified";
            return Err(failure::build(Reason::ChartVerificationError, why));
        };
        let job = &location.within(job);
        let verified = self.registries.verify(&location.asked, &location.found, job);
        let verified = verified.map_err(failed)?;
        Ok(verified.map(|verified| Verification {
            message: verified
                .message
                .map(|_| format!("verified signature of version {}", chart.version)),
            ..verified
        }))
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            file_bytes: self.sizes.chart.max(self.sizes.chart_file),
            ..Limits::default()
        }
    }

    fn unpacking(&self) -> FetchLimits {
        FetchLimits {
            skip_links: true,
            ..FetchLimits::default()
        }
    }
}

impl ChartRequest {
    fn unchanged(&self, past: &HelmChartStatus) -> ResolvedChart {
        let stored = conditions::get(&past.conditions, types::READY);
        let packaged = stored.is_some_and(|ready| ready.reason == Reason::ChartPackageSucceeded.as_str());
        ResolvedChart {
            name: past.observed_chart_name.clone().unwrap_or_default(),
            version: past
                .artifact
                .as_ref()
                .map(|artifact| artifact.revision.clone())
                .unwrap_or_default(),
            source_revision: past.observed_source_artifact_revision.clone(),
            source: past.artifact.as_ref().and_then(ChartArtifact::of_stored),
            packaged,
            values_files: self.merged_files(),
            ignores_missing: self.spec.ignore_missing_values_files,
            location: ChartLocation::Unknown,
        }
    }

    /// Returns the merged files of values of the stored chart, or the ones in the spec.
    fn merged_files(&self) -> Vec<String> {
        // They are observed if some may be missing; none, if all were.
        let observed = self.succeeded().map(|past| &past.observed_values_files);
        match observed.filter(|_| self.spec.ignore_missing_values_files) {
            Some(files) => files.clone(),
            None => self.spec.merged_files().into_iter().map(str::to_owned).collect(),
        }
    }

    fn resolved(&self, found: Found, seen: Option<&ChartArtifact>) -> Result<ResolvedChart, Fault> {
        let revision = found.source_revision.as_deref();
        let is_repository = spec::origin(&self.spec)? == Origin::HelmRepository;
        let stored = self.past.as_ref().and_then(|past| past.artifact.as_ref());
        let source = found.source.as_ref();
        let digest = source.and_then(|source| source.digest_part(stored, seen));
        let revision = (revision.filter(|_| !is_repository), digest.as_deref());
        let build = build_metadata(&self.spec, revision, self.generation);
        let version = match &build {
            None => found.version,
            Some(build) => with_build(&found.version, build)
                .map_err(|error| failure::build(Reason::MetadataPatchError, &error.to_string()))?,
        };
        Ok(ResolvedChart {
            name: found.name,
            version,
            packaged: found.is_directory || build.is_some(),
            source_revision: found.source_revision,
            source: found.source,
            values_files: self.merged_files(),
            ignores_missing: self.spec.ignore_missing_values_files,
            location: found.location,
        })
    }
}

/// Returns a job with the timeout of a HelmRepository, a minute by default and five minutes at most.
pub(super) fn within(job: &Job, repository: &HelmRepository) -> Job {
    Job {
        timeout: timeout(repository.spec.timeout).min(LONGEST),
        ..job.clone()
    }
}

/// Returns true for a version, false for a range. `1.2` is a range.
fn is_exact(range: &str) -> bool {
    let core = range.split(['-', '+']).next().unwrap_or_default();
    versions::Version::parse(range).is_ok() && core.split('.').count() == 3
}

fn storage(error: &artifact::Error) -> Fault {
    let message = format!("{UNPACKING}: {error}");
    Fault::retry(Reason::StorageOperationFailed, message)
}
