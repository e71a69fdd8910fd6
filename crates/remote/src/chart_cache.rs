//! Caches pulled charts.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use limits::TenantCache;
use oci::{Access, Archive, ChartSource};
use parking_lot::Mutex;

use crate::{ChartVersion, Error, ServerAccess};

/// Time after which a cached chart is pulled again: one day, as in kluctl.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum total size of cached charts, in bytes.
const MAX_CACHED_BYTES: usize = 64 << 20;
/// Size that small charts count for, so that there are at most 2000.
const MIN_BYTES: usize = MAX_CACHED_BYTES.div_ceil(2000);

/// Identifies a cached chart. The credentials are a part of it, so that other credentials do not give access to the
/// cached chart, and each use is announced to the server, which may demand others meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChartKey {
    chart: ChartVersion,
    access: Access,
}

impl ChartKey {
    /// Reads the credentials, which may block.
    pub fn new(servers: &ServerAccess, chart: ChartVersion) -> Result<Self, Error> {
        let access = servers.oci_access(&chart.address, chart.credentials_id.as_deref())?;
        Ok(Self {
            chart: ChartVersion {
                credentials_id: None,
                ..chart
            },
            access,
        })
    }

    #[must_use]
    pub fn address(&self) -> &str {
        &self.chart.address
    }

    fn source(&self, servers: &ServerAccess) -> Result<ChartSource, oci::Error> {
        let client = servers.oci_client(self.access.clone())?;
        ChartSource::new(&client, &self.chart.address, &self.chart.chart)
    }

    async fn check(&self, servers: &ServerAccess) -> Result<(), oci::Error> {
        self.source(servers)?.check(&self.chart.version).await
    }
}

/// A chart, and the time when it was pulled.
type CachedChart = (Archive, Instant);

/// Cache of pulled chart archives, which the tenants of a process share: for one day, at most 64 MiB. Clones share it.
#[derive(Debug, Clone)]
pub struct ChartCache(Arc<Mutex<TenantCache<ChartKey, CachedChart>>>);

impl Default for ChartCache {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(TenantCache::new(MAX_CACHED_BYTES))))
    }
}

impl ChartCache {
    /// Returns a cached chart that the server still gives to these credentials, or that it can't be asked about.
    pub async fn find(&self, servers: &ServerAccess, key: &ChartKey) -> Option<Archive> {
        let archive = self.get(key, Instant::now())?;
        match key.check(servers).await {
            Ok(()) | Err(oci::Error::Network { .. } | oci::Error::Status { .. }) => Some(archive),
            Err(_) => None,
        }
    }

    pub async fn pull(&self, servers: &ServerAccess, key: &ChartKey) -> Result<Archive, oci::Error> {
        let archive = key.source(servers)?.pull(&key.chart.version).await?;
        self.insert(&servers.tenant, key, &archive, Instant::now());
        Ok(archive)
    }

    fn get(&self, key: &ChartKey, now: Instant) -> Option<Archive> {
        let mut charts = self.0.lock();
        charts.retain(|_, (_, since)| now.saturating_duration_since(*since) < MAX_AGE);
        charts.get(key).map(|(archive, _)| archive.clone())
    }

    fn insert(&self, tenant: &str, key: &ChartKey, archive: &Archive, now: Instant) {
        let chart = (archive.clone(), now);
        let size = size(key, archive).max(MIN_BYTES);
        self.0.lock().insert(tenant, key.clone(), chart, size);
    }
}

/// Returns the size of a chart in memory, in bytes: of the archive, and of the key with its certificates, which the cache has twice.
fn size(key: &ChartKey, archive: &Archive) -> usize {
    let ChartKey { chart, access } = key;
    let strings = chart.address.len() + chart.chart.len() + chart.version.len();
    let identity = access.identity.as_ref();
    let identity = identity.map_or(0, |identity| {
        identity.certificate.len() + identity.key.expose().len()
    });
    archive.bytes().len() + 2 * (strings + access.ca.as_ref().map_or(0, Vec::len) + identity)
}

#[cfg(test)]
mod tests {
    use testkit::{Page, WebServer, archive::tar_gz};

    use super::*;

    #[tokio::test]
    async fn charts_are_cached_for_their_credentials_and_a_day() {
        let server = WebServer::start().unwrap();
        let metadata = b"apiVersion: v2\nname: a\nversion: 1.0.0\n";
        let archive = tar_gz(&[("a/Chart.yaml", metadata)]);
        server.page("/a.tgz", Page::Content(archive.into()));
        let index = "entries:\n  a:\n  - {name: a, version: 1.0.0, urls: [a.tgz]}\n";
        server.page("/index.yaml", Page::Content(index.into()));
        let (cache, servers) = (ChartCache::default(), ServerAccess::default());
        let chart = ChartVersion {
            address: server.url(""),
            chart: "a".to_owned(),
            credentials_id: Some("unknown".to_owned()),
            version: "1.0.0".to_owned(),
        };
        let key = ChartKey::new(&servers, chart).unwrap();
        assert!(cache.find(&servers, &key).await.is_none());
        cache.pull(&servers, &key).await.unwrap();
        assert!(cache.find(&servers, &key).await.is_some());
        let mut other = key.clone();
        other.access.insecure_skip_verify = true;
        let now = Instant::now();
        assert!(cache.get(&key, now).is_some() && cache.get(&other, now).is_none());
        assert!(cache.get(&key, now + MAX_AGE).is_none());
    }
}
