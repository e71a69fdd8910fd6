//! `weir helm-pull` and `weir helm-update`.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;
use testkit::{
    GitServer, Page, Registry, WebServer,
    registry::{Login, PASSWORD, USER},
};

use crate::program::{MAP, chart, files, refused};

fn weir(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap()
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    stderr
}

/// Serves a Helm repository with the charts `a` and `b`.
fn repository(versions: &[&str]) -> WebServer {
    let server = WebServer::start().unwrap();
    let mut index = "entries:\n".to_owned();
    for name in ["a", "b"] {
        index.push_str(&format!("  {name}:\n"));
        for version in versions {
            let file = format!("{name}-{version}.tgz");
            index.push_str(&format!(
                "  - name: {name}\n    version: {version}\n    urls: [{file}]\n"
            ));
            server.page(&format!("/{file}"), Page::Content(chart(name, version).into()));
        }
    }
    server.page("/index.yaml", Page::Content(index.into()));
    server
}

fn release(url: &str, name: &str, version: &str, more: &str) -> String {
    format!(
        "helmChart:\n  repo: {url}\n  chartName: {name}\n  chartVersion: {version} # pinned\n  releaseName: {name}\n{more}"
    )
}

/// Creates a project with a `helm-chart.yaml` per chart.
fn project(charts: &[(&str, String)]) -> TempDir {
    let dir = files(&[(".kluctl.yaml", "targets: []\n")]);
    for (name, text) in charts {
        fs::create_dir_all(dir.path().join(name)).unwrap();
        fs::write(dir.path().join(name).join("helm-chart.yaml"), text).unwrap();
    }
    dir
}

/// Returns the directories with charts below `.helm-charts`, without the host.
fn pulled(dir: &TempDir) -> Vec<String> {
    fn find(dir: &Path, path: &str, found: &mut Vec<String>) {
        let Ok(entries) = fs::read_dir(dir) else { return };
        if dir.join("Chart.yaml").is_file() {
            found.push(path.split_once('/').unwrap().1.to_owned());
        }
        for entry in entries {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            find(
                &entry.path(),
                format!("{path}/{name}").trim_start_matches('/'),
                found,
            );
        }
    }
    let mut found = Vec::new();
    find(&dir.path().join(".helm-charts"), "", &mut found);
    found.sort();
    found
}

#[test]
fn helm_pull_pulls_used_versions_and_removes_unused_ones() {
    let server = repository(&["1.0.0", "1.1.0"]);
    let url = server.url("");
    let url = url.trim_end_matches('/');
    let dir = project(&[
        ("one", release(url, "a", "1.0.0", "")),
        ("two", release(url, "b", "1.1.0", "")),
        ("three", release(url, "b", "1.0.0", "  skipPrePull: true\n")),
        ("four", "helmChart: {path: ../chart, releaseName: x}\n".to_owned()),
    ]);
    let stderr = succeeded(&weir(dir.path(), &["helm-pull"]));
    assert_eq!(
        stderr,
        "a: Pulling Chart with version 1.0.0\nb: Pulling Chart with version 1.1.0\n"
    );
    assert_eq!(pulled(&dir), ["a/1.0.0", "b/1.1.0"]);
    assert_eq!(
        succeeded(&weir(
            Path::new("/"),
            &["helm-pull", "-p", dir.path().to_str().unwrap()]
        )),
        stderr,
        "all are pulled again"
    );
    fs::write(
        dir.path().join("one/helm-chart.yaml"),
        release(url, "a", "1.1.0", ""),
    )
    .unwrap();
    let stderr = succeeded(&weir(dir.path(), &["helm-pull"]));
    assert_eq!(
        stderr,
        "a: Removing unused Chart with version 1.0.0\na: Pulling Chart with version 1.1.0\n\
         b: Pulling Chart with version 1.1.0\n"
    );
    assert_eq!(pulled(&dir), ["a/1.1.0", "b/1.1.0"]);
}

#[test]
fn helm_pull_refuses_directories_without_project_and_symlinks() {
    let other = tempfile::tempdir().unwrap();
    assert!(
        refused(&weir(other.path(), &["helm-pull"]))
            .contains("helm-pull can only be used on the root of a Kluctl project")
    );
    let server = repository(&["1.0.0"]);
    let dir = project(&[("one", release(&server.url(""), "a", "1.0.0", ""))]);
    std::os::unix::fs::symlink(other.path(), dir.path().join(".helm-charts")).unwrap();
    assert!(
        failed(&weir(dir.path(), &["helm-pull"]))
            .contains("charts are not pulled into symlinked directories")
    );
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
}

