//! From the objects of a bucket to an artifact that consumers can use.

use std::{collections::BTreeMap, time::Duration};

use api::{Artifact, condition_type as types, conditions, source::Bucket};
use artifact::{ArtifactCache, Unpacked, fetch::Limits};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::{
    CloudStorage, S3Server, eventually,
    s3::{ACCESS_KEY, SECRET_KEY},
    storage::{ACCOUNT_KEY, LargeBucket},
    wait_for,
};
use tokio_util::sync::CancellationToken;
use tree::{Tree, TreePath};

use super::{TIMEOUT, TestNamespace};

pub(super) struct BucketNamespace {
    pub(super) setup: TestNamespace,
    pub(super) api: Api<Bucket>,
}

impl BucketNamespace {
    pub(super) async fn start() -> Self {
        Self::of(TestNamespace::start().await).await
    }

    pub(super) async fn of(setup: TestNamespace) -> Self {
        let api = Api::namespaced(setup.plane.client().await.unwrap(), &setup.namespace);
        let this = Self { setup, api };
        let keys = json!({"accesskey": ACCESS_KEY, "secretkey": SECRET_KEY});
        this.setup.secret("keys", keys).await;
        this
    }

    /// Applies a Bucket; default a public one at `endpoint` by http.
    pub(super) async fn apply(&self, name: &str, endpoint: &str, spec: Value) {
        let object = self.object("v1", name, endpoint, &spec);
        self.setup.plane.apply(object).await.unwrap();
    }

    pub(super) fn object(&self, version: &str, name: &str, endpoint: &str, spec: &Value) -> Value {
        let mut whole =
            json!({"bucketName": "shop", "endpoint": endpoint, "interval": "1h", "insecure": true});
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        json!({
            "apiVersion": format!("source.toolkit.fluxcd.io/{version}"), "kind": "Bucket",
            "metadata": {"name": name, "namespace": self.setup.namespace}, "spec": whole,
        })
    }

    pub(super) async fn apply_s3(&self, name: &str, server: &S3Server, spec: Value) {
        let mut whole = json!({"secretRef": {"name": "keys"}});
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        self.apply(name, &server.endpoint(), whole).await;
    }

    pub(super) async fn reconcile(&self, name: &str, value: &str) -> Bucket {
        let patch = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": value}}});
        self.api
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
        self.wait(name, "the request to be handled", |object| {
            let status = object.status.as_ref().unwrap();
            status.last_handled_reconcile_at.as_deref() == Some(value)
                && condition(object, types::RECONCILING).is_none()
        })
        .await
    }

    pub(super) async fn wait(&self, name: &str, what: &str, found: impl FnMut(&Bucket) -> bool) -> Bucket {
        let waited = wait_for(&self.api, name, what, TIMEOUT, found).await;
        waited.unwrap_or_else(|error| panic!("{error:#}\n{}", self.setup.controller.log()))
    }

    pub(super) async fn wait_ready(&self, name: &str) -> Bucket {
        self.wait(name, "it to be ready", |object| {
            let observed = object
                .status
                .as_ref()
                .and_then(|status| status.observed_generation);
            condition(object, types::READY).is_some_and(|ready| ready.status.as_str() == "True")
                && observed == object.metadata.generation
                && condition(object, types::RECONCILING).is_none()
        })
        .await
    }

    pub(super) async fn wait_failed(&self, name: &str, reason: &str, text: &str) -> Bucket {
        let what = format!("it to fail with {reason}: {text}");
        self.wait(name, &what, |object| {
            condition(object, types::READY).is_some_and(|ready| {
                ready.is_false() && ready.reason == reason && ready.message.contains(text)
            })
        })
        .await
    }

    pub(super) async fn files(&self, object: &Bucket) -> BTreeMap<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let policy = net::AddressPolicy::command_line();
        let fetcher = ArtifactCache::new(dir.path(), None, Limits::default(), policy).unwrap();
        let fetched = fetcher
            .fetch(&artifact(object), TIMEOUT, &CancellationToken::new())
            .await;
        let mut found = BTreeMap::new();
        walk(&fetched.unwrap(), &TreePath::root(), &mut found);
        found
    }
}

