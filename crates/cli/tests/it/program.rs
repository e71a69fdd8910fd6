//! Helpers for running the binary and creating its input files.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

pub(crate) const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n";
pub(crate) const SPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: s\n";

pub(crate) fn weir(dir: &Path, arguments: &[&str]) -> Output {
    run(dir, ["kustomize", "build"], arguments)
}

pub(crate) fn run(dir: &Path, command: [&str; 2], arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(command)
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap()
}

pub(crate) fn files(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

/// Asserts that the command succeeded without messages, and returns its output.
#[track_caller]
pub(crate) fn printed(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Asserts that the command failed with a message and without output, and returns the message.
#[track_caller]
pub(crate) fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(stderr.starts_with("Error: "), "{stderr}");
    stderr
}

/// Packs a chart with one template.
pub(crate) fn chart(name: &str, version: &str) -> Vec<u8> {
    let metadata = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-{{ .Chart.Version }}\n\
               data: {{ .Values | toJson }}\n";
    let place = |path: &str| format!("{name}/{path}");
    testkit::archive::tar_gz(&[
        (&place("Chart.yaml"), metadata.as_bytes()),
        (&place("values.yaml"), b"color: red\nsize: small\n"),
        (&place("templates/map.yaml"), map.as_bytes()),
    ])
}
