//! The real kustomize-controller and helm-controller of Flux use the artifacts of our source-controller.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use e2e::cluster::{NAMESPACE, TIMEOUT, TestCluster};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _, api::DynamicObject};
use serde_json::{Value, json};
use testkit::{
    Controller, Page, Registry, S3Server, WebServer,
    archive::tar_gz,
    eventually,
    flux_controllers::{FluxController, HELM, KUSTOMIZE},
    ready,
    registry::Login,
    s3::{ACCESS_KEY, SECRET_KEY},
    skipped, wait_for,
};

/// The key of the hashes of directories in the metadata of artifacts.
const DIRECTORIES: &str = "weir.io/directories";

/// Returns a controller of Flux, if it is built, or notes that it is skipped.
fn find(peer: &FluxController, tests: &str) -> Result<Option<PathBuf>> {
    let found = peer.find()?;
    if found.is_none() {
        skipped::note(tests, "it isn't built: run make flux-consumers");
    }
    Ok(found)
}

struct Consumers {
    cluster: TestCluster,
    peer: Controller,
}

impl Consumers {
    async fn start(peer: &FluxController, program: &Path, flags: &[&str]) -> Result<Self> {
        let mut cluster = TestCluster::bare().await?;
        let peer = peer.start(program, &cluster.plane).await?;
        cluster.start("source-controller", flags).await?;
        Ok(Self { cluster, peer })
    }

    async fn apply(&self, version: &str, kind: &str, name: &str, spec: Value) -> Result<()> {
        let object = json!({
            "apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
        });
        self.cluster.plane.apply(object).await?;
        Ok(())
    }

    /// Applies a source that is asked each second.
    async fn apply_source(&self, kind: &str, name: &str, mut spec: Value) -> Result<()> {
        spec["interval"] = "1s".into();
        self.apply("source.toolkit.fluxcd.io/v1", kind, name, spec).await
    }

