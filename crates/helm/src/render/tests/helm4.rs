//! The profile of Helm 4. All results agree with Helm 4.3.1.

use super::*;

const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";

fn four(files: &[(&str, &str)], change: impl FnOnce(&mut Options<'_>)) -> Result<String, String> {
    let mut all = files.to_vec();
    if !files.iter().any(|(name, _)| *name == "Chart.yaml") {
        all.push(("Chart.yaml", CHART));
    }
    rendered(&all, |options| {
        options.helm_version = HelmVersion::V4;
        change(options);
    })
    .map(|rendered| rendered.to_yaml().to_owned())
}

/// Renders `# TEMPLATE`, and returns the output of the template.
fn seen(template: &str, values: &str) -> Result<String, String> {
    let text = format!("# {template}");
    let output = four(&[("templates/x.yaml", &text), ("values.yaml", values)], |_| {})?;
    let line = output
        .lines()
        .find_map(|line| line.strip_prefix("# ").filter(|line| !line.starts_with("Source")));
    Ok(line.unwrap_or_default().to_owned())
}

#[test]
fn documents_keep_the_white_space_at_their_ends() {
    let text = "kind: A\n\n\n---\n  kind: B  \n\n---kind: C\n--- # x\nkind: D\n---\n\n";
    let files = [("templates/x.yaml", text)];
    let head = "---\n# Source: c/templates/x.yaml\n";
    assert_eq!(
        four(&files, |_| {}).unwrap(),
        format!("{head}kind: A\n\n\n\n{head}kind: B  \n\n\n{head}kind: C\n\n{head}# x\nkind: D\n")
    );
    let only = |options: &mut Options<'_>| options.show_only = vec!["templates/x.yaml".to_owned()];
    assert_eq!(
        four(&[("templates/x.yaml", "kind: A\n\n\n---\n  kind: B  \n\n")], only).unwrap(),
        format!("{head}kind: A\n\n\n\n\n{head}kind: B\n\n")
    );
}

#[test]
fn webhook_configurations_come_before_unknown_kinds() {
    let kinds = [
        "V",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "APIService",
        "A",
    ];
    let text = kinds.map(|kind| format!("kind: {kind}\n")).join("---\n");
    let output = four(&[("templates/x.yaml", &text)], |_| {}).unwrap();
    let printed: Vec<&str> = output
        .lines()
        .filter_map(|line| line.strip_prefix("kind: "))
        .collect();
    assert_eq!(
        printed,
        [
            "APIService",
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
            "A",
            "V"
        ]
    );
}

#[test]
fn nulls_of_defaults_are_removed() {
    let defaults =
        "a: null\nm: {x: null, t: {z: null, l: [null]}}\nl: [null, {q: null}]\nglobal: {g: null}\n";
    assert_eq!(
        seen("{{ toJson .Values }}", defaults).unwrap(),
        r#"{"global":{},"l":[null,{"q":null}],"m":{"t":{"l":[null]}}}"#
    );
    let files = [
        ("templates/x.yaml", "# {{ toJson .Values }}"),
        ("values.yaml", "a: {b: 1, c: null}\ns: 1\nsub: {b: 1, o: null}\n"),
        (
            "charts/sub/Chart.yaml",
            "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
        ),
        (
            "charts/sub/values.yaml",
            "b: 2\nd: {e: null, f: 1}\nk: null\nw: {e: 1}\n",
        ),
    ];
    let set =
        |texts: &'static str| move |options: &mut Options<'_>| options.values.set = vec![texts.to_owned()];
    let output = four(&files, set("a.b=null,a.x=null,a.c=null,s=null,q=null,o.m=null")).unwrap();
    assert!(
        output.contains(r#"# {"a":{"c":null,"x":null},"o":{"m":null},"q":null,"sub":"#),
        "{output}"
    );
    let output = four(
        &files,
        set("sub.nested=null,sub.d.f=null,sub.w=null,sub.d.g=null"),
    )
    .unwrap();
    assert!(
        output.contains(r#""sub":{"b":1,"d":{"g":null},"global":{},"nested":null,"o":null}}"#),
        "{output}"
    );
}

#[test]
fn documents_of_values_are_merged() {
    let print = "{{ toJson .Values }}";
    for (values, expected) in [
        (
            "a: 1\n---\na: 2\nb: {c: 1}\n--- # words\nb: {d: 1}",
            Ok(r#"{"a":2,"b":{"c":1,"d":1}}"#),
        ),
        ("---\n---\na: 2\n", Ok(r#"{"a":2}"#)),
        ("", Ok("{}")),
        (
            "a: 1\n---\n- x\n",
            Err(
                "cannot load values.yaml: cannot unmarshal yaml document: error unmarshaling JSON: while decoding JSON: json: \
                 cannot unmarshal array into Go value of type map[string]interface {}",
            ),
        ),
        (
            "a: 1\n--- x\n",
            Err("cannot load values.yaml: error reading yaml document: invalid Yaml document separator: x"),
        ),
    ] {
        let got = seen(print, values);
        assert_eq!(got.as_deref().map_err(String::as_str), expected, "{values:?}");
    }
}

#[test]
fn set_json_takes_objects() {
    let files = [
        ("templates/x.yaml", "# {{ toJson .Values }}"),
        ("values.yaml", "a: {b: 1}"),
    ];
    let json =
        |text: &'static str| move |options: &mut Options<'_>| options.values.json = vec![text.to_owned()];
    let output = four(&files, json(r#" {"a":{"c":[1,null]},"d":null}"#)).unwrap();
    assert!(
        output.ends_with("# {\"a\":{\"b\":1,\"c\":[1,null]},\"d\":null}\n"),
        "{output}"
    );
    assert_eq!(
        four(&files, json("{\"a\":")).unwrap_err(),
        "failed parsing --set-json data JSON: {\"a\":"
    );
}

#[test]
fn chart_is_a_map() {
    let chart = "apiVersion: v2\nname: c\nversion: 1.0.0\nmaintainers: [{name: m, email: e}]\n";
    let files = |template| [("Chart.yaml", chart), ("templates/x.yaml", template)];
    for (template, expected) in [
        (
            "# {{ toJson .Chart }}",
            r#"# {"APIVersion":"v2","Annotations":null,"AppVersion":"","Condition":"","Dependencies":[],"Deprecated":false,"Description":"","Home":"","Icon":"","IsRoot":true,"Keywords":[],"KubeVersion":"","Maintainers":[{"Email":"e","Name":"m","URL":""}],"Name":"c","Sources":[],"Tags":"","Type":"","Version":"1.0.0"}"#,
        ),
        (
            "# {{ typeOf .Chart }} {{ typeOf .Chart.Maintainers }} {{ typeOf .Values }} {{ typeOf .Chart.Annotations }} [{{ .Chart.Nope }}]",
            "# map[string]interface {} []interface {} common.Values map[string]string []",
        ),
        (
            "# {{ .Capabilities.KubeVersion }} {{ print .Capabilities.KubeVersion }} {{ toJson .Capabilities.HelmVersion }}",
            "# v1.37.0 {v1.37.0 v1.37.0 1 37} {\"version\":\"v4.3.1\",\"kube_client_version\":\"v1.37\"}",
        ),
    ] {
        let output = four(&files(template), |_| {}).unwrap();
        assert_eq!(output.lines().last(), Some(expected), "{template}");
    }
    let suffix = |options: &mut Options<'_>| options.kube_version = Some("1.30.1-eks+x".to_owned());
    let template = "# {{ .Capabilities.KubeVersion }} {{ print .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion.Version }}";
    let output = four(&files(template), suffix).unwrap();
    assert_eq!(
        output.lines().last(),
        Some("# v1.30.1 {v1.30.1-eks+x v1.30.1 1 30} v1.30.1-eks+x")
    );
}

#[test]
fn functions_are_those_of_helm_4() {
    for (template, expected) in [
        (
            "{{ mustToYaml (dict \"a\" 1) }} {{ mustToToml (dict \"a\" 1e6) }}",
            Ok("a: 1 a = 1e+06"),
        ),
        (
            "{{ toToml (dict \"a\" 1000000 \"b\" 1e6 \"c\" 8080.0 \"d\" 1.5e22 \"e\" 1e-5) | toJson }}",
            Ok(r#""a = 1000000\nb = 1e+06\nc = 8080.0\nd = 1.5e+22\ne = 1e-05\n""#),
        ),
        (
            "{{ mustToDuration \"1h2m\" }} {{ durationSeconds \"90\" }} {{ durationRoundTo \"2h13m\" \"1h\" }} {{ durationHours 3600 }} \
             {{ kindOf (mustToDuration 3) }} {{ durationTruncateTo \"1h59m\" \"1h\" }} {{ durationDays \"x\" }}",
            Ok("1h2m0s 90 2h0m0s 1 int64 1h0m0s 0"),
        ),
        (
            "{{ semverCompare \"x y\" \"1.0.0\" }}",
            Err("error calling semverCompare: improper constraint: \"x y\""),
        ),
        (
            "{{ semver (repeat 300 \"1\") }}",
            Err("error calling semver: version string is too long (max 256 bytes)"),
        ),
        (
            "{{ semverCompare (repeat 40 \"1||\") \"1\" }}",
            Err("error calling semverCompare: too many constraint groups (max 32)"),
        ),
    ] {
        match (seen(template, ""), expected) {
            (Err(got), Err(expected)) => assert!(got.ends_with(expected), "{got}"),
            (got, expected) => assert_eq!(got.as_deref().map_err(String::as_str), expected, "{template}"),
        }
    }
    let three = one("{{ mustToYaml 1 }}").unwrap_err();
    assert!(three.contains("function \"mustToYaml\" not defined"), "{three}");
}

#[test]
fn errors_have_the_words_of_helm_4() {
    let chart = |more: &str| format!("{CHART}{more}\n");
    let decode =
        "cannot load Chart.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal";
    for (metadata, expected) in [
        ("- a\n".to_owned(), format!("{decode} array into Go value of type loader.chartBase")),
        (
            "apiVersion: [x]\n".to_owned(),
            format!("{decode} array into Go struct field chartBase.apiVersion of type string"),
        ),
        (
            chart("maintainers: 3"),
            format!("{decode} number into Go struct field Metadata.maintainers of type []*v2.Maintainer"),
        ),
        ("apiVersion: v3\nname: c\nversion: 1.0.0\n".to_owned(), "invalid chart apiVersion".to_owned()),
        ("apiVersion: v9\nname: c\nversion: 1.0.0\n".to_owned(), "unsupported chart version".to_owned()),
        (
            "apiVersion: v2\nname: ..\nversion: 1.0.0\n".to_owned(),
            "validation: chart.metadata.name \"..\" is not allowed".to_owned(),
        ),
        (
            chart("dependencies: [{name: x, version: 1.x}]"),
            "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch \
             missing dependencies: found in Chart.yaml, but missing in charts/ directory: x"
                .to_owned(),
        ),
        (
            chart("kubeVersion: '<1.0'"),
            "chart requires kubeVersion: <1.0 which is incompatible with Kubernetes v1.37.0".to_owned(),
        ),
    ] {
        assert_eq!(four(&[("Chart.yaml", &metadata)], |_| {}), Err(expected), "{metadata}");
    }
    let wrong = four(&[], |options| options.release_name = "A_b".to_owned()).unwrap_err();
    assert!(
        wrong.starts_with("release name check failed: release name \"A_b\": invalid"),
        "{wrong}"
    );
    let none = four(&[("templates/x.yaml", "{{ include \"x\" . }}")], |_| {}).unwrap_err();
    assert_eq!(
        none,
        "c/templates/x.yaml:1:3\n  executing \"c/templates/x.yaml\" at <include \"x\" .>:\n    error calling include:\n\
         template: no template \"x\" associated with template \"gotpl\""
    );
    let text = four(&[("templates/x.yaml", "words")], |_| {}).unwrap_err();
    assert!(
        text.ends_with("cannot unmarshal string into Go value of type util.SimpleHead"),
        "{text}"
    );
}

#[test]
fn copies_of_a_chart_import_values_each() {
    let files = [
        (
            "Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: in, version: 1.x, alias: one}, {name: in, version: \
             1.x, alias: two}]\n",
        ),
        (
            "charts/in/Chart.yaml",
            "apiVersion: v2\nname: in\nversion: 1.0.0\ndependencies: [{name: deep, version: 1.x, import-values: [data]}]\n",
        ),
        (
            "charts/in/templates/x.yaml",
            "# {{ toJson .Values.k }} {{ toJson .Chart.Dependencies }}",
        ),
        (
            "charts/in/charts/deep/Chart.yaml",
            "apiVersion: v2\nname: deep\nversion: 1.0.0\n",
        ),
        ("charts/in/charts/deep/values.yaml", "exports: {data: {k: 1}}"),
    ];
    let top = (
        "templates/x.yaml",
        "# {{ range .Chart.Dependencies }}{{ toJson .ImportValues }}{{ end }}",
    );
    let output = four(&[&files[..], &[top]].concat(), |_| {}).unwrap();
    assert!(output.contains("# [][]\n"), "{output}");
    let line = r#"# 1 [{"Alias":"","Condition":"","Enabled":true,"ImportValues":[{"child":"exports.data","parent":"."}],"Name":"deep","Repository":"","Tags":[],"Version":"1.x"}]"#;
    assert_eq!(output.lines().filter(|one| *one == line).count(), 2, "{output}");
}

#[test]
fn copies_of_a_chart_have_subcharts_of_their_own() {
    let files = [
        (
            "Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: two, version: 1.x}, {name: two, version: 1.x, alias: \
             al}]\n",
        ),
        (
            "charts/two/Chart.yaml",
            "apiVersion: v2\nname: two\nversion: 1.0.0\n",
        ),
        (
            "charts/two/charts/one/Chart.yaml",
            "apiVersion: v2\nname: one\nversion: 1.0.0\n",
        ),
        ("charts/two/charts/one/templates/x.yaml", "# {{ .Template.Name }}"),
    ];
    let output = four(&files, |_| {}).unwrap();
    let names: Vec<&str> = output
        .lines()
        .filter_map(|line| line.strip_prefix("# c/"))
        .collect();
    assert_eq!(
        names,
        [
            "charts/al/charts/one/templates/x.yaml",
            "charts/two/charts/one/templates/x.yaml"
        ]
    );
}

#[test]
fn charts_without_metadata_are_refused() {
    let files = [("Chart.yaml", CHART), (".helmignore", "Chart.yaml\n")];
    assert_eq!(four(&files, |_| {}).unwrap_err(), "Chart.yaml file is missing");
    let none = rendered(&[("values.yaml", "")], |options| {
        options.helm_version = HelmVersion::V4;
    });
    assert_eq!(
        none.unwrap_err(),
        "unable to detect chart at Chart.yaml: open Chart.yaml: no such file or directory"
    );
}
