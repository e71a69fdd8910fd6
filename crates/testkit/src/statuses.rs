//! The rules of statuses (`api::conditions::check`), for each status that a controller writes while a test runs.
//!
//! As long as a [`Controller`](crate::Controller) lives, all kinds of its control plane are watched that our controllers write the status
//! of. Dropping it panics if a status broke a rule. This is how every test that starts a controller applies the rules.

mod tracker;
mod watch;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Result;

use crate::process::lock;
use watch::Watch;

/// A control plane of this process.
#[derive(Debug)]
struct Plane {
    /// The kubeconfig of its administrator.
    admin: PathBuf,
    /// The watch, while a controller uses it.
    watch: Weak<Watch>,
}

/// The control planes by the URL of the API server.
static PLANES: Mutex<BTreeMap<String, Plane>> = Mutex::new(BTreeMap::new());
/// The proxies of API servers: their URL, and that of the API server.
static PROXIES: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
static OFF: AtomicBool = AtomicBool::new(false);

/// Leaves statuses unwatched from now on, for benchmarks: the watch takes time of the API server.
pub fn leave_unwatched() {
    OFF.store(true, Ordering::Relaxed);
}

/// Makes the control plane known that this API server belongs to.
pub(crate) fn register(server: &str, admin: &Path) {
    let plane = Plane {
        admin: admin.to_owned(),
        watch: Weak::new(),
    };
    lock(&PLANES).entry(server.to_owned()).or_insert(plane);
}

/// Makes a proxy of an API server known.
pub(crate) fn register_proxy(proxy: &str, server: &str) {
    lock(&PROXIES).insert(proxy.to_owned(), server.to_owned());
}

/// The check of the statuses that a controller writes.
#[derive(Debug)]
pub(crate) struct StatusCheck {
    watch: Arc<Watch>,
    /// The namespace that the controller watches; all if there is none.
    namespace: Option<String>,
}

impl StatusCheck {
    /// Begins the check for a controller that is not started yet; `None` if its kubeconfig is of no control plane of this process.
    pub(crate) fn begin(kubeconfig: &Path, namespace: Option<&str>) -> Result<Option<Self>> {
        let text = fs::read_to_string(kubeconfig).unwrap_or_default();
        let servers = text.lines().find_map(|line| line.trim().strip_prefix("server: "));
        let Some(server) = servers.filter(|_| !OFF.load(Ordering::Relaxed)) else {
            return Ok(None);
        };
        let upstream = lock(&PROXIES).get(server).cloned();
        let server = upstream.unwrap_or_else(|| server.to_owned());
        let watch = {
            let mut planes = lock(&PLANES);
            let Some(plane) = planes.get_mut(&server) else {
                return Ok(None);
            };
            match plane.watch.upgrade() {
                Some(watch) => watch,
                None => {
                    let watch = Arc::new(Watch::start(&plane.admin)?);
                    plane.watch = Arc::downgrade(&watch);
                    watch
                }
            }
        };
        watch.cover();
        Ok(Some(Self {
            watch,
            namespace: namespace.map(str::to_owned),
        }))
    }

    /// Returns a description of each status that broke a rule so far, once.
    pub(crate) fn broken(&self) -> Vec<String> {
        self.watch.settle();
        self.watch.take(self.namespace.as_deref())
    }
}
