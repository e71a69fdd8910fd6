//! Ten intervals in which nothing changes, with 200 objects of each kind: nobody writes, reports, or works more often than asked.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use api::{condition_type, conditions, kluctl::gitops, source::GitRepository};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Api;
use serde_json::{Value, json};
use testkit::{audit::Entry, stack};

use crate::{
    bench::{
        calm,
        pairs::{Deployer, Load, all, load::is_ready as is_ready_now, project},
    },
    cluster::{NAMESPACE, TestCluster, is_ready},
    report::{Report, seconds},
};

const OBJECTS: usize = 200;
const INTERVAL: Duration = Duration::from_secs(6);
const INTERVALS: u32 = 10;
const CONCURRENCY: usize = 8;
const CONTROLLERS: [&str; 3] = ["source-controller", "kluctl-controller", "kustomize-controller"];
const KINDS: usize = 4;

/// Makes 200 GitRepositories, 200 KluctlDeployments of `flux.kluctl.io` and 200 Kustomizations that follow them, and 200 KluctlDeployments of
/// `gitops.kluctl.io`, and lets ten intervals pass.
pub async fn nothing_happens_while_nothing_changes(report: &mut Report) -> Result<()> {
    let mut cluster = TestCluster::bare().await?;
    for name in CONTROLLERS {
        cluster.start(name, &["--interval-jitter-percentage=0"]).await?;
    }
    let title = format!("{OBJECTS} objects of each kind are left alone for {INTERVALS} intervals");
    report
        .step(&title, async {
            create(&cluster).await?;
            for name in CONTROLLERS {
                calm::end_of_requests(&cluster, name).await?;
            }
            let (mark, began, before) = (
                cluster.plane.audit_mark(),
                Instant::now(),
                passes(&cluster).await?,
            );
            // Intervals are observed, whose end nothing announces.
            tokio::time::sleep(INTERVAL * INTERVALS).await;
            let (after, entries) = (passes(&cluster).await?, cluster.plane.audit_since(mark)?);
            let intervals = began.elapsed().as_secs_f64() / INTERVAL.as_secs_f64();
            let writes: Vec<&Entry> = entries.iter().filter(|entry| is_write(entry)).collect();
            ensure!(
                writes.is_empty(),
                "{} writes, the first is {:?}",
                writes.len(),
                writes.first()
            );
            let made = after - before;
            // A pass that was due just before the beginning may end after it.
            let most = (KINDS * OBJECTS) as f64 * (intervals + 1.0);
            ensure!(
                made <= most,
                "{made} passes in {intervals:.1} intervals of {} objects",
                KINDS * OBJECTS
            );
            ensure!(
                made >= most / 2.0,
                "only {made} passes: the controllers were not idle, but late"
            );
            Ok(format!(
                "{made} passes in {}, and no write",
                seconds(began.elapsed())
            ))
        })
        .await?;
    cluster.stop().await
}

async fn create(cluster: &TestCluster) -> Result<()> {
    let load = Load::kluctl(2 * OBJECTS, 1);
    let urls = (0..2 * OBJECTS).map(|index| Ok(project::repository(cluster, load, index)?.url()));
    let urls: Vec<String> = urls.collect::<Result<_>>()?;
    let interval = format!("{}s", INTERVAL.as_secs());
    let interval = interval.as_str();
    stream::iter(urls.iter().enumerate())
        .map(Ok)
        .try_for_each_concurrent(CONCURRENCY, |(index, url)| async move {
            let name = project::name(index);
            if index >= OBJECTS {
                return cluster
                    .plane
                    .apply(own_source(&name, url, interval))
                    .await
                    .map(drop);
            }
            cluster.apply_repository(&name, url, interval).await?;
            let spec = json!({"interval": interval, "target": "only"});
            cluster.apply_deployment(&name, &name, spec).await?;
            let spec = json!({"interval": interval, "path": "app", "namePrefix": "kustomized-"});
            cluster.apply_kustomization(&name, &name, spec).await
        })
        .await?;
    let names = |range: std::ops::Range<usize>| range.map(project::name).collect();
    let is_true = |list: &[api::Condition]| conditions::is_true(list, condition_type::READY);
    let sources: Api<GitRepository> = cluster.repositories();
    all(sources, names(0..OBJECTS), |_, object| {
        object
            .status
            .as_ref()
            .is_some_and(|status| is_true(&status.conditions))
    })
    .await
    .context("GitRepositories")?;
    all(cluster.deployments(), names(0..OBJECTS), |_, object| {
        is_ready(object)
    })
    .await
    .context("KluctlDeployments of flux.kluctl.io")?;
    let kustomizations = Deployer::Kustomization.api(cluster);
    all(kustomizations, names(0..OBJECTS), |_, object| {
        is_ready_now(object)
    })
    .await
    .context("Kustomizations")?;
    let own: Api<gitops::KluctlDeployment> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    all(own, names(OBJECTS..2 * OBJECTS), |_, object| {
        object
            .status
            .as_ref()
            .is_some_and(|status| is_true(&status.conditions))
    })
    .await
    .context("KluctlDeployments of gitops.kluctl.io")
}

fn own_source(name: &str, url: &str, interval: &str) -> Value {
    json!({
        "apiVersion": "gitops.kluctl.io/v1beta1", "kind": "KluctlDeployment",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "interval": interval, "target": "only", "context": "default", "prune": true,
            "serviceAccountName": stack::DEPLOYER, "source": { "git": { "url": url } },
        },
    })
}

/// Returns true for a request of a controller, or of the account that it deploys with, that writes anything but the lease: an event
/// is a write, too.
fn is_write(entry: &Entry) -> bool {
    let account = |name: &str| format!("system:serviceaccount:{NAMESPACE}:{name}");
    let is_ours = CONTROLLERS.iter().any(|name| entry.user == account(name));
    is_ours && entry.is_write() && entry.resource != "leases" && !entry.resource.starts_with("selfsubject")
}

async fn passes(cluster: &TestCluster) -> Result<f64> {
    let mut sum = 0.0;
    for name in CONTROLLERS {
        let text = cluster.controller(name)?.metrics().await?;
        let lines = text
            .lines()
            .filter(|line| line.starts_with("controller_runtime_reconcile_total{"));
        sum += lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum::<f64>();
    }
    Ok(sum)
}
