//! Secrets of every kind, in failing objects of every kind: they show up nowhere.

use std::time::Duration;

use anyhow::Result;
use e2e::world::{CONTROLLERS, PATIENCE, SYSTEM, World, ready_condition};
use serde_json::{Value, json};
use testkit::{Answer, eventually, wait_for};

/// Stands for every secret. It is a word of its own, so that even a part of a longer text is found.
const CANARY: &str = "c4nary0f5ecrets";

fn secret(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": SYSTEM}, "stringData": data})
}

fn repository(name: &str, url: &str, secret: Option<&str>) -> Value {
    let mut spec = json!({"interval": "2s", "timeout": "3s", "url": url, "ref": {"branch": "main"}});
    if let Some(secret) = secret {
        spec["secretRef"] = json!({"name": secret});
    }
    json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
           "metadata": {"name": name, "namespace": SYSTEM}, "spec": spec})
}

/// Sources that fail with credentials in hand.
async fn failing_sources(world: &World) -> Result<Vec<&'static str>> {
    let locked = world.git.repo("locked")?;
    locked.commit("first", &[("a.txt", "a\n")])?;
    locked.require_basic_auth("somebody", "right");
    let missing = locked.url().replace("locked", "no-such-repository");
    let with_userinfo = locked
        .url()
        .replace("http://", &format!("http://somebody:{CANARY}@"));
    for (name, data) in [
        (
            "wrong-password",
            json!({"username": "somebody", "password": CANARY}),
        ),
        ("half", json!({"password": CANARY})),
        (
            "bad-ca",
            json!({"username": "somebody", "password": CANARY, "ca.crt": format!("-----BEGIN {CANARY}")}),
        ),
    ] {
        world.plane.apply(secret(name, &data)).await?;
    }
    for object in [
        repository("wrong-password", &locked.url(), Some("wrong-password")),
        repository("not-found", &missing, Some("wrong-password")),
        repository("half", &locked.url(), Some("half")),
        repository(
            "bad-ca",
            &locked.url().replace("http://", "https://"),
            Some("bad-ca"),
        ),
        repository("userinfo", &with_userinfo, None),
    ] {
        world.plane.apply(object).await?;
    }
    Ok(vec!["wrong-password", "not-found", "half", "bad-ca", "userinfo"])
}

/// Providers that fail with tokens and secret addresses in hand.
async fn failing_providers(world: &World) -> Result<()> {
    world
        .sink
        .answer(Answer::Status(500, format!("refused: {CANARY}")));
    let address = world.sink.url(&format!("hook/{CANARY}?token={CANARY}"));
    let data = json!({"address": address, "token": CANARY, "headers": format!("X-Api-Key: {CANARY}\n")});
    world.plane.apply(secret("hook", &data)).await?;
    let unreachable = json!({"address": format!("http://127.0.0.1:1/{CANARY}"), "token": CANARY});
    world.plane.apply(secret("unreachable", &unreachable)).await?;
    for (name, kind, secret) in [
        ("generic", "generic", "hook"),
        ("hmac", "generic-hmac", "hook"),
        ("slack", "slack", "unreachable"),
    ] {
        let provider = json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
            "metadata": {"name": name, "namespace": SYSTEM},
            "spec": {"type": kind, "timeout": "1s", "secretRef": {"name": secret}},
        });
        let alert = json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
            "metadata": {"name": name, "namespace": SYSTEM},
            "spec": {"providerRef": {"name": name}, "eventSeverity": "info",
                     "eventSources": [{"kind": "GitRepository", "name": "*"}, {"kind": "KluctlDeployment", "name": "*"}]},
        });
        world.plane.apply(provider).await?;
        world.plane.apply(alert).await?;
    }
    Ok(())
}

/// A deployment whose kubeconfig and rendered Secret hold the canary, and which the API server refuses.
async fn failing_deployment(world: &World) -> Result<()> {
    let repo = world.git.repo("project")?;
    let bad = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "Not_A_Name", "namespace": "default"},
                     "stringData": {"password": CANARY}, "type": "Opaque"});
    repo.commit(
        "first",
        &[
            (
                ".kluctl.yaml",
                "discriminator: canary\ntargets:\n  - name: only\n    context: default\n",
            ),
            ("deployment.yaml", "deployments:\n  - path: app\n"),
            ("app/secret.yaml", &bad.to_string()),
        ],
    )?;
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts:\n- name: x\n  context: {{cluster: x, user: x}}\n\
         clusters:\n- name: x\n  cluster: {{server: \"https://127.0.0.1:1\"}}\nusers:\n- name: x\n  user: {{token: {CANARY}}}\n"
    );
    world
        .plane
        .apply(secret("remote", &json!({"value": kubeconfig})))
        .await?;
    world.apply_repository("project", &repo.url(), "2s").await?;
    world
        .apply_deployment("refused", "project", json!({"target": "only"}))
        .await?;
    let remote = json!({"target": "only", "kubeConfig": {"secretRef": {"name": "remote"}}, "timeout": "30s"});
    world.apply_deployment("remote", "project", remote).await?;
    for name in ["refused", "remote"] {
        wait_for(&world.deployments(), name, "to fail", PATIENCE, |object| {
            ready_condition(object).is_some_and(|ready| ready.is_false())
        })
        .await?;
    }
    Ok(())
}

/// Everything that anybody but the owner of a Secret can read.
async fn readable(world: &World) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for controller in &world.controllers {
        texts.push((format!("log of {}", controller.name()), controller.log()));
        texts.push((
            format!("metrics of {}", controller.name()),
            controller.metrics().await?,
        ));
    }
    texts.push((
        "events".to_owned(),
        world
            .plane
            .kubectl(&["get", "events", "-A", "-o", "yaml"])
            .await?,
    ));
    for kind in ["gitrepositories", "kluctldeployments", "alerts", "providers"] {
        let list: Value =
            serde_json::from_str(&world.plane.kubectl(&["get", kind, "-A", "-o", "json"]).await?)?;
        for item in list["items"].as_array().into_iter().flatten() {
            texts.push((
                format!("status of {kind} {}", item["metadata"]["name"]),
                item["status"].to_string(),
            ));
        }
    }
    Ok(texts)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_reaches_a_log_event_status_or_metric() -> Result<()> {
    crate::init();
    let mut world = World::bare().await?;
    for name in CONTROLLERS {
        world.start(name, &["--log-level=debug"]).await?;
    }
    failing_providers(&world).await?;
    let sources = failing_sources(&world).await?;
    failing_deployment(&world).await?;
    for name in sources {
        wait_for(&world.repositories(), name, "to fail", PATIENCE, |repository| {
            let conditions = repository
                .status
                .as_ref()
                .map(|status| status.conditions.as_slice())
                .unwrap_or_default();
            api::conditions::is_false(conditions, "Ready")
        })
        .await?;
    }
    // A delivery has failed, retries and all, when the notification-controller says so.
    let notification = world.controller("notification-controller")?;
    eventually(
        "the failed delivery to be told",
        Duration::from_secs(120),
        || async {
            anyhow::ensure!(notification.log().contains("500"), "nothing in the log yet");
            Ok(())
        },
    )
    .await?;
    for (place, text) in readable(&world).await? {
        let position = text.find(CANARY);
        let around = position.map(|at| {
            text.get(at.saturating_sub(300)..(at + 100).min(text.len()))
                .unwrap_or(&text)
        });
        assert!(
            position.is_none(),
            "the canary is in the {place}: {}",
            around.unwrap_or_default()
        );
    }
    world.stop().await
}
