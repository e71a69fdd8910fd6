//! A real Prometheus finds the controllers by the annotations of `deploy/` and answers the documented queries.

use std::path::Path;

use anyhow::Result;
use e2e::{
    cluster::{CONTROLLERS, NAMESPACE, TIMEOUT, TestCluster},
    demo::shop::example,
};
use serde_json::json;
use testkit::Prometheus;

/// Returns a configuration that scrapes by the annotations of the Pods in `deploy/`. Only the addresses are the controller
/// processes' own: the Pods run on nodes that kwok simulates.
fn config(cluster: &TestCluster, kubeconfig: &Path) -> Result<String> {
    let mut relabel = vec![
        json!({"source_labels": ["__meta_kubernetes_pod_annotation_prometheus_io_scrape"], "regex": "true", "action": "keep"}),
        json!({"source_labels": ["__meta_kubernetes_pod_annotation_prometheus_io_port"], "regex": "8080", "action": "keep"}),
        json!({"source_labels": ["__meta_kubernetes_pod_container_port_number"], "regex": "8080", "action": "keep"}),
        json!({"source_labels": ["__meta_kubernetes_pod_label_app"], "target_label": "app"}),
    ];
    for &name in CONTROLLERS {
        let address = cluster.controller(name)?.addresses().metrics;
        relabel.push(
            json!({"source_labels": ["app"], "regex": name, "target_label": "__address__",
                            "replacement": address.to_string()}),
        );
    }
    let config = json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [{
            "job_name": "flux",
            "kubernetes_sd_configs": [{"role": "pod", "kubeconfig_file": kubeconfig, "namespaces": {"names": [NAMESPACE]}}],
            "relabel_configs": relabel,
        }],
    });
    Ok(config.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_scrapes_all_controllers() -> Result<()> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    for &name in CONTROLLERS {
        cluster.start(name, &[]).await?;
    }
    super::deploy::install(&cluster, "default").await?;
    let repo = cluster.git.repo("shop")?;
    let commit = repo.change("The shop").copy(&example())?.push()?;
    cluster.apply_repository("shop", &repo.url(), "2s").await?;
    let spec =
        json!({"target": "test", "renameContexts": [{"oldContext": "default", "newContext": "kind-kind"}]});
    cluster.apply_deployment("shop-test", "shop", spec).await?;
    cluster.ready("shop-test", &commit).await?;

    let prometheus = Prometheus::start(&config(&cluster, cluster.plane.kubeconfig())?).await?;
    prometheus
        .wait_for(&format!("count(up == 1) == {}", CONTROLLERS.len()), TIMEOUT)
        .await?;
    for expression in [
        r#"gotk_reconcile_duration_seconds_count{kind="GitRepository",name="shop",namespace="flux-system"} > 0"#,
        r#"gotk_reconcile_duration_seconds_bucket{kind="KluctlDeployment",name="shop-test",le="+Inf"} > 0"#,
        r#"gotk_reconcile_condition{kind="KluctlDeployment",name="shop-test",type="Ready",status="True"} == 1"#,
        r#"gotk_suspend_status{kind="GitRepository",name="shop"} == 0"#,
        r#"controller_runtime_reconcile_total{controller="gitrepository",result="success"} >= 0"#,
        r#"controller_runtime_active_workers{controller="kluctldeployment"} >= 0"#,
        r#"workqueue_depth{name="kluctldeployment"} >= 0"#,
        r#"rest_client_requests_total{code="200"} > 0"#,
        r#"leader_election_master_status{name="source-controller-leader-election"} == 1"#,
        "process_resident_memory_bytes > 0",
    ] {
        prometheus.wait_for(expression, TIMEOUT).await?;
    }
    cluster.stop().await
}
