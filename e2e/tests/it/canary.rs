//! Secrets of every kind in failing objects of every kind appear in no log, event, status or metric.

use std::time::Duration;

use anyhow::Result;
use e2e::cluster::{CONTROLLERS, NAMESPACE, TIMEOUT, TestCluster, ready_condition, ready_of};
use serde_json::{Value, json};
use testkit::{Answer, eventually, wait_for};

/// The value of every secret. It is one word, so that it is also found within a longer string.
const CANARY: &str = "c4nary0f5ecrets";

fn secret(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}, "stringData": data})
}

fn repository(name: &str, url: &str, secret: Option<&str>) -> Value {
    let mut spec = json!({"interval": "2s", "timeout": "3s", "url": url, "ref": {"branch": "main"}});
    if let Some(secret) = secret {
        spec["secretRef"] = json!({"name": secret});
    }
    json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
           "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
}

async fn failing_sources(cluster: &TestCluster) -> Result<Vec<&'static str>> {
    let locked = cluster.git.repo("locked")?;
    locked.commit("first", &[("a.txt", "a\n")])?;
    locked.require_basic_auth("user", "right");
    let missing = locked.url().replace("locked", "no-such-repository");
    let with_userinfo = locked.url().replace("http://", &format!("http://user:{CANARY}@"));
    for (name, data) in [
        ("wrong-password", json!({"username": "user", "password": CANARY})),
        ("half", json!({"password": CANARY})),
        (
            "bad-ca",
            json!({"username": "user", "password": CANARY, "ca.crt": format!("-----BEGIN {CANARY}")}),
        ),
    ] {
        cluster.plane.apply(secret(name, &data)).await?;
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
        cluster.plane.apply(object).await?;
    }
    Ok(vec!["wrong-password", "not-found", "half", "bad-ca", "userinfo"])
}

async fn failing_providers(cluster: &TestCluster) -> Result<()> {
    cluster
        .sink
        .answer(Answer::Status(500, format!("refused: {CANARY}")));
    let address = cluster.sink.url(&format!("hook/{CANARY}?token={CANARY}"));
    let data = json!({"address": address, "token": CANARY, "headers": format!("X-Api-Key: {CANARY}\n")});
    cluster.plane.apply(secret("hook", &data)).await?;
    let unreachable = json!({"address": format!("http://127.0.0.1:1/{CANARY}"), "token": CANARY});
    cluster.plane.apply(secret("unreachable", &unreachable)).await?;
    for (name, kind, secret) in [
        ("generic", "generic", "hook"),
        ("hmac", "generic-hmac", "hook"),
        ("slack", "slack", "unreachable"),
    ] {
        let provider = json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"type": kind, "timeout": "1s", "secretRef": {"name": secret}},
        });
        let alert = json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"providerRef": {"name": name}, "eventSeverity": "info",
                     "eventSources": [{"kind": "GitRepository", "name": "*"}, {"kind": "KluctlDeployment", "name": "*"}, {"kind": "Kustomization", "name": "*"}]},
        });
        cluster.plane.apply(provider).await?;
        cluster.plane.apply(alert).await?;
    }
    Ok(())
}

/// Applies deployments whose kubeconfig or rendered Secret holds the canary, and which the API server refuses.
async fn failing_deployment(cluster: &TestCluster) -> Result<()> {
    let repo = cluster.git.repo("project")?;
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
    cluster
        .plane
        .apply(secret("remote", &json!({"value": kubeconfig})))
        .await?;
    cluster.apply_repository("project", &repo.url(), "2s").await?;
    cluster
        .apply_deployment("refused", "project", json!({"target": "only"}))
        .await?;
    let remote = json!({"target": "only", "kubeConfig": {"secretRef": {"name": "remote"}}, "timeout": "30s"});
    cluster.apply_deployment("remote", "project", remote).await?;
    for name in ["refused", "remote"] {
        wait_for(&cluster.deployments(), name, "to fail", TIMEOUT, |object| {
            ready_condition(object).is_some_and(|ready| ready.is_false())
        })
        .await?;
    }
    Ok(())
}

