//! Failures of Buckets are reported on the one object that they concern, in the original's words, and schemas refuse invalid specs.

use api::condition_type as types;
use serde_json::{Value, json};
use testkit::{
    Authority, CloudStorage, HttpProxy, S3Options, S3Server,
    storage::{LDAP_PASSWORD, LDAP_USER},
};

use super::bucket::{BucketNamespace, artifact, condition};

fn secret(name: &str) -> Value {
    json!({"name": name})
}

fn sts(provider: &str, endpoint: &str) -> Value {
    json!({"provider": provider, "endpoint": endpoint, "secretRef": {"name": "ldap"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_of_a_bucket_is_explained_and_the_others_go_on() {
    let (test, server) = (BucketNamespace::start().await, S3Server::start().await.unwrap());
    server.put("shop", &[("a", "test")]).await.unwrap();
    server
        .put("odd", &[("a", "test"), ("a/b", "test")])
        .await
        .unwrap();
    let clouds = CloudStorage::start().unwrap();
    for (name, data) in [
        ("half", json!({"accesskey": "canary-key"})),
        (
            "wrong",
            json!({"accesskey": "weir-access-key", "secretkey": "canary-secret"}),
        ),
        ("empty", json!({"other": "canary"})),
        ("bad-ca", json!({"ca.crt": "canary-ca"})),
        (
            "ldap",
            json!({"username": LDAP_USER, "password": "canary-password"}),
        ),
    ] {
        test.setup.secret(name, data).await;
    }
    let ns = &test.setup.namespace;
    let missing = format!("failed to get secret '{ns}/none': secrets \"none\" not found");
    let endpoint = server.endpoint();
    let sts_url = clouds.sts();
    let auth = "AuthenticationFailed";
    let failed = "BucketOperationFailed";
    let cases: Vec<(&str, Value, &str, String)> = vec![
        ("no-secret", json!({"secretRef": secret("none")}), auth, missing),
        (
            "half",
            json!({"secretRef": secret("half")}),
            auth,
            "invalid 'half' secret data: required fields 'accesskey' and 'secretkey'".to_owned(),
        ),
        (
            "no-tls",
            json!({"certSecretRef": secret("none")}),
            auth,
            format!("failed to get TLS config: secret '{ns}/none' not found"),
        ),
        (
            "empty-tls",
            json!({"certSecretRef": secret("empty")}),
            auth,
            format!(
                "failed to get TLS config: secret '{ns}/empty' must contain either 'ca.crt' or both 'tls.crt' and 'tls.key'"
            ),
        ),
        (
            "bad-ca",
            json!({"certSecretRef": secret("bad-ca")}),
            auth,
            "check ca.crt in the secret of spec.certSecretRef".to_owned(),
        ),
        (
            "no-proxy",
            json!({"proxySecretRef": secret("none")}),
            auth,
            format!("failed to get proxy URL: secret '{ns}/none' not found"),
        ),
        (
            "empty-proxy",
            json!({"proxySecretRef": secret("empty")}),
            auth,
            format!("failed to get proxy URL: secret '{ns}/empty': key 'address' not found"),
        ),
        (
            "no-sts-secret",
            json!({"sts": {"provider": "ldap", "endpoint": sts_url, "secretRef": {"name": "none"}}}),
            auth,
            format!("failed to get STS secret '{ns}/none': secrets \"none\" not found"),
        ),
        (
            "empty-sts-secret",
            json!({"sts": {"provider": "ldap", "endpoint": sts_url, "secretRef": {"name": "empty"}}}),
            auth,
            "invalid 'empty' secret data for 'ldap' STS provider: required fields username, password"
                .to_owned(),
        ),
        (
            "no-sts-tls",
            json!({"sts": {"provider": "ldap", "endpoint": sts_url, "certSecretRef": {"name": "none"}}}),
            auth,
            format!("failed to get STS TLS config: secret '{ns}/none' not found"),
        ),
        (
            "ldap-refuses",
            json!({"sts": sts("ldap", &sts_url)}),
            auth,
            "AWS STS refused the credentials: InvalidParameterValue: LDAP server error: wrong password"
                .to_owned(),
        ),
        (
            "no-bucket",
            json!({"bucketName": "none", "secretRef": secret("keys")}),
            failed,
            "bucket 'none' not found".to_owned(),
        ),
        (
            "refused",
            json!({"secretRef": secret("wrong")}),
            failed,
            "failed to confirm existence of 'shop' bucket: ".to_owned(),
        ),
        (
            "odd-name",
            json!({"bucketName": "odd", "secretRef": secret("keys")}),
            failed,
            "fetch from bucket 'odd' failed: failed to resolve path for 'a' object: there are objects below it".to_owned(),
        ),
    ];
    for (name, spec, _, _) in &cases {
        test.apply(name, &endpoint, spec.clone()).await;
    }
    test.apply("no-server", "127.0.0.1:1", json!({})).await;
    test.apply_s3("good", &server, json!({})).await;
    test.wait_ready("good").await;
    for (name, _, reason, message) in &cases {
        let object = test.wait_failed(name, reason, message).await;
        let failure = condition(&object, types::FETCH_FAILED).unwrap();
        assert_eq!(failure.reason, *reason, "{name}");
        assert_eq!(condition(&object, types::STALLED), None, "{name}");
        assert!(!format!("{object:?}").contains("canary"), "{object:?}");
    }
    let confirm = "failed to confirm existence of 'shop' bucket: 127.0.0.1:1: ";
    test.wait_failed("no-server", failed, confirm).await;
    assert!(!test.setup.controller.log().contains("canary"));
    // A rule leaves out the object without a valid path.
    let rules = json!({"bucketName": "odd", "secretRef": secret("keys"), "ignore": "/a/b"});
    test.apply("odd-name", &endpoint, rules).await;
    test.wait_ready("odd-name").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn specs_of_buckets_that_cannot_work_stall() {
    let test = BucketNamespace::start().await;
    for (name, endpoint, spec, reason, message) in [
        (
            "scheme",
            "https://minio.test",
            json!({}),
            "URLInvalid",
            "failed to parse spec.endpoint: ",
        ),
        (
            "sts-url",
            "minio.test",
            json!({"sts": sts("ldap", "http://")}),
            "URLInvalid",
            "failed to parse STS endpoint 'http://'",
        ),
        (
            "account",
            "storage.googleapis.com",
            json!({"provider": "gcp", "serviceAccountName": "sa"}),
            "FeatureGateDisabled",
            "ObjectLevelWorkloadIdentity",
        ),
    ] {
        test.apply(name, endpoint, spec).await;
        let object = test.wait_failed(name, reason, message).await;
        assert!(condition(&object, types::STALLED).is_some(), "{name}");
        assert_eq!(
            object.status.unwrap().observed_generation,
            object.metadata.generation,
            "{name}"
        );
    }
}

/// The rules of the original's schema.
#[tokio::test(flavor = "multi_thread")]
async fn schema_refuses_token_services_that_do_not_fit() {
    let test = BucketNamespace::start().await;
    let sts = |provider: &str| json!({"provider": provider, "endpoint": "http://test"});
    let with = |provider: &str, key: &str| {
        let mut sts = sts(provider);
        sts[key] = secret("s");
        sts
    };
    let only = "is the only supported STS provider for the";
    let clouds = "STS configuration is only supported for the 'aws' and 'generic' Bucket providers";
    let account = json!({"provider": "aws", "serviceAccountName": "sa"});
    let mut both = account.clone();
    both["secretRef"] = secret("s");
    for (spec, expected) in [
        (json!({"provider": "gcp", "sts": sts("ldap")}), Some(clouds)),
        (json!({"provider": "azure", "sts": sts("ldap")}), Some(clouds)),
        (json!({"provider": "aws", "sts": sts("ldap")}), Some(only)),
        (json!({"provider": "generic", "sts": sts("aws")}), Some(only)),
        (json!({"sts": sts("aws")}), Some(only)),
        (json!({"provider": "aws", "sts": sts("aws")}), None),
        (json!({"provider": "generic", "sts": sts("ldap")}), None),
        (json!({"sts": with("ldap", "secretRef")}), None),
        (json!({"sts": with("ldap", "certSecretRef")}), None),
        (
            json!({"provider": "aws", "sts": with("aws", "secretRef")}),
            Some("spec.sts.secretRef is not required for the 'aws' STS provider"),
        ),
        (
            json!({"provider": "aws", "sts": with("aws", "certSecretRef")}),
            Some("spec.sts.certSecretRef is not required for the 'aws' STS provider"),
        ),
        (
            json!({"sts": {"provider": "ldap", "endpoint": "test"}}),
            Some("spec.sts.endpoint"),
        ),
        (json!({"provider": "aws"}), None),
        (account, None),
        (
            json!({"serviceAccountName": "sa"}),
            Some("ServiceAccountName is not supported for the 'generic' Bucket provider"),
        ),
        (
            both,
            Some("cannot set both .spec.secretRef and .spec.serviceAccountName"),
        ),
    ] {
        let object = test.object("v1", "validated", "minio.test", &spec);
        let applied = test.setup.plane.apply(object).await;
        match (applied, expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => {
                let message = format!("{error:#}");
                assert!(message.contains(expected), "{spec}: {message}");
            }
            (found, _) => panic!("{spec}: {found:?}"),
        }
        test.setup
            .kubectl(&["delete", "bucket", "validated", "--ignore-not-found"])
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_proxy_and_token_service_are_used() {
    let test = BucketNamespace::start().await;
    let options = S3Options {
        authority: Some(Authority::new(&["127.0.0.1"]).unwrap()),
        client_certificates: true,
        ..S3Options::default()
    };
    let server = S3Server::start_with(options).await.unwrap();
    server.put("shop", &[("a", "test")]).await.unwrap();
    let clouds = CloudStorage::start().unwrap();
    let proxy = HttpProxy::start("me", "canary-proxy").unwrap();
    let authority = server.authority().unwrap();
    for (name, data) in [
        ("ca", json!({"ca.crt": authority.ca_pem})),
        (
            "tls",
            json!({"ca.crt": authority.ca_pem, "tls.crt": authority.server_pem, "tls.key": authority.server_key_pem}),
        ),
        ("ldap", json!({"username": LDAP_USER, "password": LDAP_PASSWORD})),
        (
            "proxy",
            json!({"address": proxy.url(), "username": "me", "password": "canary-proxy"}),
        ),
    ] {
        test.setup.secret(name, data).await;
    }
    let spec = |certificates: Value| {
        let mut spec = json!({
            "insecure": false,
            "sts": sts("ldap", &clouds.sts()),
            "proxySecretRef": secret("proxy"),
        });
        if !certificates.is_null() {
            spec["certSecretRef"] = certificates;
        }
        spec
    };
    let endpoint = server.endpoint();
    test.apply("unknown", &endpoint, spec(Value::Null)).await;
    test.apply("no-client", &endpoint, spec(secret("ca"))).await;
    test.apply("good", &endpoint, spec(secret("tls"))).await;
    let object = test.wait_ready("good").await;
    assert_eq!(test.files(&object).await.len(), 1);
    assert!(artifact(&object).revision.starts_with("sha256:"));
    let asked = proxy.asked();
    assert!(
        asked.contains(&endpoint) && asked.contains(&clouds.host()),
        "{asked:?}"
    );
    let failed = "BucketOperationFailed";
    test.wait_failed(
        "unknown",
        failed,
        "add the server's CA to the secret of spec.certSecretRef as ca.crt",
    )
    .await;
    test.wait_failed(
        "no-client",
        failed,
        "add tls.crt and tls.key to the secret of spec.certSecretRef",
    )
    .await;
    assert!(!test.setup.controller.log().contains("canary"));
}
