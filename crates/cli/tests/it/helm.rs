//! `weir helm template`.

use std::{fs, path::Path, process::Output};

use tempfile::TempDir;
use testkit::{
    Authority, Page, Registry, WebServer,
    registry::{Login, PASSWORD, USER},
};

use crate::program::{chart as archive, files, printed, refused, run};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-{{ .Values.name }}\n  \
                   namespace: {{ .Release.Namespace }}\n";
const HOOK: &str =
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: t\n  annotations:\n    helm.sh/hook: test\n";

fn template(dir: &Path, arguments: &[&str]) -> Output {
    run(dir, ["helm", "template"], arguments)
}

fn chart() -> TempDir {
    files(&[
        (
            "small/Chart.yaml",
            "apiVersion: v2\nname: small\nversion: 1.0.0\n",
        ),
        ("small/values.yaml", "name: a\n"),
        ("small/crds/c.yaml", "kind: C\n"),
        ("small/templates/map.yaml", MAP),
        ("small/templates/tests/t.yaml", HOOK),
        ("over.yaml", "name: over\n"),
    ])
}

fn map(release: &str, name: &str, namespace: &str) -> String {
    let text = MAP
        .replace("{{ .Release.Name }}", release)
        .replace("{{ .Values.name }}", name)
        .replace("{{ .Release.Namespace }}", namespace);
    format!("---\n# Source: small/templates/map.yaml\n{text}")
}

fn hook() -> String {
    format!("---\n# Source: small/templates/tests/t.yaml\n{HOOK}\n")
}

#[test]
fn template_takes_values_and_names_from_flags() {
    let dir = chart();
    fs::write(dir.path().join("name"), "file").unwrap();
    for (arguments, release, name, namespace) in [
        (&["small"][..], "release-name", "a", "default"),
        (&["r", "small", "-n", "x"], "r", "a", "x"),
        (
            &["-g", "small", "-f", "over.yaml"],
            "release-name",
            "over",
            "default",
        ),
        (
            &["r", "small", "-f", "over.yaml", "--set", "name=b"],
            "r",
            "b",
            "default",
        ),
        (
            &["r", "small", "--set=name=b", "--set-string", "name=1"],
            "r",
            "1",
            "default",
        ),
        (&["r", "small", "--set-file", "name=name"], "r", "file", "default"),
        (&["r", "small", "--set-json", "name=\"j\""], "r", "j", "default"),
        (&["r", "small", "--set-literal", "name=l"], "r", "l", "default"),
        (
            &["small", "--name-template", "x-{{ lower \"Y\" }}"],
            "x-y",
            "a",
            "default",
        ),
    ] {
        let expected = format!("{}{}", map(release, name, namespace), hook());
        assert_eq!(
            printed(&template(dir.path(), arguments)),
            expected,
            "{arguments:?}"
        );
    }
}

#[test]
fn template_selects_hooks_crds_and_templates() {
    let dir = chart();
    let (map, hook) = (map("r", "a", "default"), hook());
    let crd = "---\n# Source: small/crds/c.yaml\nkind: C\n";
    for (arguments, expected) in [
        (&["--no-hooks"][..], map.clone()),
        (&["--skip-tests"], map.clone()),
        (&["--skip-tests=false"], format!("{map}{hook}")),
        (&["--include-crds"], format!("{crd}\n{map}{hook}")),
        (&["-s", "templates/map.yaml"], format!("{map}\n")),
        (&["--no-hooks", "--helm-version", "3"], map.clone()),
        (&["-s", "templates/map.yaml", "--helm-version=3"], map.clone()),
        (
            &["--helm-version", "3"],
            format!("{map}{}", hook.strip_suffix('\n').unwrap_or(&hook)),
        ),
    ] {
        let all = [&["r", "small"], arguments].concat();
        assert_eq!(printed(&template(dir.path(), &all)), expected, "{arguments:?}");
    }
}

#[test]
fn output_dir_writes_one_file_per_template() {
    let dir = chart();
    let arguments = ["r", "small", "--output-dir", "out", "--release-name"];
    let expected = "wrote out/r/small/templates/map.yaml\nwrote out/r/small/templates/tests/t.yaml\n\n";
    for _ in 0..2 {
        assert_eq!(printed(&template(dir.path(), &arguments)), expected);
    }
    let read = |path: &str| fs::read_to_string(dir.path().join("out/r/small/templates").join(path)).unwrap();
    assert_eq!(read("map.yaml"), map("r", "a", "default") + "\n");
    assert_eq!(read("tests/t.yaml"), hook());
}

#[test]
fn release_name_has_no_effect_without_output_dir() {
    let dir = chart();
    let plain = printed(&template(dir.path(), &["r", "small"]));
    assert_eq!(
        printed(&template(dir.path(), &["r", "small", "--release-name"])),
        plain
    );
}

