//! Servers that a user names as API servers, and that answer as no API server does.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use bytes::Bytes;
use cluster::{Cluster, Error, ResourceKind, Settings};
use kube::{Client, Config};
use limits::ByteBudget;
use testkit::{Page, WebServer};

fn connect(server: &WebServer, memory: u64) -> (Cluster, ByteBudget) {
    let memory = ByteBudget::new(memory);
    (connect_in(server, "https://tenant.example", &memory), memory)
}

fn connect_in(server: &WebServer, name: &str, memory: &ByteBudget) -> Cluster {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::try_from(Config::new(server.url("").parse().unwrap())).unwrap();
    let settings = Settings {
        server: name.to_owned(),
        memory: memory.clone(),
        ..Settings::default()
    };
    Cluster::with_settings(client, settings)
}

fn config_maps() -> ResourceKind {
    ResourceKind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
        namespaced: true,
        listable: true,
        deletable: true,
        preferred: true,
        status: false,
    }
}

async fn refusal(page: Page, bytes: u64) -> String {
    let server = WebServer::start().unwrap();
    server.page("/api/v1/configmaps", page);
    let (cluster, memory) = connect(&server, bytes);
    let error = cluster.list(&config_maps(), None, usize::MAX).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert_eq!(memory.in_use(), 0);
    error.to_string()
}

#[tokio::test]
async fn endless_answers_and_lists_are_refused_by_the_name_of_the_server() {
    let prefix = "list configmaps: the answer of the API server https://tenant.example is too large: ";
    let body = refusal(Page::Endless(Bytes::from(vec![b' '; 1 << 20])), 512 << 20).await;
    assert_eq!(body, format!("{prefix}it has more than 33554432 bytes"));

    // Each page names the next one.
    let page = br#"{"items":[],"metadata":{"continue":"again"}}"#;
    let pages = refusal(Page::Content(Bytes::from_static(page)), 64 << 20).await;
    assert_eq!(pages, format!("{prefix}the list has more than 1000 pages"));
}

#[tokio::test]
async fn values_are_counted_before_they_are_made() {
    // Two megabytes of empty lists: a hundred megabytes of values.
    let mut page = br#"{"items":["#.to_vec();
    page.extend(b"[],".repeat(700_000));
    page.extend(br#"[]]}"#);
    let error = refusal(Page::Content(page.into()), 64 << 20).await;
    assert!(
        error.ends_with("it needs more than 50331648 bytes of memory"),
        "{error}"
    );
}

#[tokio::test]
async fn pages_of_a_list_are_counted_together() {
    let item = format!(r#"{{"data":{{"a":"{}"}}}}"#, "x".repeat(500_000));
    let page = format!(r#"{{"items":[{item}],"metadata":{{"continue":"again"}}}}"#);
    let error = refusal(Page::Content(page.into()), 64 << 20).await;
    assert!(
        error.ends_with("it needs more than 50331648 bytes of memory"),
        "{error}"
    );
}

fn list_of(bytes: usize) -> String {
    format!(r#"{{"items":[{{"data":{{"a":"{}"}}}}]}}"#, "x".repeat(bytes))
}

#[tokio::test]
async fn answers_that_need_memory_of_each_other_delay_no_third_one() {
    const MIB: usize = 1 << 20;
    let memory = ByteBudget::new(16 << 20);
    let list = |page: Page, name: &'static str| {
        let server = WebServer::start().unwrap();
        server.page("/api/v1/configmaps", page);
        let cluster = connect_in(&server, name, &memory);
        async move {
            let listed = cluster.list(&config_maps(), None, usize::MAX).await;
            drop(server);
            listed
        }
    };
    // The first one takes half of the memory, and the second one needs more than the rest.
    let unfinished = list_of(4 * MIB).trim_end_matches("]}").to_owned();
    let first = tokio::spawn(list(Page::Stalled(unfinished.into()), "https://one.example"));
    let half = (8 * MIB) as u64;
    let in_use = |least: u64| {
        let memory = memory.clone();
        async move {
            anyhow::ensure!(memory.in_use() >= least, "{} bytes are held", memory.in_use());
            Ok(())
        }
    };
    let timeout = Duration::from_secs(30);
    testkit::eventually("the first answer", timeout, || in_use(half))
        .await
        .unwrap();
    let second = tokio::spawn(list(
        Page::Content(list_of(6 * MIB).into()),
        "https://two.example",
    ));
    testkit::eventually("the second answer", timeout, || {
        in_use(if second.is_finished() { 0 } else { half + half / 2 })
    })
    .await
    .unwrap();

    let third = list(Page::Content(list_of(MIB / 4).into()), "https://three.example");
    let third = tokio::time::timeout(Duration::from_secs(2), third).await;
    third.expect("it waits for the others").unwrap();
    let error = tokio::time::timeout(Duration::from_secs(15), second).await;
    let error = error
        .expect("it waits for the first one")
        .unwrap()
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("list configmaps: the answer of the API server https://two.example")
            && error.ends_with("other work holds the memory; it will be tried again"),
        "{error}"
    );
    first.abort();
}

#[tokio::test]
async fn memory_of_an_answer_that_stalls_is_revoked_for_another_tenant() {
    const MIB: usize = 1 << 20;
    let memory = ByteBudget::new(16 << 20);
    let servers = [WebServer::start().unwrap(), WebServer::start().unwrap()];
    let unfinished = list_of(4 * MIB).trim_end_matches("]}").to_owned();
    servers[0].page("/api/v1/configmaps", Page::Stalled(unfinished.into()));
    servers[1].page("/api/v1/configmaps", Page::Content(list_of(7 * MIB / 2).into()));
    let slow = connect_in(&servers[0], "https://one.example", &memory);
    let slow = tokio::spawn(async move { slow.list(&config_maps(), None, usize::MAX).await });
    let held = || async {
        anyhow::ensure!(memory.in_use() >= (8 * MIB) as u64, "{} bytes", memory.in_use());
        Ok(())
    };
    testkit::eventually("the first answer", Duration::from_secs(30), held)
        .await
        .unwrap();

    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(16)).await;
    tokio::time::resume();
    let other = connect_in(&servers[1], "https://two.example", &memory);
    let listed = other.list(&config_maps(), None, usize::MAX).await.unwrap();
    assert_eq!(
        listed
            .get("items")
            .and_then(|items| items.as_seq())
            .map_or(0, <[_]>::len),
        1
    );
    let error = slow.await.unwrap().unwrap_err().to_string();
    assert!(
        error.starts_with("list configmaps: the answer of the API server https://one.example")
            && error.ends_with("other work needed the memory that it held for long; it will be tried again"),
        "{error}"
    );
}

#[tokio::test]
async fn kinds_are_bounded_in_size() {
    let server = WebServer::start().unwrap();
    let kind = |number: usize| {
        format!(
            r#"{{"name":"{number}{}","kind":"K","verbs":["list"]}}"#,
            "x".repeat(200)
        )
    };
    let kinds: Vec<String> = (0..20_000).map(kind).collect();
    let page = |text: String| Page::Content(text.into());
    server.page("/api", page(r#"{"versions":["v1"]}"#.to_owned()));
    server.page(
        "/api/v1",
        page(format!(r#"{{"resources":[{}]}}"#, kinds.join(","))),
    );
    server.page("/apis", page(r#"{"groups":[]}"#.to_owned()));
    let (cluster, _) = connect(&server, 512 << 20);
    let error = cluster.snapshot().await.unwrap_err().to_string();
    assert!(
        error.contains("https://tenant.example is too large: the names of its kinds"),
        "{error}"
    );
}
