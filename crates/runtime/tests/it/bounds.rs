//! The bounds of the definitions, on a real API server.

use serde_json::json;
use testkit::ControlPlane;

#[tokio::test]
async fn definitions_are_served_and_refuse_larger_values() {
    let plane = ControlPlane::shared_with_crds().await.unwrap();
    let namespace = plane.namespace("bounds").await.unwrap();
    let range = |length: usize| {
        json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "app", "namespace": namespace},
            "spec": {"url": "https://h/r", "interval": "1m", "ref": {"semver": "1".repeat(length)}},
        })
    };
    plane.apply(range(2048)).await.unwrap();
    let error = format!("{:#}", plane.apply(range(2049)).await.unwrap_err());
    assert!(error.contains("spec.ref.semver: Too long"), "{error}");
}
