//! Errors of servers that refuse access: the words of kluctl, and a remedy that fits server and command.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;
use testkit::{GitServer, Page, Registry, WebServer, registry::Login, tls::Authority};

use crate::program::{chart, files};

fn weir(dir: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(words)
        .current_dir(dir)
        .env("HOME", dir.join("nobody"))
        .env("DOCKER_CONFIG", dir.join("nobody"))
        .output()
        .unwrap()
}

const OTHERS: [&str; 7] = [
    "spec.",
    "secret",
    "ca.crt",
    "--git-",
    "--helm-",
    "--registry-",
    "CA bundle",
];

/// Asserts that a command fails with these words, and no other remedy than `remedy`.
#[track_caller]
fn fails(dir: &TempDir, words: &[&str], expected: &str, remedy: &str) {
    let output = weir(dir.path(), words);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{words:?}: {stderr}");
    assert!(
        stderr.contains(expected),
        "{words:?}: {expected:?} is not in {stderr}"
    );
    assert!(
        stderr.contains(remedy),
        "{words:?}: {remedy:?} is not in {stderr}"
    );
    let rest = stderr.replace(remedy, "");
    for other in OTHERS {
        assert!(
            remedy.is_empty() || !rest.contains(other),
            "{words:?}: {other:?} is in {stderr}"
        );
    }
}

/// Creates a project with one chart that is pulled by `helm-pull`, or during a render.
fn with_chart(source: &str, skip_pre_pull: bool) -> TempDir {
    let chart = format!("helmChart:\n  {source}\n  releaseName: r\n  skipPrePull: {skip_pre_pull}\n");
    files(&[
        (".kluctl.yaml", ""),
        ("deployment.yaml", "deployments: [{path: one}]"),
        ("one/helm-chart.yaml", &chart),
    ])
}

fn including(source: &str) -> TempDir {
    files(&[
        (".kluctl.yaml", ""),
        ("deployment.yaml", &format!("deployments: [{{{source}}}]")),
    ])
}

const RENDER: [&str; 2] = ["render", "--offline-kubernetes"];

/// Runs all commands that use a chart: those that pull it, and a render.
#[track_caller]
fn chart_fails(source: &str, flags: &[&str], expected: &str, remedy: &str) {
    let pulled = with_chart(source, false);
    fails(&pulled, &[&["helm-pull"], flags].concat(), expected, remedy);
    fails(&pulled, &[&["helm-update"], flags].concat(), expected, remedy);
    fails(
        &with_chart(source, true),
        &[&RENDER[..], flags].concat(),
        expected,
        remedy,
    );
}

fn helm(url: &str) -> String {
    format!("repo: {url}\n  chartName: a\n  chartVersion: 1.0.0")
}

/// Returns a Helm repository, with TLS if there is an authority.
fn repository(authority: Option<Authority>) -> WebServer {
    let server = match authority {
        Some(authority) => WebServer::start_tls(authority),
        None => WebServer::start(),
    };
    let server = server.unwrap();
    let index = "entries:\n  a:\n  - name: a\n    version: 1.0.0\n    urls: [a.tgz]\n";
    server.page("/index.yaml", Page::Content(index.into()));
    server.page("/a.tgz", Page::Content(chart("a", "1.0.0").into()));
    server
}

fn authority() -> Authority {
    Authority::new(&["127.0.0.1"]).unwrap()
}

#[test]
fn login_errors_of_helm_repositories_name_their_flags() {
    let server = repository(None);
    server.login("me", "s3cret");
    let source = helm(&server.url(""));
    let host = server.url("").replace("http://", "");
    let host = host.trim_end_matches('/');
    let unauthorized = "401 Unauthorized";
    chart_fails(
        &source,
        &[],
        unauthorized,
        "use --helm-username and --helm-password",
    );
    let wrong = format!("--helm-creds={host}=me:nope");
    chart_fails(
        &source,
        &[&wrong],
        unauthorized,
        "check --helm-username and --helm-password",
    );
    let url = server.url("");
    let template = ["helm", "template", "a", "--repo", &url];
    fails(
        &files(&[]),
        &template,
        unauthorized,
        "use --username and --password",
    );
    let wrong = [&template[..], &["--username=me", "--password=nope"]].concat();
    fails(
        &files(&[]),
        &wrong,
        unauthorized,
        "check --username and --password",
    );
}

#[tokio::test]
async fn login_errors_of_registries_name_their_flags() {
    let registry = Registry::start(Login::Basic, None).await.unwrap();
    let host = registry.host();
    let source = format!("repo: oci://{host}/c\n  chartVersion: 1.0.0");
    let wrong = format!("--registry-creds={host}=me:nope");
    let (missing, check) = (
        "use --registry-username and --registry-password, or log in with Docker",
        "check --registry-username and --registry-password, or the login of Docker",
    );
    chart_fails(&source, &[], "basic credential not found", missing);
    chart_fails(&source, &[&wrong], "401: Unauthorized", check);
    let include = including(&format!("oci: {{url: 'oci://{host}/c'}}"));
    fails(&include, &RENDER, "401 Unauthorized", missing);
    fails(
        &include,
        &[&RENDER[..], &[&wrong]].concat(),
        "401 Unauthorized",
        check,
    );
    let url = format!("oci://{host}/c");
    let push = ["oci", "push", "--url", &url];
    fails(&files(&[]), &push, "401 Unauthorized", missing);
    fails(
        &files(&[]),
        &[&push[..], &[&wrong]].concat(),
        "401 Unauthorized",
        check,
    );
    let template = ["helm", "template", "--plain-http", &url];
    let missing = "use --username and --password, or --registry-config";
    fails(&files(&[]), &template, "basic credential not found", missing);
}

