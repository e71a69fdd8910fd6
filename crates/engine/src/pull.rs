//! Pulls the charts that have `skipPrePull`, while a project is rendered.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use kluctl::{ChartSource, PullChart};
use oci::{Access, Archive, Client, Limits, Source};
use tree::{Budget, Tree};

use crate::{Outside, waiting::Waiting};

/// How long a chart is kept, as the original keeps it: after that, it is pulled again.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes of packed charts that are kept; unpacked they are only while a render goes on.
const MAX_KEPT: usize = 64 << 20;

/// What was pulled, and by whom: who may not pull a chart doesn't get the one of somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    address: String,
    chart: String,
    version: String,
    access: Access,
}

/// A chart that is kept, since when.
#[derive(Debug)]
struct Kept {
    key: Key,
    since: Instant,
    archive: Archive,
}

/// The charts that a process pulled. They are kept packed, and for a day.
#[derive(Debug, Clone, Default)]
pub struct Pulling {
    /// The oldest first.
    kept: Arc<Mutex<Vec<Kept>>>,
}

impl Pulling {
    /// Who pulls for one render, as long as somebody waits for that.
    pub(crate) fn until(&self, outside: &Outside, waiting: Waiting) -> Puller {
        Puller {
            pulling: self.clone(),
            outside: outside.clone(),
            waiting,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &Key, now: Instant) -> Option<Archive> {
        let mut kept = self.lock();
        kept.retain(|one| now.saturating_duration_since(one.since) < MAX_AGE);
        let found = kept.iter().find(|one| one.key == *key)?;
        Some(found.archive.clone())
    }

    /// Keeps a chart, and drops the oldest ones that are too many beside it.
    fn keep(&self, key: Key, archive: &Archive, now: Instant) {
        let mut kept = self.lock();
        kept.retain(|one| one.key != key);
        kept.push(Kept {
            key,
            since: now,
            archive: archive.clone(),
        });
        let mut size: usize = kept.iter().map(|one| one.archive.bytes().len()).sum();
        while size > MAX_KEPT && !kept.is_empty() {
            size -= kept.remove(0).archive.bytes().len();
        }
    }
}

/// Pulls charts for one render, from the thread of that.
pub(crate) struct Puller {
    pulling: Pulling,
    outside: Outside,
    waiting: Waiting,
}

impl PullChart for Puller {
    fn pull(&self, source: &ChartSource, budget: &Budget) -> Result<Arc<dyn Tree>, String> {
        budget.check().map_err(|error| error.to_string())?;
        let key = self.key(source)?;
        let archive = match self.pulling.get(&key, Instant::now()) {
            Some(archive) => archive,
            None => {
                let archive = self.waiting.on(fetch(&key))??;
                self.pulling.keep(key, &archive, Instant::now());
                archive
            }
        };
        let tree = archive.tree(budget).map_err(|error| error.to_string())?;
        Ok(Arc::new(tree))
    }
}

impl Puller {
    fn key(&self, source: &ChartSource) -> Result<Key, String> {
        if let Some((address, chart, version)) = source.remote() {
            return Ok(Key {
                address: address.to_owned(),
                chart: chart.to_owned(),
                version: version.to_owned(),
                access: self.outside.access(address)?,
            });
        }
        match source {
            ChartSource::Git { .. } => Err(
                "charts of Git repositories are not pulled while they are deployed: remove skipPrePull, pull the chart with \
                 'weir helm-pull', and add it to the repository"
                    .to_owned(),
            ),
            _ => Err("a chart of the project itself is not pulled".to_owned()),
        }
    }
}

async fn fetch(key: &Key) -> Result<Archive, String> {
    let words = |error: oci::Error| error.to_string();
    let client = Client::new(key.access.clone(), Limits::default()).map_err(words)?;
    let source = Source::new(&client, &key.address, &key.chart).map_err(words)?;
    source.pull(&key.version).await.map_err(words)
}

#[cfg(test)]
mod tests {
    use kluctl::GitReference;
    use testkit::{Page, WebServer, archive::tar_gz};
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// A repository with one version of a chart.
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

    async fn pull(pulling: &Pulling, source: &ChartSource, cancelled: bool) -> Result<(), String> {
        let token = CancellationToken::new();
        if cancelled {
            token.cancel();
        }
        let (puller, source) = (
            pulling.until(&Outside::default(), Waiting::until(token)),
            source.clone(),
        );
        let pulled = move || puller.pull(&source, &Budget::default()).map(drop);
        tokio::task::spawn_blocking(pulled).await.unwrap()
    }

    #[tokio::test]
    async fn a_chart_is_pulled_once() {
        let server = repository();
        let source = |version: &str| ChartSource::Repo {
            url: server.url(""),
            chart: "a".to_owned(),
            version: version.to_owned(),
        };
        let pulling = Pulling::default();
        assert_eq!(
            pull(&pulling, &source("1.0.0"), true).await,
            Err("cancelled".to_owned())
        );
        for _ in 0..3 {
            pull(&pulling, &source("1.0.0"), false).await.unwrap();
        }
        assert_eq!(server.asked().len(), 2);
        let error = pull(&pulling, &source("2.0.0"), false).await.unwrap_err();
        assert!(error.contains("version \"2.0.0\" not found"), "{error}");
        let waiting = Waiting::until(CancellationToken::new());
        let puller = pulling.until(&Outside::default(), waiting);
        let key = puller.key(&source("1.0.0")).unwrap();
        let now = Instant::now();
        assert!(pulling.get(&key, now).is_some());
        let mut stranger = key.clone();
        stranger.access.insecure_skip_verify = true;
        assert!(pulling.get(&stranger, now).is_none());
        assert!(pulling.get(&key, now + MAX_AGE).is_none());
    }

    #[tokio::test]
    async fn charts_of_git_are_refused() {
        let source = ChartSource::Git {
            url: "https://u:s3cret@h/x".to_owned(),
            reference: GitReference::Head,
            sub_dir: String::new(),
        };
        let error = pull(&Pulling::default(), &source, false).await.unwrap_err();
        assert!(
            error.contains("weir helm-pull") && !error.contains("s3cret"),
            "{error}"
        );
    }
}
