//! Failures are reported on the one object that they concern, with advice.

use std::time::{Duration, Instant};

use api::condition_type as types;
use serde_json::{Value, json};
use testkit::{Fault, GitServer, eventually, git::Step};

use super::{TIMEOUT, TestNamespace, artifact_of, condition, ready, revision, transports::assert_words};

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_is_explained_and_the_others_go_on() {
    let (setup, git, tls) = (
        TestNamespace::start().await,
        GitServer::start().unwrap(),
        GitServer::start_tls().unwrap(),
    );
    let repo = |name: &str| {
        let repo = git.repo(name).unwrap();
        repo.commit("first", &[("a", "b")]).unwrap();
        repo
    };
    let private = repo("private");
    private.require_basic_auth("me", "canary-password");
    let hanging = repo("hanging");
    hanging.fail(Fault::Hang);
    let secure = tls.repo("secure").unwrap();
    secure.commit("first", &[("a", "b")]).unwrap();
    git.repo("empty").unwrap();
    let good = repo("good");

    setup
        .secret("right", json!({"username": "me", "password": "canary-password"}))
        .await;
    setup
        .secret("wrong", json!({"username": "me", "password": "canary-wrong"}))
        .await;
    setup.secret("half", json!({"password": "canary-half"})).await;
    setup
        .secret("token", json!({"bearerToken": "canary-token"}))
        .await;
    setup.secret("ca", json!({"ca.crt": tls.ca_pem()})).await;
    setup.secret("bad-ca", json!({"ca.crt": "canary-ca"})).await;
    let secret = |name: &str| json!({"secretRef": {"name": name}});
    let with_user = private.url().replace("http://", "http://me:canary-password@");
    let wrong_user = private.url().replace("http://", "http://me:canary-url@");
    let ns = &setup.namespace;
    let missing = format!("failed to get secret '{ns}/none': secrets \"none\" not found");

    let failing: Vec<(&str, String, Value, &str, &str)> = vec![
        (
            "anonymous",
            private.url(),
            json!({}),
            "AuthenticationFailed",
            "spec.secretRef",
        ),
        (
            "wrong",
            private.url(),
            secret("wrong"),
            "AuthenticationFailed",
            "check username and password",
        ),
        (
            "wrong-url",
            wrong_user,
            json!({}),
            "AuthenticationFailed",
            "check username and password",
        ),
        (
            "missing",
            private.url(),
            secret("none"),
            "AuthenticationFailed",
            &missing,
        ),
        (
            "half",
            private.url(),
            secret("half"),
            "AuthenticationFailed",
            "a password needs a username",
        ),
        (
            "token",
            private.url(),
            secret("token"),
            "AuthenticationFailed",
            "a bearer token needs an https URL",
        ),
        (
            "not-there",
            format!("{}/nowhere.git", git.origin()),
            json!({}),
            "GitOperationFailed",
            "repository not found",
        ),
        (
            "no-branch",
            good.url(),
            json!({"ref": {"branch": "none"}}),
            "GitOperationFailed",
            "its branches are main",
        ),
        (
            "no-tag",
            good.url(),
            json!({"ref": {"semver": ">1"}}),
            "GitOperationFailed",
            "no match found for semver: >1",
        ),
        (
            "empty",
            format!("{}/empty.git", git.origin()),
            json!({}),
            "EmptyGitRepository",
            "git repository is empty",
        ),
        (
            "hanging",
            hanging.url(),
            json!({"timeout": "1s"}),
            "GitOperationFailed",
            "within the timeout of 1s",
        ),
        (
            "untrusted",
            secure.url(),
            json!({}),
            "GitOperationFailed",
            "ca.crt",
        ),
        (
            "bad-ca",
            secure.url(),
            secret("bad-ca"),
            "GitOperationFailed",
            "no usable PEM certificate",
        ),
        (
            "ssh",
            "ssh://git@host/repo".to_owned(),
            json!({}),
            "AuthenticationFailed",
            "invalid 'ssh' auth option: 'identity' is required",
        ),
        (
            "azure",
            "ssh://git@host/repo".to_owned(),
            json!({"provider": "azure"}),
            "UnsupportedField",
            "spec.provider: 'azure' with an ssh URL",
        ),
        (
            "link-local",
            "http://169.254.169.254/x".to_owned(),
            json!({}),
            "URLInvalid",
            "link-local",
        ),
    ];
    for (name, url, spec, ..) in &failing {
        setup.apply(name, url, spec.clone()).await;
    }
    setup.apply("good", &good.url(), json!({})).await;
    setup.apply("private", &private.url(), secret("right")).await;
    setup.apply("private-url", &with_user, json!({})).await;
    setup.apply("secure", &secure.url(), secret("ca")).await;
    for name in ["good", "private", "private-url", "secure"] {
        setup.wait_ready(name).await;
    }
    for (name, _, _, reason, text) in &failing {
        let object = setup.wait_failed(name, reason, text).await;
        let stalled = matches!(*reason, "UnsupportedField" | "URLInvalid");
        assert_eq!(condition(&object, types::STALLED).is_some(), stalled, "{name}");
        assert_eq!(
            condition(&object, types::RECONCILING).is_some(),
            !stalled,
            "{name}"
        );
    }
    for (name, begin, end) in [
        (
            "untrusted",
            format!("tls: no trusted connection to '{}': ", secure.url()),
            ": failed to verify certificate: add the server's CA to the secret as ca.crt",
        ),
        (
            "bad-ca",
            format!(
                "the CA bundle for '{}' holds no usable PEM certificate: ",
                secure.url()
            ),
            ": check ca.crt in the secret",
        ),
    ] {
        let object = setup.api.get(name).await.unwrap();
        let begin = format!("failed to checkout and determine revision: {begin}");
        assert_words(&object, &begin, end);
    }
    setup.wait_event("missing", "AuthenticationFailed").await;

    // Once the Secret is right, the next try succeeds.
    setup
        .secret("wrong", json!({"username": "me", "password": "canary-password"}))
        .await;
    setup.request("wrong", "now").await;
    setup.wait_ready("wrong").await;
    setup.wait_event("wrong", "NewArtifact").await;

    no_canary(&setup).await;
}

