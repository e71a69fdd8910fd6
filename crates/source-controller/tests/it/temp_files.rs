//! The space for temporary files, which the sources of all kinds share.

use std::fmt::Write as _;

use api::source::{Bucket, GitRepository, HelmChart, HelmRepository, OCIRepository};
use serde_json::json;
use testkit::{
    GitServer, Registry, S3Server, WebServer,
    registry::Login,
    s3::{ACCESS_KEY, SECRET_KEY},
    web::Page,
};

use super::{
    TestNamespace,
    objects::{Objects, artifact},
    oci::push_to,
};

const MIB: usize = 1 << 20;
/// The message about files that are larger than the part of a namespace: three of four MiB.
const REFUSED: &str = "it needs more than 3145728 bytes of temporary files: ";

/// Starts a controller with four MiB of temporary files.
async fn start() -> TestNamespace {
    TestNamespace::start_with(|launch| launch.flag("--temporary-files-max-size=4Mi")).await
}

/// Returns bytes that don't compress.
fn noise(mut state: u64, len: usize) -> Vec<u8> {
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(next).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn layer_is_refused_if_it_and_its_files_have_no_space() {
    let setup = start().await;
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let repositories = Objects::<OCIRepository>::of(&setup).await;
    let url = format!("oci://{}/org/app", registry.host());
    let spec = |tag: &str| json!({"url": url, "insecure": true, "ref": {"tag": tag}});
    push_to(&registry, "large", &[("a", &noise(1, 2 * MIB))]).await;
    repositories.apply("large", spec("large")).await;
    let refused = format!("failed to pull artifact from '{url}': {REFUSED}");
    repositories
        .wait_failed("large", "OCIArtifactPullFailed", &refused)
        .await;
    // Each of these takes nearly everything, in turn with the attempts for the large one.
    let mut past = String::new();
    for seed in 2..5 {
        push_to(&registry, "fits", &[("a", &noise(seed, 5 * MIB / 4))]).await;
        repositories.apply("fits", spec("fits")).await;
        let revision = artifact(&match seed {
            2 => repositories.wait_ready("fits").await,
            _ => repositories.reconcile("fits", &seed.to_string()).await,
        })
        .revision;
        assert_ne!(revision, past);
        past = revision;
    }
    // As it is, a layer takes its bytes once.
    let mut copied = spec("large");
    copied["layerSelector"] = json!({"operation": "copy"});
    repositories.apply("large", copied).await;
    repositories.wait_ready("large").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_is_refused_if_its_objects_have_no_space() {
    let setup = start().await;
    setup
        .secret("keys", json!({"accesskey": ACCESS_KEY, "secretkey": SECRET_KEY}))
        .await;
    let server = S3Server::start().await.unwrap();
    let large: Vec<_> = (0..4)
        .map(|at| (format!("large/{at}"), noise(at + 1, MIB)))
        .collect();
    let large: Vec<_> = large
        .iter()
        .map(|(name, content)| (name.as_str(), content))
        .collect();
    server.put("shop", &large).await.unwrap();
    let buckets = Objects::<Bucket>::of(&setup).await;
    let spec = |prefix: &str| {
        json!({
            "bucketName": "shop", "endpoint": server.endpoint(), "insecure": true, "prefix": prefix,
            "secretRef": {"name": "keys"},
        })
    };
    buckets.apply("large", spec("large/")).await;
    let refused = format!("fetch from bucket 'shop' failed: {REFUSED}set spec.prefix");
    buckets
        .wait_failed("large", "BucketOperationFailed", &refused)
        .await;
    let mut past = String::new();
    for seed in 7..10 {
        let content = noise(seed, 5 * MIB / 2);
        server.put("shop", &[("fits/a", &content)]).await.unwrap();
        buckets.apply("fits", spec("fits/")).await;
        let revision = artifact(&match seed {
            7 => buckets.wait_ready("fits").await,
            _ => buckets.reconcile("fits", &seed.to_string()).await,
        })
        .revision;
        assert_ne!(revision, past);
        past = revision;
    }
}

/// Returns an index of at least `bytes` bytes.
fn index(seed: u64, bytes: usize) -> String {
    let mut text = "apiVersion: v1\nentries:\n  shop:\n".to_owned();
    let mut version = 0;
    while text.len() < bytes {
        version += 1;
        let words = "word ".repeat(200);
        writeln!(
            text,
            "  - {{name: shop, version: {seed}.0.{version}, urls: [a.tgz], description: '{words}'}}"
        )
        .unwrap();
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn index_is_refused_if_its_two_forms_have_no_space() {
    let setup = start().await;
    let server = WebServer::start().unwrap();
    server.page("/large/index.yaml", Page::Content(index(1, 2 * MIB).into()));
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    repositories
        .apply("large", json!({"url": server.url("/large")}))
        .await;
    let refused = format!("failed to fetch Helm repository index: {REFUSED}");
    repositories.wait_failed("large", "Failed", &refused).await;
    let mut past = String::new();
    for seed in 1..4 {
        let text = index(seed, 5 * MIB / 4);
        server.page("/fits/index.yaml", Page::Content(text.into()));
        repositories
            .apply("fits", json!({"url": server.url("/fits")}))
            .await;
        let revision = artifact(&match seed {
            1 => repositories.wait_ready("fits").await,
            _ => repositories.reconcile("fits", &seed.to_string()).await,
        })
        .revision;
        assert_ne!(revision, past);
        past = revision;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_is_refused_if_the_artifact_of_its_source_has_no_space() {
    let setup = start().await;
    let git = GitServer::start().unwrap();
    let sources = Objects::<GitRepository>::of(&setup).await;
    let charts = Objects::<HelmChart>::of(&setup).await;
    // Nothing of it is large as long as it is packed.
    let (large, fits) = (git.repo("large").unwrap(), git.repo("fits").unwrap());
    for (name, repo, bytes) in [("large", &large, 4 * MIB), ("fits", &fits, 2 * MIB)] {
        let chart = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
        let change = repo.change("first").write("chart/Chart.yaml", chart);
        change.write("zeros", vec![0; bytes]).push().unwrap();
        sources
            .apply(name, json!({"url": repo.url(), "ref": {"branch": "main"}}))
            .await;
        sources.wait_ready(name).await;
        let source = json!({"kind": "GitRepository", "name": name});
        charts
            .apply(name, json!({"chart": "./chart", "sourceRef": source}))
            .await;
    }
    let refused = format!("failed to read the artifact of the source: {REFUSED}leave out files");
    charts
        .wait_failed("large", "StorageOperationFailed", &refused)
        .await;
    charts.wait_ready("fits").await;
    // Ignored files need no space, and each build takes nearly everything.
    for version in ["2.0.0", "3.0.0"] {
        let chart = format!("apiVersion: v2\nname: fits\nversion: {version}\n");
        fits.change("next")
            .write("chart/Chart.yaml", chart)
            .push()
            .unwrap();
        sources.reconcile("fits", version).await;
        charts
            .wait("fits", "the next version", |chart| {
                super::objects::status(chart)["artifact"]["revision"] == version
            })
            .await;
    }
    let spec = json!({"url": large.url(), "ref": {"branch": "main"}, "ignore": "zeros"});
    sources.apply("large", spec).await;
    charts.wait_ready("large").await;
}
