//! `weir oci push`, and projects that include the pushed artifact.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use artifact::FetchLimits;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use testkit::{
    Registry,
    registry::{Login, PASSWORD, USER},
};

use crate::program::{files, refused};

fn weir(dir: &Path, arguments: &[&str]) -> Output {
    command(dir, arguments).output().unwrap()
}

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command
        .args(arguments)
        .current_dir(dir)
        .env("HOME", dir.join("nobody"))
        .env("DOCKER_CONFIG", dir.join("nobody"));
    command
}

#[track_caller]
fn succeeded(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    (stdout, stderr)
}

#[track_caller]
fn failed(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    stderr
}

fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=me", "-c", "user.email=me@example.com"])
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Creates a checkout with a project in its directory `app`.
fn project(color: &str) -> TempDir {
    let map =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: pushed}}\ndata: {{color: {color}}}\n");
    let dir = files(&[
        ("app/deployment.yaml", "deployments: [{path: maps}]\n"),
        ("app/maps/map.yaml", &map),
    ]);
    git(dir.path(), &["init", "--initial-branch=main"]);
    git(
        dir.path(),
        &[
            "remote",
            "add",
            "origin",
            "https://me:s3cret@git.example.com/shop.git",
        ],
    );
    commit(dir.path());
    dir
}

fn commit(dir: &Path) {
    git(dir, &["add", "."]);
    git(dir, &["commit", "--message=more"]);
}

/// Returns a project that includes an artifact.
fn including(url: &str, more: &str) -> TempDir {
    let deployment = format!("deployments: [{{oci: {{url: '{url}'{more}}}}}]\n");
    files(&[(".kluctl.yaml", ""), ("deployment.yaml", deployment.as_str())])
}

const RENDER: [&str; 3] = ["render", "--print-all", "--offline-kubernetes"];

/// Pushes a project, and returns the printed JSON.
fn pushed(project: &TempDir, url: &str, more: &[&str]) -> Json {
    let arguments = [&["oci", "push", "--output=json", "--url", url], more].concat();
    let output = weir(&project.path().join("app"), &arguments);
    let (stdout, stderr) = succeeded(&output);
    assert_eq!(stderr, "");
    serde_json::from_str(&stdout).unwrap()
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

/// Returns a manifest and the digest that the registry reports for it.
async fn manifest(host: &str, repository: &str, tag: &str) -> (Json, String) {
    let url = format!("http://{host}/v2/{repository}/manifests/{tag}");
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let request = client().get(url).header("accept", kind);
    let answer = request.send().await.unwrap().error_for_status().unwrap();
    let digest = answer.headers()["docker-content-digest"]
        .to_str()
        .unwrap()
        .to_owned();
    (answer.json().await.unwrap(), digest)
}

async fn content(host: &str, repository: &str) -> Vec<String> {
    let (manifest, _) = manifest(host, repository, "latest").await;
    let digest = manifest["layers"][0]["digest"].as_str().unwrap();
    let url = format!("http://{host}/v2/{repository}/blobs/{digest}");
    let layer = client().get(url).send().await.unwrap().bytes().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("layer"), layer).unwrap();
    let root = dir.path().join("files");
    artifact::unpack(&dir.path().join("layer"), &root, &FetchLimits::default()).unwrap();
    let mut found = Vec::new();
    list(&root, "", &mut found);
    found.sort();
    found
}

fn list(dir: &Path, path: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{path}{}", entry.file_name().to_str().unwrap());
        match entry.file_type().unwrap().is_dir() {
            true => list(&entry.path(), &format!("{name}/"), found),
            false => found.push(name),
        }
    }
}

#[tokio::test]
async fn pushed_project_is_included_from_a_loopback_registry_without_flags() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let project = project("red");
    for host in [registry.host(), registry.host().replace("127.0.0.1", "localhost")] {
        let url = format!("oci://{host}/org/app");
        let (stdout, stderr) = succeeded(&weir(
            &project.path().join("app"),
            &["oci", "push", "--url", &url],
        ));
        assert_eq!(stdout, "");
        assert!(
            stderr.contains(&format!("Pushing artifact to {host}/org/app")),
            "{stderr}"
        );
        let done = format!("Artifact successfully pushed to {host}/org/app@sha256:");
        assert!(stderr.contains(&done), "{stderr}");
        let (stdout, _) = succeeded(&weir(including(&url, "").path(), &RENDER));
        assert!(
            stdout.contains("name: pushed") && stdout.contains("color: red"),
            "{stdout}"
        );
    }
}

