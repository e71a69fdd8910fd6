//! Random projects must not make a render panic.

use std::sync::Arc;

use testkit::fuzz::{self, Random};
use tree::{Budget, Limits, Mem};

use crate::{Charts, Moment, Request, render};

/// Lines with a meaning in one of the files.
const LINES: &[&str] = &[
    "deployments:",
    "- path: a",
    "- path: .",
    "- include: b",
    "- include: ..",
    "- barrier: true",
    "  when: args.x",
    "  tags: [t, 1]",
    "  vars:",
    "  - values: {k: '{{ args }}'}",
    "vars:",
    "- values: {k: 1, '{{ k }}': 2}",
    "- file: f.yaml",
    "  targetPath: a.b",
    "commonLabels: {a: 1}",
    "overrideNamespace: '{{ target.name }}'",
    "when: 'true'",
    "targets:",
    "- name: t",
    "  args: {x: '{{ args.x }}x'}",
    "args:",
    "- name: x",
    "  default: [1]",
    "discriminator: '{{ target.name }}'",
    "apiVersion: v1",
    "kind: ConfigMap",
    "kind: List",
    "items: [{}, null]",
    "metadata: {name: m}",
    "metadata: {name: m, labels: x}",
    "metadata: [1]",
    "---",
    "resources: [m.yaml, .., ../b]",
    "resources: [helm-rendered.yaml]",
    "helmChart: {path: ../c, releaseName: r, namespace: n}",
    "helmChart: {path: ., releaseName: r, output: m.yaml}",
    "helmChart: {repo: 'oci://x.io/c', chartVersion: 1.0.0, releaseName: r}",
    "apiVersion: v2",
    "name: c",
    "version: 1.0.0",
    "{{ .Values.k }}",
    "{{ include \"x\" . }}",
    "namespace: n",
    "{% for i in [1, 2] %}",
    "{% endfor %}",
    "{{ nope }}",
    "- [",
    "é: \u{1F600}",
];

const FILES: &[&str] = &[
    ".kluctl.yaml",
    "deployment.yaml",
    "a/m.yaml",
    "a/kustomization.yaml",
    "b/deployment.yaml",
    "b/kustomization.yaml",
    "f.yaml",
    "a/helm-chart.yaml",
    "a/helm-values.yaml",
    "c/Chart.yaml",
    "c/values.yaml",
    "c/templates/m.yaml",
    ".helm-charts/oci_x.io/c/1.0.0/Chart.yaml",
    ".templateignore",
    "a/.templateignore",
];

fn files(random: &mut Random) -> Vec<(&'static str, String)> {
    random.list(1..12, |random| {
        let lines = random.list(0..7, |random| random.text(LINES, 1..2));
        (*random.pick(FILES), lines.join("\n"))
    })
}

#[test]
fn fuzz_projects_never_panic() {
    fuzz::run("projects", |random| {
        let files = files(random);
        random.note("files", &files);
        let tree = Arc::new(Mem::from_files(files).unwrap());
        let limits = Limits {
            steps: 100_000,
            include_depth: 5,
            ..Limits::default()
        };
        let request = Request {
            target: Some("t".to_owned()),
            charts: Charts {
                moment: Some(Arc::new(Moment::new(0, 0, [1; 32]))),
                ..Charts::default()
            },
            ..Request::default()
        };
        let _ = render(tree.clone(), &request, &Budget::new(limits.clone()));
        let untargeted = Request {
            target: None,
            ..request
        };
        let _ = render(tree, &untargeted, &Budget::new(limits));
    });
}
