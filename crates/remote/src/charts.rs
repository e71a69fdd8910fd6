//! Downloads charts from Helm repositories and OCI registries.

use std::collections::HashMap;

use oci::{Archive, ChartSource};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::{Error, RemoteFetcher};

const CONCURRENCY: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChartVersion {
    pub address: String,
    /// Name of the chart; empty if it is part of the registry URL.
    pub chart: String,
    pub credentials_id: Option<String>,
    /// Version, or version range for the newest version in it.
    pub version: String,
}

/// Downloads charts. Each repository index is read once, and charts of [`ChartDownloader::pull`] are downloaded once.
pub struct ChartDownloader<'f> {
    fetcher: &'f RemoteFetcher,
    repositories: Mutex<HashMap<(String, Option<String>), oci::Charts>>,
    archives: Mutex<HashMap<ChartVersion, Archive>>,
}

impl<'f> ChartDownloader<'f> {
    #[must_use]
    pub fn new(fetcher: &'f RemoteFetcher) -> Self {
        Self {
            fetcher,
            repositories: Mutex::default(),
            archives: Mutex::default(),
        }
    }

    #[must_use]
    pub fn fetcher(&self) -> &'f RemoteFetcher {
        self.fetcher
    }

    fn source(&self, address: &str, chart: &str, credentials_id: Option<&str>) -> Result<ChartSource, Error> {
        let failed = |error: oci::Error| Error::Oci(error.to_string());
        let key = (address.to_owned(), credentials_id.map(str::to_owned));
        let mut repositories = self.repositories.lock();
        if let Some(repository) = repositories.get(&key) {
            return repository.chart(chart).map_err(failed);
        }
        let servers = self.fetcher.servers();
        let access = servers.oci_access(address, credentials_id)?;
        let client = servers.oci_client(access).map_err(failed)?;
        let repository = oci::Charts::at(&client, address).map_err(failed)?.caching_index();
        let source = repository.chart(chart).map_err(failed)?;
        repositories.insert(key, repository);
        Ok(source)
    }

    fn source_of(&self, wanted: &ChartVersion) -> Result<ChartSource, Error> {
        self.source(&wanted.address, &wanted.chart, wanted.credentials_id.as_deref())
    }

    pub fn pull(&self, wanted: &ChartVersion) -> Result<Archive, Error> {
        let mut archives = self.archives.lock();
        if let Some(archive) = archives.get(wanted) {
            return Ok(archive.clone());
        }
        let source = self.source_of(wanted)?;
        let pulled = self.fetcher.wait(source.pull(&wanted.version))?;
        let archive = pulled.map_err(|error| self.explain(&wanted.address, &error))?;
        archives.insert(wanted.clone(), archive.clone());
        Ok(archive)
    }

    /// Downloads several charts concurrently, and calls `done` with the index and result of each.
    pub fn pull_all<E: From<Error>>(
        &self,
        all: &[ChartVersion],
        mut done: impl FnMut(usize, Result<Archive, Error>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (chunk, some) in all.chunks(CONCURRENCY).enumerate() {
            let mut sources = Vec::new();
            for (at, wanted) in some.iter().enumerate() {
                match self.source_of(wanted) {
                    Ok(source) => sources.push((at, source, wanted.version.clone())),
                    Err(error) => done(chunk * CONCURRENCY + at, Err(error))?,
                }
            }
            let pulling = async {
                let mut tasks = JoinSet::new();
                for (at, source, version) in sources {
                    tasks.spawn(async move { (at, source.pull(&version).await) });
                }
                tasks.join_all().await
            };
            for (at, archive) in self.fetcher.wait(pulling)? {
                let address = some.get(at).map_or("", |wanted| &wanted.address);
                let archive = archive.map_err(|error| self.explain(address, &error));
                done(chunk * CONCURRENCY + at, archive)?;
            }
        }
        Ok(())
    }

    /// Returns all versions of a chart, newest first.
    pub fn versions(
        &self,
        address: &str,
        chart: &str,
        credentials_id: Option<&str>,
    ) -> Result<Vec<String>, Error> {
        let source = self.source(address, chart, credentials_id)?;
        let versions = self.fetcher.wait(source.versions())?;
        versions.map_err(|error| self.explain(address, &error))
    }

    fn explain(&self, address: &str, error: &oci::Error) -> Error {
        Error::Oci(self.fetcher.servers().explain_oci(address, error))
    }
}