#[test]
fn template_errors_name_argument_and_cause() {
    let dir = chart();
    fs::write(
        dir.path().join("small/templates/bad.yaml"),
        "\n{{ .Values.no.name }}",
    )
    .unwrap();
    fs::write(dir.path().join("no.tgz"), "no archive").unwrap();
    for (arguments, expected) in [
        (&[][..], "missing argument CHART"),
        (&["nope"], "chart \"nope\" not found: there is no such local path"),
        (&["stable/nope"], "repositories of 'helm repo add' are not read"),
        (&["./nope"], "path \"./nope\" not found"),
        (
            &["https://u:secret@169.254.169.254/c.tgz"],
            "link-local addresses are not allowed",
        ),
        (
            &["no.tgz"],
            "file 'no.tgz' does not appear to be a gzipped archive",
        ),
        (
            &["r", "small", "-g"],
            "cannot set --generate-name and also specify a name",
        ),
        (
            &["r", "small", "-f", "nope"],
            "open nope: no such file or directory",
        ),
        (
            &["r", "small", "-f", "https://u:secret@169.254.169.254/c"],
            "link-local addresses are not allowed",
        ),
        (
            &["r", "small", "--set", "a"],
            "failed parsing --set data: key \"a\" has no value",
        ),
        (
            &["r", "small", "--validate=false", "--dry-run=server"],
            "--dry-run is not supported: rendering doesn't connect to a cluster",
        ),
        (
            &["r", "small", "--verify"],
            "--verify is not supported: signatures are not verified",
        ),
        (
            &["r", "small", "--validate"],
            "--validate is not supported: rendering doesn't connect to a cluster",
        ),
        (
            &["small", "--name-template", "{{ fail \"why\" }}"],
            "error calling fail: why\n",
        ),
        (&["r", "small", "-f", "small"], "read small: is a directory"),
        (
            &["r", "shop", "--repo", "https://a.b", "--username", "me"],
            "--password <PASSWORD>",
        ),
        (
            &["r", "small", "--post-renderer", "cat"],
            "--post-renderer is not supported: no programs are run",
        ),
        (
            &["r", "small", "--wait"],
            "--wait is not supported: nothing is installed",
        ),
        (
            &["r", "small"],
            "Error: small/templates/bad.yaml:2:10\n  executing \"small/templates/bad.yaml\" at <.Values.no.name>:\n    nil \
             pointer evaluating interface {}.name",
        ),
        (
            &["r", "small", "--helm-version", "3"],
            "template: small/templates/bad.yaml:2:10: executing \"small/templates/bad.yaml\" at <.Values.no.name>: nil \
             pointer evaluating interface {}.name",
        ),
        (
            &["r", "small", "--helm-version", "2"],
            "\"2\" is not a supported version of Helm: use \"3\" or \"4\"",
        ),
    ] {
        let stderr = refused(&template(dir.path(), arguments));
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("secret"), "{stderr}");
    }
}

#[test]
fn charts_cannot_read_files_outside_of_their_directory() {
    let dir = chart();
    fs::write(dir.path().join("secret"), "top").unwrap();
    std::os::unix::fs::symlink("../../secret", dir.path().join("small/templates/leak.yaml")).unwrap();
    let output = template(dir.path(), &["small"]);
    let expected = format!("{}{}", map("release-name", "a", "default"), hook());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("Warning: templates/leak.yaml: this symlink points outside of the chart"),
        "{stderr}"
    );
}

#[test]
fn empty_flags_count_as_unset_and_quotes_protect_commas() {
    let dir = chart();
    fs::write(dir.path().join("a,b.yaml"), "name: comma\n").unwrap();
    let arguments = [
        "r",
        "small",
        "-n",
        "",
        "--kube-version",
        "",
        "--name-template",
        "",
        "-f",
        "",
        "-f",
        "\"a,b.yaml\"",
    ];
    let expected = format!("{}{}", map("r", "comma", "default"), hook());
    assert_eq!(printed(&template(dir.path(), &arguments)), expected);
}

