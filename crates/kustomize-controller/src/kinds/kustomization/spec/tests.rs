//! Specs that are accepted and refused.

use serde_json::{Value, json};

use super::*;

fn object(change: impl FnOnce(&mut Value)) -> Kustomization {
    let mut object = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": { "name": "shop", "namespace": "apps" },
        "spec": { "interval": "5m", "prune": true, "sourceRef": { "kind": "GitRepository", "name": "shop" } },
    });
    change(&mut object["spec"]);
    serde_json::from_value(object).expect("decodes")
}

fn refused(change: impl FnOnce(&mut Value)) -> (Reason, String) {
    let gates = FeatureGates::default();
    let fault = check(&object(change), &gates, true).expect_err("refused");
    assert_eq!(fault.class, api::Class::Stall);
    (fault.reason, fault.message)
}

#[test]
fn timeouts_and_intervals_have_the_defaults_of_the_original() {
    let spec = |change: fn(&mut Value)| object(change).spec;
    let seconds = Duration::from_secs;
    assert_eq!(timeout(&spec(|_| {})), seconds(270));
    assert_eq!(
        timeout(&spec(|spec| spec["interval"] = json!("40s"))),
        seconds(30)
    );
    assert_eq!(timeout(&spec(|spec| spec["timeout"] = json!("2m"))), seconds(120));
    assert_eq!(timeout(&spec(|spec| spec["timeout"] = json!("2s"))), seconds(30));
    assert_eq!(retry_interval(&spec(|_| {})), seconds(300));
    assert_eq!(
        retry_interval(&spec(|spec| spec["retryInterval"] = json!("10s"))),
        seconds(10)
    );
}

#[test]
fn deletion_policies_decide_with_prune() {
    for (policy, prune, deletes) in [
        (None, true, true),
        (None, false, false),
        (Some("MirrorPrune"), false, false),
        (Some("Delete"), false, true),
        (Some("WaitForTermination"), false, true),
        (Some("Orphan"), true, false),
    ] {
        let object = object(|spec| spec["deletionPolicy"] = json!(policy));
        assert_eq!(
            deletion_policy(&object.spec).deletes(prune),
            deletes,
            "{policy:?} {prune}"
        );
    }
}

#[test]
fn identities_of_objects_need_their_gate() {
    let gates: FeatureGates = "ObjectLevelWorkloadIdentity=false".parse().unwrap();
    let decryption = json!({ "provider": "sops", "serviceAccountName": "keys" });
    let object = object(|spec| spec["decryption"] = decryption);
    assert!(check(&object, &FeatureGates::default(), true).is_ok());
    let fault = check(&object, &gates, true).expect_err("refused");
    assert_eq!(fault.reason, Reason::FeatureGateDisabled);
    assert_eq!(
        fault.message,
        "to use spec.decryption.serviceAccountName for decryption authentication please enable the \
         ObjectLevelWorkloadIdentity feature gate in the controller"
    );
}

#[test]
fn valid_specs_pass() {
    let gates: FeatureGates = "ExternalArtifact=true".parse().unwrap();
    for change in [
        json!({}),
        json!({ "sourceRef": { "kind": "ExternalArtifact", "name": "a" } }),
        // The build fails with these, and is tried again.
        json!({ "components": ["../components/a", "./b"] , "path": "./apps" }),
        json!({ "postBuild": { "substitute": { "a-b": "c" } } }),
        json!({ "ignore": [{ "paths": [] }, { "paths": ["/spec/replicas"], "target": { "kind": "Deployment" } }] }),
        json!({ "validation": "client", "healthChecks": [{ "kind": "Deployment", "name": "a", "namespace": "b" }] }),
    ] {
        let object = object(|spec| {
            for (field, value) in change.as_object().unwrap() {
                spec[field] = value.clone();
            }
        });
        assert_eq!(check(&object, &gates, true), Ok(()), "{change}");
    }
}

