//! `weir reconcile`, `weir suspend`, `weir resume` and `weir delete`.

use std::process::Output;

use anyhow::{Context as _, Result};
use serde_json::{Value as Json, json};

use super::{
    Objects,
    create::{examples, words},
    git, ready,
};
use crate::commands::stderr;

const SOURCE: &str = "source.toolkit.fluxcd.io/v1";
const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
const NOTIFICATION: &str = "notification.toolkit.fluxcd.io/v1beta3";
const REQUESTED: &str = "reconcile.fluxcd.io/requestedAt";

fn lines(output: &Output) -> Vec<String> {
    stderr(output).lines().map(str::to_owned).collect()
}

fn is_requested(object: &Json) -> bool {
    !object["metadata"]["annotations"][REQUESTED].is_null()
}

/// Returns the status of a source whose request is handled.
fn fetched(object: &Json) -> Json {
    let artifact = json!({
        "revision": "main@sha1:1", "digest": format!("sha256:{}", "a".repeat(64)), "path": "p", "url": "http://x/a.tar.gz",
        "lastUpdateTime": "2026-01-01T00:00:00Z", "size": 1000,
    });
    let mut status = handled(object, "True", "stored");
    status["artifact"] = artifact;
    status
}

fn applied(object: &Json) -> Json {
    let mut status = handled(object, "True", "Applied revision: main@sha1:1");
    status["lastAppliedRevision"] = json!("main@sha1:1");
    status
}

fn handled(object: &Json, is_ready: &str, message: &str) -> Json {
    let generation = object["metadata"]["generation"].clone();
    let mut condition = ready(is_ready, "Reason", message);
    condition["observedGeneration"] = generation.clone();
    json!({
        "observedGeneration": generation, "conditions": [condition],
        "lastHandledReconcileAt": object["metadata"]["annotations"][REQUESTED],
    })
}

