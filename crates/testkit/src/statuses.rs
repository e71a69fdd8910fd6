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
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Result;
use parking_lot::Mutex;

use watch::Watch;

#[derive(Debug)]
struct Plane {
    admin: PathBuf,
    /// The watch, while a controller uses it.
    watch: Weak<Watch>,
}

/// The control planes by the URL of the API server.
static PLANES: Mutex<BTreeMap<String, Plane>> = Mutex::new(BTreeMap::new());
/// The URLs of proxies, with the URL of the API server of each.
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
    PLANES.lock().entry(server.to_owned()).or_insert(plane);
}

/// Makes a proxy of an API server known.
pub(crate) fn register_proxy(proxy: &str, server: &str) {
    PROXIES.lock().insert(proxy.to_owned(), server.to_owned());
}

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
        let upstream = PROXIES.lock().get(server).cloned();
        let server = upstream.unwrap_or_else(|| server.to_owned());
        let watch = {
            let mut planes = PLANES.lock();
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
        self.watch.catch_up();
        self.watch.take(self.namespace.as_deref())
    }
}
