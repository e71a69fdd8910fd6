//! Pulls the charts that have `skipPrePull`, while a project is rendered.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use kluctl::{ChartSource, PullChart};
use oci::{Access, Archive, Client, Limits, Source};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tree::{Budget, Tree};

/// How long a chart is kept, as the original keeps it: after that, it is pulled again.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes of packed charts that are kept; unpacked they are only while a render goes on.
const MAX_KEPT: usize = 64 << 20;

/// Address, chart and version.
type Key = (String, String, String);

/// The charts that a process pulled. They are kept packed, and for a day.
#[derive(Debug, Clone, Default)]
pub struct Pulling {
    kept: Arc<Mutex<HashMap<Key, (Instant, Archive)>>>,
}

impl Pulling {
    /// Who pulls for one render, as long as somebody waits for that.
    pub(crate) fn until(&self, cancelled: CancellationToken) -> Puller {
        Puller {
            pulling: self.clone(),
            runtime: Handle::current(),
            cancelled,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, (Instant, Archive)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &Key, now: Instant) -> Option<Archive> {
        let mut kept = self.lock();
        kept.retain(|_, (since, _)| now.saturating_duration_since(*since) < MAX_AGE);
        kept.get(key).map(|(_, archive)| archive.clone())
    }

    /// Keeps a chart, and drops the oldest ones that are too many beside it.
    fn keep(&self, key: Key, archive: &Archive, now: Instant) {
        let mut kept = self.lock();
        kept.insert(key, (now, archive.clone()));
        let size = |kept: &HashMap<Key, (Instant, Archive)>| -> usize {
            kept.values().map(|(_, archive)| archive.bytes().len()).sum()
        };
        while size(&kept) > MAX_KEPT {
            let oldest = kept.iter().min_by_key(|(_, (since, _))| *since);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            kept.remove(&oldest);
        }
    }
}

/// Pulls charts for one render, from the thread of that.
pub(crate) struct Puller {
    pulling: Pulling,
    runtime: Handle,
    cancelled: CancellationToken,
}

impl PullChart for Puller {
    fn pull(&self, source: &ChartSource, budget: &Budget) -> Result<Arc<dyn Tree>, String> {
        budget.check().map_err(|error| error.to_string())?;
        let key = key(source)?;
        let archive = match self.pulling.get(&key, Instant::now()) {
            Some(archive) => archive,
            None => {
                let pulled = self.cancelled.run_until_cancelled(fetch(&key));
                let archive = self.runtime.block_on(pulled).ok_or("cancelled")??;
                self.pulling.keep(key, &archive, Instant::now());
                archive
            }
        };
        let tree = archive.tree(budget).map_err(|error| error.to_string())?;
        Ok(Arc::new(tree))
    }
}

async fn fetch((address, chart, version): &Key) -> Result<Archive, String> {
    let words = |error: oci::Error| error.to_string();
    let client = Client::new(Access::default(), Limits::default()).map_err(words)?;
    let source = Source::new(&client, address, chart).map_err(words)?;
    source.pull(version).await.map_err(words)
}

fn key(source: &ChartSource) -> Result<Key, String> {
    if let Some((address, chart, version)) = source.remote() {
        return Ok((address.to_owned(), chart.to_owned(), version.to_owned()));
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

#[cfg(test)]
mod tests {
    use kluctl::GitReference;
    use testkit::{Page, WebServer, archive::tar_gz};

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
        let (puller, source) = (pulling.until(token), source.clone());
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
        let key = key(&source("1.0.0")).unwrap();
        let now = Instant::now();
        assert!(pulling.get(&key, now).is_some());
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