fn walk(files: &Unpacked, dir: &TreePath, found: &mut BTreeMap<String, String>) {
    for entry in files.list(dir).unwrap() {
        let path = dir.child(&entry.name);
        match files.read(&path) {
            Ok(content) => {
                let content = String::from_utf8(content.to_vec()).unwrap();
                found.insert(path.as_str().to_owned(), content);
            }
            Err(_) => walk(files, &path, found),
        }
    }
}

pub(super) fn condition<'a>(object: &'a Bucket, name: &str) -> Option<&'a api::Condition> {
    conditions::get(&object.status.as_ref()?.conditions, name)
}

pub(super) fn artifact(object: &Bucket) -> Artifact {
    object.status.as_ref().unwrap().artifact.clone().unwrap()
}

fn names(files: &BTreeMap<String, String>) -> Vec<&str> {
    files.keys().map(String::as_str).collect()
}

fn revision(lines: &[&str]) -> String {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("sha256:{}", hex::encode(Sha256::digest(lines)))
}

const MD5_OF_TEST: &str = "098f6bcd4621d373cade4e832627b4f6";

#[tokio::test(flavor = "multi_thread")]
async fn bucket_becomes_an_artifact_and_follows_its_changes() {
    let (test, server) = (BucketNamespace::start().await, S3Server::start().await.unwrap());
    server
        .put("shop", &[("test.txt", "test"), ("dir/", "")])
        .await
        .unwrap();
    test.apply_s3("shop", &server, json!({})).await;
    let object = test.wait_ready("shop").await;
    // The revision of the original for the same object.
    let hex = "b4c2a60ce44b67f5b659a95ce4e4cc9e2a86baf13afb72bd397c5384cbc0e479";
    let first = artifact(&object);
    assert_eq!(first.revision, format!("sha256:{hex}"));
    let ns = &test.setup.namespace;
    assert_eq!(first.path, format!("bucket/{ns}/shop/{hex}.tar.gz"));
    for name in [types::READY, types::ARTIFACT_IN_STORAGE] {
        let found = condition(&object, name).unwrap();
        assert_eq!(found.reason, "Succeeded");
        assert_eq!(found.message, format!("stored artifact: revision 'sha256:{hex}'"));
    }
    let url = object.status.as_ref().unwrap().url.clone().unwrap();
    assert!(
        url.ends_with(&format!("/bucket/{ns}/shop/latest.tar.gz")),
        "{url}"
    );
    assert_eq!(
        test.files(&object).await,
        BTreeMap::from([("test.txt".to_owned(), "test".to_owned())])
    );
    let event = test.setup.wait_event("shop", "NewArtifact").await;
    let message = "stored artifact with 1 fetched files from 'shop' bucket";
    assert_eq!((event.0.as_str(), event.2.as_str()), ("Normal", message));

    // Nothing is downloaded while nothing changes.
    server.take_requests().await.unwrap();
    let again = test.reconcile("shop", "1").await;
    assert_eq!(artifact(&again), first);
    let requests = server.take_requests().await.unwrap();
    let requests: Vec<&str> = requests
        .iter()
        .map(|request| request.split('?').next().unwrap())
        .collect();
    assert_eq!(requests, ["HEAD /shop/", "GET /shop/.sourceignore", "GET /shop/"]);

    server.put("shop", &[("app/b.yaml", "test")]).await.unwrap();
    let object = test.reconcile("shop", "2").await;
    let lines = [
        format!("app/b.yaml {MD5_OF_TEST}"),
        format!("test.txt {MD5_OF_TEST}"),
    ];
    assert_eq!(artifact(&object).revision, revision(&[&lines[0], &lines[1]]));
    assert_eq!(names(&test.files(&object).await), ["app/b.yaml", "test.txt"]);
    // Running downloads of the old one are not disturbed.
    reqwest::get(&first.url)
        .await
        .unwrap()
        .error_for_status()
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_and_prefix_select_the_objects_through_the_index() {
    let (test, server) = (BucketNamespace::start().await, S3Server::start().await.unwrap());
    let objects = [
        (".sourceignore", "*.txt\n"),
        ("a.txt", "test"),
        ("deploy/b.yaml", "test"),
        ("deploy/c.png", "test"),
        ("other/d.yaml", "test"),
    ];
    server.put("shop", &objects).await.unwrap();
    test.apply_s3("shop", &server, json!({})).await;
    let object = test.wait_ready("shop").await;
    let all = [".sourceignore", "deploy/b.yaml", "deploy/c.png", "other/d.yaml"];
    assert_eq!(names(&test.files(&object).await), all);
    // Rules of the spec come last.
    test.apply_s3("shop", &server, json!({"ignore": "/other\n!a.txt\n"}))
        .await;
    let object = test
        .wait("shop", "the rules of the spec", |object| {
            object.status.as_ref().unwrap().observed_ignore.is_some()
        })
        .await;
    let kept = [".sourceignore", "a.txt", "deploy/b.yaml", "deploy/c.png"];
    assert_eq!(names(&test.files(&object).await), kept);
    let built = artifact(&object);
    // Rules that match nothing build nothing.
    let unused = json!({"ignore": "/other\n!a.txt\n/nothing\n"});
    test.apply_s3("shop", &server, unused).await;
    let object = test
        .wait("shop", "the rules that match nothing", |object| {
            let observed = object.status.as_ref().unwrap().observed_ignore.as_deref();
            observed.is_some_and(|rules| rules.contains("nothing"))
        })
        .await;
    assert_eq!(artifact(&object), built);

    // The prefix is a beginning of names, not a directory; the ignore file is in the root.
    test.apply_s3("prefix", &server, json!({"prefix": "deploy/c"}))
        .await;
    let object = test.wait_ready("prefix").await;
    assert_eq!(
        artifact(&object).revision,
        revision(&[&format!("deploy/c.png {MD5_OF_TEST}")])
    );
    assert_eq!(
        names(&test.files(&object).await),
        [".sourceignore", "deploy/c.png"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_change_or_vanish_meanwhile_are_as_they_were_downloaded() {
    let (test, server) = (BucketNamespace::start().await, S3Server::start().await.unwrap());
    server
        .put("shop", &[("a", "old"), ("b", "test"), ("gone", "test")])
        .await
        .unwrap();
    let changes = BTreeMap::from([("a", Some("test")), ("gone", None)]);
    server.change_after_listing("shop", &changes).await.unwrap();
    test.apply_s3("shop", &server, json!({})).await;
    let object = test.wait_ready("shop").await;
    let expected = [("a", "test"), ("b", "test")].map(|(key, content)| (key.to_owned(), content.to_owned()));
    assert_eq!(test.files(&object).await, BTreeMap::from(expected));
    let lines = [format!("a {MD5_OF_TEST}"), format!("b {MD5_OF_TEST}")];
    let built = artifact(&object);
    assert_eq!(built.revision, revision(&[&lines[0], &lines[1]]));
    let event = test.setup.wait_event("shop", "NewArtifact").await;
    assert_eq!(event.2, "stored artifact with 2 fetched files from 'shop' bucket");
    // The index has the downloaded tags, so the next pass finds nothing new.
    let object = test.reconcile("shop", "1").await;
    assert_eq!(artifact(&object), built);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_objects_are_downloaded_at_the_same_time() {
    let (test, server) = (BucketNamespace::start().await, S3Server::start().await.unwrap());
    let keys: Vec<String> = (0..1200)
        .map(|number| format!("d{}/{number:04}", number % 7))
        .collect();
    let objects: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), key.as_str())).collect();
    server.put("shop", &objects).await.unwrap();
    test.apply_s3("shop", &server, json!({})).await;
    let files = test.files(&test.wait_ready("shop").await).await;
    assert_eq!(files.len(), 1200);
    assert!(files.iter().all(|(path, content)| path == content));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_objects_take_bounded_memory_and_others_go_on() {
    let (test, server) = (BucketNamespace::start().await, S3Server::start().await.unwrap());
    let large = LargeBucket::start(1_000_000).unwrap();
    server.put("shop", &[("a", "test")]).await.unwrap();
    test.apply("large", &large.endpoint(), json!({"timeout": "10m"}))
        .await;
    let rules = json!({"timeout": "10m", "ignore": "/large\n"});
    test.apply("ignored", &large.endpoint(), rules).await;
    test.apply_s3("shop", &server, json!({})).await;
    test.wait_ready("shop").await;
    let message = "indexation of objects from bucket 'shop' failed: there are more than 100000 objects: set spec.prefix, or leave out \
                   objects with spec.ignore";
    test.wait_failed("large", "BucketOperationFailed", message).await;
    let object = eventually(
        "the rules to leave out a million objects",
        Duration::from_secs(300),
        || async {
            let object = test.api.get("ignored").await?;
            anyhow::ensure!(condition(&object, types::READY).is_some_and(|ready| !ready.is_false()));
            anyhow::ensure!(
                object
                    .status
                    .as_ref()
                    .is_some_and(|status| status.artifact.is_some())
            );
            Ok(object)
        },
    )
    .await
    .unwrap_or_else(|error| panic!("{error:#}\n{}", test.setup.controller.log()));
    assert_eq!(names(&test.files(&object).await), ["small/000000000"]);
    assert!(large.pages() >= 1000, "{}", large.pages());
    let peak = test.setup.controller.usage().unwrap().peak;
    assert!(peak < 160 << 20, "{} MiB", peak >> 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn google_and_azure_serve_buckets_too() {
    let test = BucketNamespace::start().await;
    let clouds = CloudStorage::start().unwrap();
    clouds.put(
        "shop",
        &[("a.yaml", "a"), ("deploy/b.yaml", "b"), ("deploy/c.md", "c")],
    );
    let google = json!({"serviceaccount": clouds.service_account()});
    test.setup.secret("google", google).await;
    test.setup
        .secret("azure", json!({"accountKey": ACCOUNT_KEY}))
        .await;
    let spec = |provider: &str| json!({"provider": provider, "secretRef": {"name": if provider == "gcp" { "google" } else { "azure" }}, "ignore": "*.md"});
    test.apply("google", &clouds.host(), spec("gcp")).await;
    test.apply("azure", &clouds.azure(), spec("azure")).await;
    for (name, lines) in [
        ("google", ["a.yaml CK1=", "deploy/b.yaml CK2="]),
        ("azure", ["a.yaml 0x00000001", "deploy/b.yaml 0x00000002"]),
    ] {
        let object = test.wait_ready(name).await;
        assert_eq!(artifact(&object).revision, revision(&lines));
        assert_eq!(names(&test.files(&object).await), ["a.yaml", "deploy/b.yaml"]);
        // Tags of listings and of objects are the same, so nothing is built again.
        let again = test.reconcile(name, "1").await;
        assert_eq!(artifact(&again), artifact(&object));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_removes_the_artifacts_and_old_versions_are_served() {
    let (test, server) = (BucketNamespace::start().await, S3Server::start().await.unwrap());
    server.put("shop", &[("a", "test")]).await.unwrap();
    for version in ["v1beta1", "v1beta2", "v1"] {
        let spec = json!({"secretRef": {"name": "keys"}});
        let object = test.object(version, version, &server.endpoint(), &spec);
        test.setup.plane.apply(object).await.unwrap();
        let ready = test.wait_ready(version).await;
        let path = test.setup.controller.storage_path().join(artifact(&ready).path);
        assert!(path.is_file(), "{}", path.display());
        let dir = path.parent().unwrap();
        let latest = std::fs::read(dir.join("latest.tar.gz")).unwrap();
        assert_eq!(latest, std::fs::read(&path).unwrap());
        let listed = test
            .setup
            .kubectl(&[
                "get",
                &format!("buckets.{version}.source.toolkit.fluxcd.io"),
                version,
            ])
            .await;
        assert!(
            listed.contains("ENDPOINT") && listed.contains(&server.endpoint()),
            "{listed}"
        );
        test.api.delete(version, &DeleteParams::default()).await.unwrap();
        testkit::wait_gone(&test.api, version, TIMEOUT).await.unwrap();
        assert!(!dir.exists());
    }
}
