use tree::{Limits, Mem};

use super::*;

/// Builds a directory with these files, and returns the output or the error.
fn built(files: &[(&str, &str)]) -> String {
    let mut tree = Mem::new();
    for (path, text) in files {
        tree.insert(TreePath::parse(path).unwrap(), text.as_bytes().to_vec(), false);
    }
    let dir = TreePath::parse("d").unwrap();
    match build(&tree, &dir, &Options::default(), &Budget::default()) {
        Ok(build) => build.to_yaml(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn local_config_objects_are_dropped() {
    let local = |value: &str| {
        let annotations = format!("annotations: {{config.kubernetes.io/local-config: {value}}}");
        let objects = format!("{{apiVersion: v1, kind: A, metadata: {{name: a, {annotations}}}}}");
        built(&[
            ("d/kustomization.yaml", "resources: [r.yaml]"),
            ("d/r.yaml", &objects),
        ])
    };
    assert_eq!(local("'true'"), "");
    assert_eq!(local("x"), "");
    assert!(local("'false'").contains("kind: A\n"));
}

#[test]
fn objects_that_became_equal_are_refused() {
    let patch = "- {op: replace, path: /metadata/name, value: a}";
    let kustomization =
        format!("{{resources: [r.yaml], patches: [{{target: {{name: b}}, patch: '{patch}'}}]}}");
    for more in ["", ", annotations: {config.kubernetes.io/local-config: x}"] {
        let object =
            |name: &str, more: &str| format!("{{apiVersion: v1, kind: A, metadata: {{name: {name}{more}}}}}");
        let objects = format!("{}\n---\n{}", object("a", ""), object("b", more));
        let refused = built(&[("d/kustomization.yaml", &kustomization), ("d/r.yaml", &objects)]);
        assert_eq!(
            refused,
            "d/r.yaml:3: may not add resource with an already registered id: A.v1.[noGrp]/a.[noNs]"
        );
    }
}

/// Returns the error of a build with limits of bytes and objects.
fn limited(files: &[(&str, String)], bytes: u64, objects: u64) -> String {
    let tree = Mem::from_files(files.iter().cloned()).unwrap();
    let budget = Budget::new(Limits {
        bytes,
        objects,
        ..Limits::default()
    });
    let dir = TreePath::parse("d").unwrap();
    let error = build(&tree, &dir, &Options::default(), &budget).unwrap_err();
    assert!(error.exceeded().is_some(), "{error}");
    error.to_string()
}

const OBJECT: &str = "{apiVersion: v1, kind: A, metadata: {name: a}}";
const FILES_END: &str = "the limit of 100000 bytes of files in one build was reached";
const OUTPUT_ENDS: &str = "the limit of 100000 bytes of rendered output was reached";

#[test]
fn file_counts_for_every_reference() {
    let large = |begin: &str, end: &str| format!("{begin}{}{end}", "x".repeat(10_000));
    let entries = |field: &str, entry: &dyn Fn(usize) -> String| {
        let entries: Vec<_> = (0..1000).map(entry).collect();
        format!("{field}: [{}]", entries.join(", "))
    };
    let patch = large("{apiVersion: v1, kind: A, metadata: {name: a}, spec: ", "}");
    for (kustomization, file) in [
        (
            entries("configMapGenerator", &|n| format!("{{name: m{n}, files: [f]}}")),
            large("", ""),
        ),
        (
            entries("secretGenerator", &|n| format!("{{name: m{n}, envs: [f]}}")),
            large("A=", ""),
        ),
        (entries("patches", &|_| "{path: f}".to_owned()), patch.clone()),
        (entries("patchesStrategicMerge", &|_| "f".to_owned()), patch),
        (
            entries("replacements", &|_| "{path: f}".to_owned()),
            large("{source: {kind: A}, targets: [], sourceValue: ", "}"),
        ),
    ] {
        let files = [("d/kustomization.yaml", kustomization), ("d/f", file)];
        let problem = limited(&files, 100_000, 20_000);
        assert!(problem.ends_with(FILES_END), "{problem}");
    }
}

#[test]
fn value_written_to_many_objects_counts_for_each() {
    let objects: Vec<_> = (0..200)
        .map(|n| OBJECT.replace("name: a", &format!("name: a{n}")))
        .collect();
    let objects = objects.join("\n---\n");
    let text = "x".repeat(2_000);
    let patch = format!("{{apiVersion: v1, kind: A, metadata: {{name: a}}, spec: {text}}}");
    let json = format!("[{{\"op\": \"add\", \"path\": \"/spec\", \"value\": \"{text}\"}}]");
    for field in [
        format!("namePrefix: {text}"),
        format!("namespace: {text}"),
        format!("commonLabels: {{a: {text}}}"),
        format!("commonAnnotations: {{a: {text}}}"),
        format!("patches: [{{target: {{kind: A}}, patch: '{patch}'}}]"),
        format!("patches: [{{target: {{kind: A}}, patch: '{json}'}}]"),
    ] {
        let files = [
            ("d/kustomization.yaml", format!("resources: [r.yaml]\n{field}\n")),
            ("d/r.yaml", objects.clone()),
        ];
        let problem = limited(&files, 100_000, 20_000);
        assert!(problem.ends_with(OUTPUT_ENDS), "{field:.40}: {problem}");
    }
}

/// Each layer is included twice by the next: the top has a million times the objects of the bottom.
#[test]
fn doubling_layers_end_at_a_limit() {
    let mut files = vec![
        (
            "b0/kustomization.yaml".to_owned(),
            "resources: [r.yaml]".to_owned(),
        ),
        ("b0/r.yaml".to_owned(), OBJECT.to_owned()),
    ];
    for n in 1..=20 {
        let below = n - 1;
        for side in ["l", "r"] {
            let kustomization = format!("namePrefix: {side}\nresources: [../b{below}]\n");
            files.push((format!("{side}{n}/kustomization.yaml"), kustomization));
        }
        let kustomization = format!("resources: [../l{n}, ../r{n}]\n");
        files.push((format!("b{n}/kustomization.yaml"), kustomization));
    }
    files.push((
        "d/kustomization.yaml".to_owned(),
        "resources: [../b20]".to_owned(),
    ));
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.clone()))
        .collect();
    let problem = limited(&files, 64 << 20, 100);
    assert!(
        problem.ends_with("the limit of 100 objects was reached"),
        "{problem}"
    );
    let problem = limited(&files, 100_000, 1 << 40);
    assert!(problem.ends_with(FILES_END), "{problem}");
}

#[test]
fn generators_end_at_the_limit_of_objects() {
    let entries: Vec<_> = (0..200).map(|n| format!("{{name: m{n}}}")).collect();
    let kustomization = format!("configMapGenerator: [{}]", entries.join(", "));
    let problem = limited(&[("d/kustomization.yaml", kustomization)], 64 << 20, 100);
    assert!(
        problem.ends_with("the limit of 100 objects was reached"),
        "{problem}"
    );
}

/// Builds an object in block style with a patch and a replacement of one of its fields by another.
#[test]
fn large_numbers_print_as_in_the_original() {
    for (number, printed) in [
        ("-9223372036854775809", "-9.223372036854776e+18"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("12345678901234567890.0", "12345678901234567000"),
        ("12345678901234567890", "12345678901234567890"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("9007199254740993", "9007199254740993"),
        ("1e18", "1000000000000000000"),
        ("1e20", "1e+20"),
    ] {
        let object = format!("{{apiVersion: v1, kind: A, metadata: {{name: a}}, v: {number}}}");
        let found = built(&[
            ("d/kustomization.yaml", "resources: [r.yaml]"),
            ("d/r.yaml", &object),
        ]);
        assert!(found.contains(&format!("\nv: {printed}\n")), "{number}: {found}");
    }
}

fn replaced(patch: &str, from: &str, to: &str) -> String {
    let object = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  namespace: one\nm:\n  n: 1\n";
    let targets = format!("[{{select: {{kind: A}}, fieldPaths: [{to}]}}]");
    let replacement = format!("{{source: {{kind: A, fieldPath: {from}}}, targets: {targets}}}");
    let kustomization = format!(
        "{{resources: [r.yaml], patches: [{{target: {{kind: A}}, patch: '{patch}'}}], replacements: [{replacement}]}}"
    );
    built(&[("d/kustomization.yaml", &kustomization), ("d/r.yaml", object)])
}

#[test]
fn json_patch_keeps_numbers() {
    let patch = "- {op: add, path: /new, value: true}";
    for to in ["m.n", "new"] {
        let refused = replaced(patch, "metadata.name", to);
        assert!(refused.contains("cannot read \"a\" as !!"), "{refused}");
    }
}

#[test]
fn strategic_merge_patch_resolves_the_namespace_again() {
    let patch = "{apiVersion: v1, kind: A, metadata: {name: a}, new: 1}";
    let printed = replaced(patch, "m", "metadata.namespace");
    assert!(printed.contains("  namespace: null\n"), "{printed}");
}

#[test]
fn objects_whose_names_are_lists_are_not_renamed() {
    let object = "{apiVersion: v1, kind: A, metadata: {name: \"a,b\"}}";
    let with = |more: &str| {
        let kustomization = format!("{{resources: [r.yaml]{more}}}");
        built(&[("d/kustomization.yaml", &kustomization), ("d/r.yaml", object)])
    };
    assert!(with("").contains("name: a,b\n"));
    let refused = with(", namePrefix: p-");
    assert!(
        refused.starts_with("d/r.yaml:1: a name, namespace or kind that was changed"),
        "{refused}"
    );
}

#[test]
fn patch_after_a_replacement_makes_strings() {
    let target = "{select: {kind: A}, fieldPaths: [new.b], options: {create: true}}";
    for (value, expected) in [("1", "b: \"1\""), ("", "b: null"), ("x", "b: x")] {
        let below = format!(
            "{{resources: [r.yaml], replacements: [{{sourceValue: '{value}', targets: [{target}]}}]}}"
        );
        let patch = "{apiVersion: v1, kind: A, metadata: {name: a}}";
        let printed = built(&[
            (
                "d/kustomization.yaml",
                &format!("{{resources: [../b], patches: [{{patch: '{patch}'}}]}}"),
            ),
            ("b/kustomization.yaml", &below),
            ("b/r.yaml", OBJECT),
        ]);
        assert!(printed.ends_with(&format!("new:\n  {expected}\n")), "{printed}");
    }
}

#[test]
fn replaced_labels_are_no_longer_shared() {
    let object = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: {matchLabels: {}}}}";
    for (directive, expected) in [("$patch: replace, ", "    app: a\n"), ("", "    app: z\n")] {
        let spec = format!("{{{directive}podSelector: {{matchLabels: {{app: z}}}}}}");
        let patch = format!(
            "{{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {{name: a}}, spec: {spec}}}"
        );
        let printed = built(&[
            (
                "d/kustomization.yaml",
                &format!("{{resources: [../b], patches: [{{patch: '{patch}'}}]}}"),
            ),
            (
                "b/kustomization.yaml",
                "{resources: [r.yaml], labels: [{includeSelectors: true, pairs: {app: a}}]}",
            ),
            ("b/r.yaml", object),
        ]);
        assert!(printed.contains(&format!("  labels:\n{expected}")), "{printed}");
        assert!(printed.contains("matchLabels:\n      app: z\n"), "{printed}");
    }
}

#[test]
fn labels_in_lists_are_shared() {
    let object = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, labels: {app: z}}, spec: {\
        template: {metadata: {labels: {app: z}}}, volumeClaimTemplates: [{}]}}";
    let printed = built(&[
        (
            "d/kustomization.yaml",
            "{resources: [../b], labels: [{includeTemplates: true, pairs: {app: a}}]}",
        ),
        (
            "b/kustomization.yaml",
            "{resources: [r.yaml], commonLabels: {app: b}}",
        ),
        ("b/r.yaml", object),
    ]);
    assert!(printed.contains("matchLabels:\n      app: a\n"), "{printed}");
    assert!(!printed.contains("app: b"), "{printed}");
}

