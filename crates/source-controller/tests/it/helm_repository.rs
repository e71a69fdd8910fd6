//! HelmRepository: from the index of a repository to an artifact.

use std::fmt::Write as _;

use api::{condition_type as types, source::HelmRepository};
use kube::{ResourceExt as _, api::DeleteParams};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::{Authority, HttpProxy, WebServer, web::Page};

use super::{
    TIMEOUT, TestNamespace,
    objects::{Objects, artifact, condition, status},
};

const INDEX: &str = "apiVersion: v1
entries:
  shop:
  - name: a
    version: 1.0.0
    urls: [shop-1.0.0.tgz]
  - name: a
    version: 1.10.0
    urls: [shop-1.10.0.tgz]
  - name: a
    version: none
generated: \"2026-01-01T00:00:00Z\"
";

fn hex_of(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

async fn index(object: &HelmRepository) -> Value {
    let answer = reqwest::get(&artifact(object).url).await.unwrap();
    answer.error_for_status().unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn index_becomes_an_artifact_and_follows_its_changes() {
    let (setup, server) = (TestNamespace::start().await, WebServer::start().unwrap());
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    server.page("/index.yaml", Page::Tagged(INDEX.into(), "\"one\"".to_owned()));
    repositories.apply("shop", json!({"url": server.url("")})).await;
    let object = repositories.wait_ready("shop").await;
    assert_eq!(server.asked().len(), 1, "a new index is downloaded once");
    let (hex, ns) = (hex_of(INDEX), &setup.namespace);
    let first = artifact(&object);
    assert_eq!(first.revision, format!("sha256:{hex}"));
    assert_eq!(first.path, format!("helmrepository/{ns}/shop/index-{hex}.yaml"));
    for name in [types::READY, types::ARTIFACT_IN_STORAGE] {
        let found = condition(&object, name).unwrap();
        let message = format!("stored artifact: revision 'sha256:{hex}'");
        assert_eq!((found.reason.as_str(), found.message), ("Succeeded", message));
    }
    let url = status(&object)["url"].as_str().unwrap().to_owned();
    assert!(
        url.ends_with(&format!("/helmrepository/{ns}/shop/index.yaml")),
        "{url}"
    );
    // It is JSON, the newest version first, without invalid entries.
    let expected = json!({
        "apiVersion": "v1", "generated": "2026-01-01T00:00:00Z",
        "entries": {"shop": [
            {"name": "a", "version": "1.10.0", "urls": ["shop-1.10.0.tgz"]},
            {"name": "a", "version": "1.0.0", "urls": ["shop-1.0.0.tgz"]},
        ]},
    });
    assert_eq!(index(&object).await, expected);
    let latest: Value = reqwest::get(&url).await.unwrap().json().await.unwrap();
    assert_eq!(latest, expected);
    let event = setup.wait_event("shop", "NewArtifact").await;
    let size = first.size.unwrap();
    let message = format!("stored fetched index of size {size}B from '{}'", server.url(""));
    assert_eq!((event.0.as_str(), event.2), ("Normal", message));

    // The same again is neither sent nor stored.
    let asked = server.asked().len();
    let again = repositories.reconcile("shop", "1").await;
    assert_eq!(
        (artifact(&again), server.asked().len()),
        (first.clone(), asked + 1)
    );

    let changed = INDEX.replace("1.10.0", "1.11.0");
    server.page(
        "/index.yaml",
        Page::Tagged(changed.clone().into(), "\"two\"".to_owned()),
    );
    let object = repositories.reconcile("shop", "2").await;
    assert_eq!(server.asked().len(), asked + 2);
    assert_eq!(artifact(&object).revision, format!("sha256:{}", hex_of(&changed)));
    assert_eq!(index(&object).await["entries"]["shop"][0]["version"], "1.11.0");
    // Those who still download the old one are not disturbed.
    let old = reqwest::get(&first.url).await.unwrap();
    assert_eq!(old.json::<Value>().await.unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_and_certificates_are_those_of_the_secrets() {
    let authority = Authority::new(&["127.0.0.1"]).unwrap();
    let (setup, server) = (
        TestNamespace::start().await,
        WebServer::start_tls(authority).unwrap(),
    );
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    server.page("/index.yaml", Page::Content(INDEX.into()));
    server.login("me", "right");
    setup.secret("ca", json!({"ca.crt": server.ca_pem()})).await;
    setup
        .secret(
            "other-ca",
            json!({"ca.crt": Authority::new(&["127.0.0.1"]).unwrap().ca_pem}),
        )
        .await;
    setup.secret("half", json!({"tls.crt": "x"})).await;
    setup
        .secret("right", json!({"username": "me", "password": "right"}))
        .await;
    setup
        .secret("wrong", json!({"username": "me", "password": "canary"}))
        .await;
    let old = json!({"username": "me", "password": "right", "caFile": server.ca_pem()});
    setup.secret("old", old).await;
    setup
        .secret("docker", json!({".dockerconfigjson": "{\"auths\": {}}"}))
        .await;
    let spec = |credentials: &str, certificates: Option<&str>| {
        let mut spec = json!({"url": server.url(""), "secretRef": {"name": credentials}});
        if let Some(name) = certificates {
            spec["certSecretRef"] = json!({"name": name});
        }
        spec
    };
    for (name, credentials, certificates) in [("basic", "right", Some("ca")), ("old", "old", None)] {
        repositories.apply(name, spec(credentials, certificates)).await;
        repositories.wait_ready(name).await;
    }
    let fetching = "failed to fetch Helm repository index: ";
    for (name, credentials, certificates, reason, message) in [
        ("refused", "wrong", Some("ca"), "Failed", "401 Unauthorized"),
        ("anonymous", "docker", Some("ca"), "Failed", "401 Unauthorized"),
        (
            "missing",
            "nothing",
            Some("ca"),
            "AuthenticationFailed",
            "nothing",
        ),
        ("untrusted", "right", None, "Failed", fetching),
        ("other-ca", "right", Some("other-ca"), "Failed", fetching),
        (
            "half",
            "right",
            Some("half"),
            "AuthenticationFailed",
            "both 'tls.crt' and 'tls.key'",
        ),
    ] {
        repositories.apply(name, spec(credentials, certificates)).await;
        let object = repositories.wait_failed(name, reason, message).await;
        let failed = condition(&object, types::FETCH_FAILED).unwrap();
        assert!(
            failed.is_true() && !failed.message.contains("canary"),
            "{failed:?}"
        );
    }
    assert!(!setup.controller.log().contains("canary"));
    repositories
        .apply("url", json!({"url": "oci://ghcr.io/org"}))
        .await;
    let object = repositories
        .wait_failed("url", "URLInvalid", "needs spec.type: oci")
        .await;
    assert!(condition(&object, types::STALLED).unwrap().is_true());
}

/// As in the original, a CA certificate of a Secret adds to the system's.
#[tokio::test(flavor = "multi_thread")]
async fn authorities_of_a_secret_are_trusted_beside_those_of_the_system() {
    let authority = || Authority::new(&["127.0.0.1"]).unwrap();
    let (system, own, unknown) = (authority(), authority(), authority());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("system.pem");
    std::fs::write(&file, &system.ca_pem).unwrap();
    let setup = TestNamespace::start_with(|launch| launch.env("SSL_CERT_FILE", file.to_str().unwrap())).await;
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    setup.secret("own", json!({"ca.crt": own.ca_pem})).await;
    let [system, own, unknown] =
        [system, own, unknown].map(|authority| WebServer::start_tls(authority).unwrap());
    for server in [&system, &own, &unknown] {
        server.page("/index.yaml", Page::Content(INDEX.into()));
    }
    let with_secret = |server: &WebServer| json!({"url": server.url(""), "certSecretRef": {"name": "own"}});
    for (name, server) in [("system", &system), ("own", &own)] {
        repositories.apply(name, with_secret(server)).await;
        repositories.wait_ready(name).await;
    }
    repositories.apply("plain", json!({"url": system.url("")})).await;
    repositories.wait_ready("plain").await;
    let fetching = "failed to fetch Helm repository index: ";
    for (name, spec) in [
        ("unknown", with_secret(&unknown)),
        ("own-without", json!({"url": own.url("")})),
    ] {
        repositories.apply(name, spec).await;
        repositories.wait_failed(name, "Failed", fetching).await;
    }
    assert!(unknown.asked().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn registries_are_left_alone_and_a_repository_that_becomes_one_is_cleaned_up() {
    let (setup, server) = (TestNamespace::start().await, WebServer::start().unwrap());
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    server.page("/index.yaml", Page::Content(INDEX.into()));
    let registry = json!({"url": "oci://ghcr.io/org/charts", "type": "oci", "provider": "generic"});
    repositories.apply("registry", registry.clone()).await;
    repositories.apply("shop", json!({"url": server.url("")})).await;
    let object = repositories.wait_ready("shop").await;
    let dir = repositories.dir("shop");
    assert!(dir.is_dir() && !object.finalizers().is_empty());

    repositories.apply("shop", registry).await;
    // Without any status, clients take it as ready.
    for name in ["shop", "registry"] {
        repositories
            .wait(name, "neither finalizer nor status", |object| {
                object.finalizers().is_empty() && status(object) == json!({})
            })
            .await;
    }
    assert!(!dir.exists());
    assert!(setup.events("registry").await.is_empty());

    // And back.
    repositories
        .apply("shop", json!({"url": server.url(""), "type": "default"}))
        .await;
    repositories.wait_ready("shop").await;
    assert!(dir.is_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_indexes_are_refused_in_bounded_memory_while_others_go_on() {
    let setup = TestNamespace::start().await;
    let server = WebServer::start().unwrap();
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    let text = "x".repeat(40_000);
    let many = |charts: usize| {
        (0..charts).fold(String::from("apiVersion: v1\nentries:\n"), |mut index, number| {
            let _ = write!(
                index,
                "  chart-{number}:\n  - {{name: a, version: 1.0.0, description: {text}}}\n"
            );
            index
        })
    };
    let start = "apiVersion: v1\nentries:\n  a:\n  - name: a\n    version: 1.0.0\n";
    let entry = format!("{start}    description: {}\n", "x".repeat(9 << 20));
    server.page("/large/index.yaml", Page::Content(many(2500).into()));
    server.page("/usual/index.yaml", Page::Content(many(250).into()));
    server.page("/endless/index.yaml", Page::Endless(start.repeat(2000).into()));
    server.page("/entry/index.yaml", Page::Content(entry.into()));
    server.page("/html/index.yaml", Page::Content("<html></html>".into()));
    server.page("/versionless/index.yaml", Page::Content("entries: {}\n".into()));
    server.page("/cut/index.yaml", Page::Cut(start.into()));
    server.page("/stalled/index.yaml", Page::Stalled(start.into()));
    server.page(
        "/odd/index.yaml",
        Page::Content("apiVersion: v1\nentries:\n  a: text\n".into()),
    );
    server.page("/good/index.yaml", Page::Content(INDEX.into()));
    let (fetching, reading) = (
        "failed to fetch Helm repository index: ",
        "failed to load Helm repository from index YAML: ",
    );
    let limit = "larger than the limit of 52428800 bytes of an index: the flag --helm-index-max-size";
    let failures = [
        // 100 MB.
        ("large", "Failed", fetching, limit),
        (
            "entry",
            "IndexationFailed",
            reading,
            "8388608 bytes of the entries of one chart",
        ),
        ("html", "IndexationFailed", reading, "it has no entries"),
        (
            "versionless",
            "IndexationFailed",
            reading,
            "no API version specified",
        ),
        ("cut", "Failed", fetching, "network"),
        ("stalled", "Failed", fetching, "raise spec.timeout"),
        ("odd", "IndexationFailed", reading, "is no list"),
        ("gone", "Failed", fetching, "was not found"),
    ];
    repositories
        .apply("endless", json!({"url": server.url("endless")}))
        .await;
    repositories
        .apply("good", json!({"url": server.url("good")}))
        .await;
    repositories.wait_ready("good").await;
    repositories.wait_failed("endless", "Failed", limit).await;
    repositories
        .api
        .delete("endless", &DeleteParams::default())
        .await
        .unwrap();
    for (name, ..) in failures {
        let spec = json!({"url": server.url(name), "timeout": if name == "stalled" { "2s" } else { "50s" }});
        repositories.apply(name, spec).await;
    }
    repositories
        .apply("usual", json!({"url": server.url("usual")}))
        .await;
    for (name, reason, beginning, end) in failures {
        let object = repositories.wait_failed(name, reason, end).await;
        let ready = condition(&object, types::READY).unwrap();
        assert!(ready.message.starts_with(beginning), "{name}: {}", ready.message);
    }
    let object = repositories.wait_ready("usual").await;
    assert!(artifact(&object).size.unwrap() > 10_000_000);
    let peak = setup.controller.usage().unwrap().peak;
    // 81 to 106 MiB, depending on how many indexes come at the same time.
    assert!(peak < 128 << 20, "{} MiB", peak >> 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_removes_the_artifacts_and_old_versions_are_served() {
    let (setup, server) = (TestNamespace::start().await, WebServer::start().unwrap());
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    server.page("/index.yaml", Page::Content(INDEX.into()));
    for version in ["v1beta1", "v1beta2", "v1"] {
        repositories
            .apply_version(version, version, json!({"url": server.url("")}))
            .await;
        let ready = repositories.wait_ready(version).await;
        let dir = repositories.dir(version);
        assert!(
            setup
                .controller
                .storage_path()
                .join(artifact(&ready).path)
                .is_file()
        );
        let kind = format!("helmrepositories.{version}.source.toolkit.fluxcd.io");
        let listed = setup.kubectl(&["get", &kind, version]).await;
        assert!(
            listed.contains("URL") && listed.contains(&server.url("")),
            "{listed}"
        );
        repositories
            .api
            .delete(version, &DeleteParams::default())
            .await
            .unwrap();
        testkit::wait_gone(&repositories.api, version, TIMEOUT)
            .await
            .unwrap();
        assert!(!dir.exists());
    }
}

/// The name of a tenant leads to an internal server only at the proxy of the operator.
#[tokio::test(flavor = "multi_thread")]
async fn name_at_the_proxy_of_the_operator_leads_to_an_internal_server_only_if_that_is_trusted() {
    let internal = WebServer::start().unwrap();
    internal.page("/index.yaml", Page::Content(INDEX.into()));
    let proxy = HttpProxy::start("me", "canary").unwrap();
    let address = internal.url("").split('/').nth(2).unwrap().to_owned();
    proxy.route("rebound.invalid:80", &address);
    proxy.route("rebound.invalid", &address);
    let operated = |trusted: &'static str| {
        let url = proxy.url().replace("://", "://me:canary@");
        // HTTPS_PROXY would apply to the API server, too.
        TestNamespace::start_with(move |launch| {
            launch
                .flag(trusted)
                .env("ALL_PROXY", &url)
                .env("NO_PROXY", "127.0.0.1,localhost")
        })
    };
    let spec = json!({"url": "http://rebound.invalid"});
    let setup = operated("--proxies-check-addresses=false").await;
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    repositories.apply("rebound", spec.clone()).await;
    let why = "names are not allowed through a proxy by plain http";
    repositories.wait_failed("rebound", "Failed", why).await;
    assert_eq!(proxy.asked(), [] as [&str; 0]);

    let setup = operated("--proxies-check-addresses").await;
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    repositories.apply("rebound", spec).await;
    repositories.wait_ready("rebound").await;
    assert!(!internal.asked().is_empty());
}
