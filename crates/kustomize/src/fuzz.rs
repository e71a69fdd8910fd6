//! Random trees of kustomizations.

use std::sync::Mutex;

use bytes::Bytes;
use testkit::fuzz::{self, Random};
use tree::{Budget, Entry, Limits, Mem, NodeKind, Tree, TreeError, TreePath};

use crate::{LoadRestriction, OpenApi, Options, Profile, SortOrder, build};

const LINES: &[&str] = &[
    "resources:",
    "components:",
    "bases:",
    "transformers:",
    "generators:",
    "validators:",
    "configurations:",
    "crds:",
    "patchesStrategicMerge:",
    "- a",
    "- b",
    "- ../a",
    "- ../b",
    "- ..",
    "- .",
    "- ../..",
    "- /a",
    "- //h/a",
    "- a/../../b",
    "- m.yaml",
    "- ./m.yaml",
    "- a/m.yaml",
    "- ../secret/m.yaml",
    "- ../../secret",
    "- file:///etc",
    "- https://u:p@h/x?y",
    "- https://u:p@h/x//../..?ref=x&timeout=1",
    "- git::ssh://u:p@h/x",
    "- git@h:x",
    "- github.com/a/b",
    "- ''",
    "- 1",
    "- null",
    "resources: [m.yaml, ../a, ../b]",
    "resources: {}",
    "resources: x",
    "namespace: n",
    "namePrefix: p-",
    "nameSuffix: -s",
    "commonLabels: {a: b, c: d}",
    "commonAnnotations: {a: 1, b: null}",
    "labels: [{pairs: {a: b}, includeSelectors: true, fields: [{path: a/b[]/c, create: true}]}]",
    "images: [{name: x, newTag: y}, {name: '(', digest: z}]",
    "replicas: [{name: m, count: 3}]",
    "configMapGenerator: [{name: g, literals: [a=b, c], files: [m.yaml, k=../m.yaml], envs: [m.yaml]}]",
    "secretGenerator: [{name: m, behavior: merge, literals: [a=b]}]",
    "generatorOptions: {labels: {a: b}, immutable: true}",
    "patches: [{patch: '[{\"op\": \"add\", \"path\": \"/a/-\", \"value\": [1]}]', target: {kind: .*}}]",
    "patches: [{patch: '{op: copy, from: \"\", path: /a}', target: {name: '('}}, {path: m.yaml}]",
    "patches: [{path: m.yaml, target: {labelSelector: 'a in (b, !c)'}, options: {allowNameChange: true}}]",
    "patchesJson6902: [{path: m.yaml, target: {version: v1, kind: ConfigMap, name: m}}]",
    "replacements: [{source: {kind: ConfigMap}, targets: [{select: {name: .*}, fieldPaths: ['a.[b=(].*.99', data.k.l]}]}]",
    "replacements: [{sourceValue: x, targets: [{select: {}, fieldPaths: [a.9999.b], options: {create: true, index: 9, delimiter: x}}]}]",
    "replacements: [{path: m.yaml}]",
    "vars: [{name: V, objref: {kind: ConfigMap, name: m, apiVersion: v1}, fieldref: {fieldpath: data.k}}]",
    "sortOptions: {order: legacy, legacySortOptions: {orderFirst: [A]}}",
    "buildMetadata: [originAnnotations, transformerAnnotations, managedByLabel, x]",
    "openapi: {path: m.yaml}",
    "helmCharts: [{name: c, repo: 'https://u:p@h'}]",
    "apiVersion: v1",
    "apiVersion: builtin",
    "apiVersion: kustomize.config.k8s.io/v1beta1",
    "kind: Kustomization",
    "kind: Component",
    "kind: List",
    "kind: ConfigMap",
    "kind: Deployment",
    "kind: RoleBinding",
    "kind: PatchTransformer",
    "kind: ValueAddTransformer",
    "kind: ReplacementTransformer",
    "metadata: {name: m}",
    "metadata: {name: s, namespace: x, labels: {a: $(V)}}",
    "metadata: {annotations: {config.kubernetes.io/local-config: 'true'}, name: l}",
    "metadata: [1]",
    "metadata:",
    "  name: 1",
    "data: {k: 'l: 1', a: $(V)$$(V)$(}",
    "spec: {template: {spec: {containers: [{name: a, image: x, ports: [{containerPort: 1}]}, {$patch: delete, name: a}]}}}",
    "subjects: [{kind: ServiceAccount, name: s}, null, 1]",
    "items: [{}, null, {kind: A}]",
    "$patch: delete",
    "- op: move",
    "  from: /data",
    "  path: /data/k/0",
    "target: {kind: .*}",
    "patch: '{a: b}'",
    "targets: [{selector: {}, fieldPath: a}]",
    "---",
    "- [",
    "unknown: 1",
    "&a x: *a",
    "x: &x [*x]",
    "<<: {a: 1}",
    "{{ a }}",
    "é: 😀",
];
const FILES: &[&str] = &[
    "in/kustomization.yaml",
    "in/m.yaml",
    "in/a/kustomization.yaml",
    "in/a/kustomization.yml",
    "in/a/m.yaml",
    "in/b/Kustomization",
    "in/b/kustomization.yaml",
    "in/b/m.yaml",
    "in/a/b/kustomization.yaml",
    "in/a/a",
    "in/..a",
];
const WORKING: &[(&str, &str)] = &[
    (
        "in/a/m.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: s}\nspec: {template: {spec: {containers: [{name: a, image: x:1}]}}}\n",
    ),
    (
        "in/m.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {k: l}\n",
    ),
    (
        "in/a/kustomization.yaml",
        "resources: [m.yaml]\nnamespace: n\nnamePrefix: x-\n",
    ),
    ("in/b/kustomization.yaml", "resources: [../a]\n"),
];
/// A part of the names of everything next to the root.
const BESIDE: &str = "secret";