/// Returns the status of an object that waiting doesn't help.
fn stalled(object: &Json) -> Json {
    let mut status = handled(object, "False", "no such path");
    let condition = json!({
        "type": "Stalled", "status": "True", "reason": "Reason", "message": "no such path", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    status["conditions"].as_array_mut().unwrap().push(condition);
    status
}

/// Returns the status of an object that the controller tries again.
fn retrying(object: &Json) -> Json {
    let mut status = handled(object, "False", "no such path");
    let condition = json!({
        "type": "Reconciling", "status": "True", "reason": "ProgressingWithRetry", "message": "Fetching",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    status["conditions"].as_array_mut().unwrap().push(condition);
    status
}

fn kustomization(source: &str) -> Json {
    json!({"interval": "1h", "prune": true, "path": "./", "sourceRef": {"kind": "GitRepository", "name": source}})
}

/// Creates a source and a Kustomization of it.
async fn objects(prefix: &str) -> Result<Objects> {
    let objects = Objects::new(prefix).await?;
    let spec = json!({"spec": git("https://example.invalid/p")});
    objects.put(SOURCE, "GitRepository", "podinfo", spec).await?;
    let spec = json!({"spec": kustomization("podinfo")});
    objects.put(KUSTOMIZE, "Kustomization", "apps", spec).await?;
    Ok(objects)
}

#[tokio::test(flavor = "multi_thread")]
async fn source_is_reconciled_before_what_it_feeds() -> Result<()> {
    let objects = objects("reconcile-source").await?;
    let namespace = &objects.namespace;
    let (output, source, apps) = tokio::join!(
        objects.run("reconcile ks apps --with-source"),
        objects.answer(SOURCE, "GitRepository", "podinfo", is_requested, fetched),
        objects.answer(KUSTOMIZE, "Kustomization", "apps", is_requested, applied),
    );
    source.and(apps)?;
    let output = output?;
    assert_eq!(
        lines(&output),
        [
            &format!("► annotating GitRepository podinfo in {namespace} namespace"),
            "✔ GitRepository annotated",
            "◎ waiting for GitRepository reconciliation",
            "✔ fetched revision main@sha1:1",
            &format!("► annotating Kustomization apps in {namespace} namespace"),
            "✔ Kustomization annotated",
            "◎ waiting for Kustomization reconciliation",
            "✔ applied revision main@sha1:1",
        ]
    );
    assert!(output.status.success());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_several_objects_has_its_outcome() -> Result<()> {
    let objects = objects("reconcile-several").await?;
    let spec = json!({"spec": kustomization("podinfo")});
    objects.put(KUSTOMIZE, "Kustomization", "broken", spec).await?;
    let mut spec = kustomization("podinfo");
    spec["suspend"] = json!(true);
    objects
        .put(KUSTOMIZE, "Kustomization", "asleep", json!({"spec": spec}))
        .await?;
    let (output, apps, broken) = tokio::join!(
        objects.run("reconcile kustomization apps broken asleep missing apps"),
        objects.answer(KUSTOMIZE, "Kustomization", "apps", is_requested, applied),
        objects.answer(KUSTOMIZE, "Kustomization", "broken", is_requested, stalled),
    );
    apps.and(broken)?;
    let output = output?;
    let lines = lines(&output);
    assert_eq!(output.status.code(), Some(1), "{lines:?}");
    let missing = format!(
        "✗ missing: kustomizations.kustomize.toolkit.fluxcd.io \"missing\" not found in {} namespace",
        objects.namespace
    );
    for line in [
        "✔ apps: applied revision main@sha1:1",
        "✗ broken: no such path",
        "✗ asleep: resource is suspended",
        &missing,
        "✗ reconciliation failed for 3 of 4 objects",
    ] {
        assert!(lines.contains(&line.to_owned()), "{line}: {lines:#?}");
    }
    let annotated = lines.iter().filter(|line| line.contains("annotating")).count();
    assert_eq!(annotated, 2, "{lines:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_those_of_the_original() -> Result<()> {
    let objects = objects("reconcile-fails").await?;
    let (output, answered) = tokio::join!(
        objects.fails("reconcile ks apps"),
        objects.answer(KUSTOMIZE, "Kustomization", "apps", is_requested, stalled),
    );
    answered?;
    assert!(output?.ends_with("✗ no such path\n"));
    let missing = objects.fails("reconcile source git missing").await?;
    assert!(
        missing.contains("gitrepositories.source.toolkit.fluxcd.io \"missing\" not found"),
        "{missing}"
    );
    let late = objects.fails("reconcile source git podinfo --timeout 2s").await?;
    assert!(late.contains("no answer of the controller"), "{late}");
    for (line, message) in [
        ("reconcile ks apps --force", "--force is for HelmReleases"),
        (
            "reconcile source git podinfo --with-source",
            "--with-source is for kinds that have a source",
        ),
        ("reconcile alert x", "unrecognized subcommand 'alert'"),
        ("reconcile hr x", "its definition (CRD) is not installed"),
        (
            "reconcile kluctldeployment x",
            "reconciled by weir gitops reconcile",
        ),
        ("reconcile ks apps --as me", "--as is not supported"),
    ] {
        let error = objects.fails(line).await?;
        assert!(error.contains(message), "{line}: {error}");
    }
    let registry = json!({"spec": {"url": "oci://example.invalid/charts", "type": "oci"}});
    objects.put(SOURCE, "HelmRepository", "charts", registry).await?;
    let output = objects.run("reconcile source helm charts").await?;
    assert_eq!(lines(&output), ["✔ reconciliation not supported by the object"]);
    assert!(output.status.success());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_of_an_attempt_is_said_at_once() -> Result<()> {
    let objects = objects("reconcile-again").await?;
    let (output, answered) = tokio::join!(
        objects.fails("reconcile ks apps --timeout 5s"),
        objects.answer(KUSTOMIZE, "Kustomization", "apps", is_requested, retrying),
    );
    answered?;
    let output = output?;
    let warnings = output
        .matches("⚠️ Kustomization apps: no such path (the controller tries again)")
        .count();
    assert_eq!(warnings, 1, "{output}");
    assert!(
        output.ends_with("✗ the last message of the controller: no such path\n"),
        "{output}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn suspension_says_who_and_why_until_it_is_resumed() -> Result<()> {
    let objects = objects("suspend").await?;
    let namespace = &objects.namespace;
    let mut command = objects.command("suspend ks apps missing --reason");
    let output = command.arg("load test").output().await?;
    assert_eq!(
        lines(&output),
        [
            &format!("► suspending kustomization apps in {namespace} namespace"),
            "✔ kustomization suspended",
            &format!("✗ Kustomization missing not found in {namespace} namespace"),
        ]
    );
    assert!(output.status.success(), "as flux does");
    let live = objects.live(KUSTOMIZE, "Kustomization", "apps").await?;
    assert_eq!(live["spec"]["suspend"], true);
    let annotations = &live["metadata"]["annotations"];
    assert_eq!(annotations["weir.io/suspended-reason"], "load test");
    let by = annotations["weir.io/suspended-by"].as_str();
    assert!(!by.context("no name")?.is_empty());
    assert!(annotations["weir.io/suspended-at"].as_str().is_some());
    let suspended = objects.fails("reconcile ks apps").await?;
    assert!(suspended.ends_with("✗ resource is suspended\n"), "{suspended}");

    let is_active = |object: &Json| object["spec"]["suspend"].is_null();
    let (output, answered) = tokio::join!(
        objects.run("resume ks apps"),
        objects.answer(KUSTOMIZE, "Kustomization", "apps", is_active, applied),
    );
    answered?;
    let output = output?;
    assert_eq!(
        lines(&output),
        [
            &format!("► resuming kustomization apps in {namespace} namespace"),
            "✔ kustomization resumed",
            "◎ waiting for Kustomization reconciliation",
            "✔ Kustomization apps reconciliation completed",
            "✔ applied revision main@sha1:1",
        ]
    );
    assert!(output.status.success());
    let live = objects.live(KUSTOMIZE, "Kustomization", "apps").await?;
    let annotations = live["metadata"]["annotations"].to_string();
    assert!(!annotations.contains("weir.io/suspended"), "{annotations}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn all_objects_of_a_kind_are_suspended_and_resumed() -> Result<()> {
    let objects = objects("suspend-all").await?;
    let namespace = &objects.namespace;
    let spec = json!({"spec": kustomization("podinfo")});
    objects.put(KUSTOMIZE, "Kustomization", "infra", spec).await?;
    objects.succeeds("suspend ks --all").await?;
    for name in ["apps", "infra"] {
        let live = objects.live(KUSTOMIZE, "Kustomization", name).await?;
        assert_eq!(live["spec"]["suspend"], true, "{name}");
    }
    let output = objects.run("resume ks --all").await?;
    let lines = lines(&output);
    assert_eq!(
        lines
            .iter()
            .filter(|line| *line == "✔ kustomization resumed")
            .count(),
        2
    );
    assert!(!lines.iter().any(|line| line.contains("waiting")), "{lines:?}");

    let none = objects.fails("suspend receiver --all").await?;
    assert!(none.contains("no objects found"), "{none}");
    let none = objects.run("resume receiver --all").await?;
    assert!(none.status.success(), "as flux does");
    assert_eq!(
        stderr(&none),
        format!("✗ no Receiver objects found in {namespace} namespace\n")
    );
    let nameless = objects.fails("suspend ks").await?;
    assert!(nameless.contains("<NAME>"), "{nameless}");

    let alert = json!({"spec": {"providerRef": {"name": "chat"}, "eventSources": []}});
    objects.put(NOTIFICATION, "Alert", "all", alert).await?;
    objects.succeeds("suspend alert all").await?;
    let output = objects.run("resume alert all").await?;
    assert!(
        stderr(&output).ends_with("✔ Alert reconciliation completed\n"),
        "{}",
        stderr(&output)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_deleted_after_a_question() -> Result<()> {
    let objects = objects("delete").await?;
    let namespace = &objects.namespace;
    let unasked = objects.fails("delete ks apps").await?;
    assert!(
        unasked.contains("use --silent to skip the confirmation"),
        "{unasked}"
    );
    assert!(unasked.ends_with("✗ aborting\n"), "{unasked}");
    objects.live(KUSTOMIZE, "Kustomization", "apps").await?;
    let output = objects.run("delete kustomization apps -s").await?;
    assert_eq!(
        lines(&output),
        [
            &format!("► deleting kustomization apps in {namespace} namespace"),
            "✔ kustomization deleted",
        ]
    );
    let gone = objects.fails("delete ks apps -s").await?;
    assert!(gone.contains("not found"), "{gone}");
    let mixed = objects
        .fails("delete source git podinfo missing --silent")
        .await?;
    assert!(mixed.contains("✔ source git deleted"), "{mixed}");
    assert!(mixed.contains("✗ deletion failed for 1 of 2 objects"), "{mixed}");
    // Without a kind, it is kluctl's.
    let target = objects.fails("delete --yes").await?;
    assert!(target.contains("\nError: "), "{target}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_of_the_help_are_understood() -> Result<()> {
    let objects = Objects::new("steer-examples").await?;
    for command in ["reconcile", "suspend", "resume", "delete"] {
        let all = examples(&format!("{command} kustomization"));
        assert!(all.len() > 1, "{command}");
        for line in all {
            let mut command = objects.command("");
            let output = command.args(words(&line)).output().await?;
            // The objects don't exist, and HelmReleases are not installed.
            let said = stderr(&output);
            let reasons = [
                "not found",
                "no objects found",
                "not installed",
                "objects found in",
            ];
            assert!(
                reasons.iter().any(|reason| said.contains(reason)),
                "{line}: {said}"
            );
        }
    }
    Ok(())
}
