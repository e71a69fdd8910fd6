//! The task that reads a watch.

use std::{sync::Weak, time::Duration};

use kube::client::Body;
use tokio::time::{self, Instant};
use yaml::Value;

use super::{
    Watch,
    events::{self, Event},
    lines::{self, Lines},
};
use crate::{ApiError, Cluster, Error, ResourceKind, connection::send::Call, path};

/// Time after which the API server ends a watch, in seconds.
pub(crate) const SERVED_FOR: u64 = 290;
pub(crate) const BROKEN_AFTER: Duration = Duration::from_secs(SERVED_FOR + 30);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(30);

pub(super) async fn run(cluster: Cluster, kind: ResourceKind, namespace: Option<String>, watch: Weak<Watch>) {
    let feed = Feed {
        cluster,
        kind,
        namespace,
        watch,
    };
    let (mut version, mut pause) = (None, FIRST_PAUSE);
    loop {
        let start = Instant::now();
        match feed.read(&mut version).await {
            Ok(()) => {
                pause = FIRST_PAUSE;
                // A server that ends each watch at once is not asked all the time.
                time::sleep_until(start + FIRST_PAUSE).await;
            }
            Err(error) => {
                let Some(watch) = feed.watch.upgrade() else { return };
                watch.failed(&error);
                version = None;
                drop(watch);
                time::sleep(pause.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
                pause = (pause * 2).min(LAST_PAUSE);
            }
        }
        if feed.watch.strong_count() == 0 {
            return;
        }
    }
}

struct Feed {
    cluster: Cluster,
    kind: ResourceKind,
    namespace: Option<String>,
    watch: Weak<Watch>,
}

impl Feed {
    /// Reads one watch to its end, from a version if there is one, and sets the version to go on from.
    async fn read(&self, version: &mut Option<String>) -> Result<(), Error> {
        let what = format!("watch {}", self.kind.plural);
        let url = path::collection(&self.kind, self.namespace.as_deref())?;
        let (from, is_new) = match version.as_ref() {
            Some(version) => (version.clone(), false),
            None => (self.current_version(&url, &what).await?, true),
        };
        let query = format!("watch=true&allowWatchBookmarks=true&timeoutSeconds={SERVED_FOR}");
        let call = Call::get(format!("{url}?{query}&resourceVersion={}", path::encode(&from)));
        let (status, body) = self.cluster.open(&what, &call).await?;
        if status == 410 {
            *version = None;
            return Ok(());
        }
        if status >= 400 {
            return Err(Error::Api(ApiError::parse(
                status,
                &lines::error_body(body).await,
            )));
        }
        *version = Some(from);
        if is_new && let Some(watch) = self.watch.upgrade() {
            watch.started();
        }
        let lines = self.lines(body, &what, version);
        time::timeout(BROKEN_AFTER, lines).await.unwrap_or(Ok(()))
    }

    /// Returns the newest version, by a list of one object.
    async fn current_version(&self, url: &str, what: &str) -> Result<String, Error> {
        let answer = self
            .cluster
            .send(what, &Call::get(format!("{url}?limit=1")))
            .await?;
        let list = answer.success(None)?.value(what)?;
        let version = list
            .pointer(&["metadata", "resourceVersion"])
            .and_then(Value::as_str);
        version.map(str::to_owned).ok_or_else(|| Error::Malformed {
            what: what.to_owned(),
            reason: "the list has no resourceVersion".to_owned(),
        })
    }

    async fn lines(&self, body: Body, what: &str, version: &mut Option<String>) -> Result<(), Error> {
        let mut lines = Lines::new(body);
        while let Some(line) = lines.next(&self.cluster, what).await? {
            if !self.line(&line, version) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn line(&self, line: &[u8], version: &mut Option<String>) -> bool {
        let Some(watch) = self.watch.upgrade() else {
            return false;
        };
        match events::parse(line, |name| watch.is_wanted(name)) {
            Event::Object {
                name,
                version: new,
                object,
            } => {
                watch.deliver(&name, object.as_ref());
                *version = Some(new);
                true
            }
            Event::Progress(new) => {
                *version = Some(new);
                true
            }
            // Changes may have been missed: the next watch begins with the newest state.
            Event::Expired | Event::Invalid => {
                *version = None;
                false
            }
        }
    }
}
