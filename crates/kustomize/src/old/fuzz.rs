//! Random trees of kustomizations.

use testkit::fuzz::{self, Random};
use tree::{Budget, Limits, Mem, TreePath};

use crate::build_located;

const LINES: &[&str] = &[
    "resources:",
    "- a",
    "- b",
    "- ../a",
    "- ../b",
    "- ..",
    "- .",
    "- ../..",
    "- /a",
    "- m.yaml",
    "- ./m.yaml",
    "- a/m.yaml",
    "- https://u:p@h/x?y",
    "- git@h:x",
    "- ''",
    "- 1",
    "- null",
    "resources: [m.yaml, ../a, ../b]",
    "resources: {}",
    "resources: x",
    "namespace: n",
    "namespace: ''",
    "namespace: 1",
    "namespace: default",
    "apiVersion: v1",
    "apiVersion: kustomize.config.k8s.io/v1beta1",
    "kind: Kustomization",
    "kind: Component",
    "kind: List",
    "kind: ConfigMap",
    "kind: ServiceAccount",
    "kind: RoleBinding",
    "kind: Namespace",
    "apiVersion: rbac.authorization.k8s.io/v1",
    "metadata: {name: m}",
    "metadata: {name: s, namespace: x}",
    "metadata: {annotations: {config.kubernetes.io/local-config: 'true'}, name: l}",
    "metadata: [1]",
    "metadata:",
    "  name: 1",
    "subjects: [{kind: ServiceAccount, name: s}, null, 1]",
    "subjects: {}",
    "items: [{}, null, {kind: A}]",
    "items: {}",
    "---",
    "- [",
    "images: []",
    "images: [x]",
    "patches:",
    "unknown: 1",
    "&a x: *a",
    "x: &x [*x]",
    "{{ a }}",
    "é: 😀",
];
const FILES: &[&str] = &[
    "kustomization.yaml",
    "m.yaml",
    "a/kustomization.yaml",
    "a/kustomization.yml",
    "a/m.yaml",
    "b/Kustomization",
    "b/kustomization.yaml",
    "b/m.yaml",
    "a/b/kustomization.yaml",
    "a/a",
    "..a",
];
const WORKING: &[(&str, &str)] = &[
    (
        "a/m.yaml",
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: s}\n",
    ),
    ("m.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"),
    ("a/kustomization.yaml", "resources: [m.yaml]\nnamespace: n\n"),
    ("b/kustomization.yaml", "resources: [../a]\n"),
];

fn files(random: &mut Random) -> Vec<(String, String)> {
    let mut files = random.list(0..6, |random| {
        let lines = random.list(0..7, |random| random.text(LINES, 1..2));
        ((*random.pick(FILES)).to_owned(), lines.join("\n"))
    });
    for (path, text) in WORKING {
        if random.flag() {
            files.push(((*path).to_owned(), (*text).to_owned()));
        }
    }
    files
}

#[test]
fn fuzz_builds_end_with_objects_or_an_error() {
    fuzz::run("kustomizations", |random| {
        let files = files(random);
        let dir = TreePath::parse(["", "a", "b", "a/b", "c"][random.below(5)]).unwrap();
        random.note("files, dir", &(&files, &dir));
        let tree = Mem::from_files(files).unwrap();
        let budget = Budget::new(Limits {
            steps: 100_000,
            include_depth: 6,
            objects: 50,
            ..Limits::default()
        });
        match build_located(&tree, &dir, &budget) {
            Ok(built) => {
                assert!(built.len() <= 50);
                for one in built {
                    assert!(one.object.as_map().is_some() && one.line > 0, "{one:?}");
                    assert!(tree::Tree::is_file(&tree, &one.file), "{one:?}");
                }
            }
            Err(error) => {
                let shown = error.to_string();
                assert!(!shown.is_empty() && !shown.contains("u:p"), "{shown}");
            }
        }
    });
}
