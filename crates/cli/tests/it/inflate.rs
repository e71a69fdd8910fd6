//! `weir kustomize build --enable-helm`.

use std::{fs, path::Path, process::Output};

use tempfile::TempDir;
use testkit::{GitServer, Page, Registry, WebServer, registry::Login};

use crate::program::{chart, files, printed, refused, weir};

const METADATA: &str = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";
const VALUES: &str = "color: red\nempty:\nnulled: null\nmap: {a: 1, b: {c: yes}}\n";
const TEMPLATE: &str = "kind: Shop\nmetadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}\n\
    values: {{ .Values | toJson | quote }}\nkube: {{ .Capabilities.KubeVersion.Version }}\n\
    has: {{ .Capabilities.APIVersions.Has \"x.io/v1\" }}\n";
const TEST: &str = "kind: Test\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n";
const CRD: &str = "kind: CustomResourceDefinition\nmetadata: {name: as.x.io}\n";

fn shop(kustomization: &str) -> TempDir {
    files(&[
        ("app/kustomization.yaml", kustomization),
        ("app/v.yaml", "color: blue\nmap: {b: null}\n"),
        ("app/charts/shop/Chart.yaml", METADATA),
        ("app/charts/shop/values.yaml", VALUES),
        ("app/charts/shop/templates/shop.yaml", TEMPLATE),
        ("app/charts/shop/templates/test.yaml", TEST),
        ("app/charts/shop/crds/crd.yaml", CRD),
        ("v.yaml", "color: far\n"),
    ])
}

fn build(dir: &Path, more: &[&str]) -> Output {
    weir(dir, &[&["app", "--enable-helm"], more].concat())
}

/// Builds a kustomization with the chart, and returns the output without the hook.
fn inflated(entry: &str) -> String {
    let text = format!("helmCharts:\n- name: shop\n  skipTests: true\n{entry}");
    printed(&build(shop(&text).path(), &[]))
}

fn values(entry: &str) -> String {
    let text = inflated(entry);
    let line = text.lines().find_map(|line| line.strip_prefix("values: '"));
    line.unwrap().trim_end_matches('\'').to_owned()
}

#[test]
fn helm_charts_require_enable_helm() {
    let dir = shop("helmCharts: [{name: shop}]\n");
    let stderr = refused(&weir(dir.path(), &["app"]));
    assert!(stderr.contains("must specify --enable-helm"), "{stderr}");
    let stderr = refused(&weir(dir.path(), &["app", "--helm-command", "helm"]));
    assert!(
        stderr.contains("--helm-command is not supported: no program is run"),
        "{stderr}"
    );
    refused(&weir(dir.path(), &["app", "--helm-kube-version", "1.30"]));
}

