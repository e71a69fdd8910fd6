//! The dependencies of a chart: out of the same artifact, or of Helm repositories.

use std::path::Path;

use api::{
    Fault, Reason,
    source::{HelmRepository, OCIRepository},
};
use helm::chart::{Package, Required};
use oci::{Access, Archive, Client, Limits, Repository};
use source_specs::helm_repository::registry_spec;
use tree::{Budget, Tree as _, TreePath};
use versions::{Constraint, Version};

use super::{
    ChartRequest, HelmCharts, failure, lookup,
    origin::{self, KnownRepositories},
};
use crate::{
    blocking::{self, Job, Purpose},
    source_kind::Resolve as _,
};

const MAX_MISSING: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Location {
    Artifact,
    /// A repository of the configuration of a user, which a controller doesn't have.
    Alias,
    Remote,
}

fn location(required: &Required) -> Location {
    match required.repository.as_str() {
        local if local.is_empty() || local.starts_with("file://") => Location::Artifact,
        alias if alias.starts_with('@') || alias.starts_with("alias:") => Location::Alias,
        _ => Location::Remote,
    }
}

impl HelmCharts {
    /// Adds the charts that `charts` lacks, and returns their number.
    pub(super) fn add_missing(
        &self,
        request: &ChartRequest,
        package: &mut Package,
        dir: &Path,
        job: &Job,
        budget: &Budget,
    ) -> Result<usize, Fault> {
        let missing: Vec<Required> = package.missing().into_iter().cloned().collect();
        if missing.len() > MAX_MISSING {
            let why = format!(
                "{} charts are missing, at most {MAX_MISSING} are fetched",
                missing.len()
            );
            return Err(failure::build(Reason::DependencyBuildError, &why));
        }
        let failed = |required: &Required, why: &str| {
            let why = format!(
                "failed to add chart dependency '{}': {why}",
                required.alias_or_name()
            );
            failure::build(Reason::DependencyBuildError, &why)
        };
        // Listed once for all, and only if a chart comes from a repository.
        let mut known = None;
        for required in &missing {
            let found = match location(required) {
                Location::Artifact => self.local(request, required, dir, budget),
                Location::Alias => Err("aliased repository dependency is not supported".to_owned()),
                Location::Remote => {
                    if known.is_none() {
                        let listed = self.repositories_of(request, &missing, job);
                        known = Some(listed.map_err(|why| failed(required, &why))?);
                    }
                    let repository = known.as_ref().and_then(|known| known.get(&required.repository));
                    self.remote(request, required, repository, job, budget)
                }
            };
            let found = found.map_err(|why| failed(required, &why))?;
            package.add(&found);
        }
        Ok(missing.len())
    }

    fn local(
        &self,
        request: &ChartRequest,
        required: &Required,
        dir: &Path,
        budget: &Budget,
    ) -> Result<Package, String> {
        let relative = required.repository.strip_prefix("file://").unwrap_or_default();
        let base = TreePath::confined(&request.spec.chart);
        let path = TreePath::confined(&format!("{base}/{relative}"));
        let tree = self.artifact_tree(dir).map_err(|fault| fault.message)?;
        let shown = &required.repository;
        if !tree.is_file(&path) && !tree.is_file(&path.child("Chart.yaml")) {
            return Err(format!("no chart found at '{path}' (reference '{shown}')"));
        }
        let package = match tree.is_file(&path) {
            true => tree
                .read(&path)
                .map_err(|error| error.to_string())
                .and_then(|data| {
                    let package = Package::from_archive(&data, path.name(), self.sizes.chart_file, budget);
                    package.map_err(|error| error.to_string())
                }),
            false => Package::from_directory(&tree, &path, self.sizes.chart_file, budget)
                .map_err(|error| error.to_string()),
        };
        let package = package
            .map_err(|error| format!("failed to load chart from '{path}' (reference '{shown}'): {error}"))?;
        let range = &required.version;
        let constraint = Constraint::parse(range)
            .map_err(|error| format!("invalid version/constraint format '{range}': {error}"))?;
        match Version::parse(package.version()) {
            Ok(version) if constraint.matches(&version) => Ok(package),
            _ => Err(format!("can't get a valid version for constraint '{range}'")),
        }
    }