#[test]
fn helm_pull_accepts_all_names_of_project_files() {
    for name in [".kluctl.yml", ".kluctl-library.yaml", ".kluctl-library.yml"] {
        let dir = files(&[(name, "")]);
        assert_eq!(succeeded(&weir(dir.path(), &["helm-pull"])), "", "{name}");
        assert_eq!(succeeded(&weir(dir.path(), &["helm-update"])), "", "{name}");
    }
}

#[test]
fn helm_pull_replaces_changed_charts() {
    let server = repository(&["1.0.0"]);
    let dir = project(&[("one", release(&server.url(""), "a", "1.0.0", ""))]);
    succeeded(&weir(dir.path(), &["helm-pull"]));
    let host = fs::read_dir(dir.path().join(".helm-charts"))
        .unwrap()
        .next()
        .unwrap();
    let metadata = host.unwrap().path().join("a/1.0.0/Chart.yaml");
    let pulled = fs::read_to_string(&metadata).unwrap();
    let other_version = "name: a\nversion: 0.9.0\n".to_owned();
    for changed in [other_version, format!("{pulled}description: mine\n")] {
        fs::write(&metadata, changed).unwrap();
        assert_eq!(
            succeeded(&weir(dir.path(), &["helm-pull"])),
            "a: Pulling Chart with version 1.0.0\n"
        );
        assert_eq!(fs::read_to_string(&metadata).unwrap(), pulled);
    }
}

#[test]
fn helm_update_pulls_upgraded_charts_only() {
    let server = repository(&["1.0.0", "1.1.0"]);
    let url = server.url("");
    let dir = project(&[
        ("one", release(&url, "a", "1.0.0", "")),
        ("two", release(&url, "b", "1.1.0", "")),
    ]);
    succeeded(&weir(dir.path(), &["helm-pull"]));
    let stderr = succeeded(&weir(dir.path(), &["helm-update", "--upgrade"]));
    assert!(stderr.contains("a: Pulling Chart with version 1.1.0"), "{stderr}");
    assert!(!stderr.contains("b: Pulling"), "{stderr}");
}

#[test]
fn helm_pull_errors_name_the_helm_chart_yaml() {
    let server = repository(&["1.0.0"]);
    let url = server.url("");
    for (name, version, expected) in [
        (
            "a",
            "^1",
            "Error: one/helm-chart.yaml: chartVersion ^1 is not an exact version",
        ),
        (
            "a",
            "2.0.0",
            "Error: one/helm-chart.yaml: chart \"a\" version \"2.0.0\" not found",
        ),
        ("c", "1.0.0", "Error: one/helm-chart.yaml: chart \"c\" not found"),
    ] {
        let dir = project(&[("one", release(&url, name, version, ""))]);
        let stderr = failed(&weir(dir.path(), &["helm-pull"]));
        assert!(stderr.contains(expected), "{stderr}");
        assert!(pulled(&dir).is_empty());
    }
}

#[track_caller]
fn failed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn render_tells_which_charts_it_pulls() {
    let server = repository(&["1.0.0"]);
    let dir = project(&[(
        "one",
        release(&server.url(""), "a", "1.0.0", "  skipPrePull: true\n"),
    )]);
    fs::write(dir.path().join("deployment.yaml"), "deployments: [{path: one}]").unwrap();
    let output = weir(dir.path(), &["render", "--print-all", "--offline-kubernetes"]);
    let stderr = succeeded(&output);
    assert!(
        stderr.contains("Pulling Helm Chart a with version 1.0.0"),
        "{stderr}"
    );
}

#[test]
fn render_pulls_charts_of_git_repositories() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("charts").unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-git}\n";
    let files = [
        (
            "small/Chart.yaml",
            "apiVersion: v2\nname: small\nversion: 1.0.0\n",
        ),
        ("small/templates/map.yaml", map),
    ];
    let id = repo.commit("one", &files).unwrap();
    repo.tag("1.0.0", &id).unwrap();
    let url = repo.url();
    let chart = format!(
        "helmChart:\n  git: {{url: '{url}', subDir: small, ref: {{tag: 1.0.0}}}}\n  releaseName: g\n  skipPrePull: true\n"
    );
    let dir = project(&[("one", chart.clone()), ("two", chart)]);
    fs::write(
        dir.path().join("deployment.yaml"),
        "deployments: [{path: one}, {path: two}]",
    )
    .unwrap();
    let output = weir(dir.path(), &["render", "--print-all", "--offline-kubernetes"]);
    let stderr = succeeded(&output);
    let message = "Pulling Helm Chart small with version refs/tags/1.0.0";
    assert_eq!(stderr.matches(message).count(), 1, "{stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout.matches("name: from-git").count(), 2, "{stdout}");
    assert!(pulled(&dir).is_empty());
    assert_eq!(succeeded(&weir(dir.path(), &["helm-pull"])), "");
}

