//! Invalid or unsupported projects fail with file and line.

use kluctl::Request;
use tree::{Budget, Limits, Mem};

use crate::support::render_files;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

/// Returns the error of a project with these files next to a good item.
fn error(files: &[(&str, &str)]) -> String {
    let mut all = vec![
        ("deployment.yaml", "deployments:\n- path: app\n"),
        ("app/a.yaml", MAP),
    ];
    all.retain(|(path, _)| files.iter().all(|(other, _)| other != path));
    all.extend(files);
    render_files(&all, &Request::default()).unwrap_err().to_string()
}

#[test]
fn unsupported_fields_are_refused_by_name() {
    for field in ["secretsConfig: {a: b}", "sealedSecrets: {a: b}"] {
        let name = field.split(':').next().unwrap();
        let expected = format!(".kluctl.yaml:1: {name} is not supported yet: remove it");
        assert_eq!(error(&[(".kluctl.yaml", field)]), expected);
    }
    let sealing = "targets:\n- name: x\n  sealingConfig: {a: b}\n";
    let expected = ".kluctl.yaml:3: targets[0].sealingConfig is not supported yet: remove it";
    assert_eq!(error(&[(".kluctl.yaml", sealing)]), expected);
    for field in [
        "deleteByLabels: {a: b}",
        "includes: [{path: x}]",
        "templateExcludes: [x]",
    ] {
        let name = field.split(':').next().unwrap();
        let expected = format!("deployment.yaml:1: {name} is not supported yet: remove it");
        assert_eq!(error(&[("deployment.yaml", field)]), expected);
    }
}

#[test]
fn remote_includes_need_a_fetcher() {
    for (source, expected) in [
        (
            "git: {url: 'https://u:s3cret@x/y', path: p}",
            "failed to fetch https://x/y: nothing is fetched here",
        ),
        (
            "gitFiles: {url: https://x/y, ref: {branch: .*}}",
            "deployment.yaml:2: vars[0]: Git repositories are not asked here",
        ),
        (
            "clusterConfigMap: {name: x, namespace: n, key: k}",
            "deployment.yaml:2: vars[0]: loading vars from cluster is disabled",
        ),
        (
            "clusterObject: {kind: X, name: x, path: p}",
            "deployment.yaml:2: vars[0]: loading vars from cluster is disabled",
        ),
        (
            "systemEnvVars: {a: HOME}",
            "deployment.yaml:2: vars[0]: the environment variable HOME is not read here",
        ),
        (
            "http: {url: https://x}",
            "deployment.yaml:2: vars[0]: servers are not asked here",
        ),
        (
            "awsSecretsManager: {secretName: x, region: r}",
            "deployment.yaml:2: vars[0]: AWS Secrets Manager is not asked here",
        ),
        (
            "gcpSecretManager: {secretName: x}",
            "deployment.yaml:2: vars[0]: Google Secret Manager is not asked here",
        ),
        (
            "azureKeyVault: {vaultUri: x, secretName: y}",
            "deployment.yaml:2: vars[0]: Azure Key Vault is not asked here",
        ),
        (
            "vault: {address: x, path: y}",
            "deployment.yaml:2: vars[0]: Vault is not asked here",
        ),
    ] {
        let text = format!("vars:\n- {source}\n  targetPath: x\n");
        let found = error(&[("deployment.yaml", &text)]);
        assert!(found.starts_with(expected), "{found}\nexpected {expected}");
    }
    let git = error(&[("deployment.yaml", "deployments: [{git: 'https://x/y'}]")]);
    assert_eq!(git, "failed to fetch https://x/y: nothing is fetched here");
    let oci = error(&[(
        "deployment.yaml",
        "deployments: [{oci: {url: 'oci://x/y', ref: {tag: v1}}}]",
    )]);
    assert_eq!(oci, "failed to fetch oci://x/y:v1: nothing is fetched here");
}

#[test]
fn empty_fields_are_ignored() {
    let deployment = "commonAnnotations: {}\nignoreForDiff: []\ndeployments:\n- path: app\n  recursive: false\n  git: ''\n";
    let files = [
        (".kluctl.yaml", "aws:\n"),
        ("deployment.yaml", deployment),
        ("app/a.yaml", MAP),
    ];
    assert!(render_files(&files, &Request::default()).is_ok());
}

