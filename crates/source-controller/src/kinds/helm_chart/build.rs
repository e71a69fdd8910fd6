//! Downloading and packaging a chart.

use std::{
    io::{BufWriter, Write as _},
    path::Path,
};

use api::{Fault, Reason};
use bytes::Bytes;
use helm::chart::Package;
use tree::{Budget, Disk, Tree as _, TreePath};

use super::{
    ChartRequest, FetchedChart, HelmCharts, ResolvedChart, disk, failure,
    lookup::{ChartLocation, UNPACKED},
};
use crate::{
    blocking::{self, Job, Purpose},
    builder::PACK_TIMEOUT,
    kinds::helm_repository::HelmRequest,
    temp_files::{Filled, Filling, Refusal, TempFiles},
};

const DOWNLOADING: &str = "failed to download chart for remote reference";
const ARCHIVE: &str = "chart.tgz";
const VALUES: &str = "values.yaml";

struct Source {
    package: Package,
    archive: Option<Bytes>,
}

impl HelmCharts {
    /// Downloads the chart, and writes the archive to store into a file below `scratch`.
    pub(super) fn build(
        &self,
        request: &ChartRequest,
        chart: &ResolvedChart,
        job: &Job,
        scratch: &Path,
    ) -> Result<Filled<FetchedChart>, Fault> {
        let renewed;
        let chart = match chart.location {
            // The stored one is lost.
            ChartLocation::Unknown => {
                renewed = self.lookup_again(request, job)?;
                &renewed
            }
            _ => chart,
        };
        let filling = Filling {
            runtime: &self.runtime,
            job,
            disk: &self.disk,
            above: scratch,
            beside: match &chart.location {
                ChartLocation::Directory(source) => Some(source),
                _ => None,
            },
            refusal: Refusal {
                failed: "chart package error: failed to write the archive",
                reason: Reason::ChartPackageError,
                remedy: "make the chart, or the artifact of its source, smaller",
            },
        };
        filling.run(|files| self.write(request, chart, job, files))
    }

    fn write(
        &self,
        request: &ChartRequest,
        chart: &ResolvedChart,
        job: &Job,
        files: &TempFiles,
    ) -> Result<FetchedChart, Fault> {
        let budget = Budget::new(self.limits())
            .with_timeout(PACK_TIMEOUT)
            .with_cancellation(job.cancelled.clone());
        let budget = limits::from_process_memory(budget, &job.namespace);
        let Source { mut package, archive } = self.load(request, chart, job, &budget)?;
        let path = files.path().join(ARCHIVE);
        let is_directory = archive.is_none();
        if let Some(archive) = archive.filter(|_| !chart.packaged) {
            let written = files.create(ARCHIVE).and_then(|mut out| out.write_all(&archive));
            written.map_err(|error| disk(&error))?;
            return Ok(FetchedChart {
                archive: path,
                source: chart.source.clone(),
                values_files: Vec::new(),
                dependencies: 0,
            });
        }
        let packaging =
            |error: &dyn std::fmt::Display| failure::build(Reason::ChartPackageError, &error.to_string());
        let values_files = self.merge_values(request, chart, &mut package, &budget)?;
        let dependencies = match &chart.location {
            // An archive has the dependencies that it was packaged with, as in the original.
            ChartLocation::Directory(source) if is_directory => {
                self.add_missing(request, &mut package, source.path(), job, &budget)?
            }
            _ => 0,
        };
        package
            .set_version(&chart.version, &budget)
            .map_err(|error| packaging(&error))?;
        let file = files.create(ARCHIVE).map_err(|error| disk(&error))?;
        let mut out = BufWriter::new(file);
        let written = package.write(&mut out).and_then(|()| out.flush());
        written.map_err(|error| packaging(&error))?;
        Ok(FetchedChart {
            archive: path,
            source: chart.source.clone(),
            values_files,
            dependencies,
        })
    }

    fn load(
        &self,
        request: &ChartRequest,
        chart: &ResolvedChart,
        job: &Job,
        budget: &Budget,
    ) -> Result<Source, Fault> {
        let archive = match &chart.location {
            ChartLocation::Unknown => return Err(failure::build(Reason::ChartPullError, DOWNLOADING)),
            ChartLocation::Repository(location) => {
                self.download(&location.asked, &location.found, &location.within(job))?
            }
            ChartLocation::Registry(location) => {
                let job = &location.within(job);
                let pulled = self.registries.chart(&location.asked, &location.found, job);
                let prefix = format!("{DOWNLOADING}: ");
                pulled.map_err(|fault| failure::reworded(Reason::ChartPullError, &prefix, fault))?
            }
            ChartLocation::Directory(dir) => return self.load_local(request, dir.path(), budget),
        };
        let name = archive.url().rsplit('/').next().unwrap_or_default();
        let package = Package::from_archive(archive.bytes(), name, self.sizes.chart_file, budget);
        let package = package.map_err(|error| match chart.packaged {
            true => failure::build(
                Reason::ChartPackageError,
                &format!("failed to load downloaded chart: {error}"),
            ),
            false => failure::build(
                Reason::ChartPullError,
                &format!("failed to load chart metadata from written chart: {error}"),
            ),
        })?;
        Ok(Source {
            package,
            archive: Some(archive.bytes().clone()),
        })
    }