#[tokio::test]
async fn pushed_artifact_has_digest_and_annotations() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let host = registry.host();
    let url = format!("oci://{host}/org/app:v1");
    let project = project("red");
    let annotation = ["--annotation=team=shop=x", "--annotation", "a=b"];
    let printed = pushed(&project, &url, &annotation);
    let (manifest, digest) = manifest(&host, "org/app", "v1").await;
    let expected = json!({
        "url": format!("oci://{host}/org/app@{digest}"),
        "repository": format!("{host}/org/app"),
        "tag": "v1",
        "digest": digest,
    });
    assert_eq!(printed, expected);
    let head = git(project.path(), &["rev-parse", "HEAD"]);
    let annotations = &manifest["annotations"];
    assert_eq!(annotations["team"], "shop=x");
    assert_eq!(annotations["a"], "b");
    assert_eq!(annotations["org.opencontainers.image.revision"], head);
    let info: Json = serde_json::from_str(annotations["io.kluctl.image.git_info"].as_str().unwrap()).unwrap();
    let origin = annotations["org.opencontainers.image.source"].as_str().unwrap();
    assert!(
        origin.ends_with("git.example.com/shop.git") && !origin.contains("s3cret"),
        "{origin}"
    );
    let expected =
        json!({"url": origin, "ref": {"branch": "main"}, "subDir": "app", "commit": head, "dirty": false});
    assert_eq!(info, expected);

    assert_eq!(
        pushed(&project, &url, &annotation),
        printed,
        "the same files have the same digest"
    );
    let yaml = [
        "oci",
        "push",
        "--output=yaml",
        "--url",
        &url,
        annotation[0],
        "--annotation",
        "a=b",
    ];
    let (yaml, _) = succeeded(&weir(&project.path().join("app"), &yaml));
    assert!(yaml.contains(&format!("digest: {digest}\n")), "{yaml}");
}

#[tokio::test]
async fn includes_select_pushed_artifacts_by_tag_and_digest() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let url = format!("oci://{}/org/app", registry.host());
    let mut digests = Vec::new();
    for (tag, color) in [("one", "red"), ("two", "green"), ("three", "blue")] {
        let printed = pushed(&project(color), &format!("{url}:{tag}"), &[]);
        digests.push(printed["digest"].as_str().unwrap().to_owned());
    }
    for (reference, color) in [
        ("tag: one".to_owned(), "red"),
        ("tag: two".to_owned(), "green"),
        (format!("digest: '{}'", digests[2]), "blue"),
    ] {
        let dir = including(&url, &format!(", ref: {{{reference}}}"));
        let (stdout, _) = succeeded(&weir(dir.path(), &RENDER));
        assert!(
            stdout.contains(&format!("color: {color}")),
            "{reference}: {stdout}"
        );
    }
}

#[tokio::test]
async fn ignored_files_are_not_pushed() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let host = registry.host();
    let url = format!("oci://{host}/org/app");
    let dir = files(&[
        ("cm/one.yml", "a"),
        ("cm/two.yml", "b"),
        ("sub/three.yml", "c"),
        ("sub/.gitignore", "three.yml\n"),
        ("run.sh", "d"),
    ]);
    git(dir.path(), &["init"]);
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
    for (ignored, missing) in [
        ("", &[][..]),
        ("cm/one.yml", &["cm/one.yml"]),
        ("cm/*.yml\n!cm/one.yml", &["cm/two.yml"]),
        ("cm/*\n!cm/one.yml", &["cm/two.yml"]),
        ("cm", &["cm/one.yml", "cm/two.yml"]),
        ("cm\n!cm/one.yml", &["cm/one.yml", "cm/two.yml"]),
        ("/*\n!/cm/\n", &[".gitignore", "run.sh", "sub/.gitignore"]),
        ("/sub\n!cm/one.yml", &["sub/.gitignore"]),
    ] {
        fs::write(dir.path().join(".gitignore"), ignored).unwrap();
        succeeded(&weir(dir.path(), &["oci", "push", "--url", &url]));
        let all = [
            ".gitignore",
            "cm/one.yml",
            "cm/two.yml",
            "run.sh",
            "sub/.gitignore",
        ];
        let expected: Vec<&str> = all.into_iter().filter(|file| !missing.contains(file)).collect();
        assert_eq!(content(&host, "org/app").await, expected, "{ignored}");
    }
}

