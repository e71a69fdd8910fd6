use super::*;

fn sorted(files: &[(&str, &str)]) -> Result<(Sorted, Vec<String>), String> {
    let mut warnings = Vec::new();
    let sorted = sort(
        files.iter().copied(),
        HelmVersion::V3,
        &mut warnings,
        &Budget::default(),
    );
    sorted
        .map(|sorted| (sorted, warnings))
        .map_err(|error| error.to_string())
}

#[test]
fn split_separates_documents_at_lines() {
    let table: &[(&str, &[&str])] = &[
        ("a: 1", &["a: 1"]),
        ("---\na: 1\n---\nb: 2\n", &["a: 1", "b: 2"]),
        ("a: 1\n--- # words\nb: 2", &["a: 1", "# words\nb: 2"]),
        ("a: 1\n---\n\n---\n# x\n", &["a: 1", "---\n# x"]),
        ("a: |\n  ---\n  b", &["a: |\n  ---\n  b"]),
        ("a: ---\nb: 1", &["a: ---\nb: 1"]),
        ("a: 1\r\n---\r\nb: 2", &["a: 1", "b: 2"]),
        ("", &[]),
    ];
    for (text, expected) in table {
        assert_eq!(split(text, HelmVersion::V3), *expected, "{text:?}");
    }
}

#[test]
fn manifests_are_sorted_by_kind() {
    let kinds = [
        "Zebra",
        "Service",
        "Apple",
        "Namespace",
        "",
        "Deployment",
        "APIService",
        "Service",
    ];
    let texts: Vec<String> = kinds
        .iter()
        .enumerate()
        .map(|(n, kind)| format!("kind: {kind}\nn: {n}"))
        .collect();
    let text = texts.join("\n---\n");
    let (sorted, _) = sorted(&[
        ("c/templates/_x.yaml", "kind: Pod"),
        ("c/templates/x.yaml", &text),
    ])
    .unwrap();
    let kinds: Vec<&str> = sorted.manifests.iter().map(|one| one.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "Namespace",
            "Service",
            "Service",
            "Deployment",
            "APIService",
            "",
            "Apple",
            "Zebra"
        ]
    );
    assert!(sorted.manifests[1].text.ends_with("n: 1"));
}

#[test]
fn hooks_are_separated_from_manifests() {
    let hook = |hook: &str, weight: &str| {
        format!(
            "kind: Job\nmetadata: {{name: 1, annotations: {{helm.sh/hook: '{hook}', helm.sh/hook-weight: {weight}}}}}"
        )
    };
    let texts = [
        hook("pre-install, Post-Upgrade", "5"),
        hook("test-success", "'x'"),
        hook("pre-install,no", "1"),
    ];
    let (sorted, warnings) = sorted(&[("c/x.yaml", &texts.join("\n---\n"))]).unwrap();
    assert_eq!(sorted.hooks[0].events, ["pre-install", "post-upgrade"]);
    assert_eq!((sorted.hooks[0].weight, sorted.hooks[1].weight), (5, 0));
    assert!(sorted.hooks[1].is_test() && !sorted.hooks[0].is_test());
    assert_eq!(warnings, ["info: skipping unknown hook: \"pre-install,no\""]);
    assert_eq!((sorted.hooks.len(), sorted.manifests.len()), (2, 0));
}

#[test]
fn sort_refuses_invalid_manifests() {
    let table = [
        (
            "words",
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type releaseutil.SimpleHead",
        ),
        (
            "- a",
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type releaseutil.SimpleHead",
        ),
        (
            "kind: [a]",
            "json: cannot unmarshal array into Go struct field SimpleHead.kind of type string",
        ),
        (
            "metadata: {annotations: {a: [b]}}",
            "json: cannot unmarshal array into Go struct field .metadata.annotations of type string",
        ),
        ("a: [", "error converting YAML to JSON: yaml: line "),
    ];
    for (text, expected) in table {
        let got = sorted(&[("c/x.yaml", text)]).unwrap_err();
        assert!(
            got.starts_with("YAML parse error on c/x.yaml: ") && got.contains(expected),
            "{text}: {got}"
        );
    }
    for fine in [
        "# nothing",
        "metadata: {annotations: {a: 1, b: true, c: null}}",
        "kind: 5",
        "KIND: x",
    ] {
        assert!(sorted(&[("c/x.yaml", fine)]).is_ok(), "{fine}");
    }
}

#[test]
fn show_only_selects_templates() {
    let mut output = String::new();
    for path in [
        "c/templates/a.yaml",
        "c/templates/sub/b.yaml",
        "c/charts/d/templates/a.yaml",
    ] {
        print(path, "kind: X", &mut output);
    }
    let show = |paths: &[&str]| {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        show_only(&output, &paths, HelmVersion::V3).map_err(|error| error.to_string())
    };
    let one = |path: &str| format!("---\n# Source: {path}\nkind: X\n");
    assert_eq!(show(&["templates/*.yaml"]), Ok(one("c/templates/a.yaml")));
    assert_eq!(
        show(&["charts/d/templates/a.yaml", "templates/sub/b.yaml"]),
        Ok(one("c/charts/d/templates/a.yaml") + &one("c/templates/sub/b.yaml"))
    );
    assert_eq!(
        show(&["templates/none.yaml"]),
        Err("could not find template templates/none.yaml in chart".to_owned())
    );
}

#[test]
fn split_agrees_with_the_regular_expression_of_helm() {
    let separator = regex::Regex::new(r"(?:^|[\t\n\x0C\r ]*\n)---[\t\n\x0C\r ]*").unwrap();
    let pieces = ["", "---", "\n", " ", "-", "a", "\u{a0}", "\x0C"];
    let mut texts = vec![String::new()];
    for _ in 0..6 {
        texts = texts
            .iter()
            .flat_map(|text| pieces.map(|piece| format!("{text}{piece}")))
            .collect();
        texts.sort();
        texts.dedup();
    }
    for text in texts {
        let parts = separator.split(text.trim()).filter(|one| !one.is_empty());
        let expected: Vec<&str> = parts.map(str::trim).collect();
        assert_eq!(super::split(&text, HelmVersion::V3), expected, "{text:?}");
    }
}