#[test]
fn login_errors_of_git_servers_name_their_flags() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("private").unwrap();
    repo.commit(
        "1",
        &[
            ("Chart.yaml", "name: c\nversion: 1.0.0\n"),
            ("deployment.yaml", ""),
        ],
    )
    .unwrap();
    repo.require_basic_auth("me", "right");
    let url = repo.url();
    let host = server.origin().replace("http://", "");
    let flags = [
        format!("--git-username={host}=me"),
        format!("--git-password={host}=nope"),
    ];
    let flags = [flags[0].as_str(), &flags[1]];
    let required = "authentication required";
    let (missing, check) = (
        "use --git-username and --git-password",
        "check --git-username and --git-password",
    );
    let source = format!("git: {{url: '{url}', ref: {{tag: 1.0.0}}}}");
    chart_fails(&source, &[], required, missing);
    chart_fails(&source, &flags, required, check);
    let include = including(&format!("git: '{url}'"));
    fails(&include, &RENDER, required, missing);
    fails(&include, &[&RENDER[..], &flags].concat(), required, check);
    let kustomization = files(&[("kustomization.yaml", &format!("resources: ['{url}']"))]);
    let token = "the URL can contain a username and a token";
    fails(&kustomization, &["kustomize", "build"], required, token);
}

#[tokio::test]
async fn unknown_authorities_ask_for_a_ca_bundle() {
    let problem = "failed to verify certificate";
    let server = repository(Some(authority()));
    let remedy = "use --helm-ca-file with the CA bundle of the server";
    chart_fails(&helm(&server.url("")), &[], problem, remedy);
    let url = server.url("");
    let template = ["helm", "template", "a", "--repo", &url];
    fails(
        &files(&[]),
        &template,
        problem,
        "use --ca-file with the CA bundle of the server",
    );

    let registry = Registry::start(Login::Anonymous, Some(authority()))
        .await
        .unwrap();
    let url = format!("oci://{}/c", registry.host());
    let remedy = "use --registry-ca-file with the CA bundle of the server";
    chart_fails(
        &format!("repo: {url}\n  chartVersion: 1.0.0"),
        &[],
        problem,
        remedy,
    );
    fails(
        &including(&format!("oci: {{url: '{url}'}}")),
        &RENDER,
        problem,
        remedy,
    );
    fails(&files(&[]), &["oci", "push", "--url", &url], problem, remedy);

    let git = GitServer::start_tls().unwrap();
    let repo = git.repo("c").unwrap();
    repo.commit("1", &[("deployment.yaml", "")]).unwrap();
    let url = repo.url();
    let remedy = "use --git-ca-file with the CA bundle of the server";
    chart_fails(
        &format!("git: {{url: '{url}', ref: {{tag: 1.0.0}}}}"),
        &[],
        problem,
        remedy,
    );
    fails(&including(&format!("git: '{url}'")), &RENDER, problem, remedy);
    let kustomization = files(&[("kustomization.yaml", &format!("resources: ['{url}']"))]);
    let remedy = "SSL_CERT_FILE can name a file with the CA bundle of the server";
    fails(&kustomization, &["kustomize", "build"], problem, remedy);
}

#[tokio::test]
async fn certificates_of_registries_can_be_accepted_unverified() {
    let registry = Registry::start(Login::Anonymous, Some(authority()))
        .await
        .unwrap();
    let digest = registry.push_chart("c", "1.0.0", &chart("c", "1.0.0")).await;
    assert!(digest.is_ok());
    let dir = with_chart(
        &format!("repo: oci://{}/c\n  chartVersion: 1.0.0", registry.host()),
        false,
    );
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .arg("helm-pull")
        .current_dir(dir.path())
        .env("KLUCTL_REGISTRY_DEFAULT_INSECURE_SKIP_TLS_VERIFY", "true")
        .env("KLUCTL_GIT_CACHE_UPDATE_INTERVAL", "1h")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn servers_that_ask_for_client_certificates_get_a_fitting_remedy() {
    let clients = authority();
    let authority = authority();
    let ca = tempfile::NamedTempFile::new().unwrap();
    fs::write(ca.path(), &authority.ca_pem).unwrap();
    let ca = ca.path().to_str().unwrap();
    let server = repository(Some(authority.asking_for(&clients)));
    let url = server.url("");
    let host = url.trim_start_matches("https://").trim_end_matches('/');
    let problem = "certificate required";
    let flag = format!("--helm-ca-file={host}={ca}");
    let remedy = "use --helm-cert-file and --helm-key-file";
    chart_fails(&helm(&url), &[&flag], problem, remedy);
    let flag = format!("--registry-ca-file={host}={ca}");
    let remedy = "use --registry-cert-file and --registry-key-file";
    let oci = format!("oci://{host}/c");
    chart_fails(
        &format!("repo: {oci}\n  chartVersion: 1.0.0"),
        &[&flag],
        problem,
        remedy,
    );
    let include = including(&format!("oci: {{url: '{oci}'}}"));
    fails(&include, &[&RENDER[..], &[&flag]].concat(), problem, remedy);
    fails(
        &files(&[]),
        &["oci", "push", "--url", &oci, &flag],
        problem,
        remedy,
    );
    let template = ["helm", "template", "a", "--repo", &url, "--ca-file", ca];
    fails(&files(&[]), &template, problem, "use --cert-file and --key-file");
    let flag = format!("--git-ca-file={host}={ca}");
    let include = including(&format!("git: '{url}c.git'"));
    let remedy = "client certificates are not supported for Git";
    fails(&include, &[&RENDER[..], &[&flag]].concat(), problem, remedy);
}
