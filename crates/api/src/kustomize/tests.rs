//! Manifests of all releases.

use serde_json::json;

use super::*;

fn decode(spec: &serde_json::Value) -> KustomizationSpec {
    let object = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": { "name": "shop", "namespace": "apps" }, "spec": spec,
    });
    let object: Kustomization = serde_json::from_value(object).unwrap();
    object.spec
}

#[test]
fn kustomization_of_2021_decodes() {
    let spec = decode(&json!({
        "dependsOn": [{ "name": "istio-system" }], "interval": "1m0s", "path": "./webapp", "prune": true,
        "sourceRef": { "kind": "GitRepository", "name": "webapp" }, "validation": "client",
        "healthChecks": [{ "kind": "Deployment", "name": "backend", "namespace": "webapp" }], "timeout": "2m",
        "patchesStrategicMerge": [{ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } }],
        "patchesJson6902": [{
            "patch": [{ "op": "add", "path": "/data", "value": { "a": "b" } }], "target": { "kind": "ConfigMap" },
        }],
    }));
    assert_eq!(spec.validation.as_deref(), Some("client"));
    assert_eq!(spec.health_checks[0].api_version, None);
    assert_eq!(spec.patches_json6902[0].patch[0]["value"]["a"], "b");
}

#[test]
fn kubeconfig_is_of_a_secret_or_a_config_map() {
    let spec = |config: serde_json::Value| {
        let source = json!({ "kind": "GitRepository", "name": "a" });
        let spec = json!({ "interval": "1m", "prune": false, "sourceRef": source, "kubeConfig": config });
        decode(&spec).kube_config.unwrap()
    };
    let secret = json!({ "secretRef": { "name": "remote", "key": "config" } });
    let found = spec(secret.clone());
    assert_eq!(serde_json::to_value(&found).unwrap(), secret);
    assert_eq!(found.secret.unwrap().secret_ref.name, "remote");
    let found = spec(json!({ "configMapRef": { "name": "remote" } }));
    assert!(found.secret.is_none() && found.config_map_ref.is_some());
}

#[test]
fn schema_lets_a_kubeconfig_be_of_either_kind() {
    let crd = serde_json::to_value(definition()).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let config = &schema["properties"]["kubeConfig"];
    let properties = config["properties"].as_object().unwrap();
    assert_eq!(
        properties.keys().collect::<Vec<_>>(),
        ["configMapRef", "secretRef"]
    );
    assert!(config["required"].is_null(), "{config}");
    assert_eq!(config["x-kubernetes-validations"].as_array().unwrap().len(), 2);
    assert_eq!(schema["required"], json!(["interval", "prune", "sourceRef"]));
}
