//! Artifacts in a bucket that all replicas share.

use std::{
    fs,
    path::{Path, PathBuf},
};

use api::Artifact;
use artifact::hashes::companion;
use kube::api::DeleteParams;
use serde_json::json;
use tempfile::TempDir;
use testkit::{
    Controller, GitServer, S3Server,
    controller::Launch,
    eventually,
    git::{Repo, Step},
    s3::{ACCESS_KEY, S3Options, SECRET_KEY},
    tls::Authority,
};

use super::{TIMEOUT, TestNamespace, artifact_of, fetch_artifact, revision};

const BUCKET: &str = "artifacts";

struct Shared {
    setup: TestNamespace,
    s3: S3Server,
    repo: Repo,
    /// File with the authority of the S3 server.
    ca: PathBuf,
    _dir: TempDir,
    _git: GitServer,
}

/// Returns the names of the files in the bucket that belong to an artifact.
fn left(file: &str) -> [String; 3] {
    [".latest.tar.gz".to_owned(), file.to_owned(), companion(file)]
}

fn with_store(launch: Launch, s3: &S3Server, ca: &Path) -> Launch {
    let endpoint = format!("--shared-store-endpoint={}", s3.endpoint());
    launch
        .flag(&format!("--shared-store-bucket={BUCKET}"))
        .flag(&endpoint)
        .flag("--shared-store-prefix=clusters/a/")
        .flag(&format!("--shared-store-ca-file={}", ca.display()))
        .flag("--artifact-retention-ttl=1ms")
        .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
}

impl Shared {
    async fn start() -> Self {
        let (git, dir) = (GitServer::start().unwrap(), tempfile::tempdir().unwrap());
        let authority = Authority::new(&["127.0.0.1"]).unwrap();
        let ca = dir.path().join("ca.pem");
        fs::write(&ca, &authority.ca_pem).unwrap();
        let options = S3Options {
            authority: Some(authority),
            ..S3Options::default()
        };
        let s3 = S3Server::start_with(options).await.unwrap();
        s3.put(BUCKET, &[("clusters/b/other", "x")]).await.unwrap();
        let repo = git.repo("shop").unwrap();
        repo.commit("first", &[("a", "1")]).unwrap();
        let setup = TestNamespace::start_with(|launch| with_store(launch, &s3, &ca).with_short_lease()).await;
        Self {
            setup,
            s3,
            repo,
            ca,
            _dir: dir,
            _git: git,
        }
    }

    /// Starts another replica, which doesn't lead while the first one runs.
    async fn standby(&self) -> Controller {
        let standby = Controller::named("source-controller")
            .program(env!("CARGO_BIN_EXE_source-controller"))
            .run_by(self.setup.plane.kubeconfig())
            .namespace(&self.setup.namespace)
            .flag("--watch-all-namespaces=false");
        let standby = with_store(standby, &self.s3, &self.ca).with_short_lease();
        standby.start().await.unwrap()
    }

    fn fetches(&self) -> usize {
        let requests = self.repo.requests();
        requests
            .iter()
            .filter(|request| request.step == Step::Fetch)
            .count()
    }

    /// Returns the names of an object's files in the bucket, without the namespace.
    async fn names(&self, name: &str) -> Vec<String> {
        let below = format!("clusters/a/gitrepository/{}/{name}/", self.setup.namespace);
        let names = self.s3.names(BUCKET).await.unwrap();
        let own = names.iter().filter_map(|name| name.strip_prefix(&below));
        own.map(str::to_owned).collect()
    }

    async fn commit(&self, content: &str) -> String {
        self.repo.commit("next", &[("a", content)]).unwrap()
    }

