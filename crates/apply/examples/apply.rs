//! Applies lists of manifests as an owner of its own, corrects drift, and prunes.
//!
//! `cargo run -p apply --example apply -- KUBECONFIG STATE.yaml...`: each file is one state of the list.
#![allow(clippy::print_stdout, reason = "the output of an example")]

use std::{env, fs};

use anyhow::{Context as _, Result};
use apply::{Owner, ReconcileOptions};
use objects::Marker;
use tree::Budget;
use yaml::Value;

/// Returns an owner: its field manager, label and annotation. It overrides changes by `kubectl`.
pub fn owner(name: &str) -> Owner {
    Owner::labelled("example", "example.com/owner", name)
        .skip_delete(&[Marker::Annotation("example.com/prune", "disabled")])
        .overriding(&["kubectl"])
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let kubeconfig = arguments
        .next()
        .context("usage: apply KUBECONFIG STATE.yaml...")?;
    let cluster = cluster::access::connect(&fs::read(kubeconfig)?).await?;
    for state in arguments {
        let documents = yaml::read::goyaml_all(fs::read(state)?, &Budget::default())?;
        let manifests: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
        let options = ReconcileOptions::default();
        print!(
            "{}",
            apply::reconcile(&cluster, &owner("example"), &manifests, options).await?
        );
    }
    Ok(())
}
