//! Tests of the definitions, and of manifests of all releases.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion;
use serde_json::json;

use super::*;
use crate::{
    kluctl::{KluctlDeployment, gitops},
    notification::{Alert, Provider},
    source::GitRepository,
};

fn schema(version: &CustomResourceDefinitionVersion) -> Value {
    serde_json::to_value(&version.schema).unwrap()["openAPIV3Schema"].clone()
}

#[test]
fn versions_share_one_schema_and_the_first_is_stored() {
    let served: Vec<Vec<String>> = all()
        .iter()
        .map(|crd| {
            let first = schema(&crd.spec.versions[0]);
            assert!(crd.spec.versions.iter().all(|v| schema(v) == first && v.served));
            let stored: Vec<_> = crd.spec.versions.iter().map(|v| v.storage).collect();
            assert!(stored[0] && !stored[1..].contains(&true));
            assert!(crd.spec.conversion.is_none());
            crd.spec.versions.iter().map(|v| v.name.clone()).collect()
        })
        .collect();
    assert_eq!(
        served,
        [
            vec!["v1", "v1beta2", "v1beta1"],
            vec!["v1", "v1beta2", "v1beta1"],
            vec!["v1", "v1beta2"],
            vec!["v1", "v1beta2", "v1beta1"],
            vec!["v1", "v1beta2", "v1beta1"],
            vec!["v1"],
            vec!["v1alpha1"],
            vec!["v1beta1"],
            vec!["v1", "v1beta2", "v1beta1"],
            vec!["v1beta3", "v1beta2", "v1beta1"],
            vec!["v1beta3", "v1beta2", "v1beta1"],
            vec!["v1", "v1beta2", "v1beta1"],
        ]
    );
}

#[test]
fn kinds_are_found_by_the_names_in_their_definitions() {
    for definition in super::all() {
        let spec = &definition.spec;
        let found = super::find(&spec.group, &spec.names.kind).unwrap();
        assert_eq!((found.definition)().metadata.name, definition.metadata.name);
    }
    assert!(super::find("flux.kluctl.io", "Kustomization").is_none());
}

#[test]
fn old_versions_have_deprecation_warnings() {
    let crd = git_repository();
    let warnings: Vec<_> = crd
        .spec
        .versions
        .iter()
        .map(|v| v.deprecation_warning.as_deref())
        .collect();
    assert_eq!(
        warnings,
        [
            None,
            Some("v1beta2 GitRepository is deprecated, upgrade to v1"),
            Some("v1beta1 GitRepository is deprecated, upgrade to v1"),
        ]
    );
}

#[test]
fn kinds_that_can_be_suspended_have_a_column_of_it() {
    for crd in all() {
        let kind = &crd.spec.names.kind;
        for version in &crd.spec.versions {
            let columns = version.additional_printer_columns.iter().flatten();
            let shown: Vec<_> = columns
                .filter(|column| column.json_path == ".spec.suspend")
                .map(|column| (column.name.as_str(), column.priority))
                .collect();
            let expected = match (kind.as_str(), crd.spec.group.as_str()) {
                ("ExternalArtifact", _) => vec![],
                // As in kluctl.
                (_, "gitops.kluctl.io") => vec![("Suspend", None)],
                _ => vec![("Suspended", Some(1))],
            };
            assert_eq!(shown, expected, "{kind} {}", version.name);
        }
    }
}

/// Calls `visit` with the path and the schema of every property.
fn walk(path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), inner, visit);
    }
    for key in ["items", "additionalProperties"] {
        if schema[key].is_object() {
            walk(&format!("{path}[]"), &schema[key], visit);
        }
    }
}

#[test]
fn schemas_are_structural_and_described() {
    for crd in all() {
        walk(
            &crd.spec.names.kind,
            &schema(&crd.spec.versions[0]),
            &mut |path, schema| {
                assert!(schema["type"].is_string(), "{path} has no type");
                for word in ["nullable", "anyOf", "oneOf", "allOf", "$ref"] {
                    assert!(schema.get(word).is_none(), "{path} has {word}");
                }
                assert!(
                    path.ends_with("[]") || schema["description"].is_string(),
                    "{path} has no description"
                );
            },
        );
    }
}

#[test]
fn status_descriptions_name_no_other_kind() {
    let names = all().into_iter().map(|crd| crd.spec.names.kind.to_lowercase());
    let names: Vec<_> = names.collect();
    for crd in all() {
        let own = crd.spec.names.kind.to_lowercase();
        walk(
            &own,
            &schema(&crd.spec.versions[0])["properties"]["status"],
            &mut |path, schema| {
                let text = schema["description"].as_str().unwrap_or_default().to_lowercase();
                let other = names.iter().find(|name| **name != own && text.contains(*name));
                assert_eq!(other, None, "{path}: {text}");
            },
        );
    }
}

