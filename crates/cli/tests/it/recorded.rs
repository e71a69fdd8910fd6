//! Recorded behaviour of kluctl, compared with the binary's; see [`testkit::conformance`].
//!
//! Every case runs the binary with the recorded arguments, environment and files. `RECORDED=PART` selects cases by name.

mod expect;
mod render;
mod sandbox;
mod snapshot;
mod steps;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use cluster::{Cluster, access::LocalKubeconfig};
use futures::{Stream, StreamExt as _, stream};
use testkit::{ControlPlane, Options, conformance::Recordings};
use tree::Budget;
use yaml::Value;

use steps::Case;

const PARALLEL: usize = 4;

fn read_yaml(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(yaml::read::pyyaml(text, &Budget::default())?.value)
}

/// Returns the cases of a suite, with their names.
fn cases(recordings: &Recordings) -> Result<Vec<(String, PathBuf)>> {
    let chosen = std::env::var("RECORDED").unwrap_or_default();
    let cases = recordings.entries()?.into_iter().map(|dir| {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, dir)
    });
    Ok(cases.filter(|(name, _)| name.contains(&chosen)).collect())
}

/// Waits for all outcomes, and compares the failures with the known differences.
async fn conclude(
    recordings: &Recordings,
    suite: &str,
    mut outcomes: impl Stream<Item = (String, Result<()>)> + Unpin,
) {
    let (mut passed, mut failed) = (0, BTreeMap::new());
    while let Some((name, outcome)) = outcomes.next().await {
        match outcome {
            Ok(()) => passed += 1,
            Err(error) => {
                failed.insert(name, format!("{error:#}"));
            }
        }
    }
    let failures: Vec<String> = failed
        .iter()
        .map(|(name, why)| format!("{name}\t{why}"))
        .collect();
    recordings.conclude(&[(suite, passed, &failures)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renders_are_as_recorded() -> Result<()> {
    let Some(recordings) = Recordings::find("kluctl/cases/render") else {
        return Ok(());
    };
    let running = stream::iter(cases(&recordings)?).map(|(name, dir)| async move {
        let outcome = render::run(&dir).await;
        (name, outcome)
    });
    conclude(
        &recordings,
        "kluctl-render",
        Box::pin(running.buffer_unordered(PARALLEL)),
    )
    .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_on_a_cluster_behave_as_recorded() -> Result<()> {
    let Some(recordings) = Recordings::find("kluctl/cases/cluster") else {
        return Ok(());
    };
    let options = Options {
        no_load_balancers: true,
        ..Options::default()
    };
    let plane = &ControlPlane::start(options).await?;
    let cluster = connect(plane).await?;
    let running = stream::iter(cases(&recordings)?).map(|(name, dir)| {
        let case = Case::new(plane, cluster.clone(), dir);
        async move { (name, async { case?.run().await }.await) }
    });
    conclude(
        &recordings,
        "kluctl-cluster",
        Box::pin(running.buffer_unordered(PARALLEL)),
    )
    .await;
    Ok(())
}

async fn connect(plane: &ControlPlane) -> Result<Cluster> {
    let kubeconfig = LocalKubeconfig::read(Some(plane.kubeconfig()))?.context("no kubeconfig")?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = cluster::access::client(kubeconfig.config(None).await?)?;
    Ok(Cluster::new(client))
}
