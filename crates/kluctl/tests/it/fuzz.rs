//! No project makes a render panic. `WEIR_FUZZ_SECONDS` prolongs the search.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kluctl::{Request, render};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use tree::{Budget, Limits, Mem};

/// Lines that mean something in one of the files.
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
    ".templateignore",
    "a/.templateignore",
];

fn files() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let text = prop::collection::vec(prop::sample::select(LINES), 0..7).prop_map(|lines| lines.join("\n"));
    prop::collection::vec((prop::sample::select(FILES), text), 1..7)
}

#[test]
fn projects_never_panic() {
    let seconds = std::env::var("WEIR_FUZZ_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok());
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(2));
    while Instant::now() < until {
        let mut runner = TestRunner::new(Config {
            cases: 50,
            failure_persistence: None,
            ..Config::default()
        });
        let result = runner.run(&files(), |files| {
            let tree = Arc::new(Mem::from_files(files).unwrap());
            let limits = Limits {
                steps: 100_000,
                include_depth: 5,
                ..Limits::default()
            };
            let request = Request {
                target: Some("t".to_owned()),
                ..Request::default()
            };
            let _ = render(tree.clone(), &request, &Budget::new(limits.clone()));
            let _ = render(tree, &Request::default(), &Budget::new(limits));
            Ok(())
        });
        result.unwrap();
    }
}
