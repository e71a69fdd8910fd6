//! `weir helm template`.

use std::{fs, path::Path, process::Output};

use tempfile::TempDir;

use crate::program::{files, printed, refused, run};

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
    format!("---\n# Source: small/templates/tests/t.yaml\n{HOOK}")
}

#[test]
fn values_and_names_come_from_the_command_line() {
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
fn what_is_printed_can_be_chosen() {
    let dir = chart();
    let (map, hook) = (map("r", "a", "default"), hook());
    let crd = "---\n# Source: small/crds/c.yaml\nkind: C\n";
    for (arguments, expected) in [
        (&["--no-hooks"][..], map.clone()),
        (&["--skip-tests"], map.clone()),
        (&["--skip-tests=false"], format!("{map}{hook}")),
        (&["--include-crds"], format!("{crd}\n{map}{hook}")),
        (&["-s", "templates/map.yaml"], map),
    ] {
        let all = [&["r", "small"], arguments].concat();
        assert_eq!(printed(&template(dir.path(), &all)), expected, "{arguments:?}");
    }
}

#[test]
fn files_can_be_written_one_for_each_template() {
    let dir = chart();
    let arguments = ["r", "small", "--output-dir", "out", "--release-name"];
    let expected = "wrote out/r/small/templates/map.yaml\nwrote out/r/small/templates/tests/t.yaml\n\n";
    for _ in 0..2 {
        assert_eq!(printed(&template(dir.path(), &arguments)), expected);
    }
    let read = |path: &str| fs::read_to_string(dir.path().join("out/r/small/templates").join(path)).unwrap();
    assert_eq!(read("map.yaml"), map("r", "a", "default"));
    assert_eq!(read("tests/t.yaml"), hook());
}

#[test]
fn mistakes_are_told() {
    let dir = chart();
    fs::write(
        dir.path().join("small/templates/bad.yaml"),
        "\n{{ .Values.no.name }}",
    )
    .unwrap();
    fs::write(dir.path().join("no.tgz"), "no archive").unwrap();
    for (arguments, expected) in [
        (&[][..], "a chart is missing"),
        (&["nope"], "there is no directory and no archive \"nope\""),
        (&["./nope"], "path \"./nope\" not found"),
        (&["https://u:secret@a.b/c.tgz"], "charts are not fetched"),
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
            &["r", "small", "-f", "https://u:secret@a.b/c"],
            "files on other machines are not fetched",
        ),
        (
            &["r", "small", "--set", "a"],
            "failed parsing --set data: key \"a\" has no value",
        ),
        (
            &["r", "small", "--validate"],
            "--validate is not supported: no cluster is asked",
        ),
        (
            &["r", "small", "--repo", "x"],
            "--repo is not supported: charts are not fetched",
        ),
        (
            &["r", "small", "--wait"],
            "--wait is not supported: nothing is installed",
        ),
        (
            &["r", "small"],
            "template: small/templates/bad.yaml:2:10: executing \"small/templates/bad.yaml\" at <.Values.no.name>: nil \
             pointer evaluating interface {}.name",
        ),
    ] {
        let said = refused(&template(dir.path(), arguments));
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn a_chart_reads_nothing_beside_it() {
    let dir = chart();
    fs::write(dir.path().join("secret"), "top").unwrap();
    std::os::unix::fs::symlink("../../secret", dir.path().join("small/templates/leak.yaml")).unwrap();
    let expected = format!("{}{}", map("release-name", "a", "default"), hook());
    assert_eq!(printed(&template(dir.path(), &["small"])), expected);
}
