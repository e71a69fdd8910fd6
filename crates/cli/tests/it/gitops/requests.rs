//! Requests, and the printing of their results. The tests play the controller.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value as Json, json};
use testkit::{FaultProxy, Outcome, eventually, proxy::ApiRequest};
use tokio::process::Child;

use crate::commands::weir;

use super::{Fixture, TIMEOUT, double::Answer, failed, stderr, stdout, succeeded};

#[tokio::test(flavor = "multi_thread")]
async fn deploy_overrides_the_spec_once_and_prints_the_result_like_weir_deploy() -> Result<()> {
    let fixture = Fixture::new("gitops-deploy").await?;
    fixture.deployment("shop", json!({"includeTags": ["x"]})).await?;
    let before = fixture.live("shop").await?;
    let words = format!(
        "deploy --name shop -n {} --command-result-namespace {} --dry-run=false -a a=7 -I y -o text -o yaml=printed.yaml -o json=printed.json",
        fixture.namespace, fixture.results
    );
    let (printed, played) = tokio::try_join!(
        fixture.gitops(&words),
        fixture.deploys("shop", "deploy", "-a a=7")
    )?;
    let (request, text) = played;
    let (messages, printed) = (stderr(&printed), succeeded(&printed)?);
    assert_eq!(printed, text);
    ensure!(
        printed.contains("New objects:") && messages.contains("Performing deploy"),
        "{printed}{messages}"
    );
    for form in ["yaml", "json"] {
        let own: Json = read(&fixture, form, "result")?;
        assert_eq!(read(&fixture, form, "printed")?, own, "{form}");
    }
    assert_eq!(
        request["overridesPatch"],
        json!({"spec": {"dryRun": false, "args": {"a": 7}, "includeTags": ["x", "y"]}})
    );
    let value = request["requestValue"].as_str().context("no value")?;
    ensure!(value.ends_with('Z') && value.contains('T'), "{value}");
    let after = fixture.live("shop").await?;
    assert_eq!(after["spec"], before["spec"]);
    Ok(())
}