#[test]
fn errors_name_file_and_line() {
    let deployment = |text: &str| error(&[("deployment.yaml", text)]);
    let project = |text: &str| error(&[(".kluctl.yaml", text)]);
    for (found, expected) in [
        (
            project("targetz: []\n"),
            ".kluctl.yaml:1: unknown field \"targetz\"",
        ),
        (project("targets: 1\n"), ".kluctl.yaml:1: targets is a list, not"),
        (
            project("args:\n- default: 1\n"),
            ".kluctl.yaml:2: args[0].name is required",
        ),
        (project("a: 1\na: 2\n"), ".kluctl.yaml: line 2"),
        (project("args:\n- name: x\n"), "required argument x not set"),
        (
            deployment("deployments:\n- paht: a\n"),
            "deployment.yaml:2: unknown field \"deployments[0].paht\"",
        ),
        (
            deployment("deployments:\n- path: a\n  include: b\n"),
            "deployment.yaml:3: only one of path, include",
        ),
        (
            deployment("deployments:\n- include: app\n  waitReadiness: true\n"),
            "deployment.yaml:3: only kustomize",
        ),
        (
            deployment("deployments:\n- path: nope\n"),
            "deployment.yaml:2: deployment directory does not exist: nope",
        ),
        (
            deployment("deployments:\n- path: app/a.yaml\n"),
            "deployment.yaml:2: deployment path is not a directory",
        ),
        (
            deployment("deployments:\n- path: ../x\n"),
            "deployment.yaml:2: deployment directory does not exist: ../x, it leads",
        ),
        (
            deployment("deployments:\n- include: ../x\n"),
            "deployment.yaml:2: ../x does not exist or is not a directory",
        ),
        (
            deployment("deployments:\n- include: app\n"),
            "deployment.yml not found in app",
        ),
        (
            deployment("when: 'true'\n"),
            "deployment.yaml:1: the root deployment project can not contain 'when'",
        ),
        (
            deployment("deployments: [\n"),
            "failed to load deployment.yml of .: deployment.yaml: line",
        ),
        (
            deployment("a: {{ nope }}\n"),
            "failed to load deployment.yml of .: failed rendering template 'deployment.yaml': \
            File \"deployment.yaml\", line 1",
        ),
        (
            deployment("deployments:\n- path: app\n  when: nope\n"),
            "failed rendering deployments[0].when of deployment.yaml",
        ),
        (
            deployment("vars:\n- file: nope.yaml\n"),
            "failed to load vars from nope.yaml: template nope.yaml not found",
        ),
        (
            deployment("vars:\n- values: {}\n  file: x\n"),
            "deployment.yaml:3: vars[0]: more then one vars source type",
        ),
        (
            deployment("vars:\n- noOverride: true\n"),
            "deployment.yaml:2: vars[0]: unknown vars source type",
        ),
        (
            deployment("vars:\n- values: {}\n  targetPath: 'a[*]'\n"),
            "deployment.yaml:3: vars[0]: failed to set value to targetPath",
        ),
        (
            deployment("vars:\n- file: x\n  multidoc: true\n"),
            "deployment.yaml:3: vars[0]: multidoc vars sources",
        ),
        (
            deployment("vars:\n- file: app/a.yaml\n  when: nope\n"),
            "failed rendering deployment.yaml: vars[0]",
        ),
        (
            error(&[("app/a.yaml", "\na: {{ nope }}\n")]),
            "failed rendering template 'app/a.yaml': File \"app/a.yaml\", line 2",
        ),
        (
            error(&[("app/a.yaml", "a: b: c\n")]),
            "building kustomize objects for app failed: accumulating resources: accumulating resources from 'a.yaml': \
             app/a.yaml:1: MalformedYAMLError: yaml: mapping values",
        ),
        (
            error(&[("app/a.yaml", "\n\na: 1\n")]),
            "building kustomize objects for app failed: app/kustomization.yml:1: accumulating resources: accumulation \
             err='accumulating resources \
             from 'a.yaml': app/a.yaml:3: missing Resource metadata'",
        ),
        (
            error(&[("app/helm-chart.yaml", "a: 1\n")]),
            "app/helm-chart.yaml:1: unknown field \"a\"",
        ),
        (
            error(&[(
                "app/a.yaml",
                "apiVersion: v1\nkind: S\nmetadata: {name: s}\nsops: {mac: x}\n",
            )]),
            "building kustomize objects for app failed: app/kustomization.yml:1: accumulating resources: accumulation \
             err='accumulating resources from 'a.yaml': app/a.yaml: cannot get sops data key: the file is encrypted",
        ),
        (
            error(&[
                ("deployment.yaml", "vars:\n- file: v.yaml\n"),
                ("v.yaml", "a: ENC\nsops: {mac: x}\n"),
            ]),
            "v.yaml: cannot get sops data key: the file is encrypted",
        ),
        (
            error(&[(
                "app/a.yaml",
                "\napiVersion: v1\nkind: J\nmetadata: {name: j, annotations: {kluctl.io/downscale-delete: x}}\n",
            )]),
            "app/a.yaml:2: the annotation kluctl.io/downscale-delete is not supported yet",
        ),
        (
            error(&[
                ("deployment.yaml", "deployments: [{include: l}]"),
                ("l/.kluctl-library.yaml", "args: [{name: x}]"),
                ("l/deployment.yaml", ""),
            ]),
            "required argument x not set",
        ),
        (
            deployment("deployments:\n- path: app\n  args: {a: 1}\n"),
            "deployment.yaml:3: args are only allowed when another project is included",
        ),
        (
            deployment("deployments:\n- path: app\n  passVars: true\n"),
            "deployment.yaml:3: passVars is only allowed when another project is included",
        ),
        (
            deployment("deployments:\n- path: app\n  renderedObjects: []\n"),
            "deployment.yaml:3: renderedObjects is not allowed here",
        ),
        (
            deployment("deployments:\n- git: {url: x, subDir: ../y}\n"),
            "deployment.yaml:2: '../y' is not a valid subDir",
        ),
        (
            deployment("vars:\n- renderedVars: {}\n  values: {}\n"),
            "deployment.yaml:2: renderedVars is not allowed here",
        ),
        (
            deployment("vars:\n- awsSecretsManager: {secretName: x}\n"),
            "deployment.yaml:2: when omitting the AWS region",
        ),
        (
            project("targets:\n- name: t\n  dynamicArgs: [{name: x}]\n"),
            ".kluctl.yaml:3: dynamicArgs belong to a targetConfig",
        ),
        (
            project("targets:\n- name: t\n  images: [{image: x}]\n"),
            ".kluctl.yaml:3: targets[0].images[0].resultImage is required",
        ),
    ] {
        assert!(found.starts_with(expected), "{found}\nexpected {expected}");
    }
}

