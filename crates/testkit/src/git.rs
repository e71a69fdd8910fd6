//! A Git server: `git upload-pack` and `git receive-pack` behind HTTP or HTTPS, with switches for faults.

mod backend;
mod commit;
mod fault;
mod hostile;
mod repo;
mod service;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use anyhow::Result;
use axum::Router;
use parking_lot::Mutex;

pub use commit::Commit;
pub use fault::Fault;
pub use hostile::{pack_bomb, padded_pack};
pub use repo::Repo;

use crate::{http::Server, tls::Authority};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The first request of a conversation: capabilities, or (protocol 0 and 1) all refs.
    Info,
    /// The refs (protocol 2).
    LsRefs,
    Fetch,
    Push,
    Other,
}

#[derive(Debug, Clone)]
pub struct Request {
    /// The name of the repository, without `.git`.
    pub repo: String,
    pub step: Step,
    pub authorization: Option<String>,
    /// The status that was answered; none while it hangs.
    pub status: Option<u16>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Behaviour {
    pub(crate) basic_auth: Option<(String, String)>,
    pub(crate) fault: Option<Fault>,
    pub(crate) delay: std::time::Duration,
    /// True if it answers in protocol 0, whatever is asked for.
    pub(crate) is_old: bool,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) root: tempfile::TempDir,
    pub(crate) behaviours: Mutex<BTreeMap<String, Behaviour>>,
    pub(crate) requests: Mutex<Vec<Request>>,
    pub(crate) origin: Mutex<String>,
    /// Counts commits, so that each has a date of its own that is the same in each run.
    pub(crate) commits: std::sync::atomic::AtomicU32,
}

#[derive(Debug)]
pub struct GitServer {
    inner: Arc<Inner>,
    server: Server,
}

impl GitServer {
    pub fn start() -> Result<Self> {
        Self::start_with(None)
    }

    /// Starts a server that speaks HTTPS, with a certificate of [`GitServer::ca_pem`].
    pub fn start_tls() -> Result<Self> {
        Self::start_tls_as(&[])
    }

    /// Starts a server that speaks HTTPS, with a certificate for these hosts, too.
    pub fn start_tls_as(hosts: &[&str]) -> Result<Self> {
        let names = [&["127.0.0.1", "localhost"], hosts].concat();
        Self::start_with(Some(Authority::new(&names)?))
    }

    /// Starts a server that speaks HTTPS with clients that have a certificate of another authority alone.
    pub fn start_tls_for(clients: &Authority) -> Result<Self> {
        Self::start_with(Some(
            Authority::new(&["127.0.0.1", "localhost"])?.asking_for(clients),
        ))
    }

    fn start_with(authority: Option<Authority>) -> Result<Self> {
        let inner = Arc::new(Inner {
            root: tempfile::Builder::new().prefix("weir-git-").tempdir()?,
            behaviours: Mutex::default(),
            requests: Mutex::default(),
            origin: Mutex::default(),
            commits: std::sync::atomic::AtomicU32::new(0),
        });
        let router = Router::new()
            .fallback(backend::answer)
            .with_state(Arc::clone(&inner));
        let server = Server::start(router, authority)?;
        *inner.origin.lock() = server.origin();
        Ok(Self { inner, server })
    }

    #[must_use]
    pub fn connections(&self) -> usize {
        self.server.connections()
    }

    /// Creates an empty repository; its first branch will be `main`.
    pub fn repo(&self, name: &str) -> Result<Repo> {
        Repo::create(&self.inner, name)
    }

    /// Serves a bare repository that is elsewhere on this machine, and stays there.
    pub fn lend(&self, name: &str, path: &Path) -> Result<Repo> {
        Repo::lend(&self.inner, name, path)
    }

    /// Returns the folder of the bare repositories.
    pub(crate) fn root(&self) -> &Path {
        self.inner.root.path()
    }

    #[must_use]
    pub fn origin(&self) -> String {
        self.server.origin()
    }

    /// Returns the CA certificate in PEM format; empty without TLS.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        self.server.ca_pem().unwrap_or_default()
    }

    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.inner.requests.lock().clone()
    }
}
