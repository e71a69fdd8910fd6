//! Compares `weir kustomize build --enable-helm` with kustomize and helm.

use std::{path::Path, process::Command};

use testkit::{Page, WebServer, oracle};

use crate::program::{chart, files};

const METADATA: &str = "apiVersion: v2\nname: shop\nversion: 1.2.3\n";
const VALUES: &str = "color: red\nsize: 3\nempty:\nnulled: null\ntilde: ~\nlist: [1, 2]\n\
    map: {a: 1, b: {c: yes, d: 1.0}}\nflag: true\nbig: 12345678901\ntext: \"yes\"\n";
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-map\n  \
    namespace: {{ .Release.Namespace }}\ndata:\n  values: {{ toJson .Values | quote }}\n  \
    kube: {{ .Capabilities.KubeVersion.Version }}\n  has: {{ .Capabilities.APIVersions.Has \"x.io/v1\" | quote }}\n";
const HOOK: &str =
    "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: hook\n  annotations: {helm.sh/hook: post-install}\n";
const TEST: &str =
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: test\n  annotations: {helm.sh/hook: test}\n";
const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: a.x.io\n\
    spec:\n  group: x.io\n  names: {kind: A, plural: as}\n  scope: Namespaced\n  versions: []\n";
const INLINE: &str = "valuesInline: {color: green, map: {a: null, b: {d: 2.50}, z: {q: null, m: {}}}, list: [9], \
    flag: null, new: {x: on}, extra: null, empty: filled, tilde: {a: 1}}";

/// Kustomizations to compare; `REPO` stands for a Helm repository with the chart `far`.
const CASES: &[&str] = &[
    "helmCharts: [{name: shop}]",
    "helmCharts: [{name: shop, releaseName: r, namespace: nn}]",
    "namespace: top\nhelmCharts: [{name: shop, releaseName: r}]",
    "namespace: top\nnamePrefix: p-\nhelmCharts: [{name: shop, releaseName: r, namespace: own}]",
    "helmCharts:\n- name: shop\n  INLINE",
    "helmCharts:\n- name: shop\n  valuesMerge: merge\n  INLINE",
    "helmCharts:\n- name: shop\n  valuesMerge: replace\n  INLINE",
    "helmCharts: [{name: shop, valuesInline: {map: 3}}]",
    "helmCharts: [{name: shop, valuesInline: {}}]",
    "helmCharts: [{name: shop, valuesMerge: x}]",
    "helmCharts: [{name: shop, valuesFile: v.yaml}]",
    "helmCharts: [{name: shop, valuesFile: v.yaml, valuesInline: {color: pink, new: 1}}]",
    "helmCharts: [{name: shop, additionalValuesFiles: [v.yaml, w.yaml], valuesInline: {color: pink}}]",
    "helmCharts: [{name: shop, valuesFile: nope.yaml}]",
    "helmCharts: [{name: shop, valuesFile: ../v.yaml}]",
    "helmCharts: [{name: shop, includeCRDs: true, skipTests: true}]",
    "helmCharts: [{name: shop, skipHooks: true}]",
    "helmCharts: [{name: shop, apiVersions: [x.io/v1], kubeVersion: '1.30'}]",
    "helmCharts: [{name: shop, nameTemplate: 'x-{{ 1 }}'}]",
    "helmCharts: [{name: shop, releaseName: a, nameTemplate: 'x-{{ 1 }}'}]",
    "helmGlobals: {chartHome: other}\nhelmCharts: [{name: shop}]",
    "helmCharts: [{name: nothing, valuesFile: v.yaml}]",
    "helmCharts: [{name: shop, releaseName: a}, {name: shop, releaseName: b, skipHooks: true, skipTests: true}]",
    "generators: [g.yaml]",
    "helmChartInflationGenerator: [{chartName: shop, releaseName: z, values: v.yaml}]",
    "helmCharts: [{name: far, version: 1.0.0, repo: REPO, releaseName: r, valuesInline: {color: x}}]",
    "helmCharts: [{name: far, version: ~1.0, repo: REPO, releaseName: r}]",
    "helmCharts: [{name: far, repo: REPO, releaseName: r}]",
    "helmCharts: [{name: far, repo: REPO, releaseName: r, devel: true}]",
    "helmCharts: [{name: far, repo: REPO, version: '>=9'}]",
];

fn built(program: &Path, arguments: &[&str], dir: &Path) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(dir).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    output.status.success().then_some(text)
}

#[test]
fn helm_charts_match_kustomize_and_helm() {
    let (kustomize, helm) = (oracle::kustomize().unwrap(), oracle::helm().unwrap());
    let server = WebServer::start().unwrap();
    let mut index = "apiVersion: v1\nentries:\n  far:\n".to_owned();
    for version in ["1.0.0", "1.0.7", "1.4.0", "2.0.0-rc.1"] {
        server.page(
            &format!("/far-{version}.tgz"),
            Page::Content(chart("far", version).into()),
        );
        index.push_str(&format!(
            "  - {{apiVersion: v2, name: far, version: {version}, urls: [far-{version}.tgz]}}\n"
        ));
    }
    server.page("/index.yaml", Page::Content(index.into()));
    let mut failed = 0;
    for case in CASES {
        let text = case
            .replace("INLINE", INLINE)
            .replace("REPO", &format!("'{}'", server.url("")));
        let home = if case.contains("other") { "other" } else { "charts" };
        let dirs = [(); 2].map(|()| {
            let path = |name: &str| format!("app/{home}/shop/{name}");
            files(&[
                ("app/kustomization.yaml", text.as_str()),
                ("app/v.yaml", "color: fromv\nmap: {a: 7, b: null}\n"),
                ("app/w.yaml", "size: 12\n"),
                (
                    "app/g.yaml",
                    "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: g}\nname: shop\n\
                     releaseName: q\nvaluesInline: {color: gen}\n",
                ),
                ("v.yaml", "color: up\n"),
                (&path("Chart.yaml"), METADATA),
                (&path("values.yaml"), VALUES),
                (&path("templates/map.yaml"), TEMPLATE),
                (&path("templates/hook.yaml"), HOOK),
                (&path("templates/test.yaml"), TEST),
                (&path("crds/crd.yaml"), CRD),
            ])
        });
        let ours = built(
            Path::new(env!("CARGO_BIN_EXE_weir")),
            &["kustomize", "build", "--enable-helm"],
            &dirs[0].path().join("app"),
        );
        let theirs = built(
            &kustomize,
            &["build", "--enable-helm", "--helm-command", helm.to_str().unwrap()],
            &dirs[1].path().join("app"),
        );
        assert_eq!(ours, theirs, "{text}");
        failed += usize::from(ours.is_none());
    }
    assert!(failed < CASES.len() / 3, "{failed} cases fail in both");
}
