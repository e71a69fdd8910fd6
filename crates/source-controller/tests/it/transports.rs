//! Repositories over SSH, with client certificates, tokens and proxies.

use api::{condition_type as types, source::GitRepository};
use serde_json::{Value, json};
use testkit::{Authority, GitServer, HttpProxy, SshKeyPair, SshServer};

use super::{TestNamespace, condition, revision};

fn secret(name: &str) -> Value {
    json!({"secretRef": {"name": name}})
}

#[tokio::test]
async fn repositories_over_ssh_become_artifacts_with_keys_of_each_kind() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("private").unwrap();
    let commit = repo.commit("first", &[("a", "b")]).unwrap();
    let kinds = [
        ("ed25519", "-t ed25519", ""),
        ("ecdsa", "-t ecdsa -b 384", ""),
        ("rsa", "-t rsa -b 2048 -m PEM", ""),
        ("encrypted", "-t ed25519 -a 1", "canary-password"),
    ];
    let pairs: Vec<SshKeyPair> = kinds
        .iter()
        .map(|(_, args, password)| SshKeyPair::generate(args, password).unwrap())
        .collect();
    let server = SshServer::start(&git, &pairs.iter().collect::<Vec<_>>()).unwrap();
    for ((name, _, password), pair) in kinds.iter().zip(&pairs) {
        let mut data = json!({
            "identity": pair.private, "identity.pub": pair.public, "known_hosts": server.known_hosts().unwrap(),
        });
        if !password.is_empty() {
            data["password"] = json!(password);
        }
        setup.secret(name, data).await;
        setup.apply(name, &server.url(&repo), secret(name)).await;
    }
    for (name, ..) in kinds {
        let object = setup.wait_ready(name).await;
        assert_eq!(revision(&object), format!("main@sha1:{commit}"));
        assert_eq!(setup.fetch(&object).await.read("a"), "b");
    }
    let next = repo.commit("second", &[("a", "c")]).unwrap();
    setup.request("ed25519", "now").await;
    let moved = format!("main@sha1:{next}");
    let object = setup
        .wait("ed25519", "the next commit", |object| revision(object) == moved)
        .await;
    assert_eq!(setup.fetch(&object).await.read("a"), "c");
}

#[tokio::test]
async fn pass_logs_in_once_to_a_server_of_ssh() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let (app, lib) = (git.repo("app").unwrap(), git.repo("lib").unwrap());
    let library = lib.commit("lib", &[("l", "library")]).unwrap();
    let modules = "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib\n";
    let with_submodule = app
        .change("app")
        .write(".gitmodules", modules)
        .submodule("lib", &library)
        .push()
        .unwrap();
    app.commit("next", &[("a", "b")]).unwrap();
    let pair = SshKeyPair::generate("-t ed25519", "").unwrap();
    let server = SshServer::start(&git, &[&pair]).unwrap();
    let login = json!({ "identity": pair.private, "known_hosts": server.known_hosts().unwrap() });
    setup.secret("login", login).await;
    // The branch has moved on, so the server is also asked if the commit is on it.
    let spec = json!({
        "recurseSubmodules": true, "secretRef": {"name": "login"}, "ref": {"branch": "main", "commit": with_submodule},
    });
    setup.apply("app", &server.url(&app), spec).await;
    let object = setup.wait_ready("app").await;
    assert_eq!(setup.fetch(&object).await.read("lib/l"), "library");
    assert_eq!(server.logins(), 1, "{}", server.log());
    testkit::eventually("the connection to end", super::TIMEOUT, || async {
        let log = server.log();
        anyhow::ensure!(log.contains("Received disconnect"), log);
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn proxies_of_objects_are_used_for_ssh() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("private").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    let pair = SshKeyPair::generate("-t ed25519", "").unwrap();
    let server = SshServer::start(&git, &[&pair]).unwrap();
    let login = json!({ "identity": pair.private, "known_hosts": server.known_hosts().unwrap() });
    setup.secret("login", login).await;
    let proxy = HttpProxy::start("me", "canary").unwrap();
    for (name, address, password) in [
        ("http", proxy.url(), "canary"),
        ("socks", proxy.socks_url(), "canary"),
        ("refused", proxy.url(), "canary-wrong"),
    ] {
        let asked = proxy.asked().len();
        let data = json!({ "address": address, "username": "me", "password": password });
        setup.secret(name, data).await;
        let spec = json!({ "proxySecretRef": { "name": name }, "secretRef": { "name": "login" } });
        setup.apply(name, &server.url(&repo), spec).await;
        if name == "refused" {
            setup.wait_failed(name, "GitOperationFailed", "proxy: 407").await;
            continue;
        }
        let object = setup.wait_ready(name).await;
        assert_eq!(setup.fetch(&object).await.read("a"), "b");
        assert!(proxy.asked().len() > asked, "{name}: {:?}", proxy.asked());
    }
}

#[tokio::test]
async fn failures_of_ssh_name_the_key_and_the_remedy() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("private").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    let generate = |args: &str, password: &str| SshKeyPair::generate(args, password).unwrap();
    let (right, wrong) = (generate("-t ed25519", ""), generate("-t ed25519", ""));
    let encrypted = generate("-t ed25519 -a 1", "canary");
    let server = SshServer::start(&git, &[&right]).unwrap();
    let known = server.known_hosts().unwrap();
    let (host, other) = (
        format!("[127.0.0.1]:{}", server.address().port()),
        wrong.public.trim(),
    );
    let ns = &setup.namespace;
    let no_password = format!(
        "SSH identity key is encrypted but no 'password' field was provided in the secret '{ns}/encrypted'"
    );
    let cases = [
        (
            "encrypted",
            json!({"identity": encrypted.private, "known_hosts": known}),
            "AuthenticationFailed",
            no_password.as_str(),
        ),
        (
            "no-hosts",
            json!({"identity": right.private}),
            "AuthenticationFailed",
            "invalid 'ssh' auth option: 'known_hosts' is required",
        ),
        (
            "no-key",
            json!({"username": "git", "known_hosts": known}),
            "AuthenticationFailed",
            "invalid 'ssh' auth option: 'identity' is required",
        ),
        (
            "wrong-key",
            json!({"identity": wrong.private, "known_hosts": known}),
            "AuthenticationFailed",
            "check identity in the secret",
        ),
        (
            "unknown-host",
            json!({"identity": right.private, "known_hosts": format!("example.com {other}")}),
            "GitOperationFailed",
            "knownhosts: key is unknown",
        ),
        (
            "other-host-key",
            json!({"identity": right.private, "known_hosts": format!("{host} {other}")}),
            "GitOperationFailed",
            "knownhosts: key mismatch",
        ),
    ];
    for (name, data, ..) in &cases {
        setup.secret(name, data.clone()).await;
        setup.apply(name, &server.url(&repo), secret(name)).await;
    }
    for (name, _, reason, text) in &cases {
        setup.wait_failed(name, reason, text).await;
    }
    for name in ["unknown-host", "other-host-key"] {
        setup.wait_failed(name, "GitOperationFailed", &host).await;
        setup.wait_failed(name, "GitOperationFailed", " SHA256:").await;
    }
    assert!(!setup.controller.log().contains("PRIVATE KEY"));
}

