//! Signatures of the Notary Project, pushed by its own library to a real registry.

use api::{
    condition_type as types,
    source::{HelmChart, HelmRepository, OCIRepository},
};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use testkit::{
    NotarySigner, Registry,
    archive::tar_gz,
    notation::{COSE, JWS, SUBJECT},
    registry::{Login, PASSWORD, USER},
};

use super::{
    TestNamespace, fetch_artifact,
    objects::{Objects, artifact, condition},
    oci::push_to,
};

const REPOSITORY: &str = "org/app";
const FAILED: &str = "failed to verify the signature using provider 'notation': ";

/// Returns the data of a Secret: a policy with this level for these scopes, and the root of a signer.
fn trust(signer: &NotarySigner, level: &str, scope: &str) -> Value {
    let mut statement = json!({
        "name": "app", "registryScopes": [scope], "signatureVerification": {"level": level},
        "trustStores": ["ca:own"], "trustedIdentities": [format!("x509.subject: {SUBJECT}")],
    });
    if level == "skip" {
        statement["trustStores"] = json!([]);
        statement["trustedIdentities"] = json!([]);
    }
    let policy = json!({"version": "1.0", "trustPolicies": [statement]});
    json!({"trustpolicy.json": policy.to_string(), "root.crt": signer.root_pem().unwrap()})
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_of_notation_are_verified_as_the_policy_says() {
    let setup = TestNamespace::start().await;
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let (signer, stranger) = (NotarySigner::new().unwrap(), NotarySigner::new().unwrap());
    let scope = format!("{}/{REPOSITORY}", registry.host());
    for (name, signer, level, scope) in [
        ("strict", &signer, "strict", scope.as_str()),
        ("stranger", &stranger, "strict", "*"),
        ("audit", &stranger, "audit", "*"),
        ("skip", &stranger, "skip", "*"),
        ("elsewhere", &signer, "strict", "registry.example.com/org/app"),
    ] {
        setup.secret(name, trust(signer, level, scope)).await;
    }
    setup.secret("empty", json!({"x": "y"})).await;
    let objects = Objects::<OCIRepository>::of(&setup).await;
    let url = format!("oci://{scope}");
    let spec = |tag: &str, secret: &str| {
        let verify = json!({"provider": "notation", "secretRef": {"name": secret}});
        json!({"url": url, "insecure": true, "ref": {"tag": tag}, "verify": verify})
    };
    push_to(&registry, "unsigned", &[("a.yaml", b"unsigned")]).await;
    for (tag, format) in [("jws", JWS), ("cose", COSE)] {
        let digest = push_to(&registry, tag, &[("a.yaml", tag.as_bytes())]).await;
        signer.push(&registry, REPOSITORY, &digest, format).await.unwrap();
        objects.apply(tag, spec(tag, "strict")).await;
        let object = objects.wait_ready(tag).await;
        let verified = condition(&object, types::SOURCE_VERIFIED).unwrap();
        let message = format!("verified signature of revision {tag}@{digest}");
        assert!(
            verified.is_true() && verified.reason == "Succeeded",
            "{verified:?}"
        );
        assert_eq!(verified.message, message);
        assert_eq!(fetch_artifact(&artifact(&object)).await.read("a.yaml"), tag);
    }
    for (name, tag, secret, expected) in [
        (
            "unsigned",
            "unsigned",
            "strict",
            "no signature is associated with",
        ),
        (
            "stranger",
            "jws",
            "stranger",
            "does not contain any trusted certificate",
        ),
        (
            "elsewhere",
            "jws",
            "elsewhere",
            "has no applicable trust policy statement",
        ),
        (
            "unaudited",
            "unsigned",
            "audit",
            "no signature is associated with",
        ),
        ("empty", "jws", "empty", "'trustpolicy.json' not found in secret"),
        ("missing", "jws", "missing", "failed to get secret"),
    ] {
        objects.apply(name, spec(tag, secret)).await;
        let object = objects.wait_failed(name, "VerificationError", expected).await;
        let verified = condition(&object, types::SOURCE_VERIFIED).unwrap();
        assert!(
            verified.is_false() && verified.message.starts_with(FAILED),
            "{verified:?}"
        );
        assert!(object.status.unwrap().artifact.is_none(), "{name}");
    }
    // A policy may accept a manifest without a trusted signature: then, nothing is said to be verified.
    for (name, tag, secret) in [("audit", "jws", "audit"), ("skip", "unsigned", "skip")] {
        objects.apply(name, spec(tag, secret)).await;
        let object = objects.wait_ready(name).await;
        assert_eq!(condition(&object, types::SOURCE_VERIFIED), None, "{name}");
    }
    // Another policy ends the trust, though nothing else changed.
    setup.secret("strict", trust(&stranger, "strict", "*")).await;
    let request = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "1"}}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(request));
    objects.api.patch("jws", &params, &patch).await.unwrap();
    let untrusted = "does not contain any trusted certificate";
    let object = objects.wait_failed("jws", "VerificationError", untrusted).await;
    assert!(condition(&object, types::SOURCE_VERIFIED).unwrap().is_false());
    setup.secret("strict", trust(&stranger, "skip", "*")).await;
    let object = objects.reconcile("jws", "2").await;
    assert!(condition(&object, types::READY).unwrap().is_true());
    assert_eq!(condition(&object, types::SOURCE_VERIFIED), None);
    let without = json!({"url": url, "insecure": true, "verify": {"provider": "notation"}});
    objects.apply("without", without).await;
    objects
        .wait_failed("without", "InvalidSpec", "spec.verify.secretRef")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signature_among_others_is_found_by_its_type_and_too_many_are_refused() {
    let setup = TestNamespace::start().await;
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let (signer, stranger) = (NotarySigner::new().unwrap(), NotarySigner::new().unwrap());
    setup.secret("strict", trust(&signer, "strict", "*")).await;
    let objects = Objects::<OCIRepository>::of(&setup).await;
    let url = format!("oci://{}/{REPOSITORY}", registry.host());
    let verify = json!({"provider": "notation", "secretRef": {"name": "strict"}});
    let spec = |tag: &str| json!({"url": url, "insecure": true, "ref": {"tag": tag}, "verify": verify});
    let second = push_to(&registry, "second", &[("a.yaml", b"second")]).await;
    for signer in [&stranger, &signer] {
        signer.push(&registry, REPOSITORY, &second, JWS).await.unwrap();
    }
    objects.apply("second", spec("second")).await;
    let object = objects.wait_ready("second").await;
    assert!(condition(&object, types::SOURCE_VERIFIED).unwrap().is_true());
    let fourth = push_to(&registry, "fourth", &[("a.yaml", b"fourth")]).await;
    for signer in [&stranger, &stranger, &stranger, &signer] {
        signer.push(&registry, REPOSITORY, &fourth, JWS).await.unwrap();
    }
    objects.apply("fourth", spec("fourth")).await;
    let expected = "The configured limit of 3 signatures to verify per artifact exceeded";
    objects.wait_failed("fourth", "VerificationError", expected).await;
    // The list of referrers of an artifact has an entry of another type, and an invalid envelope.
    let other = push_to(&registry, "other", &[("a.yaml", b"other")]).await;
    refer(&registry, &other, "application/vnd.example.sbom", b"{}").await;
    objects.apply("sbom", spec("other")).await;
    let expected = "no signature is associated with";
    objects.wait_failed("sbom", "VerificationError", expected).await;
    refer(&registry, &other, "application/vnd.cncf.notary.signature", b"{}").await;
    objects.apply("malformed", spec("other")).await;
    let expected = "the signature envelope is malformed";
    objects
        .wait_failed("malformed", "VerificationError", expected)
        .await;
}