#[test]
fn helm_pull_finds_credentials_by_id() {
    let server = repository(&["1.0.0"]);
    server.login("me", "s3cret");
    let url = server.url("");
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let dir = project(&[("one", release(&url, "a", "1.0.0", "  credentialsId: shop\n"))]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command
            .arg("helm-pull")
            .args(arguments)
            .envs(variables.iter().copied());
        command.current_dir(dir.path()).output().unwrap()
    };
    let by_id = ["--helm-username=shop:me", "--helm-password=shop:s3cret"];
    succeeded(&run(&by_id, &[]));
    let variables = [
        ("KLUCTL_HELM_CREDENTIALS_ID", "shop"),
        ("KLUCTL_HELM_USERNAME", "me"),
        ("KLUCTL_HELM_PASSWORD", "s3cret"),
    ];
    succeeded(&run(&[], &variables));
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let by_host = [
        format!("--helm-username={host}=me"),
        format!("--helm-password={host}=s3cret"),
    ];
    succeeded(&run(&[&by_host[0], &by_host[1]], &[]));
    for arguments in [
        &["--helm-username=other:me", "--helm-password=other:s3cret"][..],
        &["--helm-username=shop:me", "--helm-password=shop:nope"],
    ] {
        let stderr = failed(&run(arguments, &[]));
        assert!(stderr.contains("401 Unauthorized"), "{stderr}");
    }
}