#[test]
fn failures_of_several_items_are_reported_together() {
    let found = error(&[
        (
            "deployment.yaml",
            "deployments: [{path: app}, {path: b}, {path: c}]",
        ),
        ("b/b.yaml", "{{ b }}"),
        ("c/c.yaml", "{{ c }}"),
    ]);
    assert!(
        found.starts_with("2 errors: ") && found.contains("b/b.yaml") && found.contains("c/c.yaml"),
        "{found}"
    );
}

#[test]
fn recursive_includes_hit_a_limit() {
    let found = error(&[("deployment.yaml", "deployments: [{include: .}]")]);
    assert!(found.contains("nested includes"), "{found}");
    let twice = "deployments:\n- include: .\n- include: .\n";
    let tree = std::sync::Arc::new(Mem::from_files([("deployment.yaml", twice)]).unwrap());
    let limits = Limits {
        include_depth: 1_000,
        steps: 200_000,
        ..Limits::default()
    };
    let error = kluctl::render(tree, &Request::default(), &Budget::new(limits)).unwrap_err();
    assert!(error.exceeded().is_some(), "{error}");
}

#[test]
fn too_many_objects_are_refused() {
    let many =
        "apiVersion: v1\nkind: A\nmetadata: {name: a1}\n---\napiVersion: v1\nkind: A\nmetadata: {name: a2}\n";
    let files = [
        ("deployment.yaml", "deployments: [{path: a}]"),
        ("a/a.yaml", many),
    ];
    let tree = std::sync::Arc::new(Mem::from_files(files).unwrap());
    let budget = Budget::new(Limits {
        objects: 1,
        ..Limits::default()
    });
    let error = kluctl::render(tree, &Request::default(), &budget).unwrap_err();
    assert!(
        error.exceeded().is_some() && error.to_string().contains("1 objects"),
        "{error}"
    );
}

#[test]
fn repeated_metadata_of_objects_is_bounded() {
    let objects = "{% for i in range(400) %}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'm{{ i }}'}\n{% endfor %}";
    let many = |begin: &str, one: &str| format!("{begin}:\n{{% for i in range(330) %}}{one}\n{{% endfor %}}");
    let labels = many("commonLabels", "  l{{ i }}: {{ 'x' * 1000 }}");
    let tags = many("tags", "- t{{ i }}{{ 'x' * 1000 }}");
    for (deployment, expected) in [
        (
            format!("{labels}deployments: [{{path: app}}]\n"),
            "labels and annotations of objects in app",
        ),
        (
            format!("{tags}deployments:\n{{% for i in range(400) %}}- path: app\n{{% endfor %}}"),
            "the tags of an item in",
        ),
        (
            format!(
                "{}deployments:\n{{% for i in range(400) %}}- path: app\n  vars: [{{values: {{a: 1}}}}]\n{{% endfor %}}",
                many("vars:\n- values", "    v{{ i }}: {{ 'x' * 1000 }}")
            ),
            "bytes of the variables of all items together",
        ),
    ] {
        let files = [("deployment.yaml", deployment.as_str()), ("app/m.yaml", objects)];
        let error = render_files(&files, &Request::default()).unwrap_err();
        assert!(
            error.exceeded().is_some() && error.to_string().contains(expected),
            "{error}"
        );
    }
}