#[test]
fn schema_defaults_are_those_of_the_newest_releases() {
    let mut found = Vec::new();
    for crd in all() {
        walk(
            &crd.spec.names.kind,
            &schema(&crd.spec.versions[0]),
            &mut |path, schema| {
                if let Some(default) = schema.get("default").filter(|default| **default != json!(false)) {
                    found.push(format!("{path}={default}"));
                }
            },
        );
    }
    assert_eq!(
        found,
        [
            r#"GitRepository.spec.timeout="60s""#,
            r#"GitRepository.spec.verify.mode="HEAD""#,
            r#"GitRepository.status={"observedGeneration":-1}"#,
            r#"Bucket.spec.provider="generic""#,
            r#"Bucket.spec.timeout="60s""#,
            r#"Bucket.status={"observedGeneration":-1}"#,
            r#"OCIRepository.spec.provider="generic""#,
            r#"OCIRepository.spec.timeout="60s""#,
            r#"OCIRepository.spec.verify.provider="cosign""#,
            r#"OCIRepository.status={"observedGeneration":-1}"#,
            r#"HelmRepository.spec.provider="generic""#,
            r#"HelmRepository.status={"observedGeneration":-1}"#,
            r#"HelmChart.spec.reconcileStrategy="ChartVersion""#,
            r#"HelmChart.spec.verify.provider="cosign""#,
            r#"HelmChart.spec.version="*""#,
            r#"HelmChart.status={"observedGeneration":-1}"#,
            r#"KluctlDeployment.spec.deployMode="full-deploy""#,
            "KluctlDeployment.spec.deployOnChanges=true",
            "KluctlDeployment.spec.validate=true",
            r#"KluctlDeployment.spec.deployMode="full-deploy""#,
            "KluctlDeployment.spec.validate=true",
            r#"Kustomization.status={"observedGeneration":-1}"#,
            r#"Alert.spec.eventSeverity="info""#,
            r#"Receiver.spec.interval="10m""#,
            r#"Receiver.status={"observedGeneration":-1}"#,
        ]
    );
    let kluctl = schema(&kluctl_deployment().spec.versions[0]);
    let delete = &kluctl["properties"]["spec"]["properties"]["delete"];
    assert!(delete["type"] == "boolean" && delete.get("default").is_none());
}

#[test]
fn git_repository_of_2021_decodes() {
    let object: GitRepository = serde_json::from_value(json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1beta1",
        "kind": "GitRepository",
        "metadata": { "name": "flux-system", "namespace": "flux-system" },
        "spec": {
            "gitImplementation": "go-git", "interval": "1m0s", "ref": { "branch": "main" },
            "secretRef": { "name": "flux-system" }, "timeout": "20s", "url": "ssh://git@example.com/fleet",
        },
        "status": {
            "artifact": {
                "checksum": "74af5c50a184a59640d3533cf577f07dd3e66bc5",
                "lastUpdateTime": "2021-08-15T11:07:19Z",
                "path": "gitrepository/flux-system/flux-system/e0b4.tar.gz",
                "revision": "main/e0b4", "url": "http://source-controller/x.tar.gz",
            },
            "conditions": [{
                "lastTransitionTime": "2021-08-15T11:07:19Z", "message": "Fetched revision: main/e0b4",
                "reason": "GitOperationSucceed", "status": "True", "type": "Ready",
            }],
            "observedGeneration": 1,
            "url": "http://source-controller/latest.tar.gz",
        },
    }))
    .unwrap();
    assert_eq!(object.spec.reference.unwrap().branch.as_deref(), Some("main"));
    assert_eq!(object.spec.timeout.unwrap().to_string(), "20s");
    assert!(object.status.unwrap().artifact.unwrap().digest.is_none());
}