fn read(fixture: &Fixture, form: &str, name: &str) -> Result<Json> {
    let text = fixture.read(&format!("{name}.{form}"))?;
    match form {
        "json" => Ok(serde_json::from_str(&text)?),
        // Equal strings are equal YAML.
        _ => Ok(Json::from(text)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_commands_print_their_result_and_end_with_1() -> Result<()> {
    let fixture = Fixture::new("gitops-failure").await?;
    fixture.deployment("shop", json!({})).await?;
    let words = format!(
        "prune -l of=shop -n {} --command-result-namespace {}",
        fixture.namespace, fixture.results
    );
    let (printed, _) = tokio::try_join!(
        fixture.gitops(&words),
        fixture.deploys("shop", "prune", "-a name=Not_Valid")
    )?;
    let message = failed(&printed)?;
    ensure!(
        message.contains("Error: deploy failed with 1 errors."),
        "{message}"
    );

    // Without a result, too, and without keeping others from their turn.
    fixture.deployment("other", json!({})).await?;
    let error = Answer {
        error: Some("prepare failed: \u{1b}[31mno such repository".to_owned()),
        ..Answer::default()
    };
    let words = format!("reconcile -n {} --yes", fixture.namespace);
    let (printed, ..) = tokio::try_join!(
        fixture.gitops(&words),
        fixture.answers("other", "reconcile", error),
        fixture.answers("shop", "reconcile", Answer::default())
    )?;
    let message = failed(&printed)?;
    let shown = format!(
        "{}/other: prepare failed: \u{fffd}[31mno such repository",
        fixture.namespace
    );
    ensure!(message.contains(&shown), "{message}");
    ensure!(
        message.contains(&format!("Reconciled {}/shop", fixture.namespace)),
        "{message}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_diff_is_deleted_after_it_is_printed() -> Result<()> {
    let fixture = Fixture::new("gitops-diff").await?;
    fixture.deployment("shop", json!({})).await?;
    let words = format!(
        "diff -n {} --command-result-namespace {}",
        fixture.namespace, fixture.results
    );
    let (printed, played) = tokio::try_join!(
        fixture.gitops(&words),
        fixture.deploys("shop", "diff", "--dry-run --force-write-command-result")
    )?;
    let (_, text) = played;
    assert_eq!(succeeded(&printed)?, text);
    let live = fixture.live("shop").await?;
    assert_eq!(live["status"].get("lastDiffResult"), None, "{live}");
    let stored = fixture
        .plane
        .kubectl(&["get", "secrets", "-n", &fixture.results, "-o", "name"])
        .await?;
    assert_eq!(stored, "");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn validation_fails_with_errors_and_if_asked_with_warnings() -> Result<()> {
    let fixture = Fixture::new("gitops-validate").await?;
    fixture.deployment("shop", json!({})).await?;
    let message = json!([{"ref": {"version": "v1", "kind": "ConfigMap", "name": "m", "namespace": "n"}, "message": "object not found"}]);
    let words = format!("validate --name shop -n {} --yes", fixture.namespace);
    for (list, flag, expected) in [
        ("", "", None),
        ("warnings", "", None),
        ("warnings", "--warnings-as-errors", Some("Warnings")),
        ("errors", "", Some("Errors")),
    ] {
        let mut result = json!({"id": "one", "ready": true});
        if !list.is_empty() {
            result[list] = message.clone();
        }
        // The result in the status serves if the store has none.
        let answer = Answer {
            result_id: Some("one".to_owned()),
            status: json!({"lastValidateResult": result}),
            ..Answer::default()
        };
        let words = format!("{words} {flag}");
        fixture
            .patch("shop", "status", json!({"status": {"lastValidateResult": null}}))
            .await?;
        let (printed, _) = tokio::try_join!(
            fixture.gitops(&words),
            fixture.answers("shop", "validate", answer)
        )?;
        match expected {
            None => {
                succeeded(&printed)?;
                ensure!(
                    stderr(&printed).contains("Validation succeeded"),
                    "{}",
                    stderr(&printed)
                );
            }
            Some(title) => {
                let text = stdout(&printed);
                ensure!(failed(&printed)?.contains("Error: Validation failed"), "{text}");
                assert_eq!(
                    text,
                    format!("\nValidation {title}:\n  n/ConfigMap/m: object not found\n")
                );
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn request_that_the_controller_did_not_begin_is_withdrawn_at_the_end_of_the_timeout() -> Result<()> {
    let fixture = Fixture::new("gitops-timeout").await?;
    fixture.deployment("shop", json!({})).await?;
    let words = format!("deploy --name shop -n {} --timeout 1s", fixture.namespace);
    let message = failed(&fixture.gitops(&words).await?)?;
    ensure!(message.contains("was withdrawn"), "{message}");
    let live = fixture.live("shop").await?;
    assert_eq!(live["metadata"].get("annotations"), None, "{live}");

    // A request in progress goes on.
    let words = format!("deploy --name shop -n {} --timeout 5s", fixture.namespace);
    let (printed, _) = tokio::try_join!(fixture.gitops(&words), fixture.begins("shop", "deploy"))?;
    let message = failed(&printed)?;
    ensure!(
        message.contains("works on the request") && !message.contains("withdrawn"),
        "{message}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn request_that_the_controller_did_not_begin_is_withdrawn_at_ctrl_c() -> Result<()> {
    let fixture = Fixture::new("gitops-interrupt").await?;
    fixture.deployment("shop", json!({})).await?;
    let weir = start_deploy(&fixture, fixture.plane.kubeconfig())?;
    fixture.requested("shop", "deploy").await?;
    assert_withdrawn_at_ctrl_c(&fixture, weir).await
}

#[tokio::test(flavor = "multi_thread")]
async fn request_that_is_being_made_at_ctrl_c_is_withdrawn() -> Result<()> {
    let fixture = Fixture::new("gitops-interrupt-early").await?;
    fixture.deployment("shop", json!({})).await?;
    let proxy = FaultProxy::start(fixture.plane)?;
    let makes_request = |request: &ApiRequest| request.method == "PATCH";
    proxy.outcomes(makes_request, [Outcome::Delay(Duration::from_millis(500))]);
    let weir = start_deploy(&fixture, &proxy.kubeconfig(fixture.plane.kubeconfig())?)?;
    eventually("the request", TIMEOUT, || async {
        ensure!(proxy.requests().iter().any(makes_request));
        Ok(())
    })
    .await?;
    assert_withdrawn_at_ctrl_c(&fixture, weir).await
}

fn start_deploy(fixture: &Fixture, kubeconfig: &Path) -> Result<Child> {
    let words = format!("gitops deploy --name shop -n {}", fixture.namespace);
    let mut command = weir(fixture.dir.path(), &words);
    command.env("KUBECONFIG", kubeconfig);
    let mut command = tokio::process::Command::from(command);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Ok(command.spawn()?)
}

async fn assert_withdrawn_at_ctrl_c(fixture: &Fixture, weir: Child) -> Result<()> {
    let id = weir.id().context("it has ended")?.to_string();
    let interrupted = tokio::process::Command::new("kill")
        .args(["-INT", &id])
        .status()
        .await?;
    ensure!(interrupted.success());
    let message = failed(&weir.wait_with_output().await?)?;
    ensure!(message.contains("was withdrawn"), "{message}");
    assert_eq!(fixture.live("shop").await?["metadata"].get("annotations"), None);
    Ok(())
}

/// Returns 1,000 ConfigMaps whose values can't be compressed much.
fn thousand_objects(namespace: &str) -> String {
    let mut state = 7_u64;
    let mut letters = move || {
        let letter = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(b"abcdefghijklmnopqrstuvwxyz012345"[usize::try_from(state >> 59).unwrap_or_default()])
        };
        std::iter::repeat_with(letter).take(2000).collect::<String>()
    };
    let map = |number| {
        let value = letters();
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{number}, namespace: {namespace}}}\ndata: {{v: {value}}}\n---\n"
        )
    };
    (0..1000).map(map).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn result_of_1000_objects_is_stored_listed_and_shown_in_secrets_below_the_limit() -> Result<()> {
    let fixture = Fixture::new("gitops-large").await?;
    fixture.deployment("shop", json!({})).await?;
    let file = fixture.dir.path().join("deploy/app/m.yaml");
    std::fs::write(file, thousand_objects(&fixture.namespace))?;
    let words = format!(
        "deploy --name shop -n {} --command-result-namespace {} -o text -o json=printed.json",
        fixture.namespace, fixture.results
    );
    let (printed, (_, text)) =
        tokio::try_join!(fixture.gitops(&words), fixture.deploys("shop", "deploy", ""))?;
    let printed = succeeded(&printed)?;
    assert_eq!(printed, text);
    assert_eq!(
        printed
            .lines()
            .filter(|line| line.contains("/ConfigMap/m"))
            .count(),
        1000
    );
    let shown: Json = read(&fixture, "json", "printed")?;
    assert_eq!(shown, read(&fixture, "json", "result")?);
    assert_eq!(shown["compactedObjects"].as_array().map(Vec::len), Some(1000));

    let secrets = fixture
        .plane
        .kubectl(&["get", "secrets", "-n", &fixture.results, "-o", "json"])
        .await?;
    let secrets: Json = serde_json::from_str(&secrets)?;
    let secrets = secrets["items"].as_array().context("no list")?;
    ensure!(secrets.len() > 1, "it fits into one Secret");
    let mut summaries = Vec::new();
    for secret in secrets {
        let data = secret["data"].as_object().context("no data")?;
        // Four letters of base64 are three bytes.
        let size: usize = data
            .values()
            .filter_map(Json::as_str)
            .map(|text| text.len() / 4 * 3)
            .sum();
        ensure!(size < 1 << 20, "{} has {size} bytes", secret["metadata"]["name"]);
        summaries.extend(secret["metadata"]["annotations"]["kluctl.io/command-result-summary"].as_str());
    }
    let [summary] = summaries.as_slice() else {
        anyhow::bail!("{} Secrets have a summary", summaries.len());
    };
    let summary: Json = serde_json::from_str(summary)?;
    assert_eq!(
        (&summary["newObjects"], &summary["id"]),
        (&json!(1000), &shown["id"])
    );
    Ok(())
}