#[test]
fn values_are_merged_as_in_kustomize() {
    assert_eq!(values(""), r#"{"color":"red","map":{"a":1,"b":{"c":true}}}"#);
    let inline = "  valuesInline: {color: green, map: {a: null, z: {q: null}}}\n";
    assert_eq!(
        values(inline),
        r#"{"color":"green","empty":null,"map":{"a":1,"b":{"c":"yes"},"z":{}}}"#
    );
    let file_wins = format!("{inline}  valuesMerge: merge\n");
    assert_eq!(
        values(&file_wins),
        r#"{"color":"red","empty":null,"map":{"a":1,"b":{"c":"yes"},"z":{"q":null}},"nulled":null}"#
    );
    let inline_alone = "  valuesInline: {color: x, map: {a: null}}\n  valuesMerge: replace\n";
    assert_eq!(
        values(inline_alone),
        r#"{"color":"x","empty":null,"map":{"b":{"c":true}},"nulled":null}"#
    );
    let file = "  valuesFile: v.yaml\n";
    assert_eq!(
        values(file),
        r#"{"color":"blue","empty":null,"map":{"a":1},"nulled":null}"#
    );
    let more = "  valuesInline: {color: x}\n  additionalValuesFiles: [v.yaml]\n";
    assert_eq!(values(more), r#"{"color":"blue","empty":null,"map":{"a":1}}"#);
}

#[test]
fn entries_set_release_name_and_namespace() {
    let text = inflated("  releaseName: r\n  namespace: nn\n");
    assert!(text.contains("  name: r\n  namespace: nn\n"), "{text}");
    let text = inflated("  nameTemplate: 'x-{{ 1 }}'\n");
    assert!(text.contains("  name: x-1\n  namespace: default\n"), "{text}");
    let text = inflated("namespace: top\n");
    assert!(
        text.contains("  name: release-name\n  namespace: top\n"),
        "{text}"
    );
    let dir = shop("helmCharts: [{name: shop, releaseName: r, nameTemplate: x}]\n");
    refused(&build(dir.path(), &[]));
}

#[test]
fn entries_set_capabilities_hooks_and_crds() {
    let of = |entry: &str, more: &[&str]| {
        let dir = shop(&format!("helmCharts:\n- {{name: shop{entry}}}\n"));
        printed(&build(dir.path(), more))
    };
    let flags = ["--helm-kube-version", "1.30", "--helm-api-versions=x.io/v1"];
    let text = of("", &flags);
    assert!(
        text.contains("kube: v1.30\n") && text.contains("has: true\n"),
        "{text}"
    );
    let text = of(", kubeVersion: '1.31', apiVersions: [y.io/v1]", &flags);
    assert!(
        text.contains("kube: v1.31\n") && text.contains("has: false\n"),
        "{text}"
    );
    assert!(of("", &[]).contains("kind: Test\n"));
    assert!(!of(", skipTests: true", &[]).contains("kind: Test\n"));
    assert!(!of(", skipHooks: true", &[]).contains("kind: Test\n"));
    assert!(!of("", &[]).contains("CustomResourceDefinition"));
    assert!(of(", includeCRDs: true", &[]).contains("CustomResourceDefinition"));
}

#[test]
fn values_files_are_restricted_to_the_kustomization() {
    let dir = shop("helmCharts: [{name: shop, valuesFile: ../v.yaml, skipTests: true}]\n");
    let stderr = refused(&build(dir.path(), &[]));
    assert!(stderr.contains("v.yaml' is not in or below '"), "{stderr}");
    let text = printed(&build(dir.path(), &["--load-restrictor", "LoadRestrictionsNone"]));
    assert!(text.contains(r#""color":"far""#), "{text}");
    // A chart reads nothing outside of its directory.
    let dir = shop("helmCharts: [{name: shop}]\n");
    std::os::unix::fs::symlink(
        "/etc/hostname",
        dir.path().join("app/charts/shop/templates/x.yaml"),
    )
    .unwrap();
    let output = build(dir.path(), &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.matches("kind: ").count() == 2 && text.contains("kind: Shop\n"),
        "{text}"
    );
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("templates/x.yaml: this symlink points outside"),
        "{stderr}"
    );
    let dir = shop("helmCharts: [{name: ../../v}]\n");
    assert!(refused(&build(dir.path(), &[])).contains("not a valid chart name"));
}

#[test]
fn charts_are_downloaded_without_writing_files() {
    let server = WebServer::start().unwrap();
    for version in ["1.0.0", "1.1.0", "2.0.0-rc.1"] {
        server.page(
            &format!("/far-{version}.tgz"),
            Page::Content(chart("far", version).into()),
        );
    }
    let index = "entries:\n  far:\n  - {name: a, version: 1.0.0, urls: [far-1.0.0.tgz]}\n  - {name: a, version: 1.1.0, urls: [far-1.1.0.tgz]}\n  \
                 - {name: a, version: 2.0.0-rc.1, urls: [far-2.0.0-rc.1.tgz]}\n";
    server.page("/index.yaml", Page::Content(index.into()));
    let url = server.url("");
    for (entry, expected) in [
        ("version: 1.0.0", "  name: r-1.0.0\n"),
        ("namespace: x", "  name: r-1.1.0\n"),
        ("version: ~1.0", "  name: r-1.0.0\n"),
        ("devel: true", "  name: r-2.0.0-rc.1\n"),
    ] {
        let kustomization = format!(
            "helmCharts:\n- {{name: far, repo: '{url}', releaseName: r, {entry}}}\n- {{name: far, repo: '{url}', \
             releaseName: s, {entry}}}\n"
        );
        let dir = files(&[("app/kustomization.yaml", &kustomization)]);
        let before = server.asked().len();
        let text = printed(&build(dir.path(), &[]));
        assert!(text.contains(expected), "{entry}: {text}");
        assert_eq!(server.asked().len(), before + 2, "one index and one archive");
        assert_eq!(fs::read_dir(dir.path().join("app")).unwrap().count(), 1);
    }
    let dir = files(&[(
        "app/kustomization.yaml",
        "helmCharts: [{name: far, version: 1.0.0}]\n",
    )]);
    let stderr = refused(&build(dir.path(), &[]));
    assert!(
        stderr.contains("no repo specified for pull, no chart found"),
        "{stderr}"
    );
    let kustomization = format!("helmCharts: [{{name: far, repo: '{url}', version: '>=9'}}]\n");
    let dir = files(&[("app/kustomization.yaml", &kustomization)]);
    let stderr = refused(&build(dir.path(), &[]));
    assert!(
        stderr.contains("chart \"far\" version \">=9\" not found in http://"),
        "{stderr}"
    );
}

#[test]
fn values_file_can_be_inside_of_a_downloaded_chart() {
    let server = WebServer::start().unwrap();
    server.page("/far.tgz", Page::Content(chart("far", "1.0.0").into()));
    server.page(
        "/index.yaml",
        Page::Content("entries:\n  far:\n  - {name: a, version: 1.0.0, urls: [far.tgz]}\n".into()),
    );
    let kustomization = format!(
        "helmCharts:\n- name: far\n  repo: {}\n  version: 1.0.0\n  valuesFile: charts/far-1.0.0/far/values.yaml\n  \
         valuesInline: {{size: big}}\n",
        server.url("")
    );
    let dir = files(&[("app/kustomization.yaml", &kustomization)]);
    let output = build(dir.path(), &["--helm-debug"]);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("  color: red\n  size: big\n"), "{text}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("chart far from http://127.0.0.1"), "{stderr}");
}

#[tokio::test]
async fn oci_charts_use_https() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let kustomization = format!(
        "helmCharts: [{{name: far, repo: 'oci://{}/charts', version: 1.0.0}}]\n",
        registry.host()
    );
    let dir = files(&[("app/kustomization.yaml", &kustomization)]);
    let stderr = refused(&build(dir.path(), &[]));
    assert!(stderr.contains("https://127.0.0.1"), "{stderr}");
}

#[test]
fn charts_of_remote_bases_are_inflated() {
    let git = GitServer::start().unwrap();
    let repo = git.repo("shop").unwrap();
    let kustomization = "helmCharts: [{name: shop, releaseName: g, skipTests: true}]\n";
    repo.commit(
        "first",
        &[
            ("base/kustomization.yaml", kustomization),
            ("base/charts/shop/Chart.yaml", METADATA),
            ("base/charts/shop/values.yaml", VALUES),
            ("base/charts/shop/templates/shop.yaml", TEMPLATE),
        ],
    )
    .unwrap();
    let entry = format!("resources: ['{}//base']\nnamePrefix: p-\n", repo.url());
    let dir = files(&[("app/kustomization.yaml", &entry)]);
    let text = printed(&build(dir.path(), &[]));
    assert!(text.contains("  name: p-g\n"), "{text}");
}