/// Pushes an artifact of a type with one envelope in JSON, and a list of referrers of another with it alone.
async fn refer(registry: &Registry, digest: &str, kind: &str, envelope: &[u8]) {
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let layer = registry.push_blob(REPOSITORY, JWS, envelope).await.unwrap();
    let config = registry.push_blob(REPOSITORY, kind, b"{}").await.unwrap();
    let manifest =
        json!({"schemaVersion": 2, "mediaType": manifest_type, "config": config, "layers": [layer]});
    let own = registry.push_manifest(REPOSITORY, "", &manifest).await.unwrap();
    let size = manifest.to_string().len();
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{"mediaType": manifest_type, "artifactType": kind, "digest": own, "size": size}],
    });
    let tag = digest.replace(':', "-");
    registry.push_manifest(REPOSITORY, &tag, &index).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_are_verified_by_signatures_of_notation() {
    let setup = TestNamespace::start().await;
    let registry = Registry::start(Login::Basic, None).await.unwrap();
    let (signer, stranger) = (NotarySigner::new().unwrap(), NotarySigner::new().unwrap());
    let scope = format!("{}/charts/shop", registry.host());
    setup.secret("own", trust(&signer, "strict", &scope)).await;
    setup.secret("other", trust(&stranger, "strict", "*")).await;
    setup.secret("skip", trust(&stranger, "skip", "*")).await;
    let login = json!({"username": USER, "password": PASSWORD});
    setup.secret("login", login).await;
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    let url = format!("oci://{}/charts", registry.host());
    let spec = json!({"url": url, "type": "oci", "insecure": true, "secretRef": {"name": "login"}});
    repositories.apply("charts", spec).await;
    let archive = tar_gz(&[("shop/Chart.yaml", b"apiVersion: v2\nname: shop\nversion: 1.0.0\n")]);
    let digest = registry.push_chart("charts/shop", "1.0.0", &archive).await;
    let digest = digest.unwrap();
    let charts = Objects::<HelmChart>::of(&setup).await;
    let chart = |secret: &str| {
        json!({
            "chart": "shop", "version": "1.0.0", "sourceRef": {"kind": "HelmRepository", "name": "charts"},
            "verify": {"provider": "notation", "secretRef": {"name": secret}},
        })
    };
    charts.apply("own", chart("own")).await;
    let unsigned = "no signature is associated with";
    let object = charts
        .wait_failed("own", "ChartVerificationError", unsigned)
        .await;
    assert!(condition(&object, types::SOURCE_VERIFIED).unwrap().is_false());
    signer.push(&registry, "charts/shop", &digest, JWS).await.unwrap();
    let object = charts.reconcile("own", "1").await;
    let verified = condition(&object, types::SOURCE_VERIFIED).unwrap();
    assert!(verified.is_true(), "{object:?}");
    assert_eq!(verified.message, "verified signature of version 1.0.0");
    assert_eq!(artifact(&object).revision, "1.0.0");
    charts.apply("other", chart("other")).await;
    let untrusted = "does not contain any trusted certificate";
    charts
        .wait_failed("other", "ChartVerificationError", untrusted)
        .await;
    charts.apply("skip", chart("skip")).await;
    let object = charts.wait_ready("skip").await;
    assert_eq!(condition(&object, types::SOURCE_VERIFIED), None);
}