#[tokio::test]
async fn push_and_include_need_the_login_of_the_registry() {
    for login in [Login::Basic, Login::Token] {
        let registry = Registry::start(login, None).await.unwrap();
        let host = registry.host();
        let url = format!("oci://{host}/org/app");
        let project = project("red");
        let app = project.path().join("app");
        let push = ["oci", "push", "--url", &url];
        let (right, wrong) = (format!("{host}={USER}:{PASSWORD}"), format!("{host}={USER}:nope"));
        let stderr = failed(&weir(&app, &push));
        assert!(
            stderr.contains("pushing artifact failed") && stderr.contains("401 Unauthorized"),
            "{stderr}"
        );
        let stderr = failed(&weir(&app, &[&push[..], &["--registry-creds", &wrong]].concat()));
        assert!(
            stderr.contains("401 Unauthorized") && !stderr.contains("nope"),
            "{stderr}"
        );
        succeeded(&weir(&app, &[&push[..], &["--registry-creds", &right]].concat()));

        let including = including(&url, "");
        let stderr = failed(&weir(including.path(), &RENDER));
        assert!(stderr.contains("401 Unauthorized"), "{stderr}");
        let mut render = command(including.path(), &RENDER);
        let by_variables = |render: &mut Command, password: &str| {
            render
                .env("KLUCTL_REGISTRY_1_REPOSITORY", format!("{host}/org/app"))
                .env("KLUCTL_REGISTRY_1_USERNAME", USER)
                .env("KLUCTL_REGISTRY_1_PASSWORD", password);
        };
        by_variables(&mut render, "nope");
        let stderr = failed(&render.output().unwrap());
        assert!(
            stderr.contains("401 Unauthorized") && !stderr.contains("nope"),
            "{stderr}"
        );
        by_variables(&mut render, PASSWORD);
        succeeded(&render.output().unwrap());
        let docker = json!({"auths": {&host: {"username": USER, "password": PASSWORD}}});
        fs::create_dir(including.path().join("nobody")).unwrap();
        fs::write(including.path().join("nobody/config.json"), docker.to_string()).unwrap();
        succeeded(&weir(including.path(), &RENDER));
    }
}

#[test]
fn push_ends_at_its_timeout() {
    // The system accepts connections, and nobody answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = silent.local_addr().unwrap().to_string();
    let url = format!("oci://{host}/org/app");
    let dir = files(&[("deployment.yaml", "")]);
    let plain = format!("--registry-plain-http={host}");
    let stderr = failed(&weir(
        dir.path(),
        &["oci", "push", "--url", &url, &plain, "--timeout=200ms"],
    ));
    assert!(
        stderr.contains("pushing artifact failed: context deadline exceeded"),
        "{stderr}"
    );
}

#[test]
fn push_refuses_invalid_flags() {
    let dir = files(&[("deployment.yaml", "")]);
    let push = |url: &str, more: &str| refused(&weir(dir.path(), &["oci", "push", "--url", url, more]));
    let digest = format!("oci://h/a@sha256:{}", "0".repeat(64));
    for (url, more, why) in [
        (
            "h/a",
            "--debug",
            "URL must be in format 'oci://<domain>/<org>/<repo>'",
        ),
        ("oci://h", "--debug", "no repository"),
        (&*digest, "--debug", "to a tag, not to a digest"),
        (
            "oci://h/a",
            "--annotation=x",
            "invalid annotation x, must be in the format key=value",
        ),
        ("oci://h/a", "--project-dir=nowhere", "nowhere does not exist"),
        ("oci://h/a", "--output=xml", "xml"),
    ] {
        let error = push(url, more);
        assert!(error.contains(why), "{url} {more}: {error}");
    }
    let error = refused(&weir(dir.path(), &["oci", "push"]));
    assert!(error.contains("--url"), "{error}");
}