    /// Asks for a pass, and waits until the object has the revision.
    async fn reconcile(&self, name: &str, commit: &str) {
        self.setup.request(name, commit).await;
        let wanted = format!("main@sha1:{commit}");
        let has = |object: &api::source::GitRepository| {
            revision(object) == wanted && super::ready(object, "True") && super::is_done(object)
        };
        self.setup.wait(name, "the new revision", has).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_volume_costs_no_fetch() {
    let mut shared = Shared::start().await;
    shared.setup.apply("shop", &shared.repo.url(), json!({})).await;
    let object = shared.setup.wait_ready("shop").await;
    let file = artifact_of(&object).path.rsplit('/').next().unwrap().to_owned();
    assert_eq!(shared.names("shop").await, left(&file));

    let fetched = shared.fetches();
    shared.setup.controller.kill().await.unwrap();
    fs::remove_dir_all(shared.setup.controller.storage_path()).unwrap();
    shared.setup.controller.restart().await.unwrap();
    shared.setup.request("shop", "again").await;
    let handled = shared.setup.wait("shop", "a pass after the loss", |object| {
        let status = object.status.as_ref().unwrap();
        status.last_handled_reconcile_at.as_deref() == Some("again") && super::is_done(object)
    });
    let after = handled.await;
    assert_eq!(artifact_of(&after).digest, artifact_of(&object).digest);
    assert_eq!(
        artifact_of(&after).last_update_time,
        artifact_of(&object).last_update_time
    );
    assert_eq!(shared.fetches(), fetched);
    assert!(shared.setup.dir("shop").join(&file).is_file());
    assert_eq!(fetch_artifact(&artifact_of(&after)).await.names(""), ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn artifact_that_is_damaged_in_the_store_is_built_again() {
    let mut shared = Shared::start().await;
    shared.setup.apply("shop", &shared.repo.url(), json!({})).await;
    let object = shared.setup.wait_ready("shop").await;
    let artifact = artifact_of(&object);
    shared.setup.controller.kill().await.unwrap();
    fs::remove_dir_all(shared.setup.controller.storage_path()).unwrap();
    let name = format!("clusters/a/{}", artifact.path);
    shared
        .s3
        .put(BUCKET, &[(name.as_str(), "damaged")])
        .await
        .unwrap();
    let fetched = shared.fetches();
    shared.setup.controller.restart().await.unwrap();
    eventually("another fetch", TIMEOUT, || async {
        anyhow::ensure!(shared.fetches() > fetched, "none");
        Ok(())
    })
    .await
    .unwrap();
    let after = shared.setup.wait_ready("shop").await;
    assert_eq!(fetch_artifact(&artifact_of(&after)).await.names(""), ["a"]);
    let log = shared.setup.controller.log();
    assert!(
        log.contains("the shared store has another artifact than the status"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn standby_serves_what_the_leader_stored_and_follows_it() {
    let shared = Shared::start().await;
    shared.setup.apply("shop", &shared.repo.url(), json!({})).await;
    let object = shared.setup.wait_ready("shop").await;
    let standby = shared.standby().await;
    let artifact = artifact_of(&object);
    let base = format!("http://{}", standby.addresses().storage);
    let client = reqwest::Client::new();
    let get = async |path: &str, headers: &[(&str, &str)]| {
        let mut request = client.get(format!("{base}/{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.unwrap();
        let tag = answer
            .headers()
            .get("etag")
            .map(|tag| tag.to_str().unwrap().to_owned());
        (answer.status().as_u16(), tag, answer.bytes().await.unwrap())
    };
    let here = shared
        .setup
        .dir("shop")
        .join(artifact.path.rsplit('/').next().unwrap());
    let content = fs::read(here).unwrap();
    let tag = format!("\"{}\"", artifact.digest.clone().unwrap());
    let latest = format!("gitrepository/{}/shop/latest.tar.gz", shared.setup.namespace);
    for path in [&artifact.path, &latest] {
        let (status, etag, body) = get(path, &[]).await;
        assert_eq!((status, etag.as_deref()), (200, Some(tag.as_str())), "{path}");
        assert!(body == content, "{path}");
    }
    let (status, _, body) = get(&artifact.path, &[("range", "bytes=4-9")]).await;
    assert_eq!((status, &body[..]), (206, &content[4..10]));
    let (status, ..) = get(&artifact.path, &[("if-none-match", &tag)]).await;
    assert_eq!(status, 304);
    let namespace = &shared.setup.namespace;
    for path in [
        format!("gitrepository/{namespace}/shop/.latest.tar.gz"),
        format!("gitrepository/{namespace}/shop/missing.tar.gz"),
        format!("gitrepository/{namespace}/shop"),
        "gitrepository/ns/..%2f..%2fb/other".to_owned(),
    ] {
        assert_eq!(get(&path, &[]).await.0, 404, "{path}");
    }

    shared.setup.controller.kill().await.unwrap();
    let commit = shared.commit("2").await;
    shared.reconcile("shop", &commit).await;
    let object = shared.setup.wait_ready("shop").await;
    let (status, _, body) = get(&artifact_of(&object).path, &[]).await;
    assert_eq!(status, 200);
    assert_ne!(body, content);
}

#[tokio::test(flavor = "multi_thread")]
async fn superseded_artifacts_and_those_of_deleted_objects_leave_the_store() {
    let mut shared = Shared::start().await;
    shared.setup.apply("shop", &shared.repo.url(), json!({})).await;
    shared.setup.wait_ready("shop").await;
    let leaves = async |shared: &Shared, left: &[String]| {
        eventually("superseded artifacts to go", TIMEOUT, || async {
            shared
                .setup
                .request("shop", &format!("{:?}", std::time::Instant::now()))
                .await;
            let names = shared.names("shop").await;
            anyhow::ensure!(names == left, "{names:?}");
            Ok(())
        })
        .await
        .unwrap();
    };
    let file = |commit: &str| format!("{commit}.tar.gz");
    let commit = shared.commit("2").await;
    shared.reconcile("shop", &commit).await;
    leaves(&shared, &left(&file(&commit))).await;

    // Left by an earlier process.
    shared.setup.controller.kill().await.unwrap();
    let old = format!(
        "clusters/a/gitrepository/{}/shop/left.tar.gz",
        shared.setup.namespace
    );
    shared.s3.put(BUCKET, &[(old.as_str(), "x")]).await.unwrap();
    shared.setup.controller.restart().await.unwrap();
    leaves(&shared, &left(&file(&commit))).await;

    shared
        .setup
        .api
        .delete("shop", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the object to go", TIMEOUT, || async {
        anyhow::ensure!(shared.setup.api.get_opt("shop").await?.is_none(), "it is there");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(shared.names("shop").await, [""; 0]);
    assert_eq!(shared.s3.names(BUCKET).await.unwrap(), ["clusters/b/other"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn store_that_fails_delays_artifacts_and_loses_none() {
    let shared = Shared::start().await;
    shared.setup.apply("shop", &shared.repo.url(), json!({})).await;
    let object = shared.setup.wait_ready("shop").await;
    shared.s3.outage(true).await.unwrap();
    let commit = shared.commit("2").await;
    shared.setup.request("shop", "now").await;
    let why = "failed to upload the artifact to the shared store: the service failed (status 503)";
    let failed = shared
        .setup
        .wait_failed("shop", "StorageOperationFailed", why)
        .await;
    assert_eq!(artifact_of(&failed), artifact_of(&object));
    assert_eq!(fetch_artifact(&artifact_of(&failed)).await.names(""), ["a"]);
    shared.s3.outage(false).await.unwrap();
    shared.reconcile("shop", &commit).await;
    assert!(!shared.setup.controller.log().contains(SECRET_KEY));
}

#[tokio::test(flavor = "multi_thread")]
async fn rebuild_of_the_same_revision_in_an_outage_leaves_what_the_status_names() {
    let shared = Shared::start().await;
    let commit = shared.repo.commit("second", &[("a", "1"), ("b", "2")]).unwrap();
    shared.setup.apply("shop", &shared.repo.url(), json!({})).await;
    let object = shared.setup.wait_ready("shop").await;
    let artifact = artifact_of(&object);
    let latest = Artifact {
        url: object.status.unwrap().url.unwrap(),
        ..artifact.clone()
    };
    shared.s3.outage(true).await.unwrap();
    let ignore = json!({"spec": {"ignore": "/b"}});
    shared.setup.patch("shop", ignore).await;
    let why = "failed to upload the artifact to the shared store";
    for _ in 0..2 {
        let failed = shared
            .setup
            .wait_failed("shop", "StorageOperationFailed", why)
            .await;
        assert_eq!(artifact_of(&failed), artifact);
        for served in [&artifact, &latest] {
            assert_eq!(fetch_artifact(served).await.names(""), ["a", "b"]);
        }
        shared.setup.more_passes(2.0).await;
    }

    shared.s3.outage(false).await.unwrap();
    let after = shared.setup.wait_ready("shop").await;
    let rebuilt = artifact_of(&after);
    assert_eq!(rebuilt.revision, format!("main@sha1:{commit}"));
    assert!(rebuilt.path != artifact.path && rebuilt.digest != artifact.digest);
    let latest = Artifact {
        url: latest.url,
        ..rebuilt.clone()
    };
    for served in [&rebuilt, &latest] {
        assert_eq!(fetch_artifact(served).await.names(""), ["a"]);
    }
    let file = rebuilt.path.rsplit('/').next().unwrap();
    let names = shared.names("shop").await;
    assert!(names.iter().any(|name| name == file), "{names:?}");
    let log = shared.setup.controller.log();
    assert!(!log.contains("removed a corrupt artifact"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn alias_in_the_store_that_a_crash_left_at_another_file_is_put_right() {
    let mut shared = Shared::start().await;
    shared.setup.apply("shop", &shared.repo.url(), json!({})).await;
    let artifact = artifact_of(&shared.setup.wait_ready("shop").await);
    let content = fs::read(shared.setup.controller.storage_path().join(&artifact.path)).unwrap();
    shared.setup.controller.kill().await.unwrap();
    let dir = format!("clusters/a/gitrepository/{}/shop", shared.setup.namespace);
    let left = [
        (format!("{dir}/left.tar.gz"), "x"),
        (format!("{dir}/.latest.tar.gz"), "left.tar.gz"),
    ];
    let left = left.each_ref().map(|(name, content)| (name.as_str(), *content));
    shared.s3.put(BUCKET, &left).await.unwrap();

    shared.setup.controller.restart().await.unwrap();
    shared.setup.request("shop", "again").await;
    let handled = shared.setup.wait("shop", "a pass after the crash", |object| {
        let status = object.status.as_ref().unwrap();
        status.last_handled_reconcile_at.as_deref() == Some("again")
    });
    assert_eq!(artifact_of(&handled.await), artifact);
    let standby = shared.standby().await;
    let url = format!(
        "http://{}/gitrepository/{}/shop/latest.tar.gz",
        standby.addresses().storage,
        shared.setup.namespace
    );
    let served = reqwest::get(url).await.unwrap().bytes().await.unwrap();
    assert!(served == content, "{} bytes", served.len());
}
