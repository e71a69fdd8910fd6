use tree::Mem;

mod helm4;

use super::*;

struct Still;

impl Environment for Still {
    fn now(&self) -> (i64, u32) {
        (0, 0)
    }

    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

fn rendered(files: &[(&str, &str)], change: impl FnOnce(&mut Options<'_>)) -> Result<Rendered, String> {
    let tree = Mem::from_files(files.iter().map(|(path, text)| (*path, (*text).to_owned()))).unwrap();
    let mut options = Options::new("demo", &Still);
    options.helm_version = HelmVersion::V3;
    change(&mut options);
    let budget = Budget::default().with_timeout(std::time::Duration::from_secs(20));
    template(&tree, &TreePath::root(), &options, &budget).map_err(|error| error.to_string())
}

const META: (&str, &str) = (
    "Chart.yaml",
    "apiVersion: v2\nname: c\nversion: 1.0.0\nkubeVersion: '>=1.19'\n",
);

fn one(template: &str) -> Result<String, String> {
    let rendered = rendered(
        &[META, ("templates/x.yaml", template), ("values.yaml", "a: {b: 1}")],
        |_| {},
    )?;
    Ok(rendered
        .sorted
        .manifests
        .first()
        .map(|one| one.text.clone())
        .unwrap_or_default())
}

#[test]
fn templates_see_release_chart_and_capabilities() {
    let table = [
        (
            "{{ .Release.Name }}/{{ .Release.Namespace }}/{{ .Release.IsInstall }}/{{ .Release.Revision }}",
            "demo/default/true/1",
        ),
        (
            "{{ .Chart.Name }} {{ .Chart.Version }} {{ .Chart.IsRoot }} {{ .Chart.AppVersion | quote }}",
            "c 1.0.0 true \"\"",
        ),
        (
            "{{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion.Minor }}",
            "v1.20.0 20",
        ),
        (
            "{{ .Capabilities.APIVersions.Has \"apps/v1\" }}{{ .Capabilities.APIVersions.Has \"x/v1\" }}",
            "truefalse",
        ),
        (
            "{{ .Template.Name }} {{ .Template.BasePath }}",
            "c/templates/x.yaml c/templates",
        ),
        ("{{ .Values.a.b }}{{ .Values.none }}", "1"),
    ];
    for (template, expected) in table {
        assert_eq!(
            one(&format!("# {template}")),
            Ok(format!("# {expected}")),
            "{template}"
        );
    }
}

#[test]
fn go_structs_print_as_in_go() {
    let meta = "apiVersion: v2\nname: c\nversion: 1.0.0\nmaintainers: [{name: m, email: e}]\nsources: []\ndependencies:\n\
                - {name: in, version: 1.x, import-values: [data, {child: a, parent: 1}, 3]}\n";
    let inner = "annotations: {a: b}\napiVersion: v2\nname: in\nversion: 1.0.0\n";
    let table = [
        (
            "{{ toJson .Chart }}",
            r#"{"name":"c","version":"1.0.0","maintainers":[{"name":"m","email":"e"}],"apiVersion":"v2","dependencies":[{"name":"in","version":"1.x","repository":"","enabled":true,"import-values":[{"child":"exports.data","parent":"."},{"child":"a","parent":"1"}]}],"IsRoot":true}"#,
        ),
        (
            "{{ range .Chart.Dependencies }}{{ . }} {{ toJson .Tags }}{{ range .ImportValues }} {{ typeOf . }} {{ . }}{{ end }}{{ end }}",
            "{in 1.x   [] true [map[child:exports.data parent:.] map[child:a parent:1]] } null map[string]string \
             map[child:exports.data parent:.] map[string]string map[child:a parent:1]",
        ),
        (
            "{{ range .Chart.Maintainers }}{{ . }} {{ print . }} {{ toString . }}{{ end }} {{ typeOf .Chart.Maintainers }}",
            "{m e } &{m e } &{m e } []*chart.Maintainer",
        ),
        (
            "{{ toJson .Chart.Sources }} {{ toJson .Chart.Keywords }} {{ toJson .Subcharts.in.Chart.Maintainers }} \
             {{ toJson .Subcharts.in.Chart.Dependencies }} {{ len .Subcharts.in.Chart.Maintainers }}",
            "[] null null null 0",
        ),
        (
            "{{ with .Chart.Annotations }}some{{ end }}{{ toYaml .Chart.Annotations }} {{ .Chart.Annotations.a | quote }} \
             {{ typeOf .Chart.Annotations }} {{ .Chart.Annotations }} {{ len .Chart.Annotations }}",
            "null \"\" map[string]string map[] 0",
        ),
        (
            "{{ with .Subcharts.in.Chart.Annotations }}{{ . }} {{ toYaml . }} {{ index . \"a\" }} {{ index . \"b\" | quote }} \
             {{ range $key, $value := . }}{{ $key }}={{ $value }}{{ end }}{{ end }}",
            "map[a:b] a: b b \"\" a=b",
        ),
        (
            "{{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion | quote }} {{ print .Capabilities.KubeVersion }} \
             {{ toJson .Capabilities.KubeVersion }}",
            "v1.20.0 \"{v1.20.0 1 20}\" {v1.20.0 1 20} {\"Version\":\"v1.20.0\",\"Major\":\"1\",\"Minor\":\"20\"}",
        ),
        ("{{ typeOf .Template }}", "chartutil.Values"),
    ];
    for (template, expected) in table {
        let text = format!("# {template}");
        let files = [
            ("Chart.yaml", meta),
            ("charts/in/Chart.yaml", inner),
            ("templates/x.yaml", &text),
        ];
        let made = rendered(&files, |options| options.kube_version = Some(String::new()));
        let made = made.map(|made| made.sorted.manifests[0].text.clone());
        assert_eq!(made, Ok(format!("# {expected}")), "{template}");
    }
}

#[test]
fn undeclared_subcharts_belong_to_the_original_of_an_alias() {
    let meta = "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n- {name: in, version: 1.x, alias: one}\n\
                - {name: in, version: 1.x, alias: two}\n";
    let files = [
        ("Chart.yaml", meta),
        ("values.yaml", "one: {deep: {a: 1}}\ntwo: {deep: {a: 2}}"),
        ("charts/in/Chart.yaml", "name: in\nversion: 1.0.0"),
        ("charts/in/templates/x.yaml", "in: {{ .Template.Name }}"),
        ("charts/in/charts/deep/Chart.yaml", "name: deep\nversion: 1.0.0"),
        ("charts/in/charts/deep/crds/x.yaml", "kind: CRD"),
        ("charts/in/charts/deep/templates/x.yaml", "deep: {{ .Values.a }}"),
    ];
    let made = rendered(&files, |_| {}).unwrap();
    assert_eq!(
        made.to_yaml(),
        "---\n# Source: c/charts/in/charts/deep/templates/x.yaml\ndeep: 2\n---\n# Source: c/charts/one/templates/x.yaml\n\
         in: c/charts/one/templates/x.yaml\n---\n# Source: c/charts/two/templates/x.yaml\nin: c/charts/two/templates/x.yaml\n"
    );
    assert_eq!(made.crds[0].0, "c/charts/in/charts/deep/crds/x.yaml");
    // The requested ones lie in the alias.
    let asking = "name: in\nversion: 1.0.0\ndependencies: [{name: deep, version: 1.x}]";
    let files = files.map(|(path, text)| match path {
        "charts/in/Chart.yaml" => (path, asking),
        _ => (path, text),
    });
    let made = rendered(&files, |_| {}).unwrap();
    let paths: Vec<&str> = made
        .sorted
        .manifests
        .iter()
        .map(|one| one.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "c/charts/one/charts/deep/templates/x.yaml",
            "c/charts/one/templates/x.yaml",
            "c/charts/two/charts/deep/templates/x.yaml",
            "c/charts/two/templates/x.yaml"
        ]
    );
}

#[test]
fn files_glob_counts_against_the_budget() {
    let files = [
        META,
        (
            "templates/x.yaml",
            "{{ range 1000000000 }}{{ $x := $.Files.Glob \"*****a\" }}{{ end }}",
        ),
    ];
    let tree = Mem::from_files(files).unwrap();
    let budget = Budget::new(tree::Limits {
        steps: 100_000,
        ..tree::Limits::default()
    });
    let error = template(&tree, &TreePath::root(), &Options::new("demo", &Still), &budget).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("error calling Glob: the limit of 100000 steps"),
        "{error}"
    );
}

