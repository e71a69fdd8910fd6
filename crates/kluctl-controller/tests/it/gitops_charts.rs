//! Charts of KluctlDeployments of gitops.kluctl.io, with the credentials that the original's end-to-end suite uses.

use anyhow::{Context as _, Result, ensure};
use api::kluctl::gitops::KluctlDeploymentStatus;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::{
    GitServer, Registry,
    archive::tar_gz,
    registry::{Login, PASSWORD, USER},
    tls::Authority,
    web::{Page, WebServer},
};

use crate::gitops::{Gitops, ready_of};

const CHART: &str = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {value: chart}\n";
const SUCCEEDED: &str = "ReconciliationSucceeded";

/// The text that the error of a case must contain.
type Expected = Result<(), &'static str>;

impl Gitops {
    /// Pushes a project with a chart that is not part of it, and checks its deployment with each of these credentials.
    async fn deploys_chart(&self, chart: &str, cases: Vec<(Value, Expected)>) -> Result<()> {
        let mut files = self.fixture.maps(&[]);
        files.retain(|(path, _)| path != "app/kustomization.yaml");
        let namespace = &self.fixture.namespace;
        let chart = format!(
            "helmChart:\n{chart}  releaseName: shop\n  namespace: {namespace}\n  skipPrePull: true\n"
        );
        let commit = self.push_files(&files, &[("app/helm-chart.yaml", &chart)])?;
        for (nth, (credentials, expected)) in cases.into_iter().enumerate() {
            let name = format!("{namespace}-{nth}");
            let spec = json!({ "credentials": credentials, "delete": true });
            self.create(&name, spec).await?;
            let status = self.answered(&name).await?;
            let (reason, message) = ready_of(&status);
            let error = status.last_prepare_error.clone().unwrap_or_default();
            assert_eq!(status.observed_commit.as_ref(), Some(&commit), "{credentials}");
            assert_eq!(
                status.last_deploy_result.is_some(),
                expected.is_ok(),
                "{credentials}"
            );
            match expected {
                Ok(()) => {
                    assert_eq!(reason, SUCCEEDED, "{credentials}: {error}");
                    assert_eq!(self.value("a").await?.as_deref(), Some("chart"), "{credentials}");
                }
                Err(expected) => {
                    assert_eq!(
                        message, "prepare failed with 1 errors. Check status.lastPrepareError for details",
                        "{credentials}: {error}"
                    );
                    ensure!(error.contains(expected), "{credentials}: {error}");
                    ensure!(!error.contains("wr0ng"), "{error}");
                }
            }
            let api = self.api();
            api.delete(&name, &kube::api::DeleteParams::default()).await?;
            testkit::wait_gone(&api, &name, crate::fixture::TIMEOUT).await?;
        }
        Ok(())
    }

    /// Requests a reconciliation, and waits for it. It is requested again if the server did not answer within the client's 30 s, as on a machine
    /// that stood still for so long.
    async fn answered(&self, name: &str) -> Result<KluctlDeploymentStatus> {
        let mut status = self.reconcile(name).await?;
        for _ in 0..3 {
            let late = status.last_prepare_error.as_deref();
            if !late.is_some_and(|error| error.ends_with(" in time")) {
                break;
            }
            status = self.reconcile(name).await?;
        }
        Ok(status)
    }

    /// Stores the right and a wrong login, the CA and the certificate of a client.
    async fn logins(&self, ca: &str, client: Option<&Authority>) -> Result<()> {
        let login = |password: &str| json!({ "username": USER, "password": password });
        self.secret("valid", login(PASSWORD)).await?;
        self.secret("invalid", login("wr0ng")).await?;
        self.secret("ca", json!({ "ca": ca })).await?;
        self.secret("none", json!({ "username": "", "password": "" }))
            .await?;
        if let Some(client) = client {
            let values = json!({ "ca": ca, "cert": client.server_pem, "key": client.server_key_pem });
            self.secret("client", values).await?;
        }
        Ok(())
    }
}

fn host(url: &str) -> Result<String> {
    let rest = url.split("://").nth(1).context("a scheme")?;
    Ok(rest.split('/').next().unwrap_or_default().to_owned())
}

fn archive() -> Vec<u8> {
    tar_gz(&[
        ("shop/Chart.yaml", CHART.as_bytes()),
        ("shop/templates/map.yaml", MAP.as_bytes()),
    ])
}