    /// Applies a Kustomization of a directory that new artifacts alone wake.
    async fn apply_kustomization(&self, kind: &str, name: &str, path: &str) -> Result<()> {
        let spec = json!({
            "interval": "1h", "retryInterval": "1s", "timeout": "30s", "prune": true, "path": path, "wait": true,
            "sourceRef": {"kind": kind, "name": name}, "targetNamespace": NAMESPACE,
        });
        self.apply("kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, spec)
            .await
    }

    /// Applies a HelmRelease that new charts alone wake.
    async fn apply_release(&self, name: &str, mut spec: Value) -> Result<()> {
        spec["interval"] = "1h".into();
        spec["timeout"] = "1m".into();
        spec["values"] = json!({"color": "red"});
        self.apply("helm.toolkit.fluxcd.io/v2", "HelmRelease", name, spec)
            .await
    }

    async fn api(&self, version: &str, kind: &str) -> Result<Api<DynamicObject>> {
        let metadata = json!({"name": "any", "namespace": NAMESPACE});
        let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata});
        Ok(self.cluster.plane.api_for(object).await?.0)
    }

    async fn artifact(&self, kind: &str, name: &str) -> Result<Value> {
        let source = self
            .api("source.toolkit.fluxcd.io/v1", kind)
            .await?
            .get(name)
            .await?;
        Ok(source.data["status"]["artifact"].clone())
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.client.clone(), NAMESPACE)
    }

    /// Waits until a ConfigMap has this under `value`.
    async fn holds(&self, name: &str, value: &str) -> Result<ConfigMap> {
        let what = format!("value {value}");
        wait_for(&self.maps(), name, &what, TIMEOUT, |map| {
            let found = map.data.as_ref().and_then(|data| data.get("value"));
            found.is_some_and(|found| found == value)
        })
        .await
        .with_context(|| self.peer_log())
    }

    /// Waits until a Kustomization applied the newest artifact of its source, whose revision differs from `before`; returns the revision.
    async fn applied(&self, kind: &str, name: &str, before: &str) -> Result<String> {
        let api = self
            .api("kustomize.toolkit.fluxcd.io/v1", "Kustomization")
            .await?;
        let what = format!("the artifact of {kind} {name} to be applied");
        let revision = eventually(&what, TIMEOUT, || async {
            let artifact = self.artifact(kind, name).await?;
            let object = api.get(name).await?;
            let (status, ready) = (&object.data["status"], ready(&object));
            let revision = artifact["revision"].as_str().context("no artifact")?;
            ensure!(
                revision != before && status["lastAppliedRevision"] == revision && ready["status"] == "True",
                "{artifact} {status}"
            );
            let hashes = artifact["metadata"][DIRECTORIES].as_str();
            ensure!(
                hashes.is_some_and(|hashes| hashes.starts_with("sha256:")),
                "{artifact}"
            );
            Ok(revision.to_owned())
        });
        revision.await.with_context(|| self.peer_log())
    }

    /// Waits until a HelmRelease has deployed this version of its chart, as its `release`-th one; returns its status.
    async fn released(&self, name: &str, version: &str, release: u64) -> Result<Value> {
        let api = self.api("helm.toolkit.fluxcd.io/v2", "HelmRelease").await?;
        let what = format!("version {version} to be deployed");
        let found = wait_for(&api, name, &what, TIMEOUT, |object| {
            let newest = &object.data["status"]["history"][0];
            let deployed = newest["chartVersion"].as_str().unwrap_or_default();
            // Of an OCIRepository, it has the digest behind it.
            deployed.split('+').next() == Some(version)
                && newest["status"] == "deployed"
                && newest["version"] == release
                && ready(object)["status"] == "True"
        });
        let found = found.await.with_context(|| self.peer_log())?;
        Ok(found.data["status"].clone())
    }

    fn peer_log(&self) -> String {
        let log = self.peer.log();
        let lines: Vec<&str> = log.lines().rev().take(20).collect();
        format!("{} last said:\n{}", self.peer.name(), lines.join("\n"))
    }

    async fn stop(self) -> Result<()> {
        self.peer.terminate().await?;
        self.cluster.stop().await
    }
}

fn map(name: &str, value: &str) -> String {
    let value = json!({"value": value});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": value}).to_string()
}

fn packed(files: &[(&str, &str)]) -> Vec<u8> {
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, text)| (*path, text.as_bytes()))
        .collect();
    tar_gz(&files)
}

#[tokio::test(flavor = "multi_thread")]
async fn kustomizations_of_flux_follow_repositories() -> Result<()> {
    crate::init();
    let Some(program) = find(&KUSTOMIZE, "the kustomize-controller of Flux with our artifacts")? else {
        return Ok(());
    };
    for format in ["rfc5", "legacy"] {
        let flag = format!("--revision-format={format}");
        let flux = Consumers::start(&KUSTOMIZE, &program, &[&flag]).await?;
        follow_repository(&flux).await.context(flag)?;
        flux.stop().await?;
    }
    Ok(())
}

