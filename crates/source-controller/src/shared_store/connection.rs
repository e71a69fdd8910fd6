//! The connection to the bucket, and its requests with their timeouts.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bucket::{
    Context, Object,
    s3::{Stat, Store},
};
use tokio::{sync::Mutex, time::timeout};

use super::Settings;

const REQUEST: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(15);
const LIFETIME: Duration = Duration::from_secs(30 * 60);
/// Backoff after a failed connection, so that not everyone waits for it.
const PAUSE: Duration = Duration::from_secs(5);

/// A failed request to the shared store. The message names neither credentials nor queries.
#[derive(Debug, Clone, thiserror::Error)]
#[error("shared store: {0}")]
pub(crate) struct StoreError(pub(super) String);

impl From<bucket::Error> for StoreError {
    fn from(error: bucket::Error) -> Self {
        Self(error.to_string())
    }
}

#[derive(Debug)]
enum State {
    Up(Arc<Store>, Instant),
    Down(StoreError, Instant),
}

/// A connection that is made when it is needed, and again when its credentials may have ended.
#[derive(Debug)]
pub(super) struct Connection {
    settings: Settings,
    context: Context,
    state: Mutex<Option<State>>,
}

impl Connection {
    pub(super) fn new(settings: Settings, context: Context) -> Self {
        Self {
            settings,
            context,
            state: Mutex::default(),
        }
    }

    pub(super) fn name(&self, path: &str) -> String {
        format!("{}{path}", self.settings.prefix)
    }

    async fn store(&self) -> Result<Arc<Store>, StoreError> {
        let mut state = self.state.lock().await;
        match &*state {
            Some(State::Up(store, since)) if since.elapsed() < LIFETIME => return Ok(Arc::clone(store)),
            Some(State::Down(error, since)) if since.elapsed() < PAUSE => return Err(error.clone()),
            _ => {}
        }
        let Settings {
            bucket,
            location,
            tls,
            ..
        } = &self.settings;
        let connecting = Store::connect(bucket, location, tls, &self.context);
        let connected = timeout(CONNECT, connecting).await;
        let connected = connected
            .map_err(|_| late(CONNECT))
            .and_then(|done| done.map_err(StoreError::from));
        let now = Instant::now();
        match connected {
            Ok(store) => {
                let store = Arc::new(store);
                *state = Some(State::Up(Arc::clone(&store), now));
                Ok(store)
            }
            Err(error) => {
                *state = Some(State::Down(error.clone(), now));
                Err(error)
            }
        }
    }

    /// Makes requests within a time, again with new credentials if they are refused.
    pub(super) async fn ask<T, F>(
        &self,
        time: Duration,
        requests: impl Fn(Arc<Store>) -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, bucket::Error>>,
    {
        let answered = |store| timeout(time, requests(store));
        let store = self.store().await?;
        match answered(Arc::clone(&store)).await {
            Ok(Err(error)) if matches!(error.status(), Some(401 | 403)) => {}
            Ok(done) => return done.map_err(StoreError::from),
            Err(_) => return Err(late(time)),
        }
        let mut state = self.state.lock().await;
        if matches!(&*state, Some(State::Up(used, _)) if Arc::ptr_eq(used, &store)) {
            *state = None;
        }
        drop(state);
        let done = answered(self.store().await?).await;
        done.map_err(|_| late(time))?.map_err(StoreError::from)
    }

    pub(super) async fn stat(&self, path: &str) -> Result<Option<Stat>, StoreError> {
        let name = &self.name(path);
        self.ask(REQUEST, async |store: Arc<Store>| store.stat(name).await)
            .await
    }

    /// Starts to read an object, or a part of it; `None` if there is none.
    pub(super) async fn get(
        &self,
        path: &str,
        part: Option<(u64, u64)>,
    ) -> Result<Option<(Stat, Object)>, StoreError> {
        let name = &self.name(path);
        self.ask(REQUEST, async |store: Arc<Store>| store.get(name, part).await)
            .await
    }

    pub(super) async fn delete(&self, path: &str) -> Result<(), StoreError> {
        let name = &self.name(path);
        self.ask(REQUEST, async |store: Arc<Store>| store.delete(name).await)
            .await
    }

    /// Returns at most `most` names of the objects below a directory, without the directory.
    pub(super) async fn list(&self, dir: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let (prefix, mut names, mut token) = (self.name(&format!("{dir}/")), Vec::new(), None::<String>);
        loop {
            let (prefix, after) = (prefix.as_str(), token.as_deref());
            let page = self.ask(REQUEST, async |store: Arc<Store>| store.list(prefix, after).await);
            let page = page.await?;
            let found = page.entries.into_iter();
            names.extend(found.filter_map(|entry| Some(entry.key.strip_prefix(prefix)?.to_owned())));
            token = page.next;
            if token.is_none() || names.len() >= most {
                names.truncate(most);
                return Ok(names);
            }
        }
    }
}

fn late(time: Duration) -> StoreError {
    StoreError(format!("no answer within {}", api::GoDuration::from(time)))
}