#[test]
fn kluctl_deployments_of_all_releases_decode() {
    let early: KluctlDeployment = serde_json::from_value(json!({
        "metadata": { "name": "shop" },
        "spec": {
            "sourceRef": { "kind": "GitRepository", "name": "shop" }, "path": "./deploy", "target": "test",
            "interval": "5m", "prune": true, "args": { "replicas": "2" },
            "dependsOn": [{ "name": "base" }], "renameContexts": [{ "oldContext": "default", "newContext": "kind" }],
        },
    }))
    .unwrap();
    assert_eq!(
        (early.spec.delete, early.spec.prune, early.spec.deploy_on_changes),
        (None, true, true)
    );
    let late: KluctlDeployment = serde_json::from_value(json!({
        "metadata": { "name": "shop" },
        "spec": {
            "source": { "url": "https://me:pw@example.com/shop", "ref": { "branch": "main" } },
            "interval": "5m", "deployInterval": "never", "delete": false, "args": { "a": { "b": [1, "2"] } },
        },
    }))
    .unwrap();
    assert_eq!(late.spec.delete, Some(false));
    assert_eq!(late.spec.deploy_interval, Some(crate::DurationOrNever::Never));
    assert!(!format!("{late:?}").contains("pw"), "{late:?}");
}

#[test]
fn gitops_kluctl_deployments_of_all_releases_decode() {
    let first =
        json!({ "url": "https://me:pw@example.com/shop", "path": "shop", "secretRef": { "name": "git" } });
    let sources = [
        json!({ "git": { "url": "git@example.com:shop.git", "ref": { "commit": "0".repeat(40) }, "path": "." } }),
        json!({ "oci": { "url": "oci://example.com/shop", "ref": { "tag": "v1", "digest": "sha256:00" } } }),
        json!({ "url": ":not a url:", "credentials": [{ "host": "*", "secretRef": { "name": "git" } }] }),
        first,
    ];
    for source in sources {
        let object: gitops::KluctlDeployment = serde_json::from_value(json!({
            "metadata": { "name": "shop" },
            "spec": {
                "source": source, "interval": "5m", "helmCredentials": [{ "secretRef": { "name": "charts" } }],
                "images": [{ "imageRegex": "a.*", "resultImage": "b" }], "manual": true, "manualObjectsHash": "00",
            },
            "status": {
                "lastDeployResult": { "id": "1", "unknown": [1] }, "projectKey": {}, "targetKey": { "clusterId": "c" },
                "deployRequestResult": {
                    "request": { "requestValue": "1", "overridesPatch": { "spec": { "dryRun": true } } },
                    "startTime": "2024-01-01T00:00:00Z", "reconcileId": "2",
                },
            },
        }))
        .unwrap();
        assert!(object.spec.validate && !object.spec.prune && !object.spec.delete);
        assert!(!format!("{object:?}").contains("pw"), "{object:?}");
    }
}

#[test]
fn objects_of_equal_kinds_decode_as_those_of_their_group() {
    let object = |version: &str| json!({ "apiVersion": version, "kind": "KluctlDeployment", "metadata": {}, "spec": { "interval": "5m" } });
    assert!(decode(object("flux.kluctl.io/v1alpha1")).unwrap().is_ok());
    let error = decode(object("gitops.kluctl.io/v1beta1")).unwrap().unwrap_err();
    assert!(error.to_string().contains("missing field `source`"), "{error}");
    assert!(
        decode(object("example.com/v1")).is_none() && decode(json!({ "kind": "KluctlDeployment" })).is_none()
    );
}

#[test]
fn provider_address_is_serialized_but_not_printed() {
    let json = json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
        "metadata": { "name": "chat" },
        "spec": { "type": "slack", "address": "https://hooks.example.com/T0K3N", "proxy": "http://u:p@proxy" },
    });
    let provider: Provider = serde_json::from_value(json.clone()).unwrap();
    let text = format!("{provider:?}");
    assert!(!text.contains("T0K3N") && !text.contains("u:p"), "{text}");
    assert_eq!(serde_json::to_value(&provider).unwrap()["spec"], json["spec"]);
}

#[test]
fn alert_selects_any_kind() {
    let alert: Alert = serde_json::from_value(json!({
        "metadata": { "name": "all" },
        "spec": {
            "providerRef": { "name": "chat" },
            "eventSources": [{ "kind": "KluctlDeployment", "name": "*", "namespace": "apps" }],
        },
    }))
    .unwrap();
    assert_eq!(alert.spec.event_sources[0].kind, "KluctlDeployment");
    assert!(alert.spec.event_severity.is_none() && alert.spec.event_sources[0].match_labels.is_none());
}

#[test]
fn invalid_duration_is_named_in_the_error() {
    let error = serde_json::from_value::<GitRepository>(json!({
        "metadata": { "name": "bad" }, "spec": { "url": "https://example.com/x", "interval": "soon" },
    }))
    .unwrap_err();
    assert!(error.to_string().contains("invalid duration 'soon'"), "{error}");
}
