//! Charts with files of any bytes, rendered by this crate and by Helm: both must print the same.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use testkit::archive::tar_gz;
use tree::{Budget, Disk, Limits, TreePath};

use crate::{
    options::{Fixed, parse},
    structure::{compared, original_program as original},
};

/// Templates of each file: `$s` is its content, `$n` its name.
const OF_FILES: &str = include_str!("binary/files.tpl");

/// Templates of no file.
const OTHERS: &str = include_str!("binary/others.tpl");

fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("bin", b"\xff\xfe\x80A".to_vec()),
        ("latin", b"caf\xe9\nna\xefve \xa9\n".to_vec()),
        (
            "cut",
            b"\xc3\xa9\xc3\n\xa9\xe2\x82 x\xe2\x82\xac\xf0\x9f\x98".to_vec(),
        ),
        ("all", (0..=255).collect()),
        ("private", "\u{10ff80}-\u{10ffff}-\u{10fffd}".into()),
        (
            "private-cut",
            b"\xf4\x8f\xbe\x80\xf4\x8f\xbf\xf4\x8f\xbe\x81".to_vec(),
        ),
        ("plain", "Plain text, é\nü\n".into()),
        ("empty-line", b"\n".to_vec()),
    ]
}

/// Returns the expressions; those marked with `~` only for files without characters that stand for bytes in this crate, which are
/// several characters in functions that count them.
fn expressions(all: &'static str, file: &str) -> Vec<&'static str> {
    let private = file.starts_with("private");
    let lines = all.lines().filter(|line| !line.is_empty());
    let lines = lines.filter_map(|line| match line.strip_prefix("~ ") {
        Some(_) if private => None,
        Some(line) => Some(line),
        None => Some(line),
    });
    lines.collect()
}

/// Returns each expression on a line of its own, with its number.
fn lines(expressions: &[&str]) -> String {
    let line = |(n, one): (usize, &&str)| format!("# {n} {{{{ {one} | toString | b64enc }}}}\n");
    expressions.iter().enumerate().map(line).collect()
}

fn chart() -> Vec<(String, Vec<u8>)> {
    let mut made: Vec<(String, Vec<u8>)> = vec![
        (
            "Chart.yaml".to_owned(),
            b"apiVersion: v2\nname: c\nversion: 1.0.0\nmaintainers: [{name: m}]\n".to_vec(),
        ),
        (
            "values.yaml".to_owned(),
            b"m: {a: 1, k: {l: [1, x]}}\nempty: {}\n".to_vec(),
        ),
        (
            "charts/sub/Chart.yaml".to_owned(),
            b"apiVersion: v2\nname: sub\nversion: 1.0.0\n".to_vec(),
        ),
        (
            "templates/others.yaml".to_owned(),
            lines(&expressions(OTHERS, "")).into_bytes(),
        ),
    ];
    for (name, data) in files() {
        let text = format!(
            "{{{{ $n := {name:?} }}}}{{{{ $s := .Files.Get $n }}}}\n{}",
            lines(&expressions(OF_FILES, name))
        );
        for chart in ["", "charts/sub/"] {
            made.push((format!("{chart}{name}"), data.clone()));
        }
        made.push((format!("templates/{name}.yaml"), text.clone().into_bytes()));
        if name == "cut" {
            made.push(("charts/sub/templates/cut.yaml".to_owned(), text.into_bytes()));
        }
    }
    made
}

fn ours(dir: &Path, arguments: &[String]) -> Result<String, String> {
    let environment = Fixed::default();
    let read = |name: &str| Ok(fs::read(dir.join(name))?.into());
    let mut line = parse(arguments, dir, &environment, &read)?;
    line.options.helm_version = compared();
    let tree = Disk::open(dir, &Limits::default()).unwrap();
    let path = TreePath::parse(&line.chart).unwrap();
    let made = helm::template(&tree, &path, &line.options, &Budget::default());
    made.map(|made| made.to_yaml().to_owned())
        .map_err(|error| error.to_string())
}

fn theirs(dir: &Path, arguments: &[String]) -> String {
    let helm = original();
    let output = Command::new(helm)
        .arg("template")
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn failure(dir: &Path, template: &[u8]) -> [String; 2] {
    fs::write(dir.join("top/templates/x.yaml"), template).unwrap();
    let arguments = ["n", "top"].map(str::to_owned);
    let ours = ours(dir, &arguments).unwrap_err();
    let helm = original();
    let output = Command::new(helm)
        .arg("template")
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap();
    let theirs = String::from_utf8_lossy(&output.stderr).into_owned();
    let theirs = theirs.strip_prefix("Error: ").unwrap_or(&theirs);
    let theirs = theirs.split("\n\nUse --debug").next().unwrap_or_default().trim();
    [ours, theirs.to_owned()]
}

#[test]
fn methods_that_fail_or_are_missing_are_named_as_in_the_original() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("top/templates")).unwrap();
    fs::write(
        dir.path().join("top/Chart.yaml"),
        "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    )
    .unwrap();
    for expression in [
        ".Values.Table \"x.y\"",
        ".Values.PathValue \"\"",
        ".PathValue \"Values.x\"",
        ".Values.AsMap 1",
        ".Values.Encode \"x\"",
        ".Capabilities.Foo",
        ".Capabilities.Copy.Foo",
        ".Capabilities.KubeVersion.GitVersion 1",
        ".Capabilities.APIVersions.Foo",
        ".Chart.Validate",
        ".Files.Get",
        "dig \"m\" 1 .Values",
        "dig \"Values\" 1 .",
        "fail \"\\xff\"",
    ] {
        let [ours, theirs] = failure(dir.path(), format!("{{{{ {expression} }}}}").as_bytes());
        assert_eq!(ours, theirs, "{expression}");
    }
}

#[test]
fn templates_that_are_not_utf8_are_refused_with_their_offset() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("top/templates")).unwrap();
    fs::write(
        dir.path().join("top/Chart.yaml"),
        "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    )
    .unwrap();
    let documents: [(&[u8], &str); 4] = [
        (b"a: b # \xe9 x\n", " at offset 7"),
        (b"a: b\n---\nkind: X\nb: \"\xff\"\n", " at offset 21"),
        (b"{{/* \xe9 */}}a: {{ `\xe9` }}\n", " at offset 3"),
        (b"a: {{ \xe9 }}\n", ""),
    ];
    for (template, offset) in documents {
        let [ours, theirs] = failure(dir.path(), template);
        assert_eq!(ours, theirs + offset);
    }
}