/// Serves a Helm repository.
fn serve_helm(server: &WebServer, dir: &str) {
    let chart = format!("{dir}/shop-1.0.0.tgz");
    // URLs of a directory are relative, and URLs that `helm repo index --url` writes are not.
    let url = match dir {
        "" => "shop-1.0.0.tgz".to_owned(),
        _ => server.url(&chart),
    };
    let index = format!(
        "apiVersion: v1\nentries:\n  shop:\n  - name: shop\n    version: 1.0.0\n    urls: ['{url}']\n"
    );
    server.page(&format!("{dir}/index.yaml"), Page::Content(index.into()));
    server.page(&chart, Page::Content(archive().into()));
}

/// Serves the pages of a registry with one chart: the real one asks no client for a certificate.
fn serve_oci(server: &WebServer) {
    let digest = |bytes: &[u8]| format!("sha256:{}", hex::encode(Sha256::digest(bytes)));
    let (config, layer) = (CHART.as_bytes().to_vec(), archive());
    let described =
        |kind: &str, bytes: &[u8]| json!({ "mediaType": kind, "digest": digest(bytes), "size": bytes.len() });
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("application/vnd.cncf.helm.config.v1+json", &config),
        "layers": [described("application/vnd.cncf.helm.chart.content.v1.tar+gzip", &layer)],
    });
    for bytes in [config, layer] {
        server.page(
            &format!("/v2/shop/blobs/{}", digest(&bytes)),
            Page::Content(bytes.into()),
        );
    }
    server.page(
        "/v2/shop/manifests/1.0.0",
        Page::Content(manifest.to_string().into()),
    );
}

fn helm(url: &str) -> String {
    format!("  repo: {url}\n  chartName: shop\n  chartVersion: 1.0.0\n")
}

fn oci(host: &str) -> String {
    format!("  repo: oci://{host}/shop\n  chartVersion: 1.0.0\n")
}

/// Returns credentials for a list of the spec.
fn credentials(list: &str, host: &str, path: Option<&str>, secret: &str) -> Value {
    let (of_host, of_path) = match list {
        "oci" => ("registry", "repository"),
        _ => ("host", "path"),
    };
    let mut entry = json!({ of_host: host, "secretRef": { "name": secret } });
    if let Some(path) = path {
        entry[of_path] = json!(path);
    }
    json!({ list: [entry] })
}

#[tokio::test]
async fn charts_of_helm_repositories_need_fitting_credentials() -> Result<()> {
    let shop = Gitops::original("gc-helm").await?;
    shop.logins("", None).await?;
    let open = WebServer::start()?;
    serve_helm(&open, "");
    shop.deploys_chart(&helm(&open.url("")), vec![(Value::Null, Ok(()))])
        .await?;
    let server = WebServer::start()?;
    for dir in ["", "/path1"] {
        serve_helm(&server, dir);
    }
    server.login(USER, PASSWORD);
    let at = host(&server.url(""))?;
    let one = |host: &str, secret| credentials("helm", host, None, secret);
    let cases = vec![
        (one(&format!("{at}-invalid"), "valid"), Err("401 Unauthorized")),
        (one(&at, "invalid"), Err("401 Unauthorized")),
        (one(&at, "valid"), Ok(())),
    ];
    shop.deploys_chart(&helm(&server.url("")), cases).await?;
    let one = |path, secret| credentials("helm", &at, Some(path), secret);
    let cases = vec![
        (one("path2", "valid"), Err("401 Unauthorized")),
        (one("path1", "invalid"), Err("401 Unauthorized")),
        (one("path1", "valid"), Ok(())),
    ];
    shop.deploys_chart(&helm(&server.url("path1")), cases).await
}

#[tokio::test]
async fn charts_of_oci_registries_need_fitting_credentials() -> Result<()> {
    let shop = Gitops::original("gc-oci").await?;
    shop.logins("", None).await?;
    let registry = Registry::start(Login::Anonymous, None).await?;
    registry.push_chart("shop", "1.0.0", &archive()).await?;
    shop.deploys_chart(&oci(&registry.host()), vec![(Value::Null, Ok(()))])
        .await?;
    let registry = Registry::start(Login::Basic, None).await?;
    registry.push_chart("shop", "1.0.0", &archive()).await?;
    let at = registry.host();
    let one = |host: &str, path, secret| credentials("oci", host, path, secret);
    let cases = vec![
        (
            one(&format!("{at}-invalid"), None, "valid"),
            Err("basic credential not found"),
        ),
        (one(&at, None, "invalid"), Err("401: Unauthorized")),
        (one(&at, None, "valid"), Ok(())),
        (
            one(&at, Some("test-chart2"), "valid"),
            Err("basic credential not found"),
        ),
        (one(&at, Some("shop"), "invalid"), Err("401: Unauthorized")),
        (one(&at, Some("shop"), "valid"), Ok(())),
    ];
    shop.deploys_chart(&oci(&at), cases).await
}

