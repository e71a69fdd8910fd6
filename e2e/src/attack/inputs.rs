//! Inputs whose work or memory is a product: keys that are locked, ranges times versions, filters times objects; and paths and ports of others.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::{Manifest, Repo, eventually, manifest};
use tokio::task::JoinSet;

use super::{
    attacks::config_map,
    availability::{receiver_address, secret, webhook_of_victim, webhook_path},
    tenants::{ATTACKER, NEIGHBOUR, Tenants, VICTIM},
};
use crate::cluster::{NAMESPACE, TIMEOUT};

/// A private key that needs 2 GiB of memory to be unlocked, and a file that is encrypted for it.
const LOCKED: &str = include_str!("../../../crates/secrets/fixtures/argon2.asc");
const ENCRYPTED: &str = include_str!("../../../crates/secrets/fixtures/ecc.yaml");
/// Tags of the repository that is searched for a version, and objects that search it.
const TAGS: usize = 20_000;
const RANGES: usize = 8;
/// Bytes that the definition accepts as a range.
const RANGE_BYTES: usize = 2048;
/// Requests to the Receiver whose filter is a product.
const POSTS: usize = 60;
/// A filter whose steps are the fourth power of a list that the request has.
const FILTER: &str = "req.a.all(x, req.a.all(y, req.a.all(z, req.a.all(w, x + y + z + w >= 0))))";
/// Label of the objects that the filter is run for.
pub(super) const FILTERED: (&str, &str) = ("attack", "filtered");
/// Longest answer to the webhook of the victim.
const ANSWER: Duration = Duration::from_secs(5);

/// Deployments with a key that is locked by Argon2.
pub async fn locked_keys(tenants: &Tenants) -> Result<()> {
    let repo = tenants.cluster.git.repo("attack-locked")?;
    repo.change("locked")
        .write(".kluctl.yaml", "discriminator: attack-locked\n")
        .write(
            "deployment.yaml",
            "vars:\n- file: secret.yaml\ndeployments:\n- path: objects\n",
        )
        .write("secret.yaml", ENCRYPTED)
        .write("objects/object.yaml", config_map(ATTACKER, "locked").to_string())
        .push()?;
    tenants
        .apply(secret(ATTACKER, "locked", &json!({"locked.asc": LOCKED})))
        .await?;
    tenants
        .apply(manifest::git_repository(ATTACKER, "locked", &repo.url()))
        .await?;
    let spec = json!({"interval": "1h", "retryInterval": "1h", "timeout": "1m",
        "decryption": {"provider": "sops", "secretRef": {"name": "locked"}}});
    tenants
        .apply(manifest::kluctl_deployment(ATTACKER, "locked", "locked", ".").spec(spec))
        .await
}

/// Sources that search many tags with the longest range that the definition accepts.
pub async fn long_ranges(tenants: &Tenants) -> Result<Repo> {
    let repo = tenants.cluster.git.repo("attack-ranges")?;
    let commit = repo.commit("first", &[("a", "a")])?;
    let packed: String = (0..TAGS)
        .map(|number| format!("{commit} refs/tags/v1.{number}.0\n"))
        .collect();
    std::fs::write(repo.path().join("packed-refs"), packed)?;
    let mut range = String::new();
    while range.len() + 10 < RANGE_BYTES {
        range.push_str(if range.is_empty() { ">9.0.0" } else { "||>9.0.0" });
    }
    let source = |name: &str, range: &str| {
        manifest::git_repository(ATTACKER, name, &repo.url())
            .spec(json!({"interval": "1m", "ref": {"branch": null}}))
            .spec(json!({"ref": {"semver": range}}))
    };
    let long = ">9.0.0||".repeat(130_000);
    let applied = tenants.apply(source("range-of-a-megabyte", &long)).await;
    ensure!(applied.is_err(), "a range of a megabyte was accepted");
    for number in 0..RANGES {
        tenants.apply(source(&format!("range-{number}"), &range)).await?;
    }
    Ok(repo)
}

/// A source of a cloud, which would be read with the identity of the controller.
pub async fn identity_of_controller(tenants: &Tenants) -> Result<()> {
    let url = "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/of-all-tenants";
    let source = manifest::git_repository(ATTACKER, "cloud", url);
    tenants
        .apply(source.spec(json!({"interval": "10m", "provider": "aws"})))
        .await?;
    // The account of the attacker has no role; the identity of the controller is not used instead.
    let refused = |_: &str, message: &str| message.contains("--default-service-account");
    tenants.failed("GitRepository", "cloud", refused).await?;
    Ok(())
}

/// Waits until keys and ranges are refused by name.
pub async fn small_inputs_refused(tenants: &Tenants) -> Result<()> {
    let locked = |_: &str, message: &str| message.contains("locked with a passphrase");
    tenants.failed("KluctlDeployment", "locked", locked).await?;
    for number in 0..RANGES {
        let refused = |_: &str, message: &str| {
            message.contains("no match found for semver") || message.contains("comparisons")
        };
        tenants
            .failed("GitRepository", &format!("range-{number}"), refused)
            .await?;
    }
    Ok(())
}

/// The Receiver of the victim whose path is a hash without a token.
fn oidc() -> Manifest {
    receiver(VICTIM, "web", "generic-oidc").spec(json!({
        "oidcProviders": [{"issuerURL": "https://issuer.example.com", "audience": "weir",
            "validations": [{"expression": "claims.sub == 'ci'", "message": "only CI"}]}],
    }))
}

fn receiver(namespace: &str, name: &str, kind: &str) -> Manifest {
    Manifest::new("notification.toolkit.fluxcd.io/v1", "Receiver", namespace, name)
        .spec(json!({"type": kind, "resources": [{"kind": "GitRepository", "name": "app"}]}))
}