#[test]
fn debug_prints_invalid_yaml() {
    let dir = chart();
    fs::write(
        dir.path().join("small/templates/bad.yaml"),
        "a: b: {{ .Values.name }}",
    )
    .unwrap();
    let stderr = refused(&template(dir.path(), &["small"]));
    assert!(
        stderr.contains("bad.yaml") && stderr.contains("Use --debug"),
        "{stderr}"
    );
    let output = template(dir.path(), &["small", "--debug"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("# Source: small/templates/bad.yaml\na: b: a\n"),
        "{printed}"
    );
}

#[test]
fn template_reads_large_archives() {
    // Bytes that can't be packed.
    let mut state = 1_u64;
    let noise: Vec<u8> = (0..3 << 20)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    let dir = files(&[]);
    let archive = testkit::archive::tar_gz(&[
        ("big/Chart.yaml", b"apiVersion: v2\nname: big\nversion: 1.0.0\n"),
        ("big/a", &noise),
        ("big/b", &noise),
        ("big/templates/x.yaml", b"kind: X\n"),
    ]);
    assert!(archive.len() > 5 << 20);
    fs::write(dir.path().join("big.tgz"), archive).unwrap();
    assert!(printed(&template(dir.path(), &["big.tgz"])).ends_with("kind: X\n"));
}

fn rendered(version: &str) -> String {
    format!("name: release-name-{version}")
}

#[test]
fn template_downloads_charts_from_helm_repositories() {
    let (server, cdn) = (WebServer::start().unwrap(), WebServer::start().unwrap());
    server.login("me", "s3cret");
    let away = cdn.url("a-3.0.0-rc.1.tgz");
    let index = format!(
        "entries:\n  a:\n  - {{name: a, version: 1.0.0, urls: [a-1.0.0.tgz]}}\n  - {{name: a, version: 1.1.0, urls: [a-1.1.0.tgz]}}\n  - \
         {{name: a, version: 3.0.0-rc.1, urls: ['{away}']}}\n"
    );
    server.page("/stable/index.yaml", Page::Content(index.into()));
    for version in ["1.0.0", "1.1.0"] {
        let page = Page::Content(archive("a", version).into());
        server.page(&format!("/stable/a-{version}.tgz"), page);
    }
    cdn.page(
        "/a-3.0.0-rc.1.tgz",
        Page::Content(archive("a", "3.0.0-rc.1").into()),
    );
    server.page("/values.yaml", Page::Content("color: blue\n".into()));
    let dir = files(&[]);
    let url = server.url("stable");
    let login = ["--username", "me", "--password", "s3cret"];
    for (arguments, version) in [
        (&["--repo", &url, "a"][..], "1.1.0"),
        (&["--repo", &url, "a", "--version", "~1.0"], "1.0.0"),
        (&["--repo", &url, "a", "--devel"], "3.0.0-rc.1"),
        (&["--repo", &url, "a", "--devel", "--version", "^1"], "1.1.0"),
        (&[&server.url("stable/a-1.0.0.tgz")], "1.0.0"),
    ] {
        let text = printed(&template(dir.path(), &[arguments, &login].concat()));
        assert!(text.contains(&rendered(version)), "{arguments:?}: {text}");
    }
    assert!(cdn.asked().iter().all(|asked| asked.authorization.is_none()));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let values = server.url("values.yaml").replace("://", "://me:s3cret@");
    let text = printed(&template(
        dir.path(),
        &[&["--repo", &url, "a", "-f", &values][..], &login].concat(),
    ));
    assert!(text.contains("\"color\":\"blue\""), "{text}");
    for (arguments, expected) in [
        (&["--repo", &url, "a"][..], "none are given"),
        (
            &["--repo", &url, "a", "--username", "me", "--password", "wr0ng"],
            "the server refused the credentials",
        ),
        (
            &[
                "--repo",
                &url,
                "a",
                "--version",
                ">=4",
                login[0],
                login[1],
                login[2],
                login[3],
            ],
            "version \">=4\" not found",
        ),
        (
            &["--repo", &url, "b", login[0], login[1], login[2], login[3]],
            "chart \"b\" not found",
        ),
    ] {
        let stderr = refused(&template(dir.path(), arguments));
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
        assert!(
            !stderr.contains("s3cret") && !stderr.contains("wr0ng"),
            "{stderr}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn template_downloads_charts_from_oci_registries() {
    let authority = Authority::new(&["127.0.0.1"]).unwrap();
    let registry = Registry::start(Login::Basic, Some(authority)).await.unwrap();
    registry
        .push_chart("charts/a", "1.0.0", &archive("a", "1.0.0"))
        .await
        .unwrap();
    let dir = files(&[("ca.pem", registry.ca_pem())]);
    let chart = format!("oci://{}/charts/a", registry.host());
    let login = ["--username", USER, "--password", PASSWORD, "--ca-file", "ca.pem"];
    for version in [&[][..], &["--version", "^1"]] {
        let text = printed(&template(
            dir.path(),
            &[&[chart.as_str()], version, &login].concat(),
        ));
        assert!(text.contains(&rendered("1.0.0")), "{text}");
    }
    let stderr = refused(&template(
        dir.path(),
        &[&chart, "--ca-file", "ca.pem", "--registry-config", "ca.pem"],
    ));
    assert!(stderr.contains("invalid config.json"), "{stderr}");
    let stderr = refused(&template(
        dir.path(),
        &[&[chart.as_str(), "--version", "^2"][..], &login].concat(),
    ));
    assert!(stderr.contains("\"^2\" not found"), "{stderr}");
}
