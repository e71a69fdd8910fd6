//! The arguments of `helm template`.

use super::{chart::Files, maker::Maker, values};

pub(super) fn name(maker: &mut Maker<'_>) -> String {
    match maker.odd(20) {
        false => maker.of("demo¦a.b¦demo-1¦1").to_owned(),
        true if maker.rare(3) => "x".repeat(53 + maker.below(2)),
        true => maker.of("Demo¦a_b¦a..b¦a.-b¦a-").to_owned(),
    }
}

/// Generates options, and the files that they name.
pub(super) fn arguments(maker: &mut Maker<'_>, files: &Files) -> (Vec<String>, Files) {
    let (mut made, mut beside) = (Vec::new(), Files::new());
    let mut add = |flag: &str, value: &str| made.extend([flag.to_owned(), value.to_owned()]);
    for number in 0..[0, 1, 0, 2, 1, 3][maker.below(6)] {
        let name = format!("v{number}.yaml");
        add("-f", &name);
        beside.insert(name, values::file(maker).into_bytes());
    }
    for _ in 0..[0, 0, 1, 2][maker.below(4)] {
        add("--set", values::setting(maker));
    }
    if maker.rare(8) {
        add("--set-string", values::setting(maker));
    }
    if maker.rare(8) {
        add("--set-json", values::json(maker));
    }
    if maker.rare(10) {
        let text = maker.of("x¦two\nlines\n¦¦\u{feff}bom\n¦crlf\r\n");
        beside.insert("f.txt".to_owned(), text.into());
        let wrong = "a=nope.txt¦list[0]=f.txt¦a={f.txt,f.txt}¦a=";
        add(
            "--set-file",
            maker.of_or(3, "a=f.txt¦one.a=f.txt¦global.f=f.txt", wrong),
        );
    }
    if maker.rare(10) {
        add("--set-literal", values::setting(maker));
    }
    if maker.rare(6) {
        add("--api-versions", maker.of("a/b¦a/b,c/d¦v1/Pod¦x"));
    }
    if maker.rare(6) {
        let wrong = "1¦x¦1.2.3.4¦¦v¦1.99999999999999999999";
        add(
            "--kube-version",
            maker.of_or(
                3,
                "1.30¦v1.29.1¦1.20.0¦1.30.2-gke.1¦v1.25.3+k3s1¦1.30.0-rc.1",
                wrong,
            ),
        );
    }
    if maker.rare(6) {
        add("--namespace", maker.of("ns¦kube-system¦¦A b"));
    }
    if maker.rare(10) {
        let wrong = "{{ .Foo }}¦x y¦¦{{¦r{{ 1 }}¦{{ nope }}";
        add(
            "--name-template",
            maker.of_or(3, "n-{{ \"x\" | upper | lower }}¦n{{ add 1 2 }}", wrong),
        );
    }
    if maker.rare(12) {
        for _ in 0..1 + maker.below(2) {
            let show_only = show_only(maker, files);
            add("--show-only", &show_only);
        }
    }
    let flags = [
        ("--include-crds", 5),
        ("--skip-crds", 12),
        ("--no-hooks", 8),
        ("--skip-tests", 8),
        ("--is-upgrade", 8),
        ("--skip-schema-validation", 8),
    ];
    for (flag, n) in flags {
        if maker.rare(n) {
            made.push(flag.to_owned());
        }
    }
    (made, beside)
}

/// Generates the path of a template, or a pattern.
fn show_only(maker: &mut Maker<'_>, files: &Files) -> String {
    let templates: Vec<&String> = files.keys().filter(|name| name.contains("templates/")).collect();
    if !templates.is_empty() && !maker.odd(3) {
        return (*maker.random.pick(&templates)).clone();
    }
    let patterns = "templates/*.yaml¦templates/nope.yaml¦charts/*/templates/*¦*¦templates/**¦charts/one/templates/config.yaml¦¦[¦\
        templates\\config.yaml¦charts/one/**¦/templates/a.yaml¦crds/a.yaml¦templates/[a-z]*.y?ml";
    maker.of(patterns).to_owned()
}
