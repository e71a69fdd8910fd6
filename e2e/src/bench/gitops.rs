//! Measures KluctlDeployments of `gitops.kluctl.io` while nothing changes.

use std::time::{Duration, Instant};

use anyhow::Result;
use api::{conditions, kluctl::gitops::KluctlDeployment};
use kube::Api;
use serde_json::json;
use testkit::{Repo, stack};

use super::{
    calm::{self, Calm},
    measure::{mebibytes, print},
    pairs::{Load, all, project},
};
use crate::cluster::{NAMESPACE, TestCluster};

/// Length of an interval, in seconds.
const INTERVAL: u64 = 6;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Numbers of objects, which are measured one after another; each deploys a ConfigMap of its own repository
    #[arg(long, value_delimiter = ',', value_name = "OBJECTS", default_values_t = [50, 200])]
    objects: Vec<usize>,
}

pub async fn run(args: &Args) -> Result<()> {
    for objects in &args.objects {
        print(&Box::pin(measure(*objects)).await?);
    }
    Ok(())
}

pub async fn measure(objects: usize) -> Result<String> {
    let load = Load::kluctl(objects, 1);
    let mut cluster = TestCluster::bare().await?;
    cluster.start("kluctl-controller", &[]).await?;
    let repos: Vec<Repo> = (0..objects)
        .map(|index| project::repository(&cluster, load, index))
        .collect::<Result<_>>()?;
    let began = Instant::now();
    for (index, repo) in repos.iter().enumerate() {
        create(&cluster, &project::name(index), &repo.url()).await?;
    }
    let api: Api<KluctlDeployment> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let names = (0..objects).map(project::name).collect();
    all(api, names, |_, object| {
        let status = object.status.as_ref();
        status.is_some_and(|status| conditions::is_true(&status.conditions, "Ready"))
    })
    .await?;
    let created = began.elapsed();
    let asked = |repos: &[Repo]| repos.iter().map(|repo| repo.requests().len()).sum::<usize>();
    let before = asked(&repos);
    let calm = Calm::measure(
        &cluster,
        "kluctl-controller",
        Duration::from_secs(INTERVAL),
        calm::INTERVALS,
    )
    .await?;
    let asked = asked(&repos) - before;
    let usage = cluster.controller("kluctl-controller")?.usage()?;
    cluster.stop().await?;
    Ok(format!(
        "\n{objects} KluctlDeployments of gitops.kluctl.io with a ConfigMap each\n  created, until all are Ready {:>7.2} s\n  {}, {asked} \
         requests to the Git server\n  memory {:.1} MiB, peak {:.1} MiB",
        created.as_secs_f64(),
        calm.line(objects),
        mebibytes(usage.resident),
        mebibytes(usage.peak),
    ))
}

async fn create(cluster: &TestCluster, name: &str, url: &str) -> Result<()> {
    let object = json!({
        "apiVersion": "gitops.kluctl.io/v1beta1", "kind": "KluctlDeployment",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "interval": format!("{INTERVAL}s"), "target": "only", "context": "default", "prune": true,
            "serviceAccountName": stack::DEPLOYER, "source": { "git": { "url": url } },
        },
    });
    cluster.plane.apply(object).await.map(drop)
}
