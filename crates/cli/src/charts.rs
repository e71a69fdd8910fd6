//! Gets charts that are not on this machine: from Helm repositories, registries and Git repositories.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use anyhow::{Result, anyhow};
use oci::{Archive, Client, Limits, Source};
use tokio::task::JoinSet;

use crate::fetch::Fetcher;

/// How many charts are pulled at once.
const AT_ONCE: usize = 8;

/// One version of a chart, or the newest in a range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    /// The repository, or the registry.
    pub(crate) address: String,
    /// The name; empty when the address of a registry holds it.
    pub(crate) chart: String,
    /// The version, or a range.
    pub(crate) version: String,
}

/// The way to charts. What was pulled by itself is pulled once in a run, and each index is read once.
pub(crate) struct Charts<'f> {
    pub(crate) fetcher: &'f Fetcher,
    places: Mutex<HashMap<String, oci::Charts>>,
    pulled: Mutex<HashMap<Wanted, Archive>>,
}

impl<'f> Charts<'f> {
    /// Asks nobody yet.
    pub(crate) fn new(fetcher: &'f Fetcher) -> Self {
        Self {
            fetcher,
            places: Mutex::default(),
            pulled: Mutex::default(),
        }
    }

    fn source(&self, address: &str, chart: &str) -> Result<Source> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(address) {
            return Ok(place.chart(chart)?);
        }
        let client = Client::new(self.fetcher.logins.access(address)?, Limits::default())?;
        let place = oci::Charts::at(&client, address)?.keeping_index();
        let source = place.chart(chart)?;
        places.insert(address.to_owned(), place);
        Ok(source)
    }

    /// One version of a chart.
    pub(crate) fn pull(&self, wanted: &Wanted) -> Result<Archive> {
        let mut pulled = self.pulled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(archive) = pulled.get(wanted) {
            return Ok(archive.clone());
        }
        let source = self.source(&wanted.address, &wanted.chart)?;
        let archive = self.wait(source.pull(&wanted.version))??;
        pulled.insert(wanted.clone(), archive.clone());
        Ok(archive)
    }

    /// Many charts, some of them at the same time; `done` gets each as it comes, or why it didn't.
    pub(crate) fn pull_all(
        &self,
        all: &[Wanted],
        mut done: impl FnMut(usize, Result<Archive>) -> Result<()>,
    ) -> Result<()> {
        for (begin, some) in all.chunks(AT_ONCE).enumerate() {
            let mut sources = Vec::new();
            for (at, wanted) in some.iter().enumerate() {
                match self.source(&wanted.address, &wanted.chart) {
                    Ok(source) => sources.push((at, source, wanted.version.clone())),
                    Err(error) => done(begin * AT_ONCE + at, Err(error))?,
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
                done(begin * AT_ONCE + at, archive.map_err(Into::into))?;
            }
        }
        Ok(())
    }

    /// All versions of a chart, the newest first.
    pub(crate) fn versions(&self, address: &str, chart: &str) -> Result<Vec<String>> {
        let source = self.source(address, chart)?;
        Ok(self.wait(source.versions())??)
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        self.fetcher.wait(work).map_err(|why| anyhow!(why))
    }
}
