//! GitHub Apps, with a web server that answers as GitHub's API.

use api::condition_type as types;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use serde_json::{Value, json};
use testkit::{Authority, GitServer, SshKeyPair, WebServer, web::Page};

use super::{TestNamespace, condition, is_done, transports::assert_words};

fn page(answer: &Value) -> Page {
    Page::Content(Bytes::from(answer.to_string()))
}

fn token() -> Page {
    page(&json!({"token": "canary-token", "expires_at": "2999-01-01T00:00:00Z"}))
}

fn provider(name: &str) -> Value {
    json!({"provider": "github", "secretRef": {"name": name}})
}

#[tokio::test(flavor = "multi_thread")]
async fn token_of_a_github_app_is_used_and_cached() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let (github, tls) = (
        WebServer::start().unwrap(),
        WebServer::start_tls(Authority::new(&["127.0.0.1"]).unwrap()).unwrap(),
    );
    github.page("/api/app/installations/7/access_tokens", token());
    github.page("/api/users/me/installation", page(&json!({"id": 8})));
    github.page("/api/app/installations/8/access_tokens", token());
    tls.page("/app/installations/7/access_tokens", token());
    let clients = Authority::new(&["client"]).unwrap();
    let mutual = Authority::new(&["127.0.0.1"]).unwrap().asking_for(&clients);
    let mutual = WebServer::start_tls(mutual).unwrap();
    mutual.page("/app/installations/7/access_tokens", token());
    let repo = git.repo("app").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    repo.require_basic_auth("x-access-token", "canary-token");
    let key = SshKeyPair::generate("-t rsa -b 2048 -m PEM", "").unwrap().private;
    let base = github.url("api");
    let app = |installation: (&str, &str), base: &str, ca: Option<&str>| {
        let mut secret = json!({"githubAppID": "12", "githubAppPrivateKey": key, "githubAppBaseURL": base});
        secret[installation.0] = installation.1.into();
        if let Some(ca) = ca {
            secret["ca.crt"] = ca.into();
        }
        secret
    };
    let (id, owner) = (
        ("githubAppInstallationID", "7"),
        ("githubAppInstallationOwner", "me"),
    );
    setup.secret("id", app(id, &base, None)).await;
    setup.secret("owner", app(owner, &base, None)).await;
    setup
        .secret("tls", app(id, &tls.url(""), Some(tls.ca_pem())))
        .await;
    let mut certified = app(id, &mutual.url(""), Some(mutual.ca_pem()));
    certified["tls.crt"] = clients.server_pem.as_str().into();
    certified["tls.key"] = clients.server_key_pem.as_str().into();
    setup.secret("mutual", certified.clone()).await;
    certified["tls.key"] = "canary-key".into();
    setup.secret("bad-key", certified).await;
    setup.secret("untrusted", app(id, &tls.url(""), None)).await;

    setup.apply("id", &repo.url(), provider("id")).await;
    setup.wait_ready("id").await;
    let asked = github.asked();
    assert_eq!(asked.len(), 1, "one token for listing and fetching");
    let signed = asked[0].authorization.clone().unwrap();
    let claims = BASE64_URL_SAFE_NO_PAD
        .decode(signed.split('.').nth(1).unwrap())
        .unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["iss"], "12");
    assert_eq!(
        claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(),
        150
    );
    setup.request("id", "1").await;
    setup
        .wait("id", "the request to be handled", |object| {
            let status = object.status.as_ref().unwrap();
            status.last_handled_reconcile_at.as_deref() == Some("1") && is_done(object)
        })
        .await;
    assert_eq!(github.asked().len(), 1, "the token is kept");

    for name in ["owner", "tls", "mutual"] {
        setup.apply(name, &repo.url(), provider(name)).await;
        setup.wait_ready(name).await;
    }
    let paths: Vec<_> = github
        .asked()
        .into_iter()
        .skip(1)
        .map(|asked| asked.path)
        .collect();
    assert_eq!(
        paths,
        [
            "/api/orgs/me/installation",
            "/api/users/me/installation",
            "/api/app/installations/8/access_tokens"
        ]
    );
    let untrusted = format!("asking {}: ", tls.url("app/installations/7/access_tokens"));
    for (name, begin, end) in [
        ("untrusted", untrusted.as_str(), ""),
        (
            "bad-key",
            "the request to any server can't be made: ",
            "it needs a certificate and its private key, both as PEM",
        ),
    ] {
        setup.apply(name, &repo.url(), provider(name)).await;
        let begin = format!("failed to configure authentication options: {begin}");
        let object = setup.wait_failed(name, "AuthenticationFailed", &begin).await;
        assert_words(&object, &begin, end);
    }
    assert!(!setup.controller.log().contains("canary-"));
}

#[tokio::test(flavor = "multi_thread")]
async fn token_of_a_github_app_is_asked_for_again_only_if_it_was_refused() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let github = WebServer::start().unwrap();
    let tokens = "/app/installations/7/access_tokens";
    github.page(tokens, token());
    let repo = git.repo("app").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    repo.require_basic_auth("x-access-token", "canary-token");
    let key = SshKeyPair::generate("-t rsa -b 2048 -m PEM", "").unwrap().private;
    let app = json!({"githubAppID": "12", "githubAppInstallationID": "7", "githubAppPrivateKey": key,
        "githubAppBaseURL": github.url("")});
    setup.secret("app", app).await;
    let mut missing = provider("app");
    missing["ref"] = json!({"branch": "missing"});
    setup.apply("app", &repo.url(), missing).await;
    setup
        .wait_failed("app", "GitOperationFailed", "branch 'missing' not found")
        .await;
    setup.more_passes(3.0).await;
    assert_eq!(github.asked().len(), 1, "the token is not at fault");

    // The token is revoked.
    let other = json!({"token": "canary-other", "expires_at": "2999-01-01T00:00:00Z"});
    github.page(tokens, page(&other));
    repo.require_basic_auth("x-access-token", "canary-other");
    setup
        .patch("app", json!({"spec": {"ref": {"branch": "main"}}}))
        .await;
    setup.wait_ready("app").await;
    assert_eq!(github.asked().len(), 2);
    assert!(!setup.controller.log().contains("canary-"));
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_and_secret_must_agree_about_a_github_app() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("app").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    setup
        .secret("basic", json!({"username": "me", "password": "x"}))
        .await;
    let app = json!({"githubAppID": "1", "githubAppInstallationID": "2", "githubAppPrivateKey": "canary"});
    setup.secret("app", app).await;
    let namespace = &setup.namespace;
    let no_app = "secretRef with github app data must be specified when provider is set to github";
    let other = format!("secretRef '{namespace}/app' has github app data but provider is not set to github");
    let (mismatch, auth) = ("InvalidProviderConfiguration", "AuthenticationFailed");
    for (name, spec, reason, message, stalled) in [
        ("none", json!({"provider": "github"}), mismatch, no_app, true),
        ("basic", provider("basic"), mismatch, no_app, false),
        (
            "other",
            json!({"secretRef": {"name": "app"}}),
            mismatch,
            other.as_str(),
            false,
        ),
        (
            "key",
            provider("app"),
            auth,
            "Key must be a PEM encoded PKCS1 or PKCS8 key",
            false,
        ),
    ] {
        setup.apply(name, &repo.url(), spec).await;
        let object = setup.wait_failed(name, reason, message).await;
        assert!(
            condition(&object, types::FETCH_FAILED).unwrap().is_true(),
            "{name}"
        );
        assert_eq!(condition(&object, types::STALLED).is_some(), stalled, "{name}");
    }
    assert!(!setup.controller.log().contains("canary"));
}