/// Adds an object that does not decode, which cannot be watched by its type.
async fn undecodable(setup: &TestNamespace, name: &str, reason: &str, text: &str) {
    let found = testkit::eventually("the undecodable object to fail", super::TIMEOUT, || async {
        let object = setup
            .plane
            .kubectl(&[
                "get",
                "gitrepository",
                name,
                "--namespace",
                &setup.namespace,
                "-o",
                "json",
            ])
            .await?;
        let object: Value = serde_json::from_str(&object)?;
        let conditions = object["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let ready = conditions
            .into_iter()
            .find(|condition| condition["type"] == "Ready");
        let ready = ready.filter(|ready| ready["status"] == "False");
        ready.ok_or_else(|| anyhow::anyhow!("{object}"))
    });
    let ready = found.await.unwrap();
    assert_eq!(ready["reason"], reason, "{ready}");
    assert!(ready["message"].as_str().unwrap().contains(text), "{ready}");
}

async fn no_canary(setup: &TestNamespace) {
    let all = setup.kubectl(&["get", "gitrepositories", "-o", "json"]).await;
    let all: Value = serde_json::from_str(&all).unwrap();
    let statuses: Vec<&Value> = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["status"])
        .collect();
    let events = setup.kubectl(&["get", "events", "-o", "json"]).await;
    let events: Value = serde_json::from_str(&events).unwrap();
    let events = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["message"].to_string());
    let events: Vec<String> = events.collect();
    for (place, text) in [
        ("status", serde_json::to_string(&statuses).unwrap()),
        ("events", events.join("\n")),
        ("log", setup.controller.log()),
        ("metrics", setup.controller.metrics().await.unwrap()),
    ] {
        let shown: Vec<&str> = text.lines().filter(|line| line.contains("canary")).collect();
        assert_eq!(shown, [""; 0], "a secret is in the {place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn artifact_stays_while_the_server_fails() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("flaky").unwrap();
    let first = repo.commit("first", &[("a", "1")]).unwrap();
    setup.apply("flaky", &repo.url(), json!({"timeout": "2s"})).await;
    let before = artifact_of(&setup.wait_ready("flaky").await);
    let second = repo.commit("second", &[("a", "2")]).unwrap();
    for (fault, text) in [
        (Fault::Status(503), "HTTP status 503"),
        (Fault::CutMidPack, "flaky"),
        (Fault::HangMidPack, "within the timeout"),
    ] {
        repo.fail(fault);
        setup.request("flaky", text).await;
        let object = setup.wait_failed("flaky", "GitOperationFailed", text).await;
        assert_eq!(artifact_of(&object), before);
        assert!(before.revision.ends_with(&first));
    }
    let object = setup.wait("flaky", "the new revision to be seen", |object| {
        condition(object, types::ARTIFACT_OUTDATED).is_some_and(|outdated| outdated.message.contains(&second))
    });
    object.await;
    repo.heal();
    let object = setup.wait("flaky", "the new revision", |object| {
        revision(object).ends_with(&second)
    });
    assert!(ready(&object.await, "True"));
}

/// Installs a schema that accepts intervals that don't decode, as an older or a changed one may.
async fn loosen_schema(setup: &TestNamespace) {
    let mut crd = serde_json::to_value(api::crd::git_repository()).unwrap();
    for version in crd["spec"]["versions"].as_array_mut().unwrap() {
        let properties = &mut version["schema"]["openAPIV3Schema"]["properties"];
        let interval = properties["spec"]["properties"]["interval"].as_object_mut();
        interval.unwrap().retain(|key, _| key == "type");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), crd.to_string()).unwrap();
    let path = file.path().to_str().unwrap();
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", path];
    setup.plane.kubectl(&apply).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn undecodable_object_fails_alone_and_is_deleted_with_its_artifacts() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("odd").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    for name in ["odd", "good"] {
        setup.apply(name, &repo.url(), json!({})).await;
        setup.wait_ready(name).await;
    }
    assert!(setup.dir("odd").is_dir());
    loosen_schema(&setup).await;
    let invalid = json!({"spec": {"interval": "99999999999999h"}}).to_string();
    let patch = ["patch", "gitrepository", "odd", "--type=merge", "-p", &invalid];
    let namespaced = [&patch[..], &["--namespace", &setup.namespace]].concat();
    testkit::eventually("the schema to accept the interval", super::TIMEOUT, || async {
        setup.plane.kubectl(&namespaced).await
    })
    .await
    .unwrap();
    undecodable(&setup, "odd", "InvalidSpec", "spec.interval").await;
    setup
        .kubectl(&["delete", "gitrepository", "odd", "--timeout=60s"])
        .await;
    assert!(!setup.dir("odd").exists());
    setup.request("good", "after").await;
    setup.wait_ready("good").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn undecodable_object_delays_none_of_49_others() {
    const INTERVAL: Duration = Duration::from_secs(20);
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("fifty").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    loosen_schema(&setup).await;
    let names: Vec<String> = (0..49).map(|i| format!("good-{i:02}")).collect();
    let url = repo.url();
    let good = names
        .iter()
        .map(|name| setup.apply(name, &url, json!({"interval": "20s"})));
    futures::future::join_all(good).await;
    let odd = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "odd", "namespace": setup.namespace},
        "spec": {"url": repo.url(), "interval": "99999999999999h"},
    });
    testkit::eventually("the schema to accept the interval", super::TIMEOUT, || async {
        setup.plane.apply(odd.clone()).await
    })
    .await
    .unwrap();
    undecodable(&setup, "odd", "InvalidSpec", "spec.interval").await;
    for name in &names {
        setup.wait_ready(name).await;
    }
    let second = repo.commit("second", &[("a", "2")]).unwrap();
    let pushed = Instant::now();
    for name in &names {
        setup
            .wait(name, "the new revision", |object| {
                revision(object).ends_with(&second)
            })
            .await;
    }
    let took = pushed.elapsed();
    assert!(took < 2 * INTERVAL, "it took {took:?}");
    setup
        .kubectl(&["delete", "gitrepository", "odd", "--timeout=60s"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_servers_of_one_namespace_do_not_stop_another() {
    let (label, value) = ("hanging", std::process::id().to_string());
    let selector = format!("--watch-label-selector={label}={value}");
    let setup = TestNamespace::start_of(|launch| launch.flag(&selector)).await;
    let git = GitServer::start().unwrap();
    let (tarpit, good) = (git.repo("tarpit").unwrap(), git.repo("good").unwrap());
    good.commit("first", &[("a", "1")]).unwrap();
    tarpit.fail(Fault::Hang);
    let other = setup.plane.namespace("tarpit").await.unwrap();
    let object = |namespace: &str, name: &str, url: &str, branch: &str| {
        json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": name, "namespace": namespace, "labels": {label: value}},
            "spec": {"url": url, "interval": "1h", "timeout": "60s", "ref": {"branch": branch}},
        })
    };
    let hanging = (0..70).map(|number| {
        // Objects of the same reference would wait for one of them.
        let name = format!("tarpit-{number}");
        let object = object(&other, &name, &tarpit.url(), &name);
        setup.plane.apply(object)
    });
    futures::future::try_join_all(hanging).await.unwrap();
    testkit::eventually("all servers to hang", super::TIMEOUT, || async {
        let asked = tarpit.requests().len();
        anyhow::ensure!(asked >= 64, "{asked} so far");
        Ok(())
    })
    .await
    .unwrap();
    // The server is given up after 30 s; nothing may have to wait for that.
    let given_up = || {
        setup
            .controller
            .log()
            .matches("the server sent nothing for")
            .count()
    };
    let before = given_up();
    let object = object(&setup.namespace, "good", &good.url(), "main");
    setup.plane.apply(object).await.unwrap();
    setup.wait_ready("good").await;
    assert_eq!(given_up(), before, "it was in time only because others had ended");
}

