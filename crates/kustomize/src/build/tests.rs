use tree::Mem;

use super::*;

/// What a directory with these files is built to, or why it isn't.
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
fn objects_that_serve_the_build_are_dropped() {
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
fn two_objects_that_became_one_are_refused() {
    let patch = "- {op: replace, path: /metadata/name, value: a}";
    let kustomization =
        format!("{{resources: [r.yaml], patches: [{{target: {{name: b}}, patch: '{patch}'}}]}}");
    let objects =
        "{apiVersion: v1, kind: A, metadata: {name: a}}\n---\n{apiVersion: v1, kind: A, metadata: {name: b}}";
    let refused = built(&[("d/kustomization.yaml", &kustomization), ("d/r.yaml", objects)]);
    assert_eq!(
        refused,
        "d/r.yaml:3: may not add resource with an already registered id: A.v1.[noGrp]/a.[noNs]"
    );
}
