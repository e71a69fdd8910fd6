//! Recorded behaviour of the original on a cluster. The recordings are not part of the project: they are read from
//! `$CONFORMANCE_DIR` (by default `../shared/conformance` beside the workspace), and it is said when they are absent.
//!
//! A case with something that is not there yet (the render refuses it by name, or a flag is unknown) is counted as
//! skipped; all others must behave as recorded.

mod steps;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, stream};
use testkit::ControlPlane;
use tree::Budget;
use yaml::Value;

use crate::world::connect;
use steps::{Case, Outcome};

/// How many cases behave as recorded today. It only grows.
const MATCHING: usize = 45;

/// Where other cases than the default ones are; those are only counted.
fn elsewhere() -> Option<OsString> {
    std::env::var_os("CONFORMANCE_DIR").filter(|dir| !dir.is_empty())
}

fn folder() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let conformance = elsewhere().map_or_else(|| workspace.join("../shared/conformance"), PathBuf::from);
    conformance.join("kluctl/cases/cluster")
}

fn read_yaml(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(yaml::read::pyyaml(text, &Budget::default())?.value)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cases_behave_as_recorded() -> Result<()> {
    let folder = folder();
    if !folder.is_dir() {
        println!("skipped: there are no recordings in {}", folder.display());
        return Ok(());
    }
    let plane = ControlPlane::shared().await?;
    let cluster = connect(plane.kubeconfig()).await?;
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(&folder)? {
        names.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    let chosen = std::env::var("RECORDED").ok();
    names.retain(|name| chosen.as_ref().is_none_or(|chosen| name.contains(chosen)));
    let mut running = stream::iter(names)
        .map(|name| {
            let case = Case::new(plane, cluster.clone(), folder.join(&name));
            async move { (name, case.run().await) }
        })
        .buffer_unordered(4);
    let (mut matching, mut skipped, mut failed) = (0, BTreeMap::new(), BTreeMap::new());
    while let Some((name, outcome)) = running.next().await {
        match outcome {
            Ok(Outcome::Matches) => matching += 1,
            Ok(Outcome::Skipped(why)) => {
                skipped.insert(name, why);
            }
            Err(error) => {
                failed.insert(name, format!("{error:#}"));
            }
        }
    }
    for (name, why) in &skipped {
        println!("skipped {name}: {why}");
    }
    for (name, why) in &failed {
        println!("FAILED {name}: {why}");
    }
    println!(
        "\nkluctl on a cluster: {matching} match, {} skipped, {} failed",
        skipped.len(),
        failed.len()
    );
    if elsewhere().is_some() {
        return Ok(());
    }
    assert!(failed.is_empty(), "{:?}", failed.keys());
    assert!(
        chosen.is_some() || matching >= MATCHING,
        "only {matching} cases match"
    );
    Ok(())
}