fn files(random: &mut Random) -> Vec<(String, String)> {
    let mut files = random.list(0..6, |random| {
        let lines = random.list(0..9, |random| random.text(LINES, 1..2));
        ((*random.pick(FILES)).to_owned(), lines.join("\n"))
    });
    for (path, text) in WORKING {
        if random.flag() {
            files.push(((*path).to_owned(), (*text).to_owned()));
        }
    }
    files
}

/// A tree that records reads.
struct Watched {
    tree: Mem,
    read: Mutex<Vec<TreePath>>,
}

impl Tree for Watched {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        self.read.lock().unwrap().push(path.clone());
        self.tree.read(path)
    }

    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError> {
        self.tree.list(dir)
    }

    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError> {
        self.tree.kind(path)
    }
}

fn options(random: &mut Random) -> Options<'static> {
    Options {
        load_restriction: *random.pick(&[LoadRestriction::RootOnly, LoadRestriction::None]),
        order: *random.pick(&[SortOrder::Accumulated, SortOrder::Legacy]),
        openapi: *random.pick(&[OpenApi::Replace, OpenApi::Add]),
        profile: *random.pick(&[Profile::V5_8_1, Profile::V5_8_3]),
        managed_by_label: random.flag(),
        ..Options::default()
    }
}

fn budget() -> Budget {
    Budget::new(Limits {
        steps: 200_000,
        include_depth: 6,
        objects: 50,
        ..Limits::default()
    })
}

#[test]
fn fuzz_builds_end_with_objects_or_an_error() {
    fuzz::run("kustomizations", |random| {
        let files = files(random);
        let dir = TreePath::parse(["in", "in/a", "in/b", "in/a/b", "in/c"][random.below(5)]).unwrap();
        let options = options(random);
        random.note("files, dir", &(&files, &dir));
        random.note("restriction, order", &(options.load_restriction, options.order));
        let tree = Watched {
            tree: Mem::from_files(files).unwrap(),
            read: Mutex::default(),
        };
        match build(&tree, &dir, &options, &budget()) {
            Ok(built) => {
                assert!(built.objects.len() <= 50);
                for one in &built.objects {
                    assert!(one.object.as_map().is_some(), "{one:?}");
                }
                let text = built.to_yaml();
                let again = yaml::read::kustomize_all(&text, &Budget::default());
                assert!(
                    again.is_ok_and(|again| again.len() == built.objects.len()),
                    "{text}"
                );
            }
            Err(error) => {
                let message = error.to_string();
                assert!(!message.is_empty() && !message.contains("u:p"), "{message}");
            }
        }
        let read = tree.read.into_inner().unwrap();
        if options.load_restriction == LoadRestriction::RootOnly {
            let escaped = read
                .iter()
                .find(|path| path.strip(&TreePath::parse("in").unwrap()).is_none());
            assert!(escaped.is_none(), "{escaped:?} was read");
        }
    });
}

#[cfg(unix)]
#[test]
fn fuzz_builds_on_disk_stay_below_the_root() {
    use std::{fs, os::unix::fs::symlink};

    const LINKS: &[&str] = &[
        "in/l",
        "in/a/l",
        "in/a/m.yaml",
        "in/b",
        "in/kustomization.yaml",
        "in/a/kustomization.yaml",
    ];
    const TARGETS: &[&str] = &[
        "..",
        "../..",
        "../../secret",
        "../secret",
        "/",
        "a",
        "l",
        "../a",
        "secret/m.yaml",
        "m.yaml",
        "../b/l",
    ];
    const ENTRIES: &[&str] = &[
        "l",
        "l/m.yaml",
        "a",
        "a/l",
        "../in/l",
        "l/secret",
        "l/kustomization.yaml",
        "b/m.yaml",
        "m.yaml",
    ];
    let object = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    fuzz::run("kustomizations on disk", |random| {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        for dir in ["root/in/a", "root/in/b", BESIDE] {
            fs::create_dir_all(outer.path().join(dir)).unwrap();
        }
        let beside = outer.path().join(BESIDE);
        fs::write(beside.join("m.yaml"), object(BESIDE)).unwrap();
        fs::write(beside.join("kustomization.yaml"), "resources: [m.yaml]\n").unwrap();
        fs::write(root.join("in/m.yaml"), object("m")).unwrap();
        let links = random.list(1..5, |random| (*random.pick(LINKS), random.text(TARGETS, 1..2)));
        let entries = random.list(1..4, |random| *random.pick(ENTRIES));
        let options = options(random);
        random.note("links, entries", &(&links, &entries));
        for (name, target) in &links {
            let path = root.join(name);
            let _ = fs::remove_dir(&path);
            let target = if random.one_in(4) {
                format!("{}/{target}", outer.path().display())
            } else {
                target.clone()
            };
            let _ = symlink(target, path);
        }
        let list = entries.join(", ");
        let kustomization = format!(
            "resources: [{list}]\nconfigMapGenerator: [{{name: g, files: [x={}]}}]\n",
            entries[0]
        );
        let _ = fs::write(root.join("in/kustomization.yaml"), &kustomization);
        let disk = tree::Disk::open(&root, &Limits::default()).unwrap();
        if let Ok(built) = build(&disk, &TreePath::parse("in").unwrap(), &options, &budget()) {
            let text = built.to_yaml();
            assert!(!text.contains(&format!("name: {BESIDE}")), "{text}");
        }
    });
}