    fn repositories_of(
        &self,
        request: &ChartRequest,
        missing: &[Required],
        job: &Job,
    ) -> Result<KnownRepositories, String> {
        let remote = missing
            .iter()
            .filter(|required| location(required) == Location::Remote);
        let urls: Vec<&str> = remote.map(|required| required.repository.as_str()).collect();
        let listed = async {
            let found = origin::repositories_of(&self.client, &request.namespace, &urls).await;
            found.map_err(|why| Fault::retry(Reason::DependencyBuildError, why))
        };
        self.asked(job, listed).map_err(|fault| fault.message)
    }

    /// Downloads a chart, with the credentials of the HelmRepository of the namespace that has the same URL, if there is one.
    fn remote(
        &self,
        request: &ChartRequest,
        required: &Required,
        known: Option<&HelmRepository>,
        job: &Job,
        budget: &Budget,
    ) -> Result<Package, String> {
        let url = &required.repository;
        let archive = match (known, url.starts_with("oci://")) {
            (Some(repository), false) => {
                let asked = self.helm_request(&request.namespace, repository, job);
                let client = asked.and_then(|asked| self.repositories.repository(&asked, job));
                self.newest(&client.map_err(|fault| fault.message)?, required, job)
            }
            (None, false) => self.newest(&self.anonymous(url, job)?, required, job),
            (known, true) => self.of_registry(request, known, required, job),
        }?;
        let name = archive.url().rsplit('/').next().unwrap_or_default();
        let package = Package::from_archive(archive.bytes(), name, self.sizes.chart_file, budget);
        package.map_err(|error| {
            let version = &required.version;
            format!("failed to load downloaded archive of version '{version}': {error}")
        })
    }

    fn anonymous(&self, url: &str, job: &Job) -> Result<Repository, String> {
        let limits = Limits {
            timeout: job.timeout,
            index_bytes: self.sizes.index,
            archive_bytes: self.sizes.chart,
            ..Limits::default()
        };
        let client = Client::new(Access::default(), limits, self.addresses.clone());
        let repository = client.and_then(|client| Repository::new(&client, url));
        repository.map_err(|error| error.to_string())
    }

    fn newest(&self, client: &Repository, required: &Required, job: &Job) -> Result<Archive, String> {
        let (name, range, url) = (&required.name, &required.version, &required.repository);
        let purpose = Purpose {
            failed: "the repository doesn't answer",
            reason: Reason::DependencyBuildError,
            remedy: "check the server",
        };
        let fetched = async {
            let failed = |error: oci::Error| {
                let why = format!("failed to get chart '{name}' version '{range}' from '{url}': {error}");
                Fault::retry(Reason::DependencyBuildError, why)
            };
            let entries = client.entries(name).await.map_err(failed)?;
            let entry = oci::newest_created(entries, range).map_err(failed)?;
            let entry = entry.ok_or_else(|| {
                let why = format!("no '{name}' chart with version matching '{range}' found");
                Fault::retry(Reason::DependencyBuildError, why)
            })?;
            client.fetch(&entry).await.map_err(|error| {
                let why = format!("chart download of version '{}' failed: {error}", entry.version);
                Fault::retry(Reason::DependencyBuildError, why)
            })
        };
        blocking::request(&self.runtime, job, purpose, fetched).map_err(|fault| fault.message)
    }

    fn of_registry(
        &self,
        request: &ChartRequest,
        known: Option<&HelmRepository>,
        required: &Required,
        job: &Job,
    ) -> Result<Archive, String> {
        let repository = known.cloned().unwrap_or_else(|| {
            let spec = api::source::HelmRepositorySpec {
                url: required.repository.as_str().into(),
                ..api::source::HelmRepositorySpec::default()
            };
            HelmRepository::new("", spec)
        });
        let spec = registry_spec(&repository.spec, &required.name);
        let job = &lookup::within(job, &repository);
        let found = (|| {
            let asked = OCIRepository::new("", spec);
            let asked = self.registry_request(&request.namespace, &asked, job)?;
            let (tag, _) = self.tag(&asked, &required.name, &required.version, job)?;
            let asked = asked.with_tag(tag);
            let resolved = self.registries.resolve(&asked, job)?;
            self.registries.chart(&asked, &resolved, job)
        })();
        found.map_err(|fault: Fault| fault.message)
    }
}