#[test]
fn invalid_and_unsupported_fields_are_refused_by_name() {
    for (field, value, reason, message) in [
        (
            "kubeConfig",
            json!({ "configMapRef": { "name": "a" }, "secretRef": { "name": "a" } }),
            Reason::InvalidSpec,
            "spec.kubeConfig: exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be \
             specified",
        ),
        (
            "kubeConfig",
            json!({}),
            Reason::InvalidSpec,
            "spec.kubeConfig: exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be \
             specified",
        ),
        (
            "deletionPolicy",
            json!("Never"),
            Reason::UnsupportedField,
            "spec.deletionPolicy: Never is not supported yet: remove the field",
        ),
        (
            "commonMetadata",
            json!({ "labels": { "kustomize.toolkit.fluxcd.io/name": "other" } }),
            Reason::InvalidSpec,
            "spec.commonMetadata.labels: kustomize.toolkit.fluxcd.io/name: this label names the Kustomization that \
             an object belongs to: remove it",
        ),
        (
            "sourceRef",
            json!({ "kind": "GitRepository", "name": "a", "namespace": "other" }),
            Reason::AccessDenied,
            "can't access 'GitRepository/other/a', cross-namespace references have been blocked",
        ),
        (
            "sourceRef",
            json!({ "kind": "ExternalArtifact", "name": "a" }),
            Reason::AccessDenied,
            "can't access 'ExternalArtifact/apps/a', ExternalArtifact feature gate is disabled",
        ),
    ] {
        let found = refused(|spec| spec[field] = value);
        assert_eq!(found, (reason, message.to_owned()), "{field}");
    }
}

/// Every property of the schema; each is obeyed, or refused by name.
const PROPERTIES: &[&str] = &[
    "buildMetadata",
    "commonMetadata",
    "commonMetadata.annotations",
    "commonMetadata.labels",
    "components",
    "decryption",
    "decryption.provider",
    "decryption.secretRef",
    "decryption.secretRef.name",
    "decryption.serviceAccountName",
    "deletionPolicy",
    "dependsOn",
    "dependsOn[].apiVersion",
    "dependsOn[].kind",
    "dependsOn[].name",
    "dependsOn[].namespace",
    "dependsOn[].ready",
    "dependsOn[].readyExpr",
    "force",
    "healthCheckExprs",
    "healthCheckExprs[].apiVersion",
    "healthCheckExprs[].current",
    "healthCheckExprs[].failed",
    "healthCheckExprs[].inProgress",
    "healthCheckExprs[].kind",
    "healthChecks",
    "healthChecks[].apiVersion",
    "healthChecks[].kind",
    "healthChecks[].name",
    "healthChecks[].namespace",
    "ignore",
    "ignore[].paths",
    "ignore[].target",
    "ignore[].target.annotationSelector",
    "ignore[].target.group",
    "ignore[].target.kind",
    "ignore[].target.labelSelector",
    "ignore[].target.name",
    "ignore[].target.namespace",
    "ignore[].target.version",
    "ignoreMissingComponents",
    "images",
    "images[].digest",
    "images[].name",
    "images[].newName",
    "images[].newTag",
    "interval",
    "kubeConfig",
    "kubeConfig.configMapRef",
    "kubeConfig.configMapRef.name",
    "kubeConfig.secretRef",
    "kubeConfig.secretRef.key",
    "kubeConfig.secretRef.name",
    "namePrefix",
    "nameSuffix",
    "patches",
    "patches[].patch",
    "patches[].target",
    "patches[].target.annotationSelector",
    "patches[].target.group",
    "patches[].target.kind",
    "patches[].target.labelSelector",
    "patches[].target.name",
    "patches[].target.namespace",
    "patches[].target.version",
    "patchesJson6902",
    "patchesJson6902[].patch",
    "patchesJson6902[].target",
    "patchesJson6902[].target.annotationSelector",
    "patchesJson6902[].target.group",
    "patchesJson6902[].target.kind",
    "patchesJson6902[].target.labelSelector",
    "patchesJson6902[].target.name",
    "patchesJson6902[].target.namespace",
    "patchesJson6902[].target.version",
    "patchesStrategicMerge",
    "path",
    "postBuild",
    "postBuild.substitute",
    "postBuild.substituteFrom",
    "postBuild.substituteFrom[].kind",
    "postBuild.substituteFrom[].name",
    "postBuild.substituteFrom[].optional",
    "postBuild.substituteStrategy",
    "prune",
    "retryInterval",
    "serviceAccountName",
    "sourceRef",
    "sourceRef.apiVersion",
    "sourceRef.kind",
    "sourceRef.name",
    "sourceRef.namespace",
    "suspend",
    "targetNamespace",
    "timeout",
    "validation",
    "wait",
];

fn properties(path: &str, schema: &Value, found: &mut Vec<String>) {
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        found.push(path.clone());
        properties(&path, inner, found);
    }
    for part in ["items", "additionalProperties"] {
        if schema[part].is_object() {
            properties(&format!("{path}[]"), &schema[part], found);
        }
    }
}

#[test]
fn properties_of_the_schema_are_known() {
    let definition = serde_json::to_value(api::crd::kustomization()).expect("encodes");
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let mut found = Vec::new();
    properties("", definition.pointer(spec).expect("a schema"), &mut found);
    found.sort();
    let mut known = PROPERTIES.to_vec();
    known.sort_unstable();
    assert_eq!(found, known);
}
