//! Stored results of KluctlDeployments that are gone.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::{Value, json};
use testkit::{ControlPlane, Options, eventually, stack, wait_gone};

use crate::fixture::{Fixture, TIMEOUT, own_plane, plane};

/// Stores a result, with a second Secret for its further objects.
pub(crate) async fn store(plane: &ControlPlane, results: &str, id: &str, deployment: Value) -> Result<()> {
    let mut summary = json!({"id": id, "projectKey": {}, "targetKey": {}});
    if !deployment.is_null() {
        summary["kluctlDeployment"] = deployment;
    }
    let first = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": id, "namespace": results,
            "labels": {"kluctl.io/result": "true", "kluctl.io/command-result-id": id},
            "annotations": {"kluctl.io/command-result-summary": summary.to_string(), "weir.io/result-parts": "2"},
        },
    });
    let second = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{id}-1"), "namespace": results},
    });
    plane.apply(first).await?;
    plane.apply(second).await?;
    Ok(())
}

/// Returns the ID of the cluster in results.
async fn cluster_id(plane: &ControlPlane) -> Result<String> {
    let id = "jsonpath={.metadata.uid}";
    plane
        .kubectl(&["get", "namespace", "kube-system", "-o", id])
        .await
}

/// Returns a KluctlDeployment that deploys nothing.
fn suspended(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "gitops.kluctl.io/v1beta1", "kind": "KluctlDeployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"interval": "1h", "suspend": true, "source": {"git": {"url": "https://example.invalid/shop"}}},
    })
}

#[tokio::test]
async fn results_of_objects_that_are_gone_are_deleted_at_the_start() -> Result<()> {
    let plane = plane().await?;
    let results = plane.namespace("orphan-results").await?;
    let cluster = cluster_id(plane).await?;
    let home = plane.namespace("orphans").await?;
    let of = |name: &str, namespace: &str, cluster: &str| json!({"name": name, "namespace": namespace, "clusterId": cluster});
    plane.apply(suspended("live", &home)).await?;
    for (id, deployment) in [
        ("of-live", of("live", &home, &cluster)),
        ("of-gone", of("gone", &home, &cluster)),
        ("elsewhere", of("gone", &home, "another-cluster")),
        ("other-controller", of("gone", "other", &cluster)),
        ("command-line", Value::Null),
    ] {
        store(plane, &results, id, deployment).await?;
    }
    let flag = format!("--command-result-namespace={results}");
    let fixture = Fixture::within(plane, &home, &[&flag]).await?;
    let said = |entry: &Value| entry["msg"] == "deleted results of KluctlDeployments that are gone";
    let line = fixture
        .controller
        .wait_log("the end of the deletion", TIMEOUT, said)
        .await?;
    assert_eq!(line["results"], json!(1));
    // Those that are left get the label by which writes find them.
    let said = |entry: &Value| entry["msg"] == "labelled stored results with their project and target";
    let line = fixture
        .controller
        .wait_log("the labels of the results", TIMEOUT, said)
        .await?;
    assert_eq!(line["results"], json!(4));
    let grouped = [
        "get",
        "secrets",
        "-n",
        &results,
        "-l",
        "weir.io/result-group,weir.io/result-deployment",
        "-o",
        "name",
    ];
    assert_eq!(plane.kubectl(&grouped).await?.lines().count(), 4);
    let names = [
        "get",
        "secrets",
        "-n",
        &results,
        "-o",
        "jsonpath={.items[*].metadata.name}",
    ];
    let left = plane.kubectl(&names).await?;
    let left: Vec<&str> = left
        .split_whitespace()
        .filter(|name| !name.ends_with("-1"))
        .collect();
    assert_eq!(left, ["command-line", "elsewhere", "of-live", "other-controller"]);
    let part = plane
        .kubectl(&["get", "secret", "of-gone-1", "-n", &results])
        .await;
    ensure!(
        part.err()
            .context("a part is left")?
            .to_string()
            .contains("not found")
    );
    Ok(())
}

#[tokio::test]
async fn deletion_lists_the_results_of_its_object_alone() -> Result<()> {
    let plane = plane().await?;
    let results = plane.namespace("orphan-one-results").await?;
    let home = plane.namespace("orphan-one").await?;
    let cluster = cluster_id(plane).await?;
    for name in ["gone", "left"] {
        plane.apply(suspended(name, &home)).await?;
        let of = json!({"name": name, "namespace": home, "clusterId": cluster});
        store(plane, &results, &format!("of-{name}"), of).await?;
    }
    let flag = format!("--command-result-namespace={results}");
    let fixture = Fixture::within(plane, &home, &[&flag]).await?;
    let said = |entry: &Value| entry["msg"] == "labelled stored results with their project and target";
    fixture
        .controller
        .wait_log("the labels of the results", TIMEOUT, said)
        .await?;
    let mark = plane.audit_mark();
    let delete = [
        "delete",
        "kluctldeployments.gitops.kluctl.io",
        "gone",
        "-n",
        &home,
    ];
    plane.kubectl(&delete).await?;
    let secrets = Api::<Secret>::namespaced(fixture.plane.client().await?, &results);
    wait_gone(&secrets, "of-gone", TIMEOUT).await?;
    ensure!(secrets.get_opt("of-left").await?.is_some());
    let lists: Vec<String> = fixture
        .requests_since(mark)?
        .into_iter()
        .filter(|entry| entry.verb == "list" && entry.resource == "secrets" && entry.namespace == results)
        .map(|entry| entry.uri)
        .collect();
    // The end of a pass and the watch both tell that the object is gone, sometimes one after the other.
    ensure!(
        (1..=2).contains(&lists.len())
            && lists
                .iter()
                .all(|uri| uri.contains("weir.io%2Fresult-deployment")),
        "{lists:?}"
    );
    Ok(())
}

#[tokio::test]
async fn rights_of_the_manifests_suffice_to_list_results() -> Result<()> {
    let own = own_plane(Options::default()).await?;
    let plane = own.get();
    stack::install(plane).await?;
    let mark = plane.audit_mark();
    let _controller = stack::launch(plane, "kluctl-controller").await?.start().await?;
    eventually("the list of results", TIMEOUT, || async {
        let entries = plane.audit_since(mark)?;
        let lists = entries
            .iter()
            .find(|entry| entry.resource == "secrets" && entry.namespace == "kluctl-results");
        ensure!(!lists.context("there is none")?.is_denied(), "{lists:?}");
        Ok(())
    })
    .await
}