#[test]
fn requirements_override_chart_yaml_and_are_shared_by_copies() {
    let files = [
        (
            "Chart.yaml",
            "apiVersion: v1\nname: c\nversion: 1.0.0\ndescription: \"a\\u200bb\\u00a0c\"\ndependencies:\n\
             - {name: x, version: 1.x, alias: one, tags: [t]}\n",
        ),
        (
            "requirements.yaml",
            "dependencies:\n- {name: in}\n- {name: in, version: 1.x, alias: two}\n",
        ),
        (
            "templates/x.yaml",
            "# {{ toJson .Chart.Dependencies }} {{ .Chart.Description }}",
        ),
        (
            "charts/in/Chart.yaml",
            "name: in\nversion: 1.0.0\ndependencies: [{name: deep, version: 1.x, import-values: [data]}]\n",
        ),
        ("charts/in/templates/x.yaml", "# {{ toJson .Values.k }}"),
        ("charts/in/charts/deep/Chart.yaml", "name: deep\nversion: 1.0.0\n"),
        ("charts/in/charts/deep/values.yaml", "exports: {data: {k: 1}}"),
    ];
    let made = rendered(&files, |_| {}).unwrap();
    let outputs: Vec<&str> = made
        .sorted
        .manifests
        .iter()
        .map(|one| one.text.as_str())
        .collect();
    let top = r#"# [{"name":"one","version":"1.x","repository":"","tags":["t"],"enabled":true,"alias":"one"},{"name":"two","version":"1.x","repository":"","enabled":true,"alias":"two"}] ab c"#;
    // Values are imported for the first copy only.
    assert_eq!(outputs, ["# 1", "# null", top]);
}

