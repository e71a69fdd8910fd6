//! `weir kustomize build`.

use std::fs;

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
fn reorder_selects_the_order_of_objects() {
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
fn load_restrictor_limits_files_to_the_kustomization() {
    let shop = shop();
    let stderr = refused(&weir(shop.path(), &["open"]));
    let root = shop.path().canonicalize().unwrap();
    let expected = format!(
        "security; file '{root}/base/map.yaml' is not in or below '{root}/open'",
        root = root.display()
    );
    assert!(stderr.contains(&expected), "{stderr}");
    let arguments = ["open", "--load-restrictor", "LoadRestrictionsNone"];
    assert_eq!(printed(&weir(shop.path(), &arguments)), MAP);
}

#[test]
fn output_writes_one_file_or_one_per_object() {
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
    let stderr = refused(&weir(shop.path(), &["base", "-o", "no/where.yaml"]));
    assert!(stderr.contains("write no/where.yaml: "), "{stderr}");
}

#[test]
fn enable_managedby_label_adds_the_label() {
    let shop = shop();
    let label = "app.kubernetes.io/managed-by: kustomize-v5.8.1";
    let has = |arguments: &[&str]| printed(&weir(shop.path(), arguments)).contains(label);
    assert!(has(&["base", "--enable-managedby-label"]));
    assert!(has(&["--enable-managedby-label", "base"]));
    assert!(!has(&["base", "--enable-managedby-label=false"]));
}

#[test]
fn deprecated_fields_print_a_warning() {
    let dir = files(&[
        (
            "kustomization.yaml",
            "resources: [map.yaml]\ncommonLabels: {a: b}\n",
        ),
        ("map.yaml", MAP),
    ]);
    let output = weir(dir.path(), &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stderr.starts_with("# Warning: 'commonLabels' is deprecated."),
        "{stderr}"
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("    a: b\n"));
}

#[test]
fn empty_kustomization_is_refused() {
    let dir = files(&[("kustomization.yaml", "# later\n")]);
    let stderr = refused(&weir(dir.path(), &[]));
    assert!(stderr.contains("kustomization.yaml is empty"), "{stderr}");
}

#[test]
fn build_errors_name_argument_and_cause() {
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
            "'https://example.com/a' is not a valid repository URL: failed to parse repo path segment",
        ),
        (
            &["ssh://git@169.254.169.254/a/b"],
            "link-local addresses are not allowed",
        ),
        (&["file:///a"], "fetching file:///a: file:// is not supported"),
        (&["a", "b"], "unexpected argument 'b'"),
        (&["--reorder", "x"], "invalid value 'x'"),
        (
            &["--helm-command=x"],
            "--helm-command is not supported: no program is run",
        ),
        (
            &["--enable-alpha-plugins"],
            "exec and container plugins are not supported",
        ),
        (&["--network=true"], "--network is not supported"),
        (&["-e", "A=b"], "-e is not supported"),
        (&["--nope"], "unexpected argument '--nope'"),
    ] {
        let stderr = refused(&weir(&root, arguments));
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("secret"), "{stderr}");
    }
}
