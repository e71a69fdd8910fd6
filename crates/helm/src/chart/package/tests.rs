use tree::{Limits, Mem};

use super::*;

const MAX_FILE: u64 = 1 << 20;

fn budget() -> Budget {
    Budget::new(Limits::default())
}

fn of(files: &[(&str, &str)]) -> Result<Package, Error> {
    let tree = Mem::from_files(
        files
            .iter()
            .map(|(name, text)| (format!("c/{name}"), (*text).to_owned())),
    )
    .unwrap();
    Package::from_directory(&tree, &TreePath::parse("c").unwrap(), MAX_FILE, &budget())
}

fn archived(package: &Package) -> Vec<u8> {
    let mut bytes = Vec::new();
    package.write(&mut bytes).unwrap();
    bytes
}

fn read_values(package: &Package) -> (String, Bytes) {
    (
        "values.yaml".to_owned(),
        package.file("values.yaml").unwrap().clone(),
    )
}

const CHART: (&str, &str) = (
    "Chart.yaml",
    "# of the shop\napiVersion: v2\nname: shop\nversion: 1.2.3-rc.1+old\n",
);

#[test]
fn package_is_read_again_with_its_version_and_values() {
    let files = [
        CHART,
        ("values.yaml", "a: 1\nb: {c: x, d: y}\n"),
        ("more.yaml", "b: {d: z}\ne: [1]\n"),
        ("templates/a.yaml", "a: {{ .Values.a }}\n"),
    ];
    let mut package = of(&files).unwrap();
    assert_eq!((package.name(), package.version()), ("shop", "1.2.3-rc.1+old"));
    let same = archived(&package);
    assert_eq!(same, archived(&of(&files).unwrap()), "the bytes differ");

    let version = with_build(package.version(), "abc.2").unwrap();
    package.set_version(&version, &budget()).unwrap();
    let read = |name: &str| (name.to_owned(), package.file(name).unwrap().clone());
    let merged = vec![read("values.yaml"), read("more.yaml")];
    package.merge_values(merged, &budget()).unwrap();
    let once = archived(&package);
    // Equal values leave the file unchanged.
    let own = vec![read_values(&package)];
    package.merge_values(own, &budget()).unwrap();
    assert_eq!(archived(&package), once);
    let again = Package::from_archive(&archived(&package), "x.tgz", MAX_FILE, &budget()).unwrap();
    assert_eq!(again.version(), "1.2.3-rc.1+abc.2");
    let values = again.file("values.yaml").unwrap();
    assert_eq!(values.as_ref(), b"a: 1\nb:\n  c: x\n  d: z\ne:\n- 1\n");
    let template = again.file("templates/a.yaml").unwrap();
    assert_eq!(template.as_ref(), b"a: {{ .Values.a }}\n");
}

#[test]
fn invalid_build_metadata_and_values_are_refused() {
    for (version, build) in [("1.2.3", "a_b"), ("1.2.3", ""), ("x", "1")] {
        let error = with_build(version, build).unwrap_err().to_string();
        assert!(error.starts_with("failed to set semver metadata"), "{error}");
    }
    let mut package = of(&[CHART]).unwrap();
    let file = |text: &'static str| vec![("v.yaml".to_owned(), Bytes::from_static(text.as_bytes()))];
    let error = package.merge_values(file("a: 1"), &budget()).unwrap_err();
    assert_eq!(error.to_string(), "failed to locate values file: values.yaml");
    let error = package.merge_values(file("[]"), &budget()).unwrap_err();
    assert!(error.to_string().contains("failed to parse v.yaml"), "{error}");
}

#[test]
fn missing_dependencies_are_those_of_the_lock_that_are_not_there() {
    let wanted = "dependencies: [{name: a, version: 1.x, repository: 'https://h', alias: one}, {name: b, version: ^2, repository: 'file://../b'}]\n";
    let declared = format!("{}{wanted}", CHART.1);
    let unlocked = of(&[("Chart.yaml", &declared)]).unwrap();
    let alias_or_name = |package: &Package| {
        let missing = package.missing().into_iter();
        missing
            .map(|one| format!("{} {} {}", one.alias_or_name(), one.version, one.repository))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        alias_or_name(&unlocked),
        ["one 1.x https://h", "b ^2 file://../b"]
    );
    let lock = "dependencies: [{name: a, version: 1.4.0, repository: 'https://h'}]\n";
    let locked = [("Chart.yaml", declared.as_str()), ("Chart.lock", lock)];
    assert_eq!(alias_or_name(&of(&locked).unwrap()), ["a 1.4.0 https://h"]);

    let mut whole = of(&locked).unwrap();
    let one = of(&[
        ("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.4.0\n"),
        ("values.yaml", "x: 1\n"),
    ])
    .unwrap();
    whole.add(&one);
    assert_eq!(alias_or_name(&whole), [""; 0]);
    let again = Package::from_archive(&archived(&whole), "x.tgz", MAX_FILE, &budget()).unwrap();
    assert_eq!(
        (again.present.as_slice(), alias_or_name(&again)),
        (&["a".to_owned()][..], Vec::new())
    );
    // Another version of the same chart gets its own directory.
    let other = of(&[("Chart.yaml", "apiVersion: v2\nname: a\nversion: 2.0.0\n")]).unwrap();
    whole.add(&other);
    assert!(
        whole.file("charts/a/values.yaml").is_some() && whole.file("charts/a-2.0.0/Chart.yaml").is_some()
    );
}

#[test]
fn files_beyond_the_limit_are_refused() {
    let large = "x".repeat(2000);
    let tree = Mem::from_files([("c/Chart.yaml", CHART.1.to_owned()), ("c/large", large)]).unwrap();
    let path = TreePath::parse("c").unwrap();
    let error = Package::from_directory(&tree, &path, 1000, &budget())
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "chart file \"large\" is larger than the maximum file size 1000"
    );
    let whole = Package::from_directory(&tree, &path, 2000, &budget()).unwrap();
    let error = Package::from_archive(&archived(&whole), "x.tgz", 1000, &budget())
        .unwrap_err()
        .to_string();
    let expected = "decompressed chart file \"shop/large\" is larger than the maximum file size 1000";
    assert_eq!(error, expected);
}
