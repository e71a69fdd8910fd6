//! Requests to a Git server that objects of the same URL, credentials and reference share.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{GitServer, git::Repo, git::Step};

use super::{TestNamespace, revision};

/// Objects that are created at once.
const OBJECTS: usize = 12;
/// Delay of each answer: passes of objects that are created at once start before it ends.
const DELAY: Duration = Duration::from_secs(2);

fn count(repo: &Repo, step: Step) -> usize {
    repo.requests()
        .iter()
        .filter(|request| request.step == step)
        .count()
}

/// Applies objects with these specs at the same time, and waits until they are ready.
async fn apply_all(setup: &TestNamespace, url: &str, specs: &[(String, Value)]) {
    let apply = specs
        .iter()
        .map(|(name, spec)| setup.apply(name, url, spec.clone()));
    futures::future::join_all(apply).await;
    for (name, _) in specs {
        setup.wait_ready(name).await;
    }
}

fn names() -> impl Iterator<Item = String> {
    (0..OBJECTS).map(|number| format!("same-{number}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_the_same_repository_share_requests_and_restarts_ask_once() {
    let (mut setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("same").unwrap();
    let commit = repo.commit("first", &[("a", "1"), ("b/c", "2")]).unwrap();
    repo.delay(DELAY);
    // Each object selects its own part of the commit.
    let specs: Vec<_> = names()
        .enumerate()
        .map(|(at, name)| {
            let sparse = if at % 2 == 0 { json!(["b"]) } else { json!([]) };
            (name, json!({"sparseCheckout": sparse}))
        })
        .collect();
    apply_all(&setup, &repo.url(), &specs).await;
    // One list of refs is under way when the others begin, which share the next.
    let (refs, fetches) = (count(&repo, Step::LsRefs), count(&repo, Step::Fetch));
    assert!(
        refs <= 3 && fetches <= 2,
        "{refs} lists of refs, {fetches} fetches"
    );
    for (at, name) in names().enumerate().take(2) {
        let object = setup.wait_ready(&name).await;
        assert_eq!(revision(&object), format!("main@sha1:{commit}"));
        let expected: &[&str] = if at % 2 == 0 { &["b"] } else { &["a", "b"] };
        assert_eq!(setup.fetch(&object).await.names(""), expected);
    }

    // Only their interval is due after a restart.
    setup.controller.kill().await.unwrap();
    let before = count(&repo, Step::LsRefs);
    setup.controller.restart().await.unwrap();
    testkit::eventually("all passes after the restart", super::TIMEOUT, || async {
        let metrics = setup.controller.metrics().await?;
        let passes: f64 = ended_passes(&metrics);
        anyhow::ensure!(passes >= OBJECTS as f64, "{passes} passes");
        Ok(())
    })
    .await
    .unwrap();
    let asked = count(&repo, Step::LsRefs) - before;
    assert!(
        (1..=2).contains(&asked),
        "{asked} lists of refs after the restart"
    );
}

/// Returns the number of passes that have ended.
fn ended_passes(metrics: &str) -> f64 {
    let counts = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix("gotk_reconcile_duration_seconds_count{")?;
        rest.rsplit_once(' ')?.1.parse::<f64>().ok()
    });
    counts.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requested_pass_sees_what_was_pushed_after_others_asked() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("pushed").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    apply_all(
        &setup,
        &repo.url(),
        &[("one".to_owned(), json!({})), ("two".to_owned(), json!({}))],
    )
    .await;
    for (number, name) in ["one", "two", "one"].into_iter().enumerate() {
        let pushed = repo.commit("next", &[("a", &format!("next {number}"))]).unwrap();
        setup.request(name, &number.to_string()).await;
        let handled = setup.wait(name, "the request to be handled", |object| {
            let status = object.status.as_ref();
            let handled = status.and_then(|status| status.last_handled_reconcile_at.clone());
            handled == Some(number.to_string()) && super::is_done(object)
        });
        assert_eq!(revision(&handled.await), format!("main@sha1:{pushed}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_shared_by_equal_credentials_only() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("private").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    repo.require_basic_auth("me", "right");
    repo.delay(DELAY);
    for (name, password) in [("right", "right"), ("copy", "right"), ("wrong", "wrong")] {
        let data = json!({"username": "me", "password": password});
        setup.secret(name, data).await;
    }
    let of = |secret: &str| json!({"secretRef": {"name": secret}});
    let url = repo.url();
    for (name, spec) in [("a", of("right")), ("wrong", of("wrong")), ("none", json!({}))] {
        setup.apply(name, &url, spec).await;
    }
    let copies: Vec<_> = names().map(|name| (name, of("copy"))).collect();
    apply_all(&setup, &url, &copies).await;
    setup.wait_ready("a").await;
    for name in ["wrong", "none"] {
        let failed = setup.wait_failed(name, "AuthenticationFailed", "authentication failed");
        assert_eq!(revision(&failed.await), "");
    }
    let fetches = count(&repo, Step::Fetch);
    assert!(fetches <= 3, "{fetches} fetches");
    for request in repo
        .requests()
        .iter()
        .filter(|request| request.step == Step::Fetch)
    {
        assert_eq!(request.status, Some(200), "{request:?}");
    }
}
