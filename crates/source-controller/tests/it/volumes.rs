//! Processes with volumes of their own, and processes that share one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use api::Artifact;
use serde_json::json;
use testkit::{Controller, GitServer, Repo, controller::Launch, eventually};

use super::{TIMEOUT, TestNamespace, artifact_of, fetch_artifact, revision};

/// Configures another process of a namespace.
fn another(setup: &TestNamespace) -> Launch {
    Controller::named("source-controller")
        .program(env!("CARGO_BIN_EXE_source-controller"))
        .run_by(setup.plane.kubeconfig())
        .namespace(&setup.namespace)
        .flag("--watch-all-namespaces=false")
}

/// Returns status and body of the answer to a request.
async fn get(url: &str) -> anyhow::Result<(u16, Vec<u8>)> {
    let answer = reqwest::get(url).await?;
    Ok((answer.status().as_u16(), answer.bytes().await?.to_vec()))
}

/// Starts a controller that leads, and returns it with the artifact of the repository `shop`.
async fn leading() -> (TestNamespace, GitServer, Repo, Artifact) {
    let (setup, git) = (
        TestNamespace::start_with(Launch::with_short_lease).await,
        GitServer::start().unwrap(),
    );
    let repo = git.repo("shop").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    setup.apply("shop", &repo.url(), json!({})).await;
    let artifact = artifact_of(&setup.wait_ready("shop").await);
    (setup, git, repo, artifact)
}

#[tokio::test(flavor = "multi_thread")]
async fn standby_with_a_volume_of_its_own_is_not_ready_before_it_leads() {
    let (setup, _git, _, artifact) = leading().await;
    let standby = another(&setup).with_short_lease().spawn().unwrap();
    let probe = format!("http://{}/readyz", standby.addresses().health);
    eventually("the standby to wait for the lease", TIMEOUT, || async {
        let (status, why) = get(&probe).await?;
        let why = String::from_utf8_lossy(&why).into_owned();
        ensure!(status == 503 && why.contains("the lease"), "{status}: {why}");
        Ok(())
    })
    .await
    .unwrap();
    // It listens, but it has nothing.
    let url = format!("http://{}/{}", standby.addresses().storage, artifact.path);
    assert_eq!(get(&url).await.unwrap().0, 404);

    setup.controller.kill().await.unwrap();
    standby.wait_ready(TIMEOUT).await.unwrap();
    eventually("the artifact of the new leader", TIMEOUT, || async {
        let (status, _) = get(&url).await?;
        ensure!(status == 200, "{status}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn standby_on_the_volume_of_the_leader_is_ready_and_serves_it() {
    let (setup, _git, repo, first) = leading().await;
    let volume = setup.controller.storage_path();
    let launch = another(&setup).flag(&format!("--storage-path={}", volume.display()));
    let standby = launch.with_short_lease().start().await.unwrap();
    assert_eq!(
        standby.metric("leader_election_master_status").await.unwrap(),
        0.0
    );
    let own = |path: &str| format!("http://{}/{path}", standby.addresses().storage);
    let latest = format!("gitrepository/{}/shop/latest.tar.gz", setup.namespace);
    let content = (200, fs::read(volume.join(&first.path)).unwrap());
    for path in [&first.path, &latest] {
        assert!(get(&own(path)).await.unwrap() == content, "{path}");
    }

    let commit = repo.commit("second", &[("a", "2")]).unwrap();
    setup.request("shop", &commit).await;
    let followed = setup.wait("shop", "the next commit", |object| {
        revision(object).ends_with(&commit)
    });
    let second = artifact_of(&followed.await);
    let content = (200, fs::read(volume.join(&second.path)).unwrap());
    for path in [&second.path, &latest] {
        assert!(get(&own(path)).await.unwrap() == content, "{path}");
    }
}

/// Returns the identities of the processes that have claimed a volume, as their locks are named.
fn writers(volume: &Path) -> Vec<String> {
    let entries = fs::read_dir(volume).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let ids = names.filter_map(|name| Some(name.strip_prefix('.')?.strip_suffix(".lock")?.to_owned()));
    ids.filter(|id| !id.is_empty()).collect()
}

/// Creates a file of a writer beside the artifacts of an object.
fn lay(setup: &TestNamespace, object: &str, writer: &str) -> PathBuf {
    let path = setup.dir(object).join(format!(".{writer}.99.tmp"));
    fs::write(&path, "half").unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_share_a_volume_and_take_nothing_from_each_other() {
    let shard = |launch: Launch, name: &str| launch.flag(&format!("--watch-label-selector=shard={name}"));
    let mut setup = TestNamespace::start_with(|launch| shard(launch, "a")).await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("shop").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    for name in ["a", "b"] {
        setup.apply(name, &repo.url(), json!({})).await;
        let labels = json!({"metadata": {"labels": {"shard": name}}});
        setup.patch(name, labels).await;
    }
    let of_a = setup.wait_ready("a").await;
    let volume = setup.controller.storage_path();
    let [first] = <[String; 1]>::try_from(writers(&volume)).unwrap();
    let kept = lay(&setup, "a", &first);
    let left = lay(&setup, "a", "0123456789abcdef");

    let launch = another(&setup).flag(&format!("--storage-path={}", volume.display()));
    let second = shard(launch, "b").start().await.unwrap();
    let of_b = setup.wait_ready("b").await;
    assert!(kept.exists() && !left.exists());
    assert_eq!(writers(&volume).len(), 2);
    for object in [&of_a, &of_b] {
        assert_eq!(fetch_artifact(&artifact_of(object)).await.names(""), ["a"]);
    }

    // The lock of a process ends with it, however it ends.
    let of_second = writers(&volume).into_iter().find(|id| *id != first).unwrap();
    let of_second = lay(&setup, "b", &of_second);
    setup.controller.kill().await.unwrap();
    setup.controller.restart().await.unwrap();
    assert!(!kept.exists() && of_second.exists());
    assert!(!writers(&volume).contains(&first));
    second.terminate().await.unwrap();
}
