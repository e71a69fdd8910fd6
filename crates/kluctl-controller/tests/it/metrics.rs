//! The metrics of both kinds, as a real Prometheus scrapes them.

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::json;
use testkit::{Prometheus, eventually, wait_gone};

use crate::{fixture::TIMEOUT, gitops::Gitops};

const SUCCEEDED: &str = "ReconciliationSucceeded";

#[tokio::test]
async fn prometheus_knows_the_metrics_of_both_kinds() -> Result<()> {
    let shop = Gitops::new("metrics").await?;
    let config = json!({
        "global": { "scrape_interval": "1s", "scrape_timeout": "1s" },
        "scrape_configs": [{
            "job_name": "flux",
            "static_configs": [{ "targets": [shop.fixture.controller.addresses().metrics.to_string()] }],
        }],
    });
    let prometheus = Prometheus::start(&config.to_string()).await?;
    shop.push(&[("a", "1"), ("b", "1")])?;
    let source = json!({ "git": { "url": shop.repo.url(), "ref": { "branch": "main" } } });
    let spec = json!({ "source": source, "interval": "10m", "deployInterval": "7m", "delete": true });
    shop.create("new", spec).await?;
    shop.ready("new", SUCCEEDED).await?;
    shop.push(&[("a", "1")])?;
    shop.reconcile("new").await?;
    shop.change("new", json!({ "prune": true })).await?;
    shop.ready("new", SUCCEEDED).await?;
    let pruned = r#"kluctldeployments_number_of_deleted_objects{name="new"} == 1"#;
    prometheus.wait_for(pruned, TIMEOUT).await?;
    shop.request("new", "prune", serde_json::Value::Null).await?;
    shop.create("suspended", json!({ "suspend": true, "dryRun": true }))
        .await?;
    let fixture = &shop.fixture;
    let own = fixture.other_maps("old", &[("c", "1"), ("d", "1")]);
    let source = fixture.source("old", &own).await?;
    fixture
        .deploy("old", json!({ "interval": "10m", "prune": true }))
        .await?;
    fixture.ready("old", "True", SUCCEEDED).await?;
    let revision = source.offer(&fixture.other_maps("old", &[("c", "2")])).await?;
    fixture.deployed("old", &revision).await?;

    let url = shop.repo.url();
    let namespace = &fixture.namespace;
    let mut queries = vec![
        r#"kluctldeployments_deployment_interval_seconds{name="new"} == 420"#.to_owned(),
        r#"kluctldeployments_deployment_interval_seconds{name="old"} == 600"#.to_owned(),
        r#"kluctldeployments_delete_enabled{name="new"} == 1"#.to_owned(),
        r#"kluctldeployments_number_of_changed_objects{name="old"} == 1"#.to_owned(),
        r#"kluctldeployments_number_of_changes{name="old"} == 1"#.to_owned(),
        r#"kluctldeployments_number_of_deleted_objects{name="old"} == 1"#.to_owned(),
        r#"kluctldeployments_prune_duration_seconds_count{name="new"} > 0"#.to_owned(),
        format!(
            r#"kluctldeployments_source_spec{{name="new",url="{url}",path="",ref="refs/heads/main"}} == 0"#
        ),
        r#"kluctldeployments_source_spec{name="old"} == 0"#.to_owned(),
        r#"gotk_suspend_status{kind="KluctlDeployment",name="suspended"} == 1"#.to_owned(),
        r#"time() - kluctldeployments_last_deploy_start_timestamp_seconds{name="new"} < 600"#.to_owned(),
    ];
    for name in ["new", "old"] {
        let of = format!(r#"name="{name}",namespace="{namespace}""#);
        queries.extend([
            format!(
                r#"gotk_reconcile_condition{{kind="KluctlDeployment",{of},type="Ready",status="True"}} == 1"#
            ),
            format!(
                r#"gotk_reconcile_condition{{kind="KluctlDeployment",{of},type="Ready",status="False"}} == 0"#
            ),
            format!(r#"gotk_suspend_status{{kind="KluctlDeployment",{of}}} == 0"#),
            format!(r#"gotk_reconcile_duration_seconds_count{{kind="KluctlDeployment",{of}}} > 0"#),
            format!(r#"kluctldeployments_deployment_duration_seconds_count{{{of},mode="full-deploy"}} > 0"#),
            format!("kluctldeployments_validate_duration_seconds_count{{{of}}} > 0"),
            format!("kluctldeployments_number_of_deleted_objects{{{of}}} >= 0"),
            format!("kluctldeployments_number_of_orphan_objects{{{of}}} == 0"),
            format!(r#"kluctldeployments_number_of_errors{{{of},action="deploy"}} == 0"#),
            format!(r#"kluctldeployments_number_of_warnings{{{of},action="deploy"}} == 0"#),
            format!("kluctldeployments_dry_run_enabled{{{of}}} == 0"),
            format!("kluctldeployments_prune_enabled{{{of}}} == 1"),
            format!("kluctldeployments_last_object_status{{{of}}} == 1"),
        ]);
    }
    for query in &queries {
        prometheus.wait_for(query, TIMEOUT).await?;
    }

    distinguishes_kinds(&shop, &prometheus).await?;

    // The series of an object go with it.
    let api = shop.api();
    api.delete("new", &DeleteParams::default()).await?;
    wait_gone(&api, "new", TIMEOUT).await?;
    eventually("the series to end", TIMEOUT, || async {
        let left = prometheus
            .query(r#"{name="new",__name__!~"up|scrape.*"}"#)
            .await?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await
}

/// Checks that objects of one name have series for each kind, which end with their object.
async fn distinguishes_kinds(shop: &Gitops, prometheus: &Prometheus) -> Result<()> {
    let fixture = &shop.fixture;
    let old = json!({
        "sourceRef": null, "path": null, "source": { "url": shop.repo.url() }, "interval": "10m", "prune": true,
    });
    fixture.deploy("twin", old).await?;
    fixture.ready("twin", "True", SUCCEEDED).await?;
    fixture.edit("twin", json!({ "suspend": true })).await?;
    shop.create("twin", json!({ "deployInterval": "7m" })).await?;
    shop.ready("twin", SUCCEEDED).await?;
    let of_old = [
        r#"gotk_suspend_status{name="twin",group="flux.kluctl.io"} == 1"#,
        r#"gotk_reconcile_condition{name="twin",group="flux.kluctl.io",type="Ready",status="True"} == 1"#,
        r#"gotk_reconcile_duration_seconds_count{name="twin",group="flux.kluctl.io"} > 0"#,
        r#"kluctldeployments_prune_enabled{name="twin",group="flux.kluctl.io"} == 1"#,
        r#"kluctldeployments_deployment_interval_seconds{name="twin",group="flux.kluctl.io"} == 600"#,
    ];
    let of_new = [
        r#"gotk_suspend_status{name="twin",group=""} == 0"#,
        r#"gotk_reconcile_duration_seconds_count{name="twin",group=""} > 0"#,
        r#"kluctldeployments_prune_enabled{name="twin",group=""} == 0"#,
        r#"kluctldeployments_deployment_interval_seconds{name="twin",group=""} == 420"#,
    ];
    for query in of_old.iter().chain(&of_new) {
        prometheus.wait_for(query, TIMEOUT).await?;
    }
    let api = shop.api();
    api.delete("twin", &DeleteParams::default()).await?;
    wait_gone(&api, "twin", TIMEOUT).await?;
    let left = r#"count({name="twin",group="",__name__!~"up|scrape.*"}) or vector(0)"#;
    prometheus.wait_for(&format!("{left} == 0"), TIMEOUT).await?;
    for query in of_old {
        prometheus.wait_for(query, TIMEOUT).await?;
    }
    Ok(())
}
