//! Downloads charts from Helm repositories and OCI registries.

use std::collections::HashMap;

use anyhow::{Result, anyhow};
use engine::ServerKind;
use net::AddressPolicy;
use oci::{Archive, ChartSource, Client, Limits};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::RemoteFetcher;
use crate::logins::AccessFlags;

const CONCURRENCY: usize = 8;

/// Formats an error of a Helm repository or a registry, with a remedy for users of a command with these flags.
pub(crate) fn explained(address: &str, error: &oci::Error, flags: AccessFlags) -> String {
    let server = match address.starts_with("oci://") {
        true => ServerKind::Registry,
        false => ServerKind::Helm,
    };
    flags.explain(error.to_string(), server, error.need())
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ChartVersion {
    /// URL of the Helm repository or OCI registry.
    pub(crate) address: String,
    /// Name of the chart; empty if it is part of the registry URL.
    pub(crate) chart: String,
    pub(crate) credentials_id: Option<String>,
    /// Version, or version range for the newest version in it.
    pub(crate) version: String,
}

/// Downloads charts. Each repository index is read once, and charts of [`ChartDownloader::pull`] are downloaded once.
pub(crate) struct ChartDownloader<'f> {
    pub(crate) fetcher: &'f RemoteFetcher,
    repositories: Mutex<HashMap<(String, Option<String>), oci::Charts>>,
    archives: Mutex<HashMap<ChartVersion, Archive>>,
}

impl<'f> ChartDownloader<'f> {
    pub(crate) fn new(fetcher: &'f RemoteFetcher) -> Self {
        Self {
            fetcher,
            repositories: Mutex::default(),
            archives: Mutex::default(),
        }
    }

    fn source(&self, address: &str, chart: &str, credentials_id: Option<&str>) -> Result<ChartSource> {
        let key = (address.to_owned(), credentials_id.map(str::to_owned));
        let mut repositories = self.repositories.lock();
        if let Some(repository) = repositories.get(&key) {
            return Ok(repository.chart(chart)?);
        }
        let access = self.fetcher.logins.helm_access(address, credentials_id)?;
        let client = Client::new(access, Limits::default(), AddressPolicy::command_line())?;
        let repository = oci::Charts::at(&client, address)?.keeping_index();
        let source = repository.chart(chart)?;
        repositories.insert(key, repository);
        Ok(source)
    }

    fn source_of(&self, wanted: &ChartVersion) -> Result<ChartSource> {
        self.source(&wanted.address, &wanted.chart, wanted.credentials_id.as_deref())
    }

    pub(crate) fn pull(&self, wanted: &ChartVersion) -> Result<Archive> {
        let mut archives = self.archives.lock();
        if let Some(archive) = archives.get(wanted) {
            return Ok(archive.clone());
        }
        let source = self.source_of(wanted)?;
        let pulled = self.wait(source.pull(&wanted.version))?;
        let archive = pulled.map_err(|error| self.explain(&wanted.address, &error))?;
        archives.insert(wanted.clone(), archive.clone());
        Ok(archive)
    }

    /// Downloads several charts concurrently, and calls `done` with the index and result of each.
    pub(crate) fn pull_all(
        &self,
        all: &[ChartVersion],
        mut done: impl FnMut(usize, Result<Archive>) -> Result<()>,
    ) -> Result<()> {
        for (begin, some) in all.chunks(CONCURRENCY).enumerate() {
            let mut sources = Vec::new();
            for (at, wanted) in some.iter().enumerate() {
                match self.source_of(wanted) {
                    Ok(source) => sources.push((at, source, wanted.version.clone())),
                    Err(error) => done(begin * CONCURRENCY + at, Err(error))?,
                }
            }
            let pulling = async {
                let mut tasks = JoinSet::new();
                for (at, source, version) in sources {
                    tasks.spawn(async move { (at, source.pull(&version).await) });
                }
                tasks.join_all().await
            };
            for (at, archive) in self.wait(pulling)? {
                let address = some.get(at).map_or("", |wanted| &wanted.address);
                let archive = archive.map_err(|error| self.explain(address, &error));
                done(begin * CONCURRENCY + at, archive)?;
            }
        }
        Ok(())
    }

    /// Returns all versions of a chart, newest first.
    pub(crate) fn versions(
        &self,
        address: &str,
        chart: &str,
        credentials_id: Option<&str>,
    ) -> Result<Vec<String>> {
        let source = self.source(address, chart, credentials_id)?;
        let versions = self.wait(source.versions())?;
        versions.map_err(|error| self.explain(address, &error))
    }

    fn explain(&self, address: &str, error: &oci::Error) -> anyhow::Error {
        anyhow!(explained(address, error, self.fetcher.logins.flags))
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        Ok(self.fetcher.wait(work)?)
    }
}