/// Pushes commits that add, change and remove objects of a directory, and one that concerns it not.
async fn follow_repository(flux: &Consumers) -> Result<()> {
    let repo = flux.cluster.git.repo("apps")?;
    repo.commit(
        "first",
        &[
            (
                "app/kustomization.yaml",
                "resources: [kept.yaml, gone.yaml]\nnamePrefix: git-\n",
            ),
            ("app/kept.yaml", &map("kept", "1")),
            ("app/gone.yaml", &map("gone", "1")),
            ("other/kept.yaml", &map("other", "1")),
        ],
    )?;
    let spec = json!({"url": repo.url(), "ref": {"branch": "main"}});
    flux.apply_source("GitRepository", "apps", spec).await?;
    flux.apply_kustomization("GitRepository", "apps", "./app").await?;
    let first = flux.applied("GitRepository", "apps", "").await?;
    for name in ["git-kept", "git-gone"] {
        flux.holds(name, "1").await?;
    }

    let change = repo
        .change("second")
        .write("app/kept.yaml", map("kept", "2"))
        .remove("app/gone.yaml");
    let commit = change
        .write(
            "app/kustomization.yaml",
            "resources: [kept.yaml]\nnamePrefix: git-\n",
        )
        .push()?;
    let second = flux.applied("GitRepository", "apps", &first).await?;
    ensure!(second.ends_with(&commit), "{second} is not {commit}");
    let kept = flux.holds("git-kept", "2").await?;
    ensure!(
        flux.maps().get_opt("git-gone").await?.is_none(),
        "nothing was pruned"
    );

    let commit = repo.commit("third", &[("other/kept.yaml", &map("other", "2"))])?;
    let third = flux.applied("GitRepository", "apps", &second).await?;
    ensure!(third.ends_with(&commit), "{third} is not {commit}");
    let same = flux.holds("git-kept", "2").await?;
    assert_eq!(same.resource_version(), kept.resource_version());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn kustomizations_of_flux_follow_buckets_and_registries() -> Result<()> {
    crate::init();
    let Some(program) = find(&KUSTOMIZE, "the kustomize-controller of Flux with our artifacts")? else {
        return Ok(());
    };
    let flux = Consumers::start(&KUSTOMIZE, &program, &[]).await?;
    let server = S3Server::start().await?;
    let registry = Registry::start(Login::Anonymous, None).await?;
    let publish = async |value: &str| -> Result<()> {
        let object = map("from-bucket", value);
        let files = [
            ("app/map.yaml", object.as_str()),
            ("other/map.yaml", "not: [applied\n"),
        ];
        server.put("apps", &files).await?;
        let layer = packed(&[
            ("app/map.yaml", &map("from-registry", value)),
            ("other.txt", value),
        ]);
        registry
            .push_project("apps/shop", "latest", &layer, "0123")
            .await?;
        Ok(())
    };
    publish("1").await?;
    let keys = json!({"accesskey": ACCESS_KEY, "secretkey": SECRET_KEY});
    flux.cluster.apply_secret("keys", keys).await?;
    let spec = json!({
        "bucketName": "apps", "endpoint": server.endpoint(), "insecure": true, "secretRef": {"name": "keys"},
    });
    flux.apply_source("Bucket", "bucket", spec).await?;
    let url = format!("oci://{}/apps/shop", registry.host());
    let spec = json!({"url": url, "insecure": true, "ref": {"tag": "latest"}});
    flux.apply_source("OCIRepository", "registry", spec).await?;
    let sources = [("Bucket", "bucket"), ("OCIRepository", "registry")];
    let mut before = [String::new(), String::new()];
    for value in ["1", "2"] {
        publish(value).await?;
        for ((kind, name), before) in sources.iter().zip(&mut before) {
            flux.apply_kustomization(kind, name, "./app").await?;
            *before = flux.applied(kind, name, before).await?;
            flux.holds(&format!("from-{name}"), value).await?;
        }
    }
    flux.stop().await
}

fn chart(version: &str) -> Vec<u8> {
    let files = chart_files(version).map(|(path, text)| (format!("shop/{path}"), text));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    packed(&files)
}

fn chart_files(version: &str) -> [(&'static str, String); 3] {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {value: '{{ .Chart.Version }} \
                    {{ .Values.color }} {{ .Values.size }}'}\n";
    [
        (
            "Chart.yaml",
            format!("apiVersion: v2\nname: shop\nversion: {version}\n"),
        ),
        ("values.yaml", "color: none\nsize: large\n".to_owned()),
        ("templates/map.yaml", template.to_owned()),
    ]
}

struct ChartServers {
    index: WebServer,
    registry: Registry,
    repo: testkit::Repo,
}

impl ChartServers {
    async fn offer(&self, earlier: &[&str], version: &str) -> Result<()> {
        let mut index = "apiVersion: v1\nentries:\n  shop:\n".to_owned();
        for version in [earlier, &[version]].concat() {
            let path = format!("shop-{version}.tgz");
            self.index
                .page(&format!("/{path}"), Page::Content(chart(version).into()));
            index.push_str(&format!(
                "  - {{name: shop, version: {version}, urls: [{path}]}}\n"
            ));
        }
        self.index.page("/index.yaml", Page::Content(index.into()));
        self.registry
            .push_chart("charts/shop", version, &chart(version))
            .await?;
        let change = self.repo.change(version);
        let files = chart_files(version).into_iter();
        let change = files.fold(change, |change, (path, text)| {
            change.write(&format!("charts/shop/{path}"), text)
        });
        change.push()?;
        Ok(())
    }

    async fn apply_sources(&self, flux: &Consumers) -> Result<()> {
        let spec = json!({"url": self.index.url("")});
        flux.apply_source("HelmRepository", "index", spec).await?;
        let url = format!("oci://{}/charts", self.registry.host());
        let spec = json!({"type": "oci", "insecure": true, "url": url});
        flux.apply_source("HelmRepository", "registry", spec).await?;
        let layer = json!({
            "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "operation": "copy",
        });
        let spec = json!({
            "url": format!("{url}/shop"), "insecure": true, "ref": {"semver": ">=1.0.0"}, "layerSelector": layer,
        });
        flux.apply_source("OCIRepository", "shop", spec).await?;
        let spec = json!({"url": self.repo.url(), "ref": {"branch": "main"}});
        flux.apply_source("GitRepository", "charts", spec).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_of_flux_follow_charts_of_all_sources() -> Result<()> {
    crate::init();
    let Some(program) = find(&HELM, "the helm-controller of Flux with our artifacts")? else {
        return Ok(());
    };
    let flux = Consumers::start(&HELM, &program, &[]).await?;
    let servers = ChartServers {
        index: WebServer::start()?,
        registry: Registry::start(Login::Anonymous, None).await?,
        repo: flux.cluster.git.repo("charts")?,
    };
    servers.offer(&[], "1.0.0").await?;
    servers.apply_sources(&flux).await?;
    let of = |chart: &str, kind: &str, name: &str| {
        json!({"chart": {"spec": {
            "chart": chart, "version": ">=1.0.0", "interval": "1s", "sourceRef": {"kind": kind, "name": name},
        }}})
    };
    for (name, spec) in [
        ("from-index", of("shop", "HelmRepository", "index")),
        ("from-registry", of("shop", "HelmRepository", "registry")),
        ("from-git", of("./charts/shop", "GitRepository", "charts")),
        (
            "from-oci",
            json!({"chartRef": {"kind": "OCIRepository", "name": "shop"}}),
        ),
    ] {
        flux.apply_release(name, spec).await?;
    }
    for (release, version) in (1..).zip(["1.0.0", "1.1.0"]) {
        if release > 1 {
            servers.offer(&["1.0.0"], version).await?;
        }
        for name in ["from-index", "from-registry", "from-git"] {
            let status = flux.released(name, version, release).await?;
            let chart = status["helmChart"].as_str().and_then(|name| name.split_once('/'));
            let (_, chart) = chart.context("no chart")?;
            let artifact = flux.artifact("HelmChart", chart).await?;
            ensure!(artifact["revision"] == version, "{artifact}");
            ensure!(status["lastAttemptedRevision"] == version, "{status}");
            flux.holds(name, &format!("{version} red large")).await?;
        }
        let status = flux.released("from-oci", version, release).await?;
        let artifact = flux.artifact("OCIRepository", "shop").await?;
        let digest = status["lastAttemptedRevisionDigest"]
            .as_str()
            .context("no digest")?;
        ensure!(
            artifact["revision"] == format!("{version}@{digest}"),
            "{artifact} {status}"
        );
        let deployed = status["history"][0]["chartVersion"].as_str().unwrap_or_default();
        flux.holds("from-oci", &format!("{deployed} red large")).await?;
    }
    flux.stop().await
}