    pub(super) fn download(
        &self,
        request: &HelmRequest,
        entry: &oci::Entry,
        job: &Job,
    ) -> Result<oci::Archive, Fault> {
        let client = self.repositories.repository(request, job)?;
        let purpose = Purpose {
            failed: "chart pull error: failed to download chart for remote reference",
            reason: Reason::ChartPullError,
            remedy: "raise spec.timeout of the HelmRepository or check the server",
        };
        blocking::request(&self.runtime, job, purpose, async {
            client.fetch(entry).await.map_err(|error| {
                let size = match &error {
                    oci::Error::TooLarge { .. } => {
                        ": the flag --helm-chart-max-size of the controller sets the limit"
                    }
                    _ => "",
                };
                failure::build(Reason::ChartPullError, &format!("{DOWNLOADING}: {error}{size}"))
            })
        })
    }

    fn load_local(&self, request: &ChartRequest, dir: &Path, budget: &Budget) -> Result<Source, Fault> {
        let failed =
            |error: &dyn std::fmt::Display| failure::build(Reason::ChartPackageError, &error.to_string());
        let tree = self.artifact_tree(dir)?;
        let path = TreePath::confined(&request.spec.chart);
        if !tree.is_file(&path) {
            let package = Package::from_directory(&tree, &path, self.sizes.chart_file, budget);
            return Ok(Source {
                package: package.map_err(|error| failed(&error))?,
                archive: None,
            });
        }
        let data = tree.read(&path).map_err(|error| failed(&error))?;
        if data.len() as u64 > self.sizes.chart {
            let words = format!(
                "size of chart '{path}' exceeds '{}' bytes limit",
                self.sizes.chart
            );
            return Err(failed(&words));
        }
        let package = Package::from_archive(&data, path.name(), self.sizes.chart_file, budget);
        Ok(Source {
            package: package.map_err(|error| failed(&error))?,
            archive: Some(data),
        })
    }

    pub(super) fn artifact_tree(&self, dir: &Path) -> Result<Disk, Fault> {
        let opened = Disk::open(dir.join(UNPACKED), &self.limits());
        opened.map_err(|error| failure::build(Reason::ChartPackageError, &error.to_string()))
    }

    fn merge_values(
        &self,
        request: &ChartRequest,
        chart: &ResolvedChart,
        package: &mut Package,
        budget: &Budget,
    ) -> Result<Vec<String>, Fault> {
        let names = request.spec.merged_files();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |why: &str| failure::build(Reason::ValuesFilesError, why);
        let mut files = Vec::new();
        for name in names {
            let read = match &chart.location {
                ChartLocation::Directory(dir) => self.local_values(dir.path(), name)?,
                _ => chart_values(package, name),
            };
            match read {
                Some(data) => files.push((name.to_owned(), data)),
                None if request.spec.ignore_missing_values_files => {}
                None => return Err(failed(&missing_values(&chart.location, name))),
            }
        }
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let merged: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
        package
            .merge_values(files, budget)
            .map_err(|error| failed(&error.to_string()))?;
        Ok(merged)
    }

    /// Reads a file of values of an artifact; `None` if it is missing.
    fn local_values(&self, dir: &Path, name: &str) -> Result<Option<Bytes>, Fault> {
        let tree = self.artifact_tree(dir)?;
        let path = TreePath::confined(name);
        if !tree.is_file(&path) {
            return Ok(None);
        }
        let read = tree.read(&path).map_err(|error| {
            let why = format!("could not read values from file '{name}': {error}");
            failure::build(Reason::ValuesFilesError, &why)
        });
        read.map(Some)
    }
}

/// Returns a file of values of a chart; the values of the chart are empty if it has none.
fn chart_values(package: &Package, name: &str) -> Option<Bytes> {
    let path = TreePath::confined(name);
    let found = package.file(path.as_str()).cloned();
    match path.as_str() {
        VALUES => Some(found.unwrap_or_default()),
        _ => found,
    }
}

fn missing_values(location: &ChartLocation, name: &str) -> String {
    match location {
        ChartLocation::Directory(_) => format!("no values file found at path '{name}'"),
        _ => format!("failed to merge chart values: no values file found at path '{name}'"),
    }
}
