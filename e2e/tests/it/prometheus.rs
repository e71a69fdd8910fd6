//! A real Prometheus finds the controllers by the annotations of `deploy/`, answers the documented queries and the queries of the dashboards,
//! and evaluates the rules.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use e2e::{
    cluster::{CONTROLLERS, NAMESPACE, TIMEOUT, TestCluster, root},
    demo::shop::example,
};
use serde_json::{Value, json};
use testkit::{Prometheus, eventually};
use tree::{Budget, Disk, Limits, TreePath};

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
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [{
            "job_name": "flux",
            "kubernetes_sd_configs": [{"role": "pod", "kubeconfig_file": kubeconfig, "namespaces": {"names": [NAMESPACE]}}],
            "relabel_configs": relabel,
        }],
    });
    Ok(config.to_string())
}

/// Returns the objects of `deploy/monitoring` of a kind.
fn monitoring(kind: &str) -> Result<Vec<Value>> {
    let tree = Disk::open(root().join("deploy"), &Limits::default())?;
    let dir = TreePath::parse("monitoring")?;
    let built = kustomize::build(&tree, &dir, &kustomize::Options::default(), &Budget::default())?;
    let objects = built.objects.iter().map(|built| built.object.to_json());
    Ok(objects.filter(|object| object["kind"] == kind).collect())
}

/// Returns the groups of the rules, whose alerts fire at once.
fn rules() -> Result<Value> {
    let rules = monitoring("PrometheusRule")?;
    let mut spec = rules.into_iter().next().context("there are no rules")?["spec"].take();
    for group in spec["groups"].as_array_mut().context("no groups")? {
        for rule in group["rules"].as_array_mut().context("no rules")? {
            rule.as_object_mut().context("no rule")?.remove("for");
        }
    }
    Ok(spec)
}

/// Returns the queries of all panels of the dashboards, with all values of their variables.
fn dashboard_queries() -> Result<Vec<String>> {
    let mut queries = Vec::new();
    for map in monitoring("ConfigMap")? {
        for (file, text) in map["data"].as_object().context("no files")? {
            let dashboard: Value = serde_json::from_str(text.as_str().unwrap_or_default())?;
            let variables = dashboard.pointer("/templating/list").and_then(Value::as_array);
            let names: Vec<&str> = variables
                .into_iter()
                .flatten()
                .filter_map(|one| one["name"].as_str())
                .collect();
            let panels = dashboard["panels"]
                .as_array()
                .with_context(|| format!("{file}: no panels"))?;
            for target in panels
                .iter()
                .filter_map(|panel| panel["targets"].as_array())
                .flatten()
            {
                let query = target["expr"]
                    .as_str()
                    .with_context(|| format!("{file}: no query"))?;
                let all = names.iter().fold(query.to_owned(), |query, name| {
                    query.replace(&format!("${name}"), ".*")
                });
                queries.push(all);
            }
        }
    }
    Ok(queries)
}

/// Checks that Prometheus accepts and evaluates all rules, and that an alert fires for the source that is missing.
async fn rules_fire(prometheus: &Prometheus, rules: &Value) -> Result<()> {
    let groups = rules["groups"].as_array().context("no groups")?;
    let count = groups
        .iter()
        .filter_map(|group| group["rules"].as_array())
        .map(Vec::len)
        .sum::<usize>();
    ensure!(count > 10, "there are only {count} rules");
    eventually("the rules to be evaluated", TIMEOUT, || async {
        let groups = prometheus.rule_groups().await?;
        let rules = groups
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|group| group["rules"].as_array());
        let rules: Vec<&Value> = rules.flatten().collect();
        let failed: Vec<&&Value> = rules.iter().filter(|rule| rule["health"] != "ok").collect();
        ensure!(
            rules.len() == count && failed.is_empty(),
            "{} of {count} rules; failed: {failed:?}",
            rules.len()
        );
        let fires = |name: &str| {
            rules
                .iter()
                .any(|rule| rule["name"] == name && rule["state"] == "firing")
        };
        ensure!(
            fires("WeirObjectNotReady"),
            "no alert fires for the missing repository"
        );
        ensure!(
            !fires("WeirControllerPanics") && !fires("WeirEventsDropped"),
            "alerts fire without a cause"
        );
        Ok(())
    })
    .await
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

    cluster
        .apply_repository("missing", "http://127.0.0.1:1/missing.git", "1h")
        .await?;

    let rules = rules()?;
    let configuration = config(&cluster, cluster.plane.kubeconfig())?;
    let prometheus = Prometheus::start_with_rules(&configuration, &rules.to_string()).await?;
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
    rules_fire(&prometheus, &rules).await?;
    let queries = dashboard_queries()?;
    ensure!(
        queries.len() > 20,
        "the dashboards have only {} queries",
        queries.len()
    );
    let mut answered = 0;
    for query in &queries {
        let samples = prometheus
            .query(query)
            .await
            .with_context(|| format!("a query of a dashboard: {query}"))?;
        answered += usize::from(!samples.is_empty());
    }
    ensure!(
        answered * 2 > queries.len(),
        "only {answered} of {} queries have results",
        queries.len()
    );
    cluster.stop().await
}
