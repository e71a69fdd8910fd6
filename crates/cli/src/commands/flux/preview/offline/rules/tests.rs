//! Tests of the rules with the spec of each kind.

use serde_json::json;

use super::*;

/// A kind with a valid spec, fields that make it invalid, and the beginning of the finding.
type Case = (&'static str, &'static str, Json, Json, &'static str);

fn kustomizations() -> Vec<Case> {
    let valid = || {
        json!({
            "interval": "5m", "prune": true, "sourceRef": { "kind": "GitRepository", "name": "r" },
            "ignore": [{ "paths": ["/data/a"] }], "dependsOn": [{ "name": "a", "readyExpr": "dep.status.ok == true" }],
            "healthCheckExprs": [{ "apiVersion": "x.io/v1", "kind": "A", "current": "status.ok" }],
        })
    };
    let case = |change: Json, expected| (api::group::KUSTOMIZE, "Kustomization", valid(), change, expected);
    vec![
        case(
            json!({ "dependsOn": [{ "name": "a", "readyExpr": "other == 1" }] }),
            "spec.dependsOn[0].readyExpr: failed to parse the CEL expression 'other == 1': ",
        ),
        case(
            json!({ "healthCheckExprs": [{ "apiVersion": "x.io/v1", "current": "1 +" }] }),
            "Reconciliation failed terminally due to configuration error: ",
        ),
        case(json!({ "ignore": [{ "paths": ["data"] }] }), "spec."),
        case(
            json!({ "postBuild": { "substitute": { "a.b": "c" } } }),
            "spec.postBuild.substitute: ",
        ),
        case(
            json!({ "components": ["../a"] }),
            "component path '../a' must be local and relative",
        ),
    ]
}

fn others() -> Vec<Case> {
    let interval = || json!({ "interval": "5m", "url": "https://example.com/r" });
    let oci = || json!({ "interval": "5m", "url": "oci://example.com/r", "ref": { "semver": "1.x" } });
    let chart = || json!({ "interval": "5m", "chart": "c", "version": "1.x", "sourceRef": { "kind": "HelmRepository", "name": "r" } });
    let receiver = || json!({ "type": "generic", "secretRef": { "name": "s" }, "resources": [{ "kind": "GitRepository", "name": "r" }] });
    let oidc = || {
        json!({
            "type": "generic-oidc", "resources": [{ "kind": "GitRepository", "name": "r" }],
            "oidcProviders": [{ "issuerURL": "https://example.com", "validations": [{ "expression": "claims.sub == 'a'", "message": "m" }] }],
        })
    };
    let alert = || json!({ "providerRef": { "name": "p" }, "eventSources": [], "inclusionList": ["a.*"] });
    let provider = || json!({ "type": "github" });
    let (source, notification) = (api::group::SOURCE, api::group::NOTIFICATION);
    vec![
        (
            source,
            "GitRepository",
            interval(),
            json!({ "ref": { "semver": "one" } }),
            "spec.ref: ",
        ),
        (
            source,
            "GitRepository",
            interval(),
            json!({ "ignore": "a".repeat(10_000) }),
            "spec.ignore: a rule is longer than",
        ),
        (
            source,
            "OCIRepository",
            oci(),
            json!({ "ref": { "semver": "one" } }),
            "spec.ref.semver: semver 'one' parse error: ",
        ),
        (
            source,
            "OCIRepository",
            oci(),
            json!({ "ref": { "semver": "1.x", "semverFilter": "(" } }),
            "spec.ref.semverFilter: ",
        ),
        (
            source,
            "HelmChart",
            chart(),
            json!({ "version": "one" }),
            "spec.version: semver 'one' parse error: ",
        ),
        (
            notification,
            "Alert",
            alert(),
            json!({ "exclusionList": ["("] }),
            "spec.exclusionList[0]: ",
        ),
        (
            notification,
            "Provider",
            provider(),
            json!({ "commitStatusExpr": "other" }),
            "spec.commitStatusExpr: failed to parse the CEL expression 'other': ",
        ),
        (
            notification,
            "Provider",
            provider(),
            json!({ "serviceAccountName": "a" }),
            "spec.serviceAccountName: the type github uses no identity",
        ),
        (
            notification,
            "Receiver",
            oidc(),
            json!({ "secretRef": { "name": "s" } }),
            "Reconciliation failed terminally due to configuration error: secretRef must not be set",
        ),
        (
            notification,
            "Receiver",
            oidc(),
            json!({ "oidcProviders": [{ "issuerURL": "https://example.com", "validations": [{ "expression": "1 +", "message": "m" }] }] }),
            "spec.oidcProviders[0]: validations[0].expression: ",
        ),
        (
            notification,
            "Receiver",
            receiver(),
            json!({ "resourceFilter": "claims.sub == 'a'" }),
            "spec.resourceFilter: failed to parse the CEL expression",
        ),
    ]
}

fn sources() -> Vec<Case> {
    let git = || json!({ "interval": "5m", "url": "https://example.com/r" });
    let bucket = || json!({ "interval": "5m", "endpoint": "example.com", "bucketName": "b" });
    let registry = || json!({ "interval": "5m", "type": "oci", "url": "oci://example.com/charts" });
    let chart =
        || json!({ "interval": "5m", "chart": "c", "sourceRef": { "kind": "HelmRepository", "name": "r" } });
    let sts = json!({ "provider": "aws", "endpoint": "https://sts.eu-west-1.amazonaws.com" });
    [
        (
            "GitRepository",
            git(),
            json!({ "interval": "0s" }),
            "spec.interval: it must be more than nothing",
        ),
        (
            "GitRepository",
            git(),
            json!({ "provider": "github" }),
            "secretRef with github app data must be specified",
        ),
        (
            "GitRepository",
            git(),
            json!({ "verify": { "mode": "Tag", "secretRef": { "name": "keys" } } }),
            "cannot verify tag object's signature",
        ),
        (
            "Bucket",
            bucket(),
            json!({ "bucketName": "a/b" }),
            "spec.bucketName: ",
        ),
        (
            "Bucket",
            bucket(),
            json!({ "sts": sts }),
            "STS provider 'aws' is not supported",
        ),
        (
            "Bucket",
            bucket(),
            json!({ "ignore": "a".repeat(10_000) }),
            "spec.ignore: a rule is longer than",
        ),
        (
            "HelmRepository",
            git(),
            json!({ "url": "oci://example.com/r" }),
            "invalid Helm repository URL: ",
        ),
        (
            "HelmRepository",
            registry(),
            json!({ "url": "https://example.com/r" }),
            "URL validation failed for ",
        ),
        (
            "HelmRepository",
            registry(),
            json!({ "accessFrom": { "namespaceSelectors": [] } }),
            "spec.accessFrom: ",
        ),
        (
            "OCIRepository",
            registry(),
            json!({ "url": "oci://example.com/r:v1" }),
            "URL validation failed for ",
        ),
        (
            "HelmChart",
            chart(),
            json!({ "chart": "Shop" }),
            "invalid chart reference: invalid chart name 'Shop'",
        ),
        (
            "HelmChart",
            chart(),
            json!({ "reconcileStrategy": "Always" }),
            "spec.reconcileStrategy: ",
        ),
    ]
    .map(|(kind, valid, change, expected)| (api::group::SOURCE, kind, valid, change, expected))
    .to_vec()
}

fn deployments() -> Vec<Case> {
    let flux = || json!({ "interval": "5m", "sourceRef": { "kind": "GitRepository", "name": "r" } });
    let gitops = || json!({ "interval": "5m", "source": { "git": { "url": "https://example.com/r" } } });
    [
        (
            api::group::FLUX_KLUCTL,
            flux(),
            json!({ "path": "../other" }),
            "spec.path: ",
        ),
        (
            api::group::FLUX_KLUCTL,
            flux(),
            json!({ "deployMode": "some" }),
            "spec.deployMode: ",
        ),
        (
            api::group::FLUX_KLUCTL,
            flux(),
            json!({ "timeout": "1ms" }),
            "spec.timeout: 1ms: must be at least 1s",
        ),
        (
            api::group::FLUX_KLUCTL,
            flux(),
            json!({ "helmCredentials": [{ "secretRef": { "name": "../a" } }] }),
            "spec.helmCredentials[0].secretRef.name: \"../a\": is not a valid object name",
        ),
        (
            api::group::GITOPS_KLUCTL,
            gitops(),
            json!({ "source": {} }),
            "missing source spec",
        ),
        (
            api::group::GITOPS_KLUCTL,
            gitops(),
            json!({ "deployMode": "some" }),
            "deployMode 'some' not supported",
        ),
        (
            api::group::GITOPS_KLUCTL,
            gitops(),
            json!({ "source": { "oci": { "url": "https://example.com/r" } } }),
            "unsupported scheme https, must be oci://",
        ),
        (
            api::group::GITOPS_KLUCTL,
            gitops(),
            json!({ "images": [{ "resultImage": "a" }] }),
            "spec.images: ",
        ),
    ]
    .map(|(group, valid, change, expected)| (group, "KluctlDeployment", valid, change, expected))
    .to_vec()
}

#[test]
fn values_that_a_schema_lets_through_are_found() {
    let cases = kustomizations()
        .into_iter()
        .chain(deployments())
        .chain(sources())
        .chain(others());
    for (group, kind, valid, change, expected) in cases {
        assert!(check(group, kind, &valid).is_empty(), "{kind}");
        let mut invalid = valid;
        for (field, value) in change.as_object().unwrap() {
            invalid[field] = value.clone();
        }
        let found = check(group, kind, &invalid);
        assert_eq!(found.len(), 1, "{kind} {change}: {found:?}");
        assert!(
            found[0].to_string().starts_with(expected),
            "{kind} {change}: {}",
            found[0]
        );
    }
    assert!(check("apps", "Deployment", &json!({})).is_empty());
}