#[test]
fn rewritten_annotations_are_no_longer_shared() {
    let object = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {}}}";
    for (metadata, expected) in [("", 2), (", buildMetadata: [transformerAnnotations]", 1)] {
        let patch = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {k: new}}}";
        let printed = built(&[
            (
                "d/kustomization.yaml",
                &format!("{{namePrefix: p-, resources: [../b], patches: [{{patch: '{patch}'}}]{metadata}}}"),
            ),
            (
                "b/kustomization.yaml",
                "{resources: [r.yaml], commonAnnotations: {k: old}}",
            ),
            ("b/r.yaml", object),
        ]);
        assert_eq!(printed.matches("k: new").count(), expected, "{printed}");
    }
}

#[test]
fn empty_string_in_place_of_a_list_is_ignored() {
    let replacement = "{sourceValue: '', targets: [{select: {}, fieldPaths: [spec.rules]}]}";
    let error = built(&[
        (
            "d/kustomization.yaml",
            &format!("{{resources: [r.yaml], replacements: [{replacement}]}}"),
        ),
        (
            "d/r.yaml",
            "{kind: Ingress, metadata: {name: a}, spec: {rules: []}}",
        ),
    ]);
    let field = "updating name reference in 'spec/rules/http/paths/backend/serviceName' field of ";
    assert!(error.contains(field), "{error}");
    assert!(error.ends_with("expected sequence or mapping node"), "{error}");
}

