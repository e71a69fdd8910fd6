//! Applies lists of manifests as an owner of its own, corrects drift, and prunes what is no longer in the list.
//!
//! `cargo run -p apply --example apply -- KUBECONFIG STATE.yaml...`: each file is one state of the list.
#![allow(clippy::print_stdout, reason = "the output of an example")]

use std::{borrow::Cow, env, fs};

use anyhow::{Context as _, Result};
use apply::{DeletionOptions, Membership, OrphanSearch, Owner, SessionOptions};
use cluster::{Cluster, access};
use objects::{Managers, Marker, ObjectRef, Vocabulary};
use tree::Budget;
use yaml::Value;

/// Returns an owner: its field manager, label and annotations. It overrides changes by `kubectl`.
pub fn owner(name: &str) -> Owner {
    let label = Cow::Borrowed("example.com/owner");
    let membership = Membership::Label {
        name: label,
        value: name.to_owned(),
    };
    let skip_delete = &[Marker::Annotation("example.com/prune", "disabled")];
    let overridden = Managers {
        names: &[],
        prefixes: &["kubectl"],
    };
    let vocabulary = Vocabulary {
        skip_delete,
        ..Vocabulary::default()
    };
    Owner {
        vocabulary,
        overridden,
        ..Owner::new("example", membership)
    }
}

/// Makes the cluster equal to the manifests; returns one line for each object.
pub async fn reconcile(cluster: &Cluster, owner: &Owner, manifests: &[Value]) -> Result<Vec<String>> {
    let outcomes = apply::apply_all(cluster, owner, manifests, SessionOptions::default()).await?;
    let mut lines: Vec<String> = outcomes
        .iter()
        .map(|outcome| match &outcome.result {
            Ok(action) => format!("{}: {action:?}", outcome.reference),
            Err(error) => error.message.clone(),
        })
        .collect();
    let desired = manifests
        .iter()
        .map(ObjectRef::of)
        .collect::<Result<Vec<_>, _>>()?;
    let (search, options) = (OrphanSearch::default(), DeletionOptions::default());
    let pruned = apply::prune(cluster, owner, &desired, search, options).await?;
    lines.extend(pruned.outcomes.iter().map(|outcome| match &outcome.result {
        Ok(_) => format!("{}: Pruned", outcome.reference),
        Err(error) => error.to_string(),
    }));
    lines.extend(pruned.completeness.message());
    Ok(lines)
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let kubeconfig = arguments
        .next()
        .context("usage: apply KUBECONFIG STATE.yaml...")?;
    let config = access::user_config(&fs::read(kubeconfig)?).await?;
    let cluster = Cluster::new(access::client(config)?);
    for state in arguments {
        let documents = yaml::read::goyaml_all(fs::read(state)?, &Budget::default())?;
        let manifests: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
        for line in reconcile(&cluster, &owner("example"), &manifests).await? {
            println!("{line}");
        }
    }
    Ok(())
}