#[tokio::test]
async fn named_algorithms_of_ssh_are_obeyed() {
    let flags = [
        "--ssh-kex-algos=curve25519-sha256,nonsense",
        "--ssh-hostkey-algos=ecdsa-sha2-nistp256",
    ];
    let setup = TestNamespace::start_with(|launch| launch.flag(flags[0]).flag(flags[1])).await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("private").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    let pair = SshKeyPair::generate("-t ed25519", "").unwrap();
    let server = SshServer::start(&git, &[&pair]).unwrap();
    for kind in ["ecdsa", "rsa"] {
        let known = server.known_host(kind).unwrap();
        setup
            .secret(kind, json!({"identity": pair.private, "known_hosts": known}))
            .await;
        setup.apply(kind, &server.url(&repo), secret(kind)).await;
    }
    setup.wait_ready("ecdsa").await;
    let why = "known_hosts has keys of the algorithms ssh-rsa for";
    setup.wait_failed("rsa", "GitOperationFailed", why).await;
    assert!(setup.controller.log().contains("nonsense"));
}

#[tokio::test]
async fn client_certificates_are_sent_and_checked() {
    let clients = Authority::new(&["client"]).unwrap();
    let (setup, git) = (
        TestNamespace::start().await,
        GitServer::start_tls_for(&clients).unwrap(),
    );
    let repo = git.repo("mutual").unwrap();
    let commit = repo.commit("first", &[("a", "b")]).unwrap();
    let (crt, key, ca) = (&clients.server_pem, &clients.server_key_pem, git.ca_pem());
    let other = Authority::new(&["other"]).unwrap();
    for (name, data) in [
        ("right", json!({"tls.crt": crt, "tls.key": key, "ca.crt": ca})),
        ("old-keys", json!({"certFile": crt, "keyFile": key, "caFile": ca})),
        (
            "first-ca",
            json!({"tls.crt": crt, "tls.key": key, "ca.crt": ca, "caFile": other.ca_pem}),
        ),
        ("none", json!({"ca.crt": ca})),
        (
            "bad-key",
            json!({"tls.crt": crt, "tls.key": "canary", "ca.crt": ca}),
        ),
        ("half", json!({"tls.crt": crt, "ca.crt": ca})),
        (
            "wrong-ca",
            json!({"tls.crt": crt, "tls.key": key, "ca.crt": other.ca_pem}),
        ),
    ] {
        setup.secret(name, data).await;
        setup.apply(name, &repo.url(), secret(name)).await;
    }
    for name in ["right", "old-keys", "first-ca"] {
        assert_eq!(
            revision(&setup.wait_ready(name).await),
            format!("main@sha1:{commit}")
        );
    }
    let url = repo.url();
    let untrusted = format!("tls: no trusted connection to '{url}': ");
    let no_pem = format!(
        "tls: failed to find any PEM data in key input: the client certificate for '{url}' needs a certificate and its private \
         key, both as PEM: check tls.crt and tls.key in the secret"
    );
    for (name, begin, end) in [
        (
            "none",
            untrusted.as_str(),
            ": certificate required: the server asks for a client certificate: add tls.crt and tls.key to the secret",
        ),
        ("bad-key", no_pem.as_str(), ""),
        (
            "wrong-ca",
            untrusted.as_str(),
            ": failed to verify certificate: add the server's CA to the secret as ca.crt",
        ),
    ] {
        let begin = format!("failed to checkout and determine revision: {begin}");
        let object = setup.wait_failed(name, "GitOperationFailed", &begin).await;
        assert_words(&object, &begin, end);
    }
    let half = "needs both 'tls.crt' and 'tls.key'";
    setup.wait_failed("half", "AuthenticationFailed", half).await;
    assert!(!setup.controller.log().contains("canary"));
}

