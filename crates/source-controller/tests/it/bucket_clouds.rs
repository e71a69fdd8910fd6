//! Buckets of clouds: their identities, and their failures.

use api::{condition_type as types, source::Bucket};
use serde_json::{Value, json};
use testkit::{
    Authority, CloudIdentities, CloudStorage, S3Server,
    identities::{
        AZURE_MACHINE, AZURE_MACHINE_TOKEN, AZURE_STORAGE_TOKEN, GOOGLE_MACHINE_TOKEN, GOOGLE_TOKEN, ROLE,
        STS,
    },
    storage::{ACCOUNT_KEY, BLOBS, GOOGLE, LDAP_PASSWORD, LDAP_USER},
};

use super::{
    bucket::{self, BucketNamespace},
    identities::{GATE, Setup},
    objects::{Objects, artifact, condition},
};

const NOBODY: &str = "http://127.0.0.1:9";

/// Returns a spec for the bucket `shop` that is asked through the proxy of a [`Setup`].
fn proxied(provider: &str, endpoint: &str, more: &Value) -> Value {
    let mut spec = json!({
        "bucketName": "shop", "provider": provider, "endpoint": endpoint, "proxySecretRef": {"name": "proxy"},
    });
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    spec
}

/// Google Cloud Storage and Azure at their real names, for a controller whose machine has an identity, too.
async fn start_clouds() -> (Setup, CloudStorage) {
    let setup = Setup::start_with(&[GATE], |launch, clouds| {
        launch
            .env("GCE_METADATA_HOST", clouds)
            .env("AZURE_POD_IDENTITY_AUTHORITY_HOST", clouds)
    })
    .await;
    let storage = CloudStorage::start_tls(Authority::new(&[GOOGLE, BLOBS]).unwrap()).unwrap();
    for host in [GOOGLE, BLOBS] {
        setup.proxy.route(&format!("{host}:443"), &storage.host());
    }
    let ca = json!({"ca.crt": storage.ca_pem()});
    setup.namespace.secret("ca", ca).await;
    storage.put("shop", &[("a.yaml", "a"), ("deploy/b.yaml", "b")]);
    (setup, storage)
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_of_google_and_azure_know_service_accounts_and_the_controller() {
    let (setup, storage) = start_clouds().await;
    let managed = json!({"clientId": AZURE_MACHINE});
    setup.namespace.secret("managed", managed).await;
    let buckets = Objects::<Bucket>::of(&setup.namespace).await;
    let azure = format!("https://{BLOBS}");
    let account = json!({"serviceAccountName": "weir"});
    let own = json!({});
    let cases = [
        (
            "google-account",
            ("gcp", GOOGLE),
            &account,
            GOOGLE_TOKEN,
            "federation, account",
        ),
        (
            "google-own",
            ("gcp", GOOGLE),
            &own,
            GOOGLE_MACHINE_TOKEN,
            "google machine",
        ),
        (
            "azure-account",
            ("azure", &azure),
            &account,
            AZURE_STORAGE_TOKEN,
            "https://storage.azure.com/.default",
        ),
        (
            "azure-own",
            ("azure", &azure),
            &own,
            AZURE_MACHINE_TOKEN,
            "azure machine",
        ),
        (
            "azure-client",
            ("azure", &azure),
            &json!({"secretRef": {"name": "managed"}}),
            AZURE_MACHINE_TOKEN,
            "azure machine managed",
        ),
    ];
    for (name, (provider, endpoint), more, token, exchanges) in cases {
        let mut spec = proxied(provider, endpoint, more);
        spec["certSecretRef"] = json!({"name": "ca"});
        // Up to now, the storage would refuse the token.
        storage.trust(token);
        let before = setup.clouds.asked().len();
        buckets.apply(name, spec).await;
        let object = buckets.wait_ready(name).await;
        assert_eq!(setup.clouds.asked()[before..].join(", "), exchanges, "{name}");
        let files = super::fetch_artifact(&artifact(&object)).await;
        assert_eq!(files.read("a.yaml"), "a");
        assert_eq!(files.read("deploy/b.yaml"), "b");
    }
    assert!(!setup.namespace.controller.log().contains("canary"));
}

#[tokio::test(flavor = "multi_thread")]
async fn identities_of_buckets_need_annotations_and_hosts_of_their_cloud() {
    let (setup, storage) = start_clouds().await;
    let buckets = Objects::<Bucket>::of(&setup.namespace).await;
    let azure = format!("https://{BLOBS}");
    let plain = json!({"serviceAccountName": "plain"});
    let none = json!({"serviceAccountName": "none"});
    let account = json!({"serviceAccountName": "weir"});
    let elsewhere = "tokens of a workload identity are sent to";
    for (name, provider, endpoint, more, reason, message) in [
        (
            "google-plain",
            "gcp",
            GOOGLE,
            plain.clone(),
            "AuthenticationFailed",
            "has no annotation 'gcp.auth.fluxcd.io/workload-identity-provider'",
        ),
        (
            "azure-plain",
            "azure",
            &azure,
            plain,
            "AuthenticationFailed",
            "has no annotation 'azure.workload.identity/client-id'",
        ),
        (
            "none",
            "gcp",
            GOOGLE,
            none,
            "AuthenticationFailed",
            "serviceaccounts \"none\" not found",
        ),
        (
            "google-elsewhere",
            "gcp",
            "storage.example.com",
            json!({}),
            "URLInvalid",
            elsewhere,
        ),
        (
            "google-http",
            "gcp",
            GOOGLE,
            json!({"insecure": true}),
            "URLInvalid",
            elsewhere,
        ),
        (
            "azure-elsewhere",
            "azure",
            "https://shop.example.com",
            account,
            "URLInvalid",
            elsewhere,
        ),
    ] {
        let mut spec = proxied(provider, endpoint, &more);
        spec["certSecretRef"] = json!({"name": "ca"});
        buckets.apply(name, spec).await;
        let object = buckets.wait_failed(name, reason, message).await;
        let stalled = condition(&object, types::STALLED).is_some();
        assert_eq!(stalled, reason == "URLInvalid", "{name}");
    }
    assert_eq!(storage.requests(), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_of_google_and_azure_are_explained_and_pass() {
    let (test, clouds) = (BucketNamespace::start().await, CloudStorage::start().unwrap());
    clouds.put(
        "shop",
        &[(".sourceignore", "*.md\n"), ("a.md", "a"), ("b.yaml", "b")],
    );
    for (name, data) in [
        ("google", json!({"serviceaccount": clouds.service_account()})),
        ("no-key", json!({"serviceaccount": "canary"})),
        ("azure", json!({"accountKey": ACCOUNT_KEY})),
        ("wrong", json!({"accountKey": "Y2FuYXJ5"})),
        ("empty", json!({"other": "canary"})),
    ] {
        test.setup.secret(name, data).await;
    }
    let ns = &test.setup.namespace;
    let missing = format!("failed to get secret '{ns}/none': secrets \"none\" not found");
    let (google, azure) = (clouds.host(), clouds.azure());
    let (auth, failed) = ("AuthenticationFailed", "BucketOperationFailed");
    let spec = |provider: &str, bucket: &str, secret: &str| json!({"provider": provider, "bucketName": bucket, "secretRef": {"name": secret}});
    let confirm = "failed to confirm existence of 'shop' bucket: ";
    let cases = [
        (
            "google-missing",
            &google,
            spec("gcp", "shop", "none"),
            auth,
            missing.as_str(),
        ),
        (
            "azure-missing",
            &azure,
            spec("azure", "shop", "none"),
            auth,
            &missing,
        ),
        (
            "google-empty",
            &google,
            spec("gcp", "shop", "empty"),
            auth,
            "invalid 'empty' secret data: required fields 'serviceaccount'",
        ),
        (
            "google-no-key",
            &google,
            spec("gcp", "shop", "no-key"),
            auth,
            "invalid 'no-key' secret data: serviceaccount: ",
        ),
        (
            "azure-empty",
            &azure,
            spec("azure", "shop", "empty"),
            auth,
            "invalid 'empty' secret data: requires a 'clientId', 'accountKey' or 'sasKey' field",
        ),
        (
            "azure-wrong",
            &azure,
            spec("azure", "shop", "wrong"),
            failed,
            confirm,
        ),
        (
            "google-down",
            &"127.0.0.1:1".to_owned(),
            spec("gcp", "shop", "google"),
            failed,
            confirm,
        ),
        (
            "google-none",
            &google,
            spec("gcp", "none", "google"),
            failed,
            "bucket 'none' not found",
        ),
        (
            "azure-none",
            &azure,
            spec("azure", "none", "azure"),
            failed,
            "bucket 'none' not found",
        ),
    ];
    for (name, endpoint, spec, reason, message) in cases {
        test.apply(name, endpoint, spec).await;
        let object = test.wait_failed(name, reason, message).await;
        let fetching = bucket::condition(&object, types::FETCH_FAILED).unwrap();
        assert_eq!(fetching.reason, reason, "{name}");
        assert_eq!(bucket::condition(&object, types::STALLED), None, "{name}");
        assert!(!format!("{object:?}").contains("canary"), "{object:?}");
    }
    // The bucket appears, follows its rules, and its next version.
    clouds.put(
        "none",
        &[(".sourceignore", "*.md\n"), ("a.md", "a"), ("b.yaml", "b")],
    );
    for name in ["google-none", "azure-none"] {
        let object = test.wait_ready(name).await;
        let files = test.files(&object).await;
        assert_eq!(files.keys().collect::<Vec<_>>(), [".sourceignore", "b.yaml"]);
    }
    clouds.put("none", &[("b.yaml", "c")]);
    for name in ["google-none", "azure-none"] {
        let object = test.reconcile(name, "1").await;
        assert_eq!(test.files(&object).await["b.yaml"], "c");
    }
    assert!(!test.setup.controller.log().contains("canary"));
}

/// The service of `spec.sts` is asked for the role of a service account and the role of the controller, in place of the service of the
/// environment, which doesn't answer.
#[tokio::test(flavor = "multi_thread")]
async fn token_service_of_aws_gives_the_keys_that_requests_are_signed_with() {
    let authority = Authority::new(&[STS]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (ca, token) = (dir.path().join("ca.pem"), dir.path().join("token"));
    std::fs::write(&ca, &authority.ca_pem).unwrap();
    let setup = Setup::start_with(&[GATE], |launch, _| {
        launch
            .env("SSL_CERT_FILE", ca.to_str().unwrap())
            .env("AWS_ENDPOINT_URL_STS", NOBODY)
            .env("AWS_ACCESS_KEY_ID", "")
            .env("AWS_ROLE_ARN", ROLE)
            .env("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap())
    })
    .await;
    let namespace = &setup.namespace;
    let tokens = CloudIdentities::start_tls(&namespace.namespace, "weir", authority).unwrap();
    setup.proxy.route(&format!("{STS}:443"), &tokens.host());
    let server = S3Server::start().await.unwrap();
    server.put("shop", &[("a.yaml", "x")]).await.unwrap();
    let buckets = Objects::<Bucket>::of(namespace).await;
    let with_sts = |more: Value| {
        let mut spec = proxied("aws", &server.endpoint(), &more);
        spec["insecure"] = json!(true);
        spec["sts"] = json!({"provider": "aws", "endpoint": format!("https://{STS}")});
        spec
    };
    buckets
        .apply("account", with_sts(json!({"serviceAccountName": "weir"})))
        .await;
    let object = buckets.wait_ready("account").await;
    assert_eq!(tokens.asked(), ["role"]);
    let files = super::fetch_artifact(&artifact(&object)).await;
    assert_eq!(files.read("a.yaml"), "x");

    // The role trusts no other account, whoever asks.
    let of = async |account: &str| {
        namespace
            .kubectl(&["create", "token", account, "--audience", "sts.amazonaws.com"])
            .await
    };
    std::fs::write(&token, of("plain").await).unwrap();
    buckets.apply("controller", with_sts(json!({}))).await;
    buckets
        .wait_failed("controller", "AuthenticationFailed", "AWS STS")
        .await;
    assert_eq!(tokens.asked(), ["role"]);
    std::fs::write(&token, of("weir").await).unwrap();
    let object = buckets.wait_ready("controller").await;
    assert_eq!(tokens.asked(), ["role", "role"]);
    let files = super::fetch_artifact(&artifact(&object)).await;
    assert_eq!(files.read("a.yaml"), "x");

    let mut without = with_sts(json!({}));
    without.as_object_mut().unwrap().remove("sts");
    buckets.apply("without", without).await;
    buckets
        .wait_failed("without", "AuthenticationFailed", "127.0.0.1:9")
        .await;
    let asked = setup.proxy.asked();
    for host in [format!("{STS}:443"), server.endpoint()] {
        assert!(asked.contains(&host), "{asked:?}");
    }
    assert_eq!(setup.clouds.asked(), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn token_service_of_ldap_is_verified_by_the_certificates_of_its_secret() {
    let (test, server) = (BucketNamespace::start().await, S3Server::start().await.unwrap());
    server.put("shop", &[("a", "test")]).await.unwrap();
    let authority = || Authority::new(&["127.0.0.1"]).unwrap();
    let clouds = CloudStorage::start_tls(authority()).unwrap();
    for (name, data) in [
        ("ca", json!({"ca.crt": clouds.ca_pem()})),
        ("other-ca", json!({"ca.crt": authority().ca_pem})),
        ("ldap", json!({"username": LDAP_USER, "password": LDAP_PASSWORD})),
    ] {
        test.setup.secret(name, data).await;
    }
    let spec = |certificates: Option<&str>| {
        let mut sts = json!({"provider": "ldap", "endpoint": clouds.sts(), "secretRef": {"name": "ldap"}});
        if let Some(name) = certificates {
            sts["certSecretRef"] = json!({"name": name});
        }
        json!({"sts": sts})
    };
    for (name, certificates) in [("no-ca", None), ("other-ca", Some("other-ca"))] {
        test.apply(name, &server.endpoint(), spec(certificates)).await;
        test.wait_failed(name, "AuthenticationFailed", "certificate")
            .await;
    }
    assert_eq!(clouds.requests(), [] as [&str; 0]);
    test.apply("good", &server.endpoint(), spec(Some("ca"))).await;
    let object = test.wait_ready("good").await;
    assert_eq!(test.files(&object).await["a"], "test");
    assert_eq!(clouds.requests(), ["POST /sts"]);
}