/// Applies Kustomizations whose variables, keys, kubeconfig or objects hold the canary, and which fail.
async fn failing_kustomizations(cluster: &TestCluster) -> Result<()> {
    let repo = cluster.git.repo("kustomizations")?;
    let refused = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "refused", "namespace": NAMESPACE},
                         "spec": {"type": "${password}"}});
    let named = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "Not_A_Name", "namespace": NAMESPACE},
                       "stringData": {"password": "${password}"}});
    let encrypted = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "encrypted", "namespace": NAMESPACE},
                           "data": {"password": "ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]"},
                           "sops": {"age": [], "mac": CANARY, "version": "3.9.0"}});
    let plain = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "plain", "namespace": NAMESPACE},
                       "stringData": {"not/a/key": CANARY}});
    repo.commit(
        "first",
        &[
            ("variables/service.yaml", &refused.to_string()),
            ("names/secret.yaml", &named.to_string()),
            ("encrypted/secret.yaml", &encrypted.to_string()),
            ("plain/secret.yaml", &plain.to_string()),
            ("remote/secret.yaml", &named.to_string()),
        ],
    )?;
    for (name, data) in [
        ("variables", json!({"password": CANARY})),
        (
            "keys",
            json!({"bad.agekey": CANARY, "sops.vault-token": CANARY, "bad.asc": CANARY}),
        ),
    ] {
        cluster.plane.apply(secret(name, &data)).await?;
    }
    cluster
        .apply_repository("kustomizations", &repo.url(), "1h")
        .await?;
    let variables = json!({"substituteFrom": [{"kind": "Secret", "name": "variables"}]});
    let keys = json!({"provider": "sops", "secretRef": {"name": "keys"}});
    let remote = json!({"secretRef": {"name": "remote"}});
    let all = [
        ("variables", json!({"postBuild": variables})),
        ("names", json!({"postBuild": variables})),
        ("encrypted", json!({"decryption": keys})),
        ("plain", json!({})),
        (
            "remote",
            json!({"postBuild": variables, "kubeConfig": remote, "timeout": "30s"}),
        ),
    ];
    for (name, spec) in &all {
        let mut spec = spec.clone();
        spec["path"] = format!("./{name}").into();
        cluster.apply_kustomization(name, "kustomizations", spec).await?;
    }
    for (name, _) in &all {
        wait_for(&cluster.kustomizations(), name, "to fail", TIMEOUT, |object| {
            let ready = object.status.as_ref().and_then(ready_of);
            ready.is_some_and(|ready| ready.is_false() && !ready.reason.starts_with("Artifact"))
        })
        .await?;
    }
    Ok(())
}

/// Returns everything that users without access to Secrets can read.
async fn readable(cluster: &TestCluster) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for controller in &cluster.controllers {
        texts.push((format!("log of {}", controller.name()), controller.log()));
        texts.push((
            format!("metrics of {}", controller.name()),
            controller.metrics().await?,
        ));
    }
    texts.push((
        "events".to_owned(),
        cluster
            .plane
            .kubectl(&["get", "events", "-A", "-o", "yaml"])
            .await?,
    ));
    for kind in [
        "gitrepositories",
        "kluctldeployments",
        "kustomizations",
        "alerts",
        "providers",
    ] {
        let list: Value =
            serde_json::from_str(&cluster.plane.kubectl(&["get", kind, "-A", "-o", "json"]).await?)?;
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
async fn secrets_appear_in_no_log_event_status_or_metric() -> Result<()> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    for &name in CONTROLLERS {
        cluster.start(name, &["--log-level=debug"]).await?;
    }
    failing_providers(&cluster).await?;
    let sources = failing_sources(&cluster).await?;
    failing_deployment(&cluster).await?;
    failing_kustomizations(&cluster).await?;
    for name in sources {
        wait_for(&cluster.repositories(), name, "to fail", TIMEOUT, |repository| {
            let conditions = repository
                .status
                .as_ref()
                .map(|status| status.conditions.as_slice())
                .unwrap_or_default();
            api::conditions::is_false(conditions, "Ready")
        })
        .await?;
    }
    // The notification-controller logs a failed delivery after its last retry.
    let notification = cluster.controller("notification-controller")?;
    eventually(
        "the failed delivery to be told",
        Duration::from_secs(120),
        || async {
            anyhow::ensure!(notification.log().contains("500"), "nothing in the log yet");
            Ok(())
        },
    )
    .await?;
    for (name, text) in readable(&cluster).await? {
        let position = text.find(CANARY);
        let around = position.map(|at| {
            text.get(at.saturating_sub(300)..(at + 100).min(text.len()))
                .unwrap_or(&text)
        });
        assert!(
            position.is_none(),
            "the canary is in the {name}: {}",
            around.unwrap_or_default()
        );
    }
    cluster.stop().await
}
