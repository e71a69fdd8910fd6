//! HelmChart: charts of Helm repositories and registries, and out of other sources.

use std::collections::BTreeMap;

use api::{
    condition_type as types,
    source::{HelmChart, HelmRepository},
};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use testkit::{
    GitServer, Registry, S3Server, WebServer,
    archive::tar_gz,
    registry::{Login, PASSWORD, Signer, USER},
    web::Page,
};

use super::{
    TestNamespace,
    bucket::BucketNamespace,
    objects::{Objects, artifact, condition, status},
};

pub(super) fn packed(name: &str, version: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let metadata = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    let mut all = vec![(format!("{name}/Chart.yaml"), metadata)];
    let more = files
        .iter()
        .map(|(path, text)| (format!("{name}/{path}"), (*text).to_owned()));
    all.extend(more);
    let all: Vec<(&str, &[u8])> = all
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_bytes()))
        .collect();
    tar_gz(&all)
}

async fn archive(object: &HelmChart) -> Vec<u8> {
    let answer = reqwest::get(&artifact(object).url).await.unwrap();
    answer.error_for_status().unwrap().bytes().await.unwrap().to_vec()
}

async fn files(object: &HelmChart) -> BTreeMap<String, String> {
    let bytes = archive(object).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("chart.tgz");
    std::fs::write(&path, bytes).unwrap();
    let root = dir.path().join("files");
    artifact::unpack(&path, &root, &artifact::FetchLimits::default()).unwrap();
    let mut found = BTreeMap::new();
    let mut open = vec![root.clone()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// A Helm repository with an index of one chart.
pub(super) struct ChartServer(pub(super) WebServer);

impl ChartServer {
    /// Serves these versions of the chart `shop`.
    pub(super) fn start(versions: &[(&str, &[(&str, &str)])]) -> Self {
        let server = Self(WebServer::start().unwrap());
        server.offer(versions);
        server
    }

    pub(super) fn offer(&self, versions: &[(&str, &[(&str, &str)])]) {
        let mut index = "apiVersion: v1\nentries:\n  shop:\n".to_owned();
        for (version, files) in versions {
            let path = format!("/charts/shop-{version}.tgz");
            self.0
                .page(&path, Page::Content(packed("shop", version, files).into()));
            index.push_str(&format!(
                "  - {{name: shop, version: {version}, urls: [charts/shop-{version}.tgz]}}\n"
            ));
        }
        self.0.page("/index.yaml", Page::Content(index.into()));
    }

    fn downloads(&self) -> usize {
        let asked = self.0.asked().into_iter();
        asked.filter(|asked| asked.path.ends_with(".tgz")).count()
    }
}

/// The spec of a chart of the HelmRepository `charts`.
pub(super) fn shop(change: &Value) -> Value {
    let mut spec = json!({"chart": "shop", "sourceRef": {"kind": "HelmRepository", "name": "charts"}});
    spec.as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_of_a_repository_is_stored_as_it_is_and_follows_the_index() {
    let setup = TestNamespace::start().await;
    let server = ChartServer::start(&[("1.0.0", &[]), ("1.2.0", &[]), ("2.0.0-rc.1", &[])]);
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    let charts = Objects::<HelmChart>::of(&setup).await;
    // The chart waits for its source, and goes on by itself.
    charts.apply("shop", shop(&json!({}))).await;
    charts
        .wait_failed(
            "shop",
            "SourceUnavailable",
            "failed to get source: helmrepositories.source.toolkit.fluxcd.io \"charts\" not found",
        )
        .await;
    repositories
        .apply("charts", json!({"url": server.0.url("")}))
        .await;
    let object = charts.wait_ready("shop").await;
    let (first, ns) = (artifact(&object), &setup.namespace);
    assert_eq!(first.revision, "1.2.0");
    assert_eq!(first.path, format!("helmchart/{ns}/shop/shop-1.2.0.tgz"));
    assert_eq!(archive(&object).await, packed("shop", "1.2.0", &[]));
    for name in [types::READY, types::ARTIFACT_IN_STORAGE] {
        let found = condition(&object, name).unwrap();
        let expected = ("ChartPullSucceeded", "pulled 'shop' chart with version '1.2.0'");
        assert_eq!((found.reason.as_str(), found.message.as_str()), expected);
    }
    let index = artifact(&repositories.wait_ready("charts").await).revision;
    let observed = status(&object);
    assert_eq!(observed["observedChartName"], "shop");
    assert_eq!(observed["observedSourceArtifactRevision"], index);
    let url = observed["url"].as_str().unwrap();
    assert!(
        url.ends_with(&format!("/helmchart/{ns}/shop/latest.tar.gz")),
        "{url}"
    );
    let event = setup.wait_event("shop", "ChartPullSucceeded").await;
    let expected = ("Normal", "pulled 'shop' chart with version '1.2.0'");
    assert_eq!((event.0.as_str(), event.2.as_str()), expected);

    // Nothing changed: nothing is downloaded.
    let downloads = server.downloads();
    let again = charts.reconcile("shop", "1").await;
    assert_eq!((artifact(&again), server.downloads()), (first.clone(), downloads));

    server.offer(&[("1.2.0", &[]), ("1.3.0", &[])]);
    repositories.reconcile("charts", "1").await;
    let object = charts
        .wait("shop", "the new version", |object| {
            artifact(object).revision == "1.3.0"
        })
        .await;
    assert_eq!(archive(&object).await, packed("shop", "1.3.0", &[]));
    // Running downloads of the old one are not disturbed.
    assert!(reqwest::get(&first.url).await.unwrap().status().is_success());

    // A version that is gone keeps the stored chart, and stalls until the index has it.
    charts.apply("shop", shop(&json!({"version": "~1.4"}))).await;
    let message = "invalid chart reference: failed to get chart version for remote reference: no 'shop' chart with version \
                   matching '~1.4' found";
    let failed = charts.wait_failed("shop", "InvalidChartReference", message).await;
    assert_eq!(artifact(&failed).revision, "1.3.0");
    for name in [types::STALLED, types::FETCH_FAILED] {
        assert!(
            condition(&failed, name).is_some_and(|found| found.is_true()),
            "{name}: {failed:?}"
        );
    }
    server.offer(&[("1.3.0", &[]), ("1.4.2", &[])]);
    repositories.reconcile("charts", "2").await;
    let object = charts.wait_ready("shop").await;
    assert_eq!(artifact(&object).revision, "1.4.2");

    // A stored chart that is lost is downloaded again.
    std::fs::remove_file(charts.dir("shop").join("shop-1.4.2.tgz")).unwrap();
    let object = charts.reconcile("shop", "2").await;
    assert_eq!(archive(&object).await, packed("shop", "1.4.2", &[]));
}

#[tokio::test(flavor = "multi_thread")]
async fn values_files_are_merged_into_the_chart() {
    let setup = TestNamespace::start().await;
    let values: &[(&str, &str)] = &[
        ("values.yaml", "a: 1\nb: {c: x}\n"),
        ("values-prod.yaml", "b: {d: z}\n"),
        ("broken.yaml", "[1]"),
    ];
    let server = ChartServer::start(&[("1.0.0", values)]);
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    let charts = Objects::<HelmChart>::of(&setup).await;
    repositories
        .apply("charts", json!({"url": server.0.url("")}))
        .await;
    repositories.wait_ready("charts").await;
    let prod = json!({"valuesFiles": ["values.yaml", "values-prod.yaml"]});
    charts.apply("prod", shop(&prod)).await;
    let object = charts.wait_ready("prod").await;
    assert_eq!(artifact(&object).revision, "1.0.0+1");
    let ready = condition(&object, types::READY).unwrap();
    let message =
        "packaged 'shop' chart with version '1.0.0+1' and merged values files [values.yaml values-prod.yaml]";
    assert_eq!(
        (ready.reason.as_str(), ready.message.as_str()),
        ("ChartPackageSucceeded", message)
    );
    let found = files(&object).await;
    assert_eq!(found["shop/values.yaml"], "a: 1\nb:\n  c: x\n  d: z\n");
    assert!(found["shop/Chart.yaml"].contains("version: 1.0.0+1"), "{found:?}");
    assert_eq!(status(&object)["observedValuesFiles"], Value::Null);
    let again = charts.reconcile("prod", "1").await;
    assert_eq!(artifact(&again), artifact(&object));
    assert_eq!(condition(&again, types::READY).unwrap().message, message);

    let missing = json!({"valuesFiles": ["values.yaml", "values-test.yaml"]});
    charts.apply("test", shop(&missing)).await;
    let message = "values files merge error: failed to merge chart values: no values file found at path 'values-test.yaml'";
    let failed = charts.wait_failed("test", "ValuesFilesError", message).await;
    for name in [types::STALLED, types::BUILD_FAILED] {
        assert!(
            condition(&failed, name).is_some_and(|found| found.is_true()),
            "{name}: {failed:?}"
        );
    }
    let mut ignoring = missing;
    ignoring["ignoreMissingValuesFiles"] = json!(true);
    charts.apply("test", shop(&ignoring)).await;
    let object = charts.wait_ready("test").await;
    // Only the chart's own values are left, so that they are unchanged.
    assert_eq!(files(&object).await["shop/values.yaml"], values[0].1);
    assert_eq!(status(&object)["observedValuesFiles"], json!(["values.yaml"]));
    let ready = |object: &HelmChart| condition(object, types::READY).unwrap().message;
    let message = ready(&object);
    assert!(
        message.ends_with("merged values files [values.yaml]"),
        "{message}"
    );
    assert_eq!(ready(&charts.reconcile("test", "1").await), message);
    let none = json!({"valuesFiles": ["none.yaml"], "ignoreMissingValuesFiles": true});
    charts.apply("none", shop(&none)).await;
    let object = charts.wait_ready("none").await;
    assert_eq!(ready(&object), "packaged 'shop' chart with version '1.0.0+1'");
    let again = charts.reconcile("none", "1").await;
    assert_eq!(ready(&again), ready(&object), "a missing file is not merged");
    let all = json!({"valuesFiles": ["none.yaml", "values-prod.yaml"], "ignoreMissingValuesFiles": true});
    charts.apply("test", shop(&all)).await;
    let object = charts
        .wait("test", "the observed files", |object| {
            status(object)["observedValuesFiles"] == json!(["values-prod.yaml"])
        })
        .await;
    assert_eq!(files(&object).await["shop/values.yaml"], "b:\n  d: z\n");

    charts
        .apply("broken", shop(&json!({"valuesFiles": ["broken.yaml"]})))
        .await;
    charts
        .wait_failed("broken", "ValuesFilesError", "failed to parse broken.yaml")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_out_of_a_git_repository_gets_its_dependencies() {
    let setup = TestNamespace::start().await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("apps").unwrap();
    let server = ChartServer::start(&[("1.0.0", &[]), ("1.1.0", &[("values.yaml", "x: 1\n")])]);
    // The credentials are the HelmRepository's with the same URL.
    server.0.login(USER, PASSWORD);
    setup
        .secret("login", json!({"username": USER, "password": PASSWORD}))
        .await;
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    let with_secret = json!({"url": format!("{}/", server.0.url("")), "secretRef": {"name": "login"}});
    repositories.apply("charts", with_secret).await;
    let chart = format!(
        "apiVersion: v2\nname: app\nversion: 0.1.0\ndependencies:\n\
         - {{name: shop, version: 1.x, repository: '{}'}}\n- {{name: lib, version: ^2, repository: 'file://../lib'}}\n",
        server.0.url("")
    );
    let content = [
        ("charts/app/Chart.yaml", chart.as_str()),
        ("charts/app/values.yaml", "a: 1\n"),
        ("charts/app/.helmignore", "*.md\n"),
        ("charts/app/README.md", "no"),
        (
            "charts/lib/Chart.yaml",
            "apiVersion: v2\nname: lib\nversion: 2.1.0\n",
        ),
        ("prod.yaml", "a: 2\n"),
    ];
    repo.commit("first", &content).unwrap();
    setup.apply("apps", &repo.url(), json!({})).await;
    setup.wait_ready("apps").await;
    let charts = Objects::<HelmChart>::of(&setup).await;
    let source = json!({"kind": "GitRepository", "name": "apps"});
    let spec = json!({"chart": "./charts/app", "sourceRef": source, "version": "9.x", "reconcileStrategy": "Revision",
                      "valuesFiles": ["prod.yaml"]});
    charts.apply("app", spec.clone()).await;
    let object = charts.wait_ready("app").await;
    let revision = status(&object)["observedSourceArtifactRevision"]
        .as_str()
        .unwrap()
        .to_owned();
    let hash = revision.rsplit(':').next().unwrap();
    assert_eq!(artifact(&object).revision, format!("0.1.0+{}.1", &hash[..12]));
    let found = files(&object).await;
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    let expected = [
        "app/.helmignore",
        "app/Chart.yaml",
        "app/charts/lib/Chart.yaml",
        "app/charts/shop/Chart.yaml",
        "app/charts/shop/values.yaml",
        "app/values.yaml",
    ];
    assert_eq!(names, expected);
    assert!(
        found["app/charts/shop/Chart.yaml"].contains("version: 1.1.0"),
        "{found:?}"
    );
    assert_eq!(found["app/values.yaml"], "a: 2\n");

    // A new commit is a new version, by itself; the same files have the same bytes.
    repo.commit("second", &[("other", "1")]).unwrap();
    setup.request("apps", "1").await;
    let next = charts
        .wait("app", "the next version", |next| {
            artifact(next).revision != artifact(&object).revision
        })
        .await;
    let plain = json!({"chart": "charts/app", "sourceRef": source});
    charts.apply("plain", plain).await;
    let plain = charts.wait_ready("plain").await;
    assert_eq!(artifact(&plain).revision, "0.1.0");
    repo.commit("third", &[("other", "2")]).unwrap();
    setup.request("apps", "2").await;
    charts
        .wait("app", "the third version", |third| {
            artifact(third).revision != artifact(&next).revision
        })
        .await;
    let same = charts.reconcile("plain", "1").await;
    assert_eq!(
        artifact(&same),
        artifact(&plain),
        "the version of the chart is the same"
    );

    for (name, chart, reason, message) in [
        (
            "none",
            "charts/none",
            "InvalidChartReference",
            "no chart at path 'charts/none'",
        ),
        (
            "above",
            "../../etc",
            "InvalidChartReference",
            "no chart at path 'etc'",
        ),
    ] {
        charts
            .apply(name, json!({"chart": chart, "sourceRef": source}))
            .await;
        charts.wait_failed(name, reason, message).await;
    }
    let (lacking, alone) = (
        "apiVersion: v2\nname: x\nversion: 1.0.0\ndependencies: [{name: lib, version: 1, repository: '@a'}]\n",
        "charts/x/Chart.yaml",
    );
    repo.commit("lacking", &[(alone, lacking)]).unwrap();
    setup.request("apps", "3").await;
    charts
        .apply("lacking", json!({"chart": "charts/x", "sourceRef": source}))
        .await;
    let message = "dependency build error: failed to add chart dependency 'lib': aliased repository dependency is not supported";
    charts
        .wait_failed("lacking", "DependencyBuildError", message)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_out_of_a_bucket_is_an_archive() {
    let bucket = BucketNamespace::start().await;
    let server = S3Server::start().await.unwrap();
    let chart = packed("shop", "1.0.0", &[]);
    let metadata = "apiVersion: v2\nname: lacking\nversion: 1.0.0\ndependencies: [{name: lib, version: 1, repository: '@a'}]\n";
    let lacking = tar_gz(&[("lacking/Chart.yaml", metadata.as_bytes())]);
    let objects: &[(&str, &[u8])] = &[("charts/shop.tgz", &chart), ("charts/lacking.tgz", &lacking)];
    server.put("shop", objects).await.unwrap();
    bucket.apply_s3("charts", &server, json!({})).await;
    let charts = Objects::<HelmChart>::of(&bucket.setup).await;
    let source = json!({"kind": "Bucket", "name": "charts"});
    charts
        .apply("shop", json!({"chart": "charts/shop.tgz", "sourceRef": source}))
        .await;
    let object = charts.wait_ready("shop").await;
    assert_eq!(artifact(&object).revision, "1.0.0");
    assert_eq!(archive(&object).await, chart);
    assert_eq!(
        condition(&object, types::READY).unwrap().reason,
        "ChartPullSucceeded"
    );
    let revision = json!({"chart": "charts/shop.tgz", "sourceRef": source, "reconcileStrategy": "Revision"});
    charts.apply("revision", revision).await;
    let object = charts.wait_ready("revision").await;
    let observed = status(&object)["observedSourceArtifactRevision"]
        .as_str()
        .unwrap()
        .to_owned();
    let digest = observed.strip_prefix("sha256:").unwrap();
    assert_eq!(artifact(&object).revision, format!("1.0.0+{}", &digest[..12]));
    assert_eq!(
        condition(&object, types::READY).unwrap().reason,
        "ChartPackageSucceeded"
    );

    // The dependencies of an archive are the charts in it.
    let lacking =
        json!({"chart": "charts/lacking.tgz", "sourceRef": source, "reconcileStrategy": "Revision"});
    charts.apply("lacking", lacking).await;
    let object = charts.wait_ready("lacking").await;
    assert_eq!(artifact(&object).revision, format!("1.0.0+{}", &digest[..12]));
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_is_downloaded_within_the_timeout_of_its_repository() {
    let setup = TestNamespace::start().await;
    let server = ChartServer::start(&[("1.0.0", &[])]);
    server
        .0
        .page("/charts/shop-1.0.0.tgz", Page::Stalled("begin".into()));
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    let spec = json!({"url": server.0.url(""), "timeout": "1500ms"});
    repositories.apply("charts", spec).await;
    repositories.wait_ready("charts").await;
    let charts = Objects::<HelmChart>::of(&setup).await;
    charts.apply("shop", shop(&json!({}))).await;
    let message = "no end after 1.5s: raise spec.timeout of the HelmRepository";
    charts.wait_failed("shop", "ChartPullError", message).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_of_a_registry_is_found_by_its_tags_and_verified() {
    let setup = TestNamespace::start().await;
    let registry = Registry::start(Login::Basic, None).await.unwrap();
    for version in ["1.0.0", "1.1.0+build.7"] {
        let chart = packed("shop", version, &[]);
        registry
            .push_chart("charts/shop", &version.replace('+', "_"), &chart)
            .await
            .unwrap();
    }
    // Tags that are no versions of a chart.
    for tag in ["20240101", "v2.0.0", "3.0"] {
        let chart = packed("shop", "9.9.9", &[]);
        registry.push_chart("charts/shop", tag, &chart).await.unwrap();
    }
    setup
        .secret("login", json!({"username": USER, "password": PASSWORD}))
        .await;
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    let url = format!("oci://{}/charts", registry.host());
    let spec = json!({"url": url, "type": "oci", "insecure": true});
    repositories.apply("open", spec.clone()).await;
    let mut closed = spec.clone();
    closed["accessFrom"] = json!({"namespaceSelectors": []});
    repositories.apply("closed", closed).await;
    let mut with_secret = spec;
    with_secret["secretRef"] = json!({"name": "login"});
    repositories.apply("charts", with_secret).await;
    let charts = Objects::<HelmChart>::of(&setup).await;
    charts.apply("newest", shop(&json!({}))).await;
    let object = charts.wait_ready("newest").await;
    assert_eq!(artifact(&object).revision, "1.1.0+build.7");
    assert_eq!(archive(&object).await, packed("shop", "1.1.0+build.7", &[]));
    charts.apply("exact", shop(&json!({"version": "1.0.0"}))).await;
    assert_eq!(artifact(&charts.wait_ready("exact").await).revision, "1.0.0");
    let anonymous = json!({"sourceRef": {"kind": "HelmRepository", "name": "open"}});
    charts.apply("anonymous", shop(&anonymous)).await;
    charts
        .wait_failed(
            "anonymous",
            "AuthenticationFailed",
            "chart pull error: failed to get chart version",
        )
        .await;
    let closed = json!({"sourceRef": {"kind": "HelmRepository", "name": "closed"}});
    charts.apply("closed", shop(&closed)).await;
    charts
        .wait_failed("closed", "UnsupportedField", "spec.accessFrom")
        .await;
    charts.apply("other", shop(&json!({"version": "3.x"}))).await;
    let message = "no 'shop' chart with version matching '3.x' found";
    let other = charts
        .wait_failed("other", "InvalidChartReference", message)
        .await;
    assert!(
        condition(&other, types::STALLED).is_none(),
        "nothing would wake it: {other:?}"
    );

    let signer = Signer::new().unwrap();
    setup
        .secret("keys", json!({"cosign.pub": signer.public_pem()}))
        .await;
    let verify = json!({"version": "1.0.0", "verify": {"provider": "cosign", "secretRef": {"name": "keys"}}});
    charts.apply("signed", shop(&verify)).await;
    let failed = charts
        .wait_failed("signed", "ChartVerificationError", "no matching signatures")
        .await;
    let verified = condition(&failed, types::SOURCE_VERIFIED).unwrap();
    assert!(
        verified.is_false() && condition(&failed, types::BUILD_FAILED).is_some(),
        "{failed:?}"
    );
    let digest = registry
        .push_chart("charts/shop", "1.0.0", &packed("shop", "1.0.0", &[]))
        .await
        .unwrap();
    signer.sign(&registry, "charts/shop", &digest).await.unwrap();
    let object = charts.reconcile("signed", "1").await;
    let verified = condition(&object, types::SOURCE_VERIFIED).unwrap();
    assert!(verified.is_true(), "{object:?}");
    assert_eq!(verified.message, "verified signature of version 1.0.0");
    assert_eq!(object.name_any(), "signed");
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_is_packaged_anew_when_other_files_of_its_commit_are_selected() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("apps").unwrap();
    let chart = "apiVersion: v2\nname: app\nversion: 0.1.0\n";
    let content = [("app/Chart.yaml", chart), ("app/extra.txt", "x")];
    repo.commit("first", &content).unwrap();
    setup.apply("apps", &repo.url(), json!({})).await;
    setup.wait_ready("apps").await;
    let charts = Objects::<HelmChart>::of(&setup).await;
    let source = json!({"kind": "GitRepository", "name": "apps"});
    let spec = |strategy: &str| json!({"chart": "app", "sourceRef": source, "reconcileStrategy": strategy});
    charts.apply("app", spec("Revision")).await;
    charts.apply("plain", spec("ChartVersion")).await;
    let (first, plain) = (charts.wait_ready("app").await, charts.wait_ready("plain").await);
    assert!(files(&first).await.contains_key("app/extra.txt"));

    setup
        .apply("apps", &repo.url(), json!({"ignore": "extra.txt\n"}))
        .await;
    let version = artifact(&first).revision;
    let second = charts
        .wait("app", "the other content", |next| {
            artifact(next).revision != version
        })
        .await;
    let other = artifact(&second).revision;
    assert!(other.starts_with(&format!("{version}.")), "{other}");
    assert!(!files(&second).await.contains_key("app/extra.txt"));
    let revision = |chart: &HelmChart| status(chart)["observedSourceArtifactRevision"].clone();
    assert_eq!(revision(&second), revision(&first));
    for (name, expected) in [("app", second), ("plain", plain)] {
        let same = charts.reconcile(name, "1").await;
        assert_eq!(artifact(&same), artifact(&expected), "{name}");
    }
}