#[tokio::test]
async fn charts_of_servers_with_tls_need_its_authority_and_their_certificate() -> Result<()> {
    let shop = Gitops::original("gc-tls").await?;
    let names = &["127.0.0.1"];
    let clients = Authority::new(names)?;
    for list in ["helm", "oci"] {
        for asks in [false, true] {
            let authority = Authority::new(names)?;
            let authority = if asks {
                authority.asking_for(&clients)
            } else {
                authority
            };
            let server = WebServer::start_tls(authority)?;
            shop.logins(server.ca_pem(), Some(&clients)).await?;
            let at = host(&server.url(""))?;
            let chart = match list {
                "oci" => {
                    serve_oci(&server);
                    oci(&at)
                }
                _ => {
                    serve_helm(&server, "");
                    helm(&server.url(""))
                }
            };
            let one = |secret| credentials(list, &at, None, secret);
            let cases = match asks {
                false => vec![
                    (one("none"), Err("failed to verify certificate")),
                    (one("ca"), Ok(())),
                ],
                true => vec![(one("ca"), Err("certificate required")), (one("client"), Ok(()))],
            };
            shop.deploys_chart(&chart, cases).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn charts_of_git_repositories_need_fitting_credentials() -> Result<()> {
    let shop = Gitops::original("gc-git").await?;
    shop.logins("", None).await?;
    let server = GitServer::start()?;
    let repo = server.repo("charts/helm-repo")?;
    let commit = repo.commit(
        "1",
        &[("shop/Chart.yaml", CHART), ("shop/templates/map.yaml", MAP)],
    )?;
    repo.annotated_tag("1.0.0", &commit, "chart shop")?;
    let url = repo.url();
    let chart = |reference: &str| {
        let url = url.trim_end_matches(".git");
        format!("  git: {{url: '{url}', subDir: shop, ref: {{{reference}}}}}\n")
    };
    let by_commit = chart(&format!("commit: {commit}"));
    let chart = chart("tag: 1.0.0");
    for chart in [&by_commit, &chart] {
        shop.deploys_chart(chart, vec![(Value::Null, Ok(()))]).await?;
    }
    repo.require_basic_auth(USER, PASSWORD);
    let at = host(&server.origin())?;
    let one = |host: &str, path, secret| credentials("git", host, path, secret);
    let cases = vec![
        (
            one(&format!("{at}-invalid"), None, "valid"),
            Err("authentication required"),
        ),
        (one(&at, None, "invalid"), Err("authentication required")),
        (one(&at, None, "valid"), Ok(())),
        (
            one(&at, Some("*/helm-repo2"), "valid"),
            Err("authentication required"),
        ),
        (
            one(&at, Some("*/helm-repo"), "invalid"),
            Err("authentication required"),
        ),
        (one(&at, Some("*/helm-repo"), "valid"), Ok(())),
    ];
    shop.deploys_chart(&chart, cases).await
}

#[tokio::test]
async fn chart_that_was_pulled_before_needs_no_server() -> Result<()> {
    let shop = Gitops::original("gc-pulled").await?;
    let mut files = shop.fixture.maps(&[]);
    files.retain(|(path, _)| path != "app/kustomization.yaml");
    let namespace = &shop.fixture.namespace;
    let chart = format!(
        "helmChart:\n{}  releaseName: shop\n  namespace: {namespace}\n",
        helm("https://charts.invalid/none")
    );
    let pulled = ".helm-charts/https_charts.invalid/none/shop/1.0.0";
    let (own, map) = (
        format!("{pulled}/Chart.yaml"),
        format!("{pulled}/templates/map.yaml"),
    );
    shop.push_files(
        &files,
        &[("app/helm-chart.yaml", &chart), (&own, CHART), (&map, MAP)],
    )?;
    shop.create("shop", json!({})).await?;
    let (reason, _, error) = shop.outcome("shop").await?;
    assert_eq!(reason, SUCCEEDED, "{error}");
    assert_eq!(shop.value("a").await?.as_deref(), Some("chart"));
    Ok(())
}
