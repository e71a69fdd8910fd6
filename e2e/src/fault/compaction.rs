//! A list of many Kustomizations whose revision etcd forgets before its last page: it begins anew, and nothing is taken for gone.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};
use testkit::{FaultProxy, Options, Outcome, eventually, proxy::ApiRequest, stack};

use crate::{
    cluster::{NAMESPACE, TIMEOUT, TestCluster},
    report::Report,
};

const NAME: &str = "kustomize-controller";
const SOURCE: &str = "many";
/// Objects on a page of a list.
const PAGE: usize = 500;
/// One of this number of objects is deployed; the others are suspended.
const DEPLOYED: usize = 250;

/// Starts the kustomize-controller with this number of Kustomizations, and lets the list of them expire.
pub async fn long_lists_begin_anew(report: &mut Report, objects: usize) -> Result<()> {
    let options = Options {
        // A list from a cache would go on.
        api_server_flags: vec!["--feature-gates=ListFromCacheSnapshot=false".to_owned()],
        ..Options::default()
    };
    let mut cluster = TestCluster::with(options).await?;
    let title = format!("a list of {objects} Kustomizations expires and begins anew");
    report.step(&title, play(&mut cluster, objects)).await?;
    cluster.stop().await
}

async fn play(cluster: &mut TestCluster, objects: usize) -> Result<String> {
    for name in ["source-controller", NAME] {
        cluster.start(name, &[]).await?;
    }
    let repo = cluster.git.repo(SOURCE)?;
    let first = repo.commit("first", &[("app/map.yaml", &map("1"))])?;
    cluster.apply_repository(SOURCE, &repo.url(), "1h").await?;
    create(cluster, objects).await?;
    let deployed: Vec<String> = (0..objects).step_by(DEPLOYED).map(name).collect();
    for name in &deployed {
        cluster.applied(name, &first).await?;
    }
    if let Some(controller) = cluster.controllers.pop() {
        controller.terminate().await?;
    }

    let proxy = Arc::new(FaultProxy::start(&cluster.plane)?);
    let kubeconfig = cluster.plane.service_account_kubeconfig(NAMESPACE, NAME).await?;
    let launch = stack::launch(&cluster.plane, NAME).await?;
    proxy.outcomes(is_next_page, [Outcome::Pass, Outcome::Compacted]);
    let controller = launch.run_by(&proxy.kubeconfig(&kubeconfig)?).start().await?;
    cluster.controllers.push(controller);
    let expired = eventually("a whole list after one that expired", TIMEOUT, || async {
        let answers = proxy.answers().into_iter();
        let pages = answers.filter(|(request, _)| is_next_page(request));
        let codes: Vec<u16> = pages.map(|(_, code)| code).collect();
        let since = codes.iter().skip_while(|code| **code != 410);
        let whole = since.clone().filter(|code| **code == 200).count() + 1;
        ensure!(
            since.clone().next().is_some() && whole >= objects.div_ceil(PAGE),
            "{codes:?}"
        );
        Ok(since.filter(|code| **code == 410).count())
    })
    .await?;

    let second = repo.commit("second", &[("app/map.yaml", &map("2"))])?;
    cluster.announce(SOURCE).await?;
    // Objects of the pages before, at and after the one that expired.
    for name in [1, PAGE + 1, 2 * PAGE - 1, objects - 1].map(name) {
        let resumed = json!({"spec": {"suspend": false}});
        cluster.patch_kustomization(&name, &resumed).await?;
        cluster.applied(&name, &second).await?;
    }
    for name in &deployed {
        cluster.applied(name, &second).await?;
    }
    let deleted = proxy
        .requests()
        .into_iter()
        .find(|request| request.method == "DELETE");
    ensure!(deleted.is_none(), "it deleted: {deleted:?}");
    let usage = cluster.controller(NAME)?.usage()?;
    let (peak, steady) = (usage.peak >> 20, usage.resident >> 20);
    ensure!(peak < 2 * steady, "{peak} MiB at most, {steady} MiB in the end");
    Ok(format!("{expired} lists expired, {peak} MiB at most"))
}

fn is_next_page(request: &ApiRequest) -> bool {
    request.path.ends_with("/kustomizations") && request.is_next_page()
}

fn name(number: usize) -> String {
    format!("many-{number:04}")
}

fn map(value: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "namespace": NAMESPACE},
        "data": {"value": value},
    })
    .to_string()
}

fn object(number: usize) -> Value {
    let name = name(number);
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": name, "finalizers": ["finalizers.fluxcd.io"]},
        "spec": {
            "interval": "1h", "prune": true, "path": "app", "namePrefix": format!("{name}-"),
            "suspend": !number.is_multiple_of(DEPLOYED), "serviceAccountName": stack::DEPLOYER,
            "sourceRef": {"kind": "GitRepository", "name": SOURCE},
        },
    })
}

async fn create(cluster: &TestCluster, objects: usize) -> Result<()> {
    let api = cluster.kustomizations();
    stream::iter(0..objects)
        .map(|number| {
            let api = api.clone();
            async move {
                let object = serde_json::from_value(object(number))?;
                api.create(&PostParams::default(), &object).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(32)
        .try_collect::<()>()
        .await?;
    let listed = api.list_metadata(&ListParams::default()).await?;
    ensure!(listed.items.len() == objects, "{} objects", listed.items.len());
    Ok(())
}