/// Asserts that the message of a failure starts and ends with these words: the words between are the TLS library's.
#[track_caller]
pub(super) fn assert_words(object: &GitRepository, begin: &str, end: &str) {
    for name in [types::READY, types::FETCH_FAILED] {
        let message = &condition(object, name).unwrap().message;
        assert!(message.starts_with(begin) && message.ends_with(end), "{message}");
    }
}

#[tokio::test]
async fn bearer_tokens_are_sent_by_https() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start_tls().unwrap());
    let repo = git.repo("token").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    setup
        .secret(
            "token",
            json!({"bearerToken": "canary-token", "ca.crt": git.ca_pem()}),
        )
        .await;
    setup.apply("token", &repo.url(), secret("token")).await;
    setup.wait_ready("token").await;
    let sent = repo.requests().into_iter().map(|request| request.authorization);
    assert!(
        sent.into_iter()
            .all(|sent| sent.as_deref() == Some("Bearer canary-token"))
    );
}

#[tokio::test]
async fn http_and_socks_proxies_of_objects_are_used_for_http_and_https() {
    let (setup, plain, tls) = (
        TestNamespace::start().await,
        GitServer::start().unwrap(),
        GitServer::start_tls().unwrap(),
    );
    let proxy = HttpProxy::start("me", "canary").unwrap();
    let address = proxy.url();
    setup
        .secret(
            "proxy",
            json!({"address": address, "username": "me", "password": "canary"}),
        )
        .await;
    setup
        .secret(
            "refused",
            json!({"address": address, "username": "me", "password": "canary-wrong"}),
        )
        .await;
    setup
        .secret(
            "socks",
            json!({"address": proxy.socks_url(), "username": "me", "password": "canary"}),
        )
        .await;
    setup
        .secret("socks4", json!({"address": "socks4://127.0.0.1:1080"}))
        .await;
    setup.secret("ca", json!({"ca.crt": tls.ca_pem()})).await;
    let repo = |git: &GitServer| {
        let repo = git.repo("proxied").unwrap();
        repo.commit("first", &[("a", "b")]).unwrap();
        repo
    };
    let (http, https) = (repo(&plain), repo(&tls));
    let by = |name: &str| json!({"proxySecretRef": {"name": name}, "secretRef": {"name": "ca"}});
    setup.apply("http", &http.url(), by("proxy")).await;
    setup.apply("https", &https.url(), by("proxy")).await;
    for (name, git) in [("http", &plain), ("https", &tls)] {
        setup.wait_ready(name).await;
        let host = git.origin().rsplit('/').next().unwrap().to_owned();
        assert!(proxy.asked().contains(&host), "{name}: {:?}", proxy.asked());
    }
    setup.apply("refused", &https.url(), by("refused")).await;
    setup.wait_failed("refused", "GitOperationFailed", "").await;
    for (name, repo) in [("socks-http", &http), ("socks-https", &https)] {
        let asked = proxy.asked().len();
        setup.apply(name, &repo.url(), by("socks")).await;
        setup.wait_ready(name).await;
        assert!(proxy.asked().len() > asked, "{name}");
    }
    setup.apply("socks4", &http.url(), by("socks4")).await;
    setup
        .wait_failed("socks4", "UnsupportedField", "only http, https and socks5 are")
        .await;
    setup.apply("missing", &http.url(), by("none")).await;
    let missing = "failed to configure proxy options: failed to get secret";
    setup
        .wait_failed("missing", "AuthenticationFailed", missing)
        .await;
}