#[test]
fn removing_annotations_removes_the_recorded_history() {
    let merge = |metadata: &str| {
        format!(
            "patches: [{{patch: '{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, {metadata}}}}}'}}]"
        )
    };
    let operation = r#"{"op": "add", "path": "/metadata", "value": {"name": "a"}}"#;
    let json = format!("patches: [{{target: {{kind: ConfigMap}}, patch: '[{operation}]'}}]");
    for (patch, is_hashed) in [
        (merge("labels: null"), true),
        (merge("annotations: null"), false),
        (merge("annotations: {a: b}"), true),
        (merge("annotations: {a: b, $patch: replace}"), false),
        (json, true),
    ] {
        let kustomization = format!("{{configMapGenerator: [{{name: a}}], {patch}}}");
        let printed = built(&[("d/kustomization.yaml", &kustomization)]);
        assert_eq!(printed.contains("name: a-"), is_hashed, "{patch}: {printed}");
    }
}

#[test]
fn json_patch_can_remove_the_origin() {
    for (path, is_told) in [("/metadata", false), ("/other", true)] {
        let operation = format!(r#"{{"op": "add", "path": "{path}", "value": {{"name": "a"}}}}"#);
        let patch = format!("{{target: {{kind: A}}, patch: '[{operation}]'}}");
        let printed = built(&[
            (
                "d/kustomization.yaml",
                &format!(
                    "{{resources: [r.yaml], patches: [{patch}], buildMetadata: [transformerAnnotations]}}"
                ),
            ),
            ("d/r.yaml", "{apiVersion: v1, kind: A, metadata: {name: a}}"),
        ]);
        assert_eq!(printed.contains("PatchTransformer"), is_told, "{printed}");
    }
}

#[test]
fn an_object_may_be_without_a_name_until_the_end() {
    let rename = r#"patches: [{target: {}, patch: '[{"op": "remove", "path": "/metadata/name"}]'}]"#;
    let delete = "patches: [{patch: '{$patch: delete, apiVersion: v1, kind: A, metadata: {name: a}}'}]";
    for (patch, expected) in [
        (
            "",
            "b/r.yaml:1: missing metadata.name in object {{v1 A} {{ } map[] map[",
        ),
        (delete, ""),
    ] {
        let printed = built(&[
            ("d/kustomization.yaml", &format!("{{resources: [../b], {patch}}}")),
            (
                "b/kustomization.yaml",
                &format!("{{resources: [r.yaml], {rename}}}"),
            ),
            ("b/r.yaml", "{apiVersion: v1, kind: A, metadata: {name: a}}"),
        ]);
        assert!(
            printed.starts_with(expected) && printed.is_empty() == expected.is_empty(),
            "{printed}"
        );
    }
}

#[test]
fn objects_that_are_the_same_are_refused_where_a_patch_is_merged() {
    let rename = r#"{target: {}, patch: '[{"op": "add", "path": "/metadata/name", "value": "c"}]'}"#;
    let merge = |patch: &str| {
        let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";
        let made = "configMapGenerator: [{name: b}]";
        let kustomization = format!("{{resources: [r.yaml], {made}, patches: [{rename}{patch}]}}");
        built(&[("d/kustomization.yaml", &kustomization), ("d/r.yaml", object)])
    };
    assert_eq!(merge("").matches("name: c").count(), 2);
    for target in ["", "name: none"] {
        let patch = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}";
        let refused = merge(&format!(", {{target: {{{target}}}, patch: '{patch}'}}"));
        let problem = "may not add resource with an already registered id: ConfigMap.v1.[noGrp]/c.[noNs]";
        assert!(refused.ends_with(problem), "{refused}");
    }
}