/// Returns a string that compresses to no less than half.
pub(crate) fn noise(length: usize) -> String {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'0' + u8::try_from(state % 64).unwrap())
    };
    (0..length).map(|_| next()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_over_its_quota_fails_and_the_others_go_on() {
    let setup = TestNamespace::start_with(|launch| {
        launch
            .flag("--storage-quota-per-object=100Ki")
            .flag("--storage-quota-per-namespace=120Ki")
    })
    .await;
    let git = GitServer::start().unwrap();
    let repo = |name: &str, length: usize| {
        let repo = git.repo(name).unwrap();
        repo.commit("first", &[("a.txt", &noise(length))]).unwrap();
        repo
    };
    let (small, large, second) = (
        repo("small", 60_000),
        repo("large", 400_000),
        repo("second", 110_000),
    );
    setup.apply("large", &large.url(), json!({})).await;
    let reason = "StorageOperationFailed";
    setup
        .wait_failed("large", reason, "--storage-quota-per-object")
        .await;
    setup.apply("small", &small.url(), json!({})).await;
    let before = setup.wait_ready("small").await;
    setup.apply("second", &second.url(), json!({})).await;
    let failed = setup
        .wait_failed("second", reason, "--storage-quota-per-namespace")
        .await;
    assert!(condition(&failed, types::STORAGE_OPERATION_FAILED).is_some());
    // The good one keeps its artifact and follows its repository.
    setup.fetch(&before).await;
    let commit = small.commit("second", &[("a.txt", "little")]).unwrap();
    setup.request("small", "now").await;
    setup
        .wait("small", "the second commit", |object| {
            revision(object).ends_with(&commit)
        })
        .await;
    // With free space again, the failed one goes on by itself.
    setup.kubectl(&["delete", "gitrepository", "small"]).await;
    setup.wait_ready("second").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_hangs_delays_no_other_of_its_namespace() {
    const SLOW: usize = 8;
    let setup = TestNamespace::start().await;
    let (slow, good) = (GitServer::start().unwrap(), GitServer::start().unwrap());
    // One repository each: passes of the same URL share their requests.
    let mut repos = Vec::new();
    for number in 0..SLOW {
        let name = format!("slow-{number}");
        let repo = slow.repo(&name).unwrap();
        repo.commit("first", &[("a", "b")]).unwrap();
        repo.fail(Fault::HangMidPack);
        setup.apply(&name, &repo.url(), json!({})).await;
        repos.push(repo);
    }
    let count = |step: Step| {
        let requests = repos.iter().flat_map(testkit::Repo::requests);
        requests.filter(|request| request.step == step).count()
    };
    eventually("the slow fetches", TIMEOUT, || async {
        let (listed, fetched) = (count(Step::LsRefs), count(Step::Fetch));
        anyhow::ensure!(
            listed >= SLOW && fetched >= 3,
            "{listed} listed, {fetched} fetched"
        );
        Ok(())
    })
    .await
    .unwrap();
    let repo = good.repo("good").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    setup.apply("good", &repo.url(), json!({})).await;
    // A silent server is given up after 30 s.
    let ready = tokio::time::timeout(Duration::from_secs(15), setup.wait_ready("good")).await;
    assert!(ready.is_ok(), "it waits for the slow server");
}