/// Returns the lines of all manifests by template and number.
fn by_line(output: &str) -> BTreeMap<(String, String), String> {
    let mut source = String::new();
    let mut lines = BTreeMap::new();
    for line in output.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            continue;
        };
        match comment.strip_prefix("Source: ") {
            Some(path) => path.clone_into(&mut source),
            None => {
                let (number, result) = comment.split_once(' ').unwrap_or((comment, ""));
                lines.insert((source.clone(), number.to_owned()), result.to_owned());
            }
        }
    }
    lines
}

#[test]
fn files_of_any_bytes_are_rendered_as_in_the_original() {
    let dir = tempfile::tempdir().unwrap();
    let files = chart();
    for (name, data) in &files {
        let path = dir.path().join("top").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, data).unwrap();
    }
    let named: Vec<(String, &[u8])> = files
        .iter()
        .map(|(name, data)| (format!("top/{name}"), data.as_slice()))
        .collect();
    let named: Vec<(&str, &[u8])> = named.iter().map(|(name, data)| (name.as_str(), *data)).collect();
    fs::write(dir.path().join("top.tgz"), tar_gz(&named)).unwrap();
    for top in ["top", "top.tgz"] {
        let arguments = [
            "n",
            top,
            "--set-file",
            "file=top/all,cut=top/cut",
            "--set",
            "plain=\u{10ff80}",
        ]
        .map(str::to_owned);
        let ours = ours(dir.path(), &arguments).unwrap();
        let theirs = theirs(dir.path(), &arguments);
        let (ours, theirs) = (by_line(&ours), by_line(&theirs));
        assert!(theirs.len() > 100, "{}", theirs.len());
        let mut wrong = Vec::new();
        for (at, theirs) in &theirs {
            let ours = ours.get(at).map_or("missing", String::as_str);
            if ours != theirs {
                let file = at.0.rsplit('/').next().unwrap_or_default();
                let all = if file == "others.yaml" { OTHERS } else { OF_FILES };
                let line = expressions(all, file)[at.1.parse::<usize>().unwrap()];
                wrong.push(format!("{}: {line}\n  ours   {ours}\n  theirs {theirs}", at.0));
            }
        }
        assert!(
            wrong.is_empty(),
            "{} differ in {top}\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    }
}