#[test]
fn errors_name_template_line_and_column() {
    let table = [
        (
            "\n\n  {{ fail \"no\" }}",
            "execution error at (c/templates/x.yaml:3:5): no",
        ),
        (
            "{{ required \"need\" .Values.none }}",
            "execution error at (c/templates/x.yaml:1:3): need",
        ),
        (
            "{{ .Values.none.x }}",
            "template: c/templates/x.yaml:1:10: executing \"c/templates/x.yaml\" at <.Values.none.x>: nil pointer evaluating interface {}.x",
        ),
        (
            "{{ if }}",
            "parse error at (c/templates/x.yaml:1): missing value for if",
        ),
        (
            "words",
            "YAML parse error on c/templates/x.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type releaseutil.SimpleHead",
        ),
    ];
    for (template, expected) in table {
        assert_eq!(one(template), Err(expected.to_owned()), "{template}");
    }
}

#[test]
fn output_is_that_of_helm_template() {
    let files = [
        META,
        ("crds/x.yaml", "kind: CRD\n"),
        ("templates/NOTES.txt", "hello {{ .Release.Name }}"),
        ("templates/_h.tpl", "{{ define \"n\" }}{{ .Chart.Name }}{{ end }}"),
        (
            "templates/a.yaml",
            "kind: A\nname: {{ include \"n\" . }}\n---\nkind: Service\n",
        ),
        (
            "templates/h.yaml",
            "kind: Pod\nmetadata: {annotations: {helm.sh/hook: test}}\n",
        ),
        ("charts/in/Chart.yaml", "name: in\nversion: 1.0.0\n"),
        (
            "charts/in/templates/a.yaml",
            "kind: B\nname: {{ include \"n\" . }}{{ .Chart.IsRoot }}",
        ),
    ];
    let all = rendered(&files, |options| options.include_crds = true).unwrap();
    assert_eq!(
        all.to_yaml(),
        "---\n# Source: c/crds/x.yaml\nkind: CRD\n\n---\n# Source: c/templates/a.yaml\nkind: Service\n---\n# Source: \
         c/templates/a.yaml\nkind: A\nname: c\n---\n# Source: c/charts/in/templates/a.yaml\nkind: B\nname: \
         infalse\n---\n# Source: c/templates/h.yaml\nkind: Pod\nmetadata: {annotations: {helm.sh/hook: test}}\n"
    );
    assert_eq!(all.notes, "hello demo");
    let less = rendered(&files, |options| {
        options.skip_tests = true;
        options.show_only = vec!["charts/*/templates/*.yaml".to_owned()];
    });
    assert_eq!(
        less.unwrap().to_yaml(),
        "---\n# Source: c/charts/in/templates/a.yaml\nkind: B\nname: infalse\n"
    );
    let none = rendered(&[META], |_| {}).unwrap();
    assert_eq!(none.to_yaml(), "\n");
}