#[test]
fn credentials_id_is_refused_when_an_oci_chart_is_pulled() {
    let refusal = "OCI charts can currently only be authenticated via registry login and environment variables but not via cli \
                   arguments";
    let chart = |more: &str| {
        format!(
            "helmChart: {{repo: 'oci://h/c', chartVersion: 1.0.0, releaseName: c, credentialsId: x{more}}}"
        )
    };
    let dir = project(&[("one", chart(""))]);
    fs::write(dir.path().join("deployment.yaml"), "deployments: [{path: one}]").unwrap();
    for command in ["helm-pull", "helm-update"] {
        let stderr = failed(&weir(dir.path(), &[command]));
        assert!(
            stderr.contains(refusal) && stderr.contains("one/helm-chart.yaml"),
            "{stderr}"
        );
    }
    let render = ["render", "--print-all", "--offline-kubernetes"];
    let pulled = dir.path().join(".helm-charts/oci_h/c/1.0.0");
    fs::create_dir_all(pulled.join("templates")).unwrap();
    fs::write(
        pulled.join("Chart.yaml"),
        "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    )
    .unwrap();
    fs::write(pulled.join("templates/map.yaml"), MAP).unwrap();
    succeeded(&weir(dir.path(), &render));
    fs::write(
        dir.path().join("one/helm-chart.yaml"),
        chart(", skipPrePull: true"),
    )
    .unwrap();
    let stderr = failed(&weir(dir.path(), &render));
    assert!(
        stderr.contains("Pulling Helm Chart c with version 1.0.0") && stderr.contains(refusal),
        "{stderr}"
    );
}

#[tokio::test]
async fn helm_pull_uses_registry_credentials() {
    let registry = Registry::start(Login::Token, None).await.unwrap();
    for version in ["1.0.0", "1.1.0"] {
        registry
            .push_chart("charts/c", version, &chart("c", version))
            .await
            .unwrap();
    }
    let host = registry.host();
    let text =
        format!("helmChart:\n  repo: oci://{host}/charts/c\n  chartVersion: 1.0.0\n  releaseName: c\n");
    let dir = project(&[("one", text)]);
    let plain = format!("--registry-plain-http={host}");
    let stderr = failed(&weir(dir.path(), &["helm-pull", &plain]));
    assert!(
        stderr.contains("basic credential not found: the server asks for credentials, and none are given"),
        "{stderr}"
    );
    let wrong = format!("--registry-creds={host}={USER}:nope");
    let stderr = failed(&weir(dir.path(), &["helm-pull", &plain, &wrong]));
    assert!(stderr.contains("Unauthorized"), "{stderr}");
    let login = format!("--registry-creds={host}/charts/*={USER}:{PASSWORD}");
    let plain = format!("--registry-plain-http={host}/charts/*");
    succeeded(&weir(dir.path(), &["helm-pull", &plain, &login]));
    assert_eq!(pulled(&dir), ["charts/c/1.0.0"]);
    let output = weir(dir.path(), &["helm-update", "--upgrade", &plain, &login]);
    let stderr = succeeded(&output);
    let expected = "one: Chart c (old version 1.0.0) has new version 1.1.0 available\nUpgrading Chart c from version 1.0.0 to 1.1.0\none: Updated Chart version to 1.1.0\n";
    assert!(stderr.starts_with(expected), "{stderr}");
    assert!(output.stdout.is_empty());
    assert_eq!(pulled(&dir), ["charts/c/1.1.0"]);
}

#[tokio::test]
async fn loopback_registries_use_plain_http() {
    let registry = Registry::start(Login::Basic, None).await.unwrap();
    registry
        .push_chart("charts/c", "1.0.0", &chart("c", "1.0.0"))
        .await
        .unwrap();
    let host = registry.host();
    let text =
        format!("helmChart:\n  repo: oci://{host}/charts/c\n  chartVersion: 1.0.0\n  releaseName: c\n");
    let dir = project(&[("one", text)]);
    let login = format!("--registry-creds={host}={USER}:{PASSWORD}");
    succeeded(&weir(dir.path(), &["helm-pull", &login]));
    assert_eq!(pulled(&dir), ["charts/c/1.0.0"]);
}

#[test]
fn helm_update_respects_update_constraints() {
    let server = repository(&["1.0.0", "1.0.5", "1.4.0", "2.0.0", "3.0.0-rc.1"]);
    let url = server.url("");
    let dir = project(&[
        ("a", release(&url, "a", "1.0.0", "")),
        ("b", release(&url, "a", "1.0.0", "  updateConstraints: ~1.0.0\n")),
        ("c", release(&url, "b", "1.0.0", "  skipUpdate: true\n")),
        ("d", release(&url, "b", "2.0.0", "")),
        (
            "e",
            release(&url, "b", "1.4.0", "  updateConstraints: \">=3.0.0-0\"\n"),
        ),
    ]);
    let expected = "a: Chart a (old version 1.0.0) has new version 2.0.0 available\n\
                    b: Chart a (old version 1.0.0) has new version 1.0.5 available\n\
                    c: Skipped update to version 2.0.0\n\
                    e: Chart b (old version 1.4.0) has new version 3.0.0-rc.1 available\n";
    assert_eq!(succeeded(&weir(dir.path(), &["helm-update"])), expected);
    assert_eq!(server.asked().len(), 1, "the index is read once");
    assert_eq!(pulled(&dir), [""; 0]);
    let output = weir(dir.path(), &["helm-update", "--upgrade"]);
    let stderr = succeeded(&output);
    assert!(stderr.starts_with(expected), "{stderr}");
    assert!(
        stderr.contains("Upgrading Chart a from version 1.0.0 to 1.0.5\n"),
        "{stderr}"
    );
    let text = fs::read_to_string(dir.path().join("b/helm-chart.yaml")).unwrap();
    assert_eq!(text, release(&url, "a", "1.0.5", "  updateConstraints: ~1.0.0\n"));
    assert_eq!(
        pulled(&dir),
        ["a/1.0.5", "a/2.0.0", "b/1.0.0", "b/2.0.0", "b/3.0.0-rc.1"]
    );
    let alone = weir(dir.path(), &["helm-update", "--commit"]);
    assert!(
        String::from_utf8_lossy(&alone.stderr).contains("--upgrade"),
        "{alone:?}"
    );
}

fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e@example.com"])
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap();
    succeeded(&output);
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn helm_update_commits_each_upgrade() {
    let server = repository(&["1.0.0", "1.1.0"]);
    let url = server.url("");
    let repo = tempfile::tempdir().unwrap();
    let root = repo.path();
    git(root, &["init", "-q"]);
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("project/.kluctl.yaml", "targets: []\n");
    for (dir, chart) in [("one", "a"), ("two", "b"), ("three", "b")] {
        write(
            &format!("project/{dir}/helm-chart.yaml"),
            &release(&url, chart, "1.0.0", ""),
        );
    }
    let commit = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command
            .args(["helm-update", "--upgrade", "--commit"])
            .args(arguments);
        command
            .env("GIT_AUTHOR_NAME", "me")
            .env("GIT_AUTHOR_EMAIL", "me@example.com");
        command.current_dir(root.join("project")).output().unwrap()
    };
    let refused_for = |why: &str| {
        let stderr = refused(&commit(&[]));
        assert!(stderr.contains(why), "{stderr}");
    };
    git(root, &["add", "."]);
    refused_for("the git worktree is unmodified");
    git(root, &["commit", "-qm", "begin"]);
    refused_for(".helm-charts is not up-to-date. Please run helm-pull before");
    succeeded(&weir(&root.join("project"), &["helm-pull"]));
    refused_for("--commit can only be used when .helm-chart directory is clean");
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "charts"]);
    write("notes.txt", "mine");
    let stderr = succeeded(&commit(&[]));
    assert!(
        stderr.contains("Committed helm chart a with version 1.1.0"),
        "{stderr}"
    );
    assert_eq!(
        git(root, &["log", "--format=%an %s", "-3"]),
        "me Updated helm chart b from version 1.0.0 to version 1.1.0\n\
         me Updated helm chart a from version 1.0.0 to version 1.1.0\nn charts"
    );
    assert_eq!(git(root, &["status", "--porcelain"]), "?? notes.txt");
    let changed = git(root, &["show", "--name-status", "--format=", "--no-renames"]);
    let messages: Vec<&str> = changed
        .lines()
        .filter(|line| !line.contains(".helm-charts"))
        .collect();
    assert_eq!(
        messages,
        [
            "M\tproject/three/helm-chart.yaml",
            "M\tproject/two/helm-chart.yaml"
        ]
    );
    assert!(
        changed.contains("/b/1.1.0/Chart.yaml") && changed.contains("/b/1.0.0/Chart.yaml"),
        "{changed}"
    );
    assert!(!changed.contains("/a/"), "{changed}");
    git(root, &["fsck", "--strict"]);
    let stderr = succeeded(&commit(&[]));
    assert_eq!(stderr, "", "nothing is left to upgrade");
}

