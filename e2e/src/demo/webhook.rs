//! The demo's step with a webhook: a push is fetched at once, hours before the next interval.

use anyhow::{Context as _, Result, ensure};
use api::notification::Receiver;
use hmac::{Hmac, KeyInit as _, Mac as _};
use kube::Api;
use serde_json::json;
use sha2::Sha256;
use testkit::wait_for;

use crate::cluster::{NAMESPACE, TIMEOUT, TestCluster};

const NAME: &str = "hooked";
const TOKEN: &str = "a-long-random-key";

/// Pushes a commit, announces it as GitHub does, and waits for its artifact.
pub(super) async fn fetches_at_once(cluster: &TestCluster) -> Result<String> {
    let repo = cluster.git.repo(NAME)?;
    let first = repo.commit("first", &[("a", "1")])?;
    cluster.apply_repository(NAME, &repo.url(), "12h").await?;
    cluster.apply_secret(NAME, json!({"token": TOKEN})).await?;
    let receiver = json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1", "kind": "Receiver", "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "type": "github", "events": ["push"], "secretRef": {"name": NAME}, "resourceFilter": "req.ref == 'refs/heads/main'",
            "resources": [{"kind": "GitRepository", "name": NAME}],
        },
    });
    cluster.plane.apply(receiver).await?;
    cluster.artifact(NAME, &first).await?;
    let receivers: Api<Receiver> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let path_of = |receiver: &Receiver| {
        receiver
            .status
            .as_ref()
            .and_then(|status| status.webhook_path.clone())
    };
    let receiver = wait_for(&receivers, NAME, "a path", TIMEOUT, |receiver| {
        path_of(receiver).is_some()
    })
    .await?;
    let path = path_of(&receiver).context("the Receiver has no path")?;
    let address = cluster
        .controller("notification-controller")?
        .addresses()
        .receiver;
    let second = repo.commit("second", &[("a", "2")])?;
    let body = json!({"ref": "refs/heads/main", "after": second}).to_string();
    let mac = Hmac::<Sha256>::new_from_slice(TOKEN.as_bytes())?
        .chain_update(&body)
        .finalize();
    let signature: String = mac
        .into_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let client = testkit::http::client(None)?;
    // The server learns of the path from its watch.
    testkit::eventually("the webhook to be accepted", TIMEOUT, || async {
        let request = client
            .post(format!("http://{address}{path}"))
            .header("content-type", "application/json");
        let request = request
            .header("x-github-event", "push")
            .header("x-hub-signature-256", format!("sha256={signature}"));
        let status = request.body(body.clone()).send().await?.status();
        ensure!(status == 200, "{status}");
        Ok(())
    })
    .await?;
    cluster.artifact(NAME, &second).await
}
