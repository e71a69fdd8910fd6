//! Downloads of artifacts with tokens that the API server reviews.

use std::{fs, sync::Arc};

use artifact::{
    ArtifactCache,
    fetch::{Limits, StorageToken},
};
use net::TokenFile;
use reqwest::StatusCode;
use serde_json::json;
use testkit::GitServer;
use tokio_util::sync::CancellationToken;

use super::{TIMEOUT, TestNamespace, artifact_of};

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_are_served_to_consumers_with_their_token_only() {
    let setup = TestNamespace::start_with(|launch| launch.flag("--require-artifact-tokens")).await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("shop").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    setup.apply("shop", &repo.url(), json!({})).await;
    let artifact = artifact_of(&setup.wait_ready("shop").await);
    let token = async |account: &str, audience: &str| {
        let token = setup
            .plane
            .service_account_token(&setup.namespace, account, audience);
        token.await.unwrap()
    };
    let consumer = token("kluctl-controller", "weir-artifacts").await;
    let stranger = token("tenant", "weir-artifacts").await;
    let other_audience = token("kluctl-controller", "weir-events").await;
    let client = reqwest::Client::new();
    let hashes = artifact::hashes::companion(&artifact.url);
    let latest = artifact.url.rsplit_once('/').unwrap().0.to_owned() + "/latest.tar.gz";
    for url in [&artifact.url, &hashes, &latest] {
        for (token, status, text) in [
            ("", StatusCode::UNAUTHORIZED, "artifacts need the token"),
            ("nonsense", StatusCode::UNAUTHORIZED, "--artifact-token-audience"),
            (
                &other_audience,
                StatusCode::UNAUTHORIZED,
                "--artifact-token-audience",
            ),
            (&stranger, StatusCode::FORBIDDEN, "--artifact-consumers"),
            (&consumer, StatusCode::OK, ""),
        ] {
            let mut request = client.get(url);
            if !token.is_empty() {
                request = request.bearer_auth(token);
            }
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), status, "{url}: {text}");
            let asks = answer.headers().contains_key("www-authenticate");
            assert_eq!(asks, status == StatusCode::UNAUTHORIZED, "{url}: {text}");
            let body = answer.bytes().await.unwrap();
            assert!(String::from_utf8_lossy(&body).contains(text), "{url}: {text}");
        }
    }

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    let fetch = async |token: Option<TokenFile>| {
        let work = tempfile::tempdir().unwrap();
        let policy = net::AddressPolicy::command_line();
        let cache = ArtifactCache::new(work.path(), None, Limits::default(), policy).unwrap();
        let cache = cache.with_token(token.map(|file| StorageToken {
            file,
            is_for: Arc::new(|url| url.host_str() == Some("127.0.0.1")),
        }));
        let known = cache.directories(&artifact).await.is_some();
        let fetched = cache.fetch(&artifact, TIMEOUT, &CancellationToken::new()).await;
        (known, fetched.map(drop).map_err(|error| error.to_string()))
    };
    let file = TokenFile {
        path: path.clone(),
        flag: "--artifact-token-file",
    };
    for (token, why) in [
        (None, "the server wants a token: see --artifact-token-file"),
        (
            Some(&stranger),
            "the server refuses the token: see --artifact-token-audience",
        ),
        (
            Some(&String::new()),
            "the file of --artifact-token-file has no token",
        ),
    ] {
        fs::write(&path, token.map_or("", String::as_str)).unwrap();
        let (known, fetched) = fetch(token.map(|_| file.clone())).await;
        let error = fetched.unwrap_err();
        assert!(!known && error.contains(why), "{error}");
        assert!(!error.contains(&stranger), "{error}");
    }
    fs::write(&path, &consumer).unwrap();
    assert_eq!(fetch(Some(file)).await, (true, Ok(())));
    let log = setup.controller.log();
    assert!(!log.contains(&consumer) && !log.contains(&stranger), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_serves_everybody_and_counts_downloads_without_the_token_of_a_consumer() {
    let setup = TestNamespace::start().await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("shop").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    setup.apply("shop", &repo.url(), json!({})).await;
    let artifact = artifact_of(&setup.wait_ready("shop").await);
    let token = async |account: &str| {
        let token = setup
            .plane
            .service_account_token(&setup.namespace, account, "weir-artifacts");
        token.await.unwrap()
    };
    let (consumer, stranger) = (token("kluctl-controller").await, token("tenant").await);
    let client = reqwest::Client::new();
    for (token, result) in [
        ("", "none"),
        ("nonsense", "invalid"),
        (stranger.as_str(), "stranger"),
        (consumer.as_str(), "accepted"),
    ] {
        let mut request = client.get(&artifact.url);
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        assert_eq!(request.send().await.unwrap().status(), StatusCode::OK, "{result}");
        let series = format!("weir_artifact_downloads_total{{token=\"{result}\"}} 1");
        let metrics = setup.controller.metrics().await.unwrap();
        assert!(metrics.contains(&series), "{metrics}");
    }
    let log = setup.controller.log();
    assert!(
        log.contains("--artifact-tokens=enforced would refuse this"),
        "{log}"
    );
    assert!(!log.contains(&consumer) && !log.contains(&stranger), "{log}");
}