#[test]
fn managed_by_label_requires_a_map() {
    let labelled = |labels: &str| {
        let object = format!("{{apiVersion: v1, kind: A, metadata: {{name: a}}, labels: {labels}}}");
        let patch = r#"[{"op": "move", "from": "/labels", "path": "/metadata/labels"}]"#;
        let kustomization = format!(
            "{{resources: [r.yaml], buildMetadata: [managedByLabel], patches: [{{target: {{}}, patch: '{patch}'}}]}}"
        );
        built(&[("d/kustomization.yaml", &kustomization), ("d/r.yaml", &object)])
    };
    let label = "labels:\n    app.kubernetes.io/managed-by: kustomize-v5.8.1\n";
    assert!(labelled("null").contains(label), "{}", labelled("null"));
    let refused = labelled("x");
    assert!(
        refused.ends_with("wrong node kind: expected MappingNode but got ScalarNode"),
        "{refused}"
    );
}

/// Builds that take the product of two parts of their files, which the budget ends before the product is done.
#[test]
fn products_of_a_kustomization_are_counted() {
    let costly = "(a*){300}b$";
    let long = "a".repeat(50_000);
    let named = |n: usize| format!("{{apiVersion: v1, kind: A, metadata: {{name: '{long}{n}'}}}}\n---\n");
    let names = (0..20).map(named).collect::<String>();
    let images = format!("[{}]", format!("{{image: '{long}'}}, ").repeat(20));
    let containers =
        format!("{{apiVersion: v1, kind: A, metadata: {{name: a}}, spec: {{containers: {images}}}}}");
    let times = |n: usize, part: &str| format!("[{}]", vec![part; n].join(", "));
    let patch = |n: usize, part: &str, target: &str| {
        let operations = times(n, part);
        format!("patches: [{{target: {target}, patch: '{operations}'}}]")
    };
    let label = r#"{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}"#;
    let source = "source: {kind: A, name: a}";
    let mut others = Vec::new();
    for (kustomization, objects) in [
        (format!("images: [{{name: '{costly}', newTag: x}}]"), &containers),
        (patch(1, label, &format!("{{name: '{costly}'}}")), &names),
        (
            format!(
                "replacements: [{{sourceValue: x, targets: [{{select: {{name: '{costly}'}}, fieldPaths: [a]}}]}}]"
            ),
            &names,
        ),
        (
            format!(
                "replacements: [{{{source}, targets: [{{select: {{kind: A}}, fieldPaths: ['spec.containers.[image={costly}].image']}}]}}]"
            ),
            &containers,
        ),
        (
            patch(
                20_000,
                r#"{"op": "copy", "from": "/spec/containers/0/image", "path": "/spec/a"}"#,
                "{kind: A}",
            ),
            &containers,
        ),
        (
            patch(
                20_000,
                r#"{"op": "add", "path": "/spec/containers/0", "value": {"image": "b"}}"#,
                "{kind: A}",
            ),
            &containers,
        ),
    ] {
        let tree = Mem::from_files([
            (
                "d/kustomization.yaml",
                format!("resources: [r.yaml]\n{kustomization}"),
            ),
            ("d/r.yaml", objects.clone()),
        ])
        .unwrap();
        let budget = Budget::new(Limits {
            steps: 2_000_000,
            ..Limits::default()
        });
        let dir = TreePath::parse("d").unwrap();
        let built = build(&tree, &dir, &Options::default(), &budget);
        let start = kustomization.get(..100).unwrap_or(&kustomization);
        match built {
            Err(error) if error.exceeded().is_some() => {}
            Err(error) => others.push(format!("{start}: {error:.300}")),
            Ok(_) => others.push(format!("{start}: built")),
        }
    }
    assert_eq!(others, Vec::<String>::new());
}

#[test]
fn patterns_of_a_build_share_one_limit() {
    let images = (0..300).map(|n| format!(r"{{name: '\pL{{90}}x{n}', newTag: z}}, "));
    let kustomization = format!("resources: [r.yaml]\nimages: [{}]", images.collect::<String>());
    assert_eq!(
        built(&[("d/kustomization.yaml", &kustomization), ("d/r.yaml", OBJECT)]),
        "building d: the limit of 67108864 bytes of compiled patterns in one build was reached"
    );
}