#[test]
fn helm_pull_and_update_support_git_repositories() {
    let git = GitServer::start().unwrap();
    let repo = git.repo("charts").unwrap();
    let metadata = |version: &str| format!("apiVersion: v2\nname: g\nversion: {version}\n");
    let commit = |version: &str| {
        let files = [
            ("small/Chart.yaml", metadata(version)),
            ("small/templates/x.yaml", "kind: X\n".to_owned()),
        ];
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        let id = repo.commit(version, &files).unwrap();
        repo.tag(version, &id).unwrap();
    };
    commit("1.0.0");
    commit("1.1.0");
    let url = repo.url();
    let text = |reference: &str| {
        format!(
            "helmChart:\n  git:\n    url: {url}\n    subDir: small\n    ref:\n      {reference}\n  releaseName: g\n"
        )
    };
    let dir = project(&[("tagged", text("tag: 1.0.0")), ("newest", text("branch: main"))]);
    succeeded(&weir(dir.path(), &["helm-pull"]));
    let found = |reference: &str| {
        let mut place = pulled(&dir);
        place.retain(|place| place.ends_with(reference));
        assert_eq!(place.len(), 1, "{:?}", pulled(&dir));
        let host = fs::read_dir(dir.path().join(".helm-charts"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        fs::read_to_string(host.path().join(&place[0]).join("Chart.yaml")).unwrap()
    };
    assert_eq!(found("small/refs/tags/1.0.0"), metadata("1.0.0"));
    assert_eq!(found("small/refs/heads/main"), metadata("1.1.0"));
    commit("1.2.0");
    let output = weir(dir.path(), &["helm-update", "--upgrade"]);
    let stderr = succeeded(&output);
    for expected in [
        "tagged: Chart small (old version refs/tags/1.0.0) has new version refs/tags/1.2.0 available\n",
        "Upgrading Chart small from version refs/tags/1.0.0 to refs/tags/1.2.0\n",
        "small: Removing unused Chart with version 1.0.0\n",
        "small: Pulling Chart with version refs/tags/1.2.0\n",
    ] {
        assert!(stderr.contains(expected), "{stderr}");
    }
    assert_eq!(found("small/refs/heads/main"), metadata("1.2.0"));
    assert_eq!(found("small/refs/tags/1.2.0"), metadata("1.2.0"));
    assert!(!pulled(&dir).iter().any(|place| place.ends_with("1.0.0")));
}
