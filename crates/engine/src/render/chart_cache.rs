//! Pulls the charts that have `skipPrePull` while a project is rendered, and caches them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kluctl::{CallbackError, ChartSource, PullChart};
use net::AddressPolicy;
use oci::{Access, Archive, Client, Limits};
use parking_lot::Mutex;
use tree::{Budget, Tree};

use super::{blocking::BlockingContext, external::ExternalAccess};

/// Time after which a cached chart is pulled again: one day, as in kluctl.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum total size of cached charts, in bytes of their archives.
const MAX_CACHED_BYTES: usize = 64 << 20;

/// Identifies a cached chart. The credentials are a part of it, so that other credentials do not give access to the
/// cached chart, and each use is announced to the server, which may demand others meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    address: String,
    chart: String,
    version: String,
    access: Access,
}

#[derive(Debug)]
struct CachedChart {
    key: Key,
    since: Instant,
    archive: Archive,
}

/// Cache of pulled chart archives, shared by all renders of a process: for one day, at most 64 MiB.
#[derive(Debug, Clone, Default)]
pub struct ChartCache {
    /// Charts by age, the oldest first.
    charts: Arc<Mutex<Vec<CachedChart>>>,
}

impl ChartCache {
    pub(crate) fn puller(&self, external: &ExternalAccess, blocking: BlockingContext) -> ChartPuller {
        ChartPuller {
            cache: self.clone(),
            external: external.clone(),
            blocking,
            announced: Mutex::default(),
        }
    }

    fn get(&self, key: &Key, now: Instant) -> Option<Archive> {
        let mut charts = self.charts.lock();
        charts.retain(|one| now.saturating_duration_since(one.since) < MAX_AGE);
        let found = charts.iter().find(|one| one.key == *key)?;
        Some(found.archive.clone())
    }

    fn keep(&self, key: Key, archive: &Archive, now: Instant) {
        let mut charts = self.charts.lock();
        charts.retain(|one| one.key != key);
        charts.push(CachedChart {
            key,
            since: now,
            archive: archive.clone(),
        });
        let mut size: usize = charts.iter().map(|chart| chart.archive.bytes().len()).sum();
        while size > MAX_CACHED_BYTES && !charts.is_empty() {
            size -= charts.remove(0).archive.bytes().len();
        }
    }
}

pub(crate) struct ChartPuller {
    cache: ChartCache,
    external: ExternalAccess,
    blocking: BlockingContext,
    /// Charts of Git repositories that were announced to the user.
    announced: Mutex<Vec<ChartSource>>,
}

impl PullChart for ChartPuller {
    fn pull(&self, source: &ChartSource, budget: &Budget) -> Result<Arc<dyn Tree>, CallbackError> {
        budget.check().map_err(CallbackError::from_display)?;
        let key = self.key(source)?;
        let archive = match self.allowed(&key)? {
            Some(archive) => archive,
            None => {
                self.show(source);
                let addresses = self.external.addresses.clone();
                let fetched = self.blocking.block_on(fetch(&key, addresses))?;
                let archive = fetched.map_err(|error| self.external.oci_failure(&key.address, &error))?;
                self.cache.keep(key, &archive, Instant::now());
                archive
            }
        };
        let tree = archive.tree(budget).map_err(CallbackError::from_display)?;
        Ok(Arc::new(tree))
    }

    /// Shows a message, once for each chart: all items of a render share the fetched repository.
    fn announce(&self, source: &ChartSource) {
        let mut announced = self.announced.lock();
        if !announced.contains(source) {
            announced.push(source.clone());
            self.show(source);
        }
    }
}

impl ChartPuller {
    /// Returns a cached chart that the server still gives to these credentials, or that it can't be asked about.
    fn allowed(&self, key: &Key) -> Result<Option<Archive>, CallbackError> {
        let Some(archive) = self.cache.get(key, Instant::now()) else {
            return Ok(None);
        };
        let addresses = self.external.addresses.clone();
        let is_allowed = match self.blocking.block_on(check(key, addresses))? {
            Ok(()) | Err(oci::Error::Network { .. } | oci::Error::Status { .. }) => true,
            Err(_) => false,
        };
        Ok(is_allowed.then_some(archive))
    }

    fn show(&self, source: &ChartSource) {
        if let Some(status) = &self.external.status {
            let name = source.name().unwrap_or_default();
            let version = source.version().unwrap_or_default();
            status.show(&format!("Pulling Helm Chart {name} with version {version}"));
        }
    }

    fn key(&self, source: &ChartSource) -> Result<Key, CallbackError> {
        if let Some((address, chart, version)) = source.remote() {
            return Ok(Key {
                address: address.to_owned(),
                chart: chart.to_owned(),
                version: version.to_owned(),
                access: self.external.access(address, source.credentials_id())?,
            });
        }
        match source {
            ChartSource::Git { .. } => Err(CallbackError::new("Git repositories can't be fetched here")),
            _ => Err(CallbackError::new("a chart of the project itself is not pulled")),
        }
    }
}

