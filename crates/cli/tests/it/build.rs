//! `weir kustomize build`.

use std::{fs, path::Path};

use tempfile::TempDir;

use crate::program::{MAP, SPACE, files, printed, refused, weir};

fn shop() -> TempDir {
    files(&[
        ("base/kustomization.yaml", "resources: [map.yaml, space.yaml]\n"),
        ("base/map.yaml", MAP),
        ("base/space.yaml", SPACE),
        (
            "over/kustomization.yaml",
            "resources: [../base]\nnamePrefix: a-\n",
        ),
        ("open/kustomization.yaml", "resources: [../base/map.yaml]\n"),
    ])
}

#[test]
fn objects_come_by_kind_unless_told_otherwise() {
    let shop = shop();
    let map = MAP.replace("name: m", "name: a-m");
    assert_eq!(
        printed(&weir(shop.path(), &["over"])),
        format!("{SPACE}---\n{map}")
    );
    assert_eq!(
        printed(&weir(shop.path(), &["over", "--reorder", "none"])),
        format!("{map}---\n{SPACE}")
    );
    assert_eq!(
        printed(&weir(&shop.path().join("base"), &[])),
        format!("{SPACE}---\n{MAP}")
    );
    assert_eq!(
        printed(&weir(&shop.path().join("base"), &["../over", "--reorder=legacy"])),
        format!("{SPACE}---\n{map}")
    );
}

#[test]
fn files_elsewhere_are_read_only_when_that_is_allowed() {
    let shop = shop();
    let said = refused(&weir(shop.path(), &["open"]));
    let root = shop.path().canonicalize().unwrap();
    let expected = format!(
        "security; file '{root}/base/map.yaml' is not in or below '{root}/open'",
        root = root.display()
    );
    assert!(said.contains(&expected), "{said}");
    let arguments = ["open", "--load-restrictor", "LoadRestrictionsNone"];
    assert_eq!(printed(&weir(shop.path(), &arguments)), MAP);
}

#[test]
fn output_goes_to_a_file_or_one_file_for_each_object() {
    let shop = shop();
    assert_eq!(printed(&weir(shop.path(), &["base", "-o", "all.yaml"])), "");
    assert_eq!(
        fs::read_to_string(shop.path().join("all.yaml")).unwrap(),
        format!("{SPACE}---\n{MAP}")
    );
    fs::create_dir(shop.path().join("out")).unwrap();
    assert_eq!(printed(&weir(shop.path(), &["base", "--output", "out"])), "");
    for (name, text) in [("v1_configmap_m.yaml", MAP), ("v1_namespace_s.yaml", SPACE)] {
        assert_eq!(
            fs::read_to_string(shop.path().join("out").join(name)).unwrap(),
            text
        );
    }
    let said = refused(&weir(shop.path(), &["base", "-o", "no/where.yaml"]));
    assert!(said.contains("write no/where.yaml: "), "{said}");
}

#[test]
fn objects_are_labelled_on_demand() {
    let shop = shop();
    let label = "app.kubernetes.io/managed-by: kustomize-v5.8.1";
    let has = |arguments: &[&str]| printed(&weir(shop.path(), arguments)).contains(label);
    assert!(has(&["base", "--enable-managedby-label"]));
    assert!(has(&["--enable-managedby-label", "base"]));
    assert!(!has(&["base", "--enable-managedby-label=false"]));
}

#[test]
fn deprecated_fields_are_warned_of() {
    let dir = files(&[
        (
            "kustomization.yaml",
            "resources: [map.yaml]\ncommonLabels: {a: b}\n",
        ),
        ("map.yaml", MAP),
    ]);
    let output = weir(dir.path(), &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.starts_with("# Warning: 'commonLabels' is deprecated."),
        "{said}"
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("    a: b\n"));
}

#[test]
fn nothing_comes_of_nothing() {
    let dir = files(&[("kustomization.yaml", "# later\n")]);
    let said = refused(&weir(dir.path(), &[]));
    assert!(said.contains("kustomization.yaml is empty"), "{said}");
}

#[test]
fn errors_say_what_is_wrong() {
    let shop = shop();
    fs::write(shop.path().join("file"), "").unwrap();
    let root = shop.path().canonicalize().unwrap();
    let missing = format!(
        "not a valid directory: evalsymlink failure on 'nope' : lstat {}/nope: no such file or directory",
        root.display()
    );
    let empty = format!(
        "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in directory '{}'",
        root.display()
    );
    for (arguments, expected) in [
        (&["nope"][..], missing.as_str()),
        (
            &["file"],
            "must build at directory: 'file': file is not directory",
        ),
        (&["."], &empty),
        (
            &["https://u:secret@example.com/a"],
            "'https://example.com/a' is no address of a repository: failed to parse repo path segment",
        ),
        (
            &["ssh://git@example.com/a/b"],
            "fetching ssh://git@example.com/a/b: ssh is not supported",
        ),
        (&["file:///a"], "fetching file:///a: file:// is not supported"),
        (&["a", "b"], "unexpected argument 'b'"),
        (&["--reorder", "x"], "invalid value 'x'"),
        (
            &["--helm-command=x"],
            "--helm-command is not supported: no program is run",
        ),
        (&["--enable-alpha-plugins"], "no programs or containers are run"),
        (&["--network=true"], "--network is not supported"),
        (&["-e", "A=b"], "-e is not supported"),
        (&["--nope"], "unexpected argument '--nope'"),
    ] {
        let said = refused(&weir(&root, arguments));
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn help_names_the_flags() {
    let output = weir(Path::new("."), &["--help"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    for flag in [
        "--output",
        "--load-restrictor",
        "--reorder",
        "--enable-managedby-label",
    ] {
        assert!(said.contains(flag), "{said}");
    }
}
