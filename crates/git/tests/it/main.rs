//! Tests against a real Git server, with everything that can go wrong.

#![allow(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

mod faults;
mod fetching;
mod hostile;
mod listing;
mod on_branch;
mod packs;
mod push;
mod space;
mod ssh;
mod ssh_reuse;
mod ssh_scan;

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use git::{Call, Error, Network, NodeKind, Reference, Remote, Resolved, Selector, Snapshot};
use tempfile::TempDir;
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static NETWORK: LazyLock<Network> = LazyLock::new(own_network);

/// Returns a network with its own memory: a session that finds none asks its server a second time.
fn own_network() -> Network {
    Network::new(RUNTIME.handle().clone(), net::AddressPolicy::command_line())
}

fn call() -> Call {
    Call::new(Duration::from_secs(60))
}

fn branch(name: &str) -> Reference {
    Selector {
        branch: Some(name.to_owned()),
        ..Selector::default()
    }
    .reference()
    .unwrap()
}

fn resolve(remote: &Remote, reference: &Reference, call: &Call) -> Result<Resolved, Error> {
    NETWORK.open(remote, call)?.resolve(reference)
}

struct Fetched {
    snapshot: Snapshot,
    resolved: Resolved,
    dir: TempDir,
}

fn fetch(remote: &Remote, reference: &Reference, call: &Call) -> Result<Fetched, Error> {
    let dir = tempfile::tempdir().unwrap();
    let mut session = NETWORK.open(remote, call)?;
    let resolved = session.resolve(reference)?;
    let snapshot = session.fetch(&resolved, dir.path())?;
    Ok(Fetched {
        snapshot,
        resolved,
        dir,
    })
}

impl Fetched {
    fn read(&self, path: &str) -> String {
        let nodes = self.snapshot.nodes().unwrap();
        let node = nodes.iter().find(|node| node.path.as_str() == path).unwrap();
        let mut content = Vec::new();
        self.snapshot.read(node, &mut content).unwrap();
        String::from_utf8(content).unwrap()
    }

    fn paths(&self) -> Vec<(String, NodeKind)> {
        let nodes = self.snapshot.nodes().unwrap();
        let mut paths: Vec<_> = nodes
            .into_iter()
            .map(|node| (node.path.to_string(), node.kind))
            .collect();
        paths.sort_by(|a, b| a.0.cmp(&b.0));
        paths
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (work(), start.elapsed())
}