/// Gives the victim a Receiver without a token.
pub async fn victim_begins(tenants: &Tenants) -> Result<()> {
    tenants.cluster.plane.apply(oidc()).await?;
    let path = webhook_path(tenants, VICTIM, "web").await?;
    let digest = Sha256::digest(b"webvictim");
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(path == format!("/hook/{digest}"), "the path is {path}");
    Ok(())
}

/// A Receiver with an expensive filter, and one whose token and names make the path of the victim's.
pub async fn start(tenants: &Tenants) -> Result<()> {
    for (namespace, name, token) in [(ATTACKER, "filter", "of-the-filter"), (NEIGHBOUR, "ic", "webv")] {
        tenants
            .apply(secret(namespace, name, &json!({"token": token})))
            .await?;
        let own = receiver(namespace, name, "generic").spec(json!({"secretRef": {"name": name}}));
        let (key, value) = FILTERED;
        let own = match namespace {
            ATTACKER => own.spec(json!({"resourceFilter": FILTER, "resources": [
                {"kind": "GitRepository", "name": "*", "matchLabels": {key: value}}]})),
            _ => own,
        };
        tenants.apply(own).await?;
    }
    Ok(())
}

/// Checks that the filters keep no webhook waiting, that the path of the victim stays its own, and that metrics are for the monitoring alone.
pub async fn refused(tenants: &Tenants) -> Result<String> {
    let waited = filters(tenants).await?;
    paths(tenants).await?;
    scraping(tenants).await?;
    Ok(format!(
        "{POSTS} posts with a filter delay a webhook by {} ms",
        waited.as_millis()
    ))
}

/// Posts to the filter, and returns the longest time of a webhook of the victim meanwhile.
async fn filters(tenants: &Tenants) -> Result<Duration> {
    let path = webhook_path(tenants, ATTACKER, "filter").await?;
    let url = format!("http://{}{path}", receiver_address(tenants)?);
    let body = json!({"a": (0..200).collect::<Vec<u32>>()}).to_string();
    let client = testkit::http::client(None)?;
    let mut posts = JoinSet::new();
    for _ in 0..POSTS {
        let request = client
            .post(&url)
            .timeout(TIMEOUT)
            .header("content-type", "application/json")
            .body(body.clone());
        posts.spawn(async move { request.send().await.map(|answer| answer.status().as_u16()) });
    }
    // The first answer shows that the filters are at work.
    let first = posts.join_next().await.context("no posts")?;
    if let Ok(Ok(status)) = first {
        ensure!(status != 404, "the Receiver with the filter is not served");
    }
    let mut longest = Duration::ZERO;
    for _ in 0..5 {
        let started = Instant::now();
        webhook_of_victim(tenants)
            .await
            .context("with expensive filters of another Receiver")?;
        longest = longest.max(started.elapsed());
    }
    ensure!(
        longest <= ANSWER,
        "the webhook of the victim was answered after {longest:?}"
    );
    Ok(longest)
}

/// Waits until the Ready condition of a Receiver has a status.
async fn ready_is(tenants: &Tenants, namespace: &str, name: &str, status: &str) -> Result<DynamicObject> {
    eventually(
        &format!("Ready={status} of {namespace}/{name}"),
        TIMEOUT,
        || async {
            let object = tenants.of(namespace, "Receiver", name).await?;
            let ready = testkit::ready(&object);
            ensure!(ready["status"] == status, "it is {ready}");
            Ok(object)
        },
    )
    .await
}

async fn paths(tenants: &Tenants) -> Result<()> {
    let thief = ready_is(tenants, NEIGHBOUR, "ic", "False").await?;
    let path = thief.data.pointer("/status/webhookPath").and_then(Value::as_str);
    ensure!(path.unwrap_or_default().is_empty(), "it has the path {path:?}");
    ready_is(tenants, VICTIM, "web", "True").await?;
    let path = webhook_path(tenants, VICTIM, "web").await?;
    let url = format!("http://{}{path}", receiver_address(tenants)?);
    let answer = testkit::http::client(None)?
        .post(url)
        .timeout(TIMEOUT)
        .body("{}")
        .send()
        .await?;
    let status = answer.status().as_u16();
    ensure!(
        status == 400 || status == 401,
        "a post without the token that the victim's Receiver needs was answered with {status}"
    );
    Ok(())
}

/// Checks that the policies of the overlay admit the monitoring, and Pods of the own namespace, to the metrics. Nothing enforces them here.
async fn scraping(tenants: &Tenants) -> Result<()> {
    let args = ["get", "networkpolicies", "-n", NAMESPACE, "-o", "json"];
    let policies: Value = serde_json::from_str(&tenants.cluster.plane.kubectl(&args).await?)?;
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let mut from_monitoring = false;
    for policy in list(policies.get("items")) {
        for rule in list(policy.pointer("/spec/ingress")) {
            let ports = list(rule.get("ports"));
            if !ports.is_empty() && !ports.iter().any(|port| port["port"] == 8080) {
                continue;
            }
            let peers = list(rule.get("from"));
            ensure!(!peers.is_empty(), "everybody reads metrics: {policy}");
            for peer in peers {
                let Some(namespace) = peer.get("namespaceSelector") else {
                    continue;
                };
                let monitoring = json!({"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}});
                ensure!(
                    *namespace == monitoring,
                    "another namespace reads metrics: {policy}"
                );
                from_monitoring = true;
            }
        }
    }
    ensure!(from_monitoring, "the monitoring reads no metrics");
    Ok(())
}
