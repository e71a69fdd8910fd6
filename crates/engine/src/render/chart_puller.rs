//! Pulls the charts that have `skipPrePull` while a project is rendered.

use std::sync::Arc;

use kluctl::{CallbackError, ChartSource, PullChart};
use parking_lot::Mutex;
use remote::{ChartCache, ChartKey, ChartVersion};
use tree::{Budget, Tree};

use super::{blocking::BlockingContext, external::ExternalAccess};

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
        let (servers, key) = (&self.external.servers, self.key(source)?);
        let archive = match self.blocking.block_on(self.cache.find(servers, &key))? {
            Some(archive) => archive,
            None => {
                self.show(source);
                let pulled = self.blocking.block_on(self.cache.pull(servers, &key))?;
                pulled.map_err(|error| CallbackError::new(servers.explain_oci(key.address(), &error)))?
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
    pub(crate) fn new(cache: &ChartCache, external: &ExternalAccess, blocking: BlockingContext) -> Self {
        Self {
            cache: cache.clone(),
            external: external.clone(),
            blocking,
            announced: Mutex::default(),
        }
    }

    fn show(&self, source: &ChartSource) {
        if let Some(status) = &self.external.status {
            let name = source.name().unwrap_or_default();
            let version = source.version().unwrap_or_default();
            status.show(&format!("Pulling Helm Chart {name} with version {version}"));
        }
    }

    fn key(&self, source: &ChartSource) -> Result<ChartKey, CallbackError> {
        if let Some((address, chart, version)) = source.remote() {
            let chart = ChartVersion {
                address: address.to_owned(),
                chart: chart.to_owned(),
                version: version.to_owned(),
                credentials_id: source.credentials_id().map(str::to_owned),
            };
            return ChartKey::new(&self.external.servers, chart).map_err(CallbackError::from_display);
        }
        match source {
            ChartSource::Git { .. } => Err(CallbackError::new("Git repositories can't be fetched here")),
            _ => Err(CallbackError::new("a chart of the project itself is not pulled")),
        }
    }
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
        let index = "entries:\n  a:\n  - {name: a, version: 1.0.0, urls: [a.tgz]}\n";
        server.page("/index.yaml", Page::Content(index.into()));
        server
    }

    async fn pull(cache: &ChartCache, source: &ChartSource, cancelled: bool) -> Result<(), CallbackError> {
        let token = CancellationToken::new();
        if cancelled {
            token.cancel();
        }
        let puller = ChartPuller::new(cache, &ExternalAccess::default(), BlockingContext::new(token));
        let source = source.clone();
        let pulled = move || puller.pull(&source, &Budget::default()).map(drop);
        tokio::task::spawn_blocking(pulled).await.unwrap()
    }

    #[tokio::test]
    async fn chart_is_pulled_once() {
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
