//! Kustomizations of one namespace that wait for servers of its users, beside another namespace.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::{eventually, web::Page};

use crate::fixture::{Fixture, TIMEOUT, encrypted_for_vault, map, server};

/// Number of Kustomizations that wait; more than the permits of the kind.
const WAITING: usize = 6;
const PERMITS: usize = 4;
/// Time for the Kustomization of the other namespace: a hanging key service takes five times as long.
const SOON: Duration = Duration::from_secs(60);

/// Applies a Kustomization of the source of the same name, which the controller of the test selects.
async fn deploy(fixture: &Fixture, name: &str, spec: Value) -> Result<()> {
    let mut object = fixture.kustomization(name, &spec);
    object["metadata"]["labels"] = json!({ "test": "fairness" });
    fixture.plane.apply(object).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn key_services_that_hang_delay_no_kustomization_of_another_namespace() -> Result<()> {
    let flags = [
        "--watch-all-namespaces=true",
        "--watch-label-selector=test=fairness",
        "--allow-addresses=127.0.0.1",
    ];
    let tenant = Fixture::new("hanging-keys", &flags).await?;
    let neighbour = Fixture {
        namespace: tenant.plane.namespace("neighbour").await?,
        ..Fixture::new("neighbour-helper", &[]).await?
    };
    tenant
        .plane
        .apply(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "keys", "namespace": tenant.namespace },
            "stringData": { "sops.vault-token": "token" },
        }))
        .await?;
    let names: Vec<String> = (0..WAITING).map(|at| format!("waiting-{at}")).collect();
    let path = |name: &str| format!("/v1/transit/decrypt/{name}");
    for name in &names {
        server().page(&path(name), Page::Stalled(Vec::new().into()));
        tenant
            .offer(name, &[("a.yaml", encrypted_for_vault(name, 20)?)])
            .await?;
        let decryption = json!({ "provider": "sops", "secretRef": { "name": "keys" } });
        deploy(
            &tenant,
            name,
            json!({ "timeout": "1h", "decryption": decryption }),
        )
        .await?;
    }
    eventually("the key service to be asked", TIMEOUT, || async {
        let asked = server().asked();
        let asking = names
            .iter()
            .filter(|name| asked.iter().any(|asked| asked.path == path(name)));
        let count = asking.count();
        ensure!(count >= PERMITS, "{count} Kustomizations wait");
        Ok(())
    })
    .await?;
    let revision = neighbour.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    deploy(&neighbour, "shop", json!({})).await?;
    let applied = tokio::time::timeout(SOON, neighbour.applied("shop", &revision)).await;
    applied.context("the neighbour waits for the permits of others")??;
    Ok(())
}
