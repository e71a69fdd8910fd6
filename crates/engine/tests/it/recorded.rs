//! Recorded behaviour of the original on a cluster; see [`testkit::conformance`].
//!
//! Every case counts: what isn't there yet fails.

mod command;
mod expect;
mod snapshot;
mod steps;

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, stream};
use testkit::{ControlPlane, conformance::Recordings};
use tree::Budget;
use yaml::Value;

use crate::world::connect;
use steps::Case;

fn read_yaml(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(yaml::read::pyyaml(text, &Budget::default())?.value)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cases_behave_as_recorded() -> Result<()> {
    let Some(recordings) = Recordings::find("kluctl/cases/cluster") else {
        return Ok(());
    };
    let plane = ControlPlane::shared().await?;
    let cluster = connect(plane.kubeconfig()).await?;
    let mut cases = recordings.entries()?;
    let chosen = std::env::var("RECORDED").ok();
    let name = |case: &Path| {
        case.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    cases.retain(|case| chosen.as_ref().is_none_or(|chosen| name(case).contains(chosen)));
    let mut running = stream::iter(cases)
        .map(|dir| {
            let name = name(&dir);
            let case = Case::new(plane, cluster.clone(), dir);
            async move { (name, case.run().await) }
        })
        .buffer_unordered(4);
    let (mut passed, mut failed) = (0, BTreeMap::new());
    while let Some((name, outcome)) = running.next().await {
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
    recordings.conclude(&[("kluctl-cluster", passed, &failures)]);
    Ok(())
}