async fn check(key: &Key, addresses: AddressPolicy) -> Result<(), oci::Error> {
    let client = Client::new(key.access.clone(), Limits::default(), addresses)?;
    let source = oci::ChartSource::new(&client, &key.address, &key.chart)?;
    source.check(&key.version).await
}

async fn fetch(key: &Key, addresses: AddressPolicy) -> Result<Archive, oci::Error> {
    let client = Client::new(key.access.clone(), Limits::default(), addresses)?;
    let source = oci::ChartSource::new(&client, &key.address, &key.chart)?;
    source.pull(&key.version).await
}

#[cfg(test)]
mod tests {
    use kluctl::GitReference;
    use testkit::{Page, WebServer, archive::tar_gz};
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn repository() -> WebServer {
        let metadata = b"apiVersion: v2\nname: a\nversion: 1.0.0\n";
        let server = WebServer::start().unwrap();
        server.page(
            "/a.tgz",
            Page::Content(tar_gz(&[("a/Chart.yaml", metadata)]).into()),
        );
        let index = "entries:\n  a:\n  - {version: 1.0.0, urls: [a.tgz]}\n";
        server.page("/index.yaml", Page::Content(index.into()));
        server
    }

    async fn pull(cache: &ChartCache, source: &ChartSource, cancelled: bool) -> Result<(), CallbackError> {
        let token = CancellationToken::new();
        if cancelled {
            token.cancel();
        }
        let (puller, source) = (
            cache.puller(&ExternalAccess::default(), BlockingContext::new(token)),
            source.clone(),
        );
        let pulled = move || puller.pull(&source, &Budget::default()).map(drop);
        tokio::task::spawn_blocking(pulled).await.unwrap()
    }

    #[tokio::test]
    async fn chart_is_pulled_once_per_credentials() {
        let server = repository();
        let source = |version: &str| ChartSource::Repo {
            url: server.url(""),
            chart: "a".to_owned(),
            version: version.to_owned(),
            credentials_id: None,
        };
        let cache = ChartCache::default();
        assert_eq!(
            pull(&cache, &source("1.0.0"), true).await,
            Err(CallbackError::new("cancelled"))
        );
        for _ in 0..3 {
            pull(&cache, &source("1.0.0"), false).await.unwrap();
        }
        // Index and chart once, and then the index without its content.
        let methods: Vec<_> = server.asked().iter().map(|asked| asked.path.clone()).collect();
        assert_eq!(methods, ["/index.yaml", "/a.tgz", "/index.yaml", "/index.yaml"]);
        let error = pull(&cache, &source("2.0.0"), false).await.unwrap_err();
        assert!(
            error.to_string().contains("version \"2.0.0\" not found"),
            "{error}"
        );
        let blocking = BlockingContext::new(CancellationToken::new());
        let puller = cache.puller(&ExternalAccess::default(), blocking);
        let key = puller.key(&source("1.0.0")).unwrap();
        let now = Instant::now();
        assert!(cache.get(&key, now).is_some());
        let mut other = key.clone();
        other.access.insecure_skip_verify = true;
        assert!(cache.get(&other, now).is_none());
        assert!(cache.get(&key, now + MAX_AGE).is_none());
    }

    #[tokio::test]
    async fn cached_chart_is_refused_once_its_server_demands_a_login() {
        let (closed, ended) = (repository(), repository());
        let source = |server: &WebServer| ChartSource::Repo {
            url: server.url(""),
            chart: "a".to_owned(),
            version: "1.0.0".to_owned(),
            credentials_id: None,
        };
        let cache = ChartCache::default();
        let sources = [source(&closed), source(&ended)];
        for source in &sources {
            pull(&cache, source, false).await.unwrap();
        }
        closed.login("me", "s3cret");
        drop(ended);
        for _ in 0..2 {
            let error = pull(&cache, &sources[0], false).await.unwrap_err().to_string();
            assert!(error.contains("401 Unauthorized"), "{error}");
            // A server that is down doesn't refuse.
            pull(&cache, &sources[1], false).await.unwrap();
        }
    }

    #[tokio::test]
    async fn git_charts_are_left_to_sources() {
        let source = ChartSource::Git {
            url: "https://u:s3cret@h/x".to_owned(),
            reference: GitReference::Head,
            sub_dir: String::new(),
        };
        let error = pull(&ChartCache::default(), &source, false).await.unwrap_err();
        assert!(
            error.to_string().contains("can't be fetched") && !error.to_string().contains("s3cret"),
            "{error}"
        );
    }
}