#[test]
fn template_refuses_invalid_options() {
    type Change = fn(&mut Options<'_>);
    let table: &[(Change, &str)] = &[
        (
            |options| options.release_name = "A_b".to_owned(),
            "release name \"A_b\": invalid release name, must match regex ",
        ),
        (
            |options| options.release_name = "a".repeat(54),
            "length must not be longer than 53",
        ),
        (
            |options| options.release_name = String::new(),
            "release name \"\": no name provided",
        ),
        (
            |options| options.kube_version = Some("abc".to_owned()),
            "invalid kube version 'abc': could not parse \"abc\" as version",
        ),
        (
            |options| options.kube_version = Some("1".to_owned()),
            "invalid kube version '1': illegal version string \"1\"",
        ),
        (
            |options| options.kube_version = Some("1.18.2".to_owned()),
            "chart requires kubeVersion: >=1.19 which is incompatible with Kubernetes v1.18.2",
        ),
        (
            |options| options.show_only = vec!["x".to_owned()],
            "could not find template x in chart",
        ),
        (
            |options| options.values.set = vec!["a".to_owned()],
            "failed parsing --set data: key \"a\" has no value",
        ),
    ];
    for (change, expected) in table {
        let got = rendered(&[META], change).unwrap_err();
        assert!(got.contains(expected), "{got}");
    }
    // The name is rendered before the chart is read.
    let unclosed = |options: &mut Options<'_>| options.name_template = Some("{{".to_owned());
    assert_eq!(
        rendered(&[], unclosed).unwrap_err(),
        "template: name-template:1: unclosed action"
    );
    let plain = rendered(
        &[
            META,
            (
                "templates/x.yaml",
                "kind: {{ .Release.Name }}.{{ .Release.Namespace }}",
            ),
        ],
        |options| {
            options.name_template = Some(String::new());
            options.namespace = String::new();
        },
    );
    assert_eq!(plain.unwrap().sorted.manifests[0].kind, "demo.default");
    let named = rendered(
        &[META, ("templates/x.yaml", "kind: {{ .Release.Name }}")],
        |options| {
            options.name_template = Some("x-{{ \"A\" | lower }}".to_owned());
        },
    );
    assert_eq!(named.unwrap().sorted.manifests[0].kind, "x-a");
}

#[test]
fn kube_version_parses_two_numbers() {
    for (text, expected) in [
        ("1.33.0", "v1.33.0 1 33"),
        ("v1.30.1-eks-abc", "v1.30.1 1 30"),
        ("1.28", "v1.28 1 28"),
        (" v1.28+", "v1.28 1 28"),
        ("1.028.0", "v1.28.0 1 28"),
    ] {
        let version = KubeVersion::parse(text).unwrap();
        assert_eq!(
            format!("{} {} {}", version.version, version.major, version.minor),
            expected,
            "{text}"
        );
    }
    for bad in ["", "v", "x1.2", "01.2", "1.99999999999999999999"] {
        assert!(KubeVersion::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn objects_are_printed_within_the_budget() {
    let nested =
        "{{ $x := list }}{{ range until 24 }}{{ $x = list $x $x }}{{ end }}{{ $_ := set .Values \"a\" $x }}";
    let other =
        "{{ $o := deepCopy (dict) }}{{ $y := list }}{{ range until 24 }}{{ $y = list $y $y }}{{ end }}";
    for used in [
        "{{ print .Values }}",
        "{{ .Values }}",
        "{{ quote .Values }}",
        "{{ printf \"%d\" .Values }}",
        "{{ eq (print .Values) \"\" }}",
        "{{ deepEqual .Values (.Values.AsMap | merge (dict \"a\" $y)) }}{{ deepEqual .Values.a $y }}",
    ] {
        let text = format!("{nested}{other}{used}");
        let files = [META, ("templates/x.yaml", text.as_str())];
        let tree = Mem::from_files(files.iter().map(|(path, text)| (*path, (*text).to_owned()))).unwrap();
        let mut options = Options::new("demo", &Still);
        options.helm_version = HelmVersion::V3;
        let budget = Budget::new(tree::Limits {
            steps: 1_000_000,
            ..tree::Limits::default()
        });
        let error = template(&tree, &TreePath::root(), &options, &budget)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the limit of 1000000 steps"),
            "{used}: {error:.300}"
        );
    }
}
