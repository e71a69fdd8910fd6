//! `weir status` and `weir explain`.

use anyhow::{Result, ensure};
use serde_json::{Value as Json, json};

use super::{KUSTOMIZE, Objects, SOURCE, git, ready};

/// A GitRepository that fails, two Kustomizations that wait for it, and one that waits for them.
async fn broken() -> Result<Objects> {
    let objects = Objects::new("status").await?;
    // Causes that are alike are printed once, and other tests have broken objects, too.
    let message = format!("no route to {}", objects.namespace);
    let status =
        json!({"observedGeneration": 1, "conditions": [ready("False", "GitOperationFailed", &message)]});
    let source = json!({"spec": git("https://example.invalid/x"), "status": status});
    objects.put(SOURCE, "GitRepository", "repo", source).await?;
    for (name, depends_on, reason) in [
        ("a", json!([]), "ArtifactFailed"),
        ("b", json!([]), "ArtifactFailed"),
        ("c", json!([{"name": "a"}]), "DependencyNotReady"),
    ] {
        let spec = json!({
            "interval": "1m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "repo"}, "dependsOn": depends_on,
        });
        let status = json!({"observedGeneration": 1, "conditions": [ready("False", reason, "Source artifact not found")]});
        objects
            .put(
                KUSTOMIZE,
                "Kustomization",
                name,
                json!({"spec": spec, "status": status}),
            )
            .await?;
    }
    Ok(objects)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_names_one_cause_for_all_that_it_holds_up() -> Result<()> {
    let objects = broken().await?;
    let namespace = &objects.namespace;
    let page = objects.succeeds(&format!("status -n {namespace}")).await?;
    ensure!(
        page.starts_with("GitRepository  1 failed\nKustomization  3 failed\n\n"),
        "{page}"
    );
    let cause = format!(
        "    why: GitOperationFailed: no route to {namespace}\n    \
             holds up 3: Kustomization/{namespace}/a, Kustomization/{namespace}/b, Kustomization/{namespace}/c\n    \
             to do: weir explain GitRepository/repo -n {namespace}; when it is corrected: weir reconcile source git repo -n {namespace}\n"
    );
    ensure!(page.ends_with(&cause) && page.matches('✗').count() == 1, "{page}");
    ensure!(
        page.contains(&format!("✗ GitRepository/{namespace}/repo has been failing for ")),
        "{page}"
    );
    let data: Json = serde_json::from_str(
        &objects
            .succeeds(&format!("status -n {namespace} -o json"))
            .await?,
    )?;
    assert_eq!(
        data["counts"][1],
        json!({"kind": "Kustomization", "group": "kustomize.toolkit.fluxcd.io", "objects": {"failed": 3}})
    );
    let cause_of_all = &data["causes"][0];
    assert_eq!(cause_of_all["problem"], "failed");
    assert_eq!(cause_of_all["object"]["name"], "repo");
    assert_eq!(cause_of_all["holdsUp"].as_array().map(Vec::len), Some(3));
    let everywhere = objects.succeeds("status").await?;
    ensure!(everywhere.contains(&cause), "{everywhere}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn explanations_have_evidence() -> Result<()> {
    let objects = broken().await?;
    let namespace = &objects.namespace;
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": namespace},
        "involvedObject": {"kind": "GitRepository", "name": "repo", "namespace": namespace}, "type": "Warning",
        "reason": "GitOperationFailed", "message": "unable to clone", "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z", "source": {"component": "test"},
    });
    objects.plane.apply(event).await?;
    let text = objects.succeeds("explain ks/c").await?;
    ensure!(
        text.starts_with(&format!(
            "Kustomization/{namespace}/c is failed\n    Ready=False for "
        )),
        "{text}"
    );
    ensure!(
        text.contains(&format!("✗ GitRepository/{namespace}/repo has been failing")),
        "{text}"
    );
    ensure!(
        text.contains("ago about GitRepository/repo: GitOperationFailed: unable to clone\n"),
        "{text}"
    );
    let source = objects.succeeds("explain GitRepository/repo").await?;
    ensure!(source.contains("It holds up 3: "), "{source}");
    let healthy = Objects::new("status-healthy").await?;
    let status = json!({"observedGeneration": 1, "conditions": [ready("True", "Succeeded", "ok")]});
    let rest = json!({"spec": git("https://example.invalid/y"), "status": status});
    healthy.put(SOURCE, "GitRepository", "fine", rest).await?;
    ensure!(
        healthy
            .succeeds("explain gitrepository/fine")
            .await?
            .ends_with("Nothing is wrong with it.\n")
    );
    let missing = healthy.fails("explain ks/none").await?;
    assert_eq!(
        missing,
        format!("✗ ks \"none\" not found in namespace \"{}\"\n", healthy.namespace)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_containers_explain_failed_health_checks() -> Result<()> {
    let objects = Objects::new("status-pods").await?;
    let namespace = &objects.namespace;
    let message = format!("health check failed: [Pod/{namespace}/web-1 status: 'Failed']");
    let status =
        json!({"observedGeneration": 1, "conditions": [ready("False", "HealthCheckFailed", &message)]});
    let spec =
        json!({"interval": "1m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "none"}});
    objects
        .put(
            KUSTOMIZE,
            "Kustomization",
            "apps",
            json!({"spec": spec, "status": status}),
        )
        .await?;
    let pod = json!({
        "containers": [{"name": "app", "image": "i"}], "automountServiceAccountToken": false, "nodeName": "no-such-node",
    });
    let waiting = json!({
        "name": "app", "image": "i", "imageID": "", "ready": false, "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
    });
    let rest = json!({"spec": pod, "status": {"containerStatuses": [waiting]}});
    objects.put("v1", "Pod", "web-1", rest).await?;
    let text = objects.succeeds("explain ks/apps").await?;
    ensure!(
        text.contains(&format!("    Pod/{namespace}/web-1:\n    container app of Pod/web-1 waits: CrashLoopBackOff back-off 40s\n")),
        "{text}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_providers_are_not_healthy() -> Result<()> {
    let objects = Objects::new("status-provider").await?;
    let namespace = &objects.namespace;
    let spec = json!({"type": "slack", "address": "https://example.invalid", "secretRef": {"name": "none"}});
    let status =
        json!({"observedGeneration": 1, "conditions": [ready("False", "TokenNotFound", "no such secret")]});
    let provider = json!({"spec": spec, "status": status});
    objects
        .put(
            "notification.toolkit.fluxcd.io/v1beta3",
            "Provider",
            "chat",
            provider,
        )
        .await?;
    let page = objects.succeeds(&format!("status -n {namespace}")).await?;
    ensure!(page.starts_with("Provider  1 failed\n"), "{page}");
    let text = objects.succeeds("explain Provider/chat").await?;
    ensure!(
        text.contains(&format!("✗ Provider/{namespace}/chat has been failing for "))
            && text.contains("    why: TokenNotFound: no such secret\n"),
        "{text}"
    );
    let row = objects
        .succeeds("get alert-provider chat --status-selector ready=false --no-header")
        .await?;
    assert_eq!(
        row.split('\t').map(str::trim).collect::<Vec<_>>(),
        ["chat", "False", "no such secret", ""]
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_objects_say_who_suspended_them() -> Result<()> {
    let objects = Objects::new("status-suspended").await?;
    let namespace = &objects.namespace;
    let status = json!({"observedGeneration": 1, "conditions": [ready("True", "Succeeded", "ok")]});
    let rest = json!({"spec": git("https://example.invalid/z"), "status": status});
    objects.put(SOURCE, "GitRepository", "off", rest).await?;
    objects
        .succeeds("suspend source git off --reason=maintenance")
        .await?;
    let page = objects.succeeds(&format!("status -n {namespace}")).await?;
    ensure!(
        page.starts_with("GitRepository  1 suspended\n\nNothing has failed.\n")
            && page.contains(&format!("\nSuspended:\n    GitRepository/{namespace}/off by "))
            && page.ends_with(" ago: maintenance\n"),
        "{page}"
    );
    let data = objects
        .succeeds(&format!("status -n {namespace} -o json"))
        .await?;
    let data: Json = serde_json::from_str(&data)?;
    assert_eq!(data["suspended"][0]["suspension"]["reason"], "maintenance");
    let text = objects.succeeds("explain GitRepository/off").await?;
    ensure!(
        text.contains("\nIt was suspended by ")
            && text.ends_with(&format!(
                "ago: maintenance\n    to do: weir resume source git off -n {namespace}\n"
            )),
        "{text}"
    );
    let wide = objects.succeeds("get source git off -o wide --no-header").await?;
    ensure!(wide.contains(": maintenance"), "{wide}");
    Ok(())
}
