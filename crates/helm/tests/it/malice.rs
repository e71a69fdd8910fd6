//! Malicious charts: an early and clear error, and no access outside of the chart.

use std::{
    fs,
    io::Write as _,
    time::{Duration, Instant},
};

use bytes::Bytes;
use helm::Options;
use tree::{Budget, Disk, Limits, Mem, Tree, TreePath};

use crate::options::Fixed;

const META: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";
/// Timeout of each chart, also where tests run slowly.
const LONG: Duration = Duration::from_secs(60);

fn render(tree: &dyn Tree, path: &str) -> Result<String, String> {
    let environment = Fixed::default();
    let options = Options::new("demo", &environment);
    let path = TreePath::parse(path).unwrap();
    let budget = Budget::new(Limits {
        steps: 20_000_000,
        ..Limits::default()
    });
    let begin = Instant::now();
    let rendered = helm::template(tree, &path, &options, &budget.with_timeout(LONG));
    assert!(begin.elapsed() < LONG, "it takes {:?}", begin.elapsed());
    rendered
        .map(|rendered| rendered.to_yaml().to_owned())
        .map_err(|error| error.to_string())
}

fn chart(files: &[(&str, &str)]) -> Result<String, String> {
    let meta = [("Chart.yaml", META)];
    let files = meta
        .iter()
        .chain(files)
        .map(|(path, text)| (*path, (*text).to_owned()));
    render(&Mem::from_files(files).unwrap(), ".")
}

fn one(template: &str) -> Result<String, String> {
    chart(&[("templates/x.yaml", template)])
}

/// Asserts for each chart that it fails with this message.
fn all_fail(charts: Vec<(&str, Result<String, String>)>) {
    let wrong: Vec<String> = charts
        .into_iter()
        .filter_map(|(words, made)| match made {
            Err(error) if error.contains(words) => None,
            Err(error) => Some(format!(
                "wanted {words:?}: {}",
                error.chars().take(300).collect::<String>()
            )),
            Ok(made) => Some(format!("wanted {words:?}, and got {} bytes", made.len())),
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn templates_without_end_are_ended() {
    let template = [
        (
            "nested reference name",
            r#"{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}"#,
        ),
        (
            "exceeded maximum template depth",
            r#"{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}"#,
        ),
        ("steps", "{{ range 1000000000000 }}{{ end }}"),
        (
            "steps",
            "{{ range until 10000 }}{{ range until 10000 }}{{ range until 10000 }}{{ end }}{{ end }}{{ end }}",
        ),
        ("limit of", r#"{{ repeat 1099511627776 "x" }}"#),
        (
            "limit",
            r#"{{ range until 1000 }}{{ repeat 1000000 "x" }}{{ end }}"#,
        ),
        ("", r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYaml $d }}"#),
        (
            "error parsing regexp",
            r#"{{ mustRegexMatch "((a{1000}){1000}){1000}" "a" }}"#,
        ),
        ("function \"env\" not defined", "{{ env \"HOME\" }}"),
        ("function \"expandenv\" not defined", "{{ expandenv \"$HOME\" }}"),
    ];
    all_fail(template.map(|(words, text)| (words, one(text))).to_vec());
    let values = ("values.yaml", "a: '{{ tpl .Values.a . }}'");
    let recursive = chart(&[values, ("templates/x.yaml", "{{ tpl .Values.a . }}")]);
    all_fail(vec![("maximum depth of texts that are templates", recursive)]);
}

#[test]
fn expressions_and_addresses_cost_little() {
    let made =
        one(r#"a: {{ regexMatch "^(a+)+$" (print (repeat 50000 "a") "b") }}{{ getHostByName "localhost" }}"#);
    assert_eq!(made.unwrap(), "---\n# Source: c/templates/x.yaml\na: false\n");
}

#[test]
fn values_that_grow_are_refused() {
    let deep = format!("a: {}", "[".repeat(100_000));
    let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let last = format!("*a{}", n - 1);
        aliases += &format!("a{n}: &a{n} [{}]\n", [last.as_str(); 10].join(", "));
    }
    all_fail(vec![
        ("nested YAML values", chart(&[("values.yaml", &deep)])),
        ("alias", chart(&[("values.yaml", &aliases)])),
        ("nested YAML values", one(&format!("a: {}", "[".repeat(100_000)))),
    ]);
}

#[test]
fn schemas_read_nothing_and_end() {
    let schema = |text: &str| chart(&[("values.schema.json", text), ("values.yaml", "a: {b: 1}")]);
    let wide = format!(
        r##"{{"definitions": {{{}, "d30": {{"type": "string"}}}}, "$ref": "#/definitions/d0"}}"##,
        (0..30)
            .map(|n| {
                let next = format!(r##"{{"$ref": "#/definitions/d{}"}}"##, n + 1);
                format!(r#""d{n}": {{"anyOf": [{next}, {next}]}}"#)
            })
            .collect::<Vec<_>>()
            .join(", ")
    );
    all_fail(vec![
        ("file:///etc/passwd", schema(r#"{"$ref": "file:///etc/passwd"}"#)),
        (
            "http://127.0.0.1",
            schema(r#"{"$ref": "http://127.0.0.1:1/x.json"}"#),
        ),
        ("", schema(r##"{"$ref": "#"}"##)),
        ("", schema(r##"{"allOf": [{"$ref": "#"}, {"$ref": "#"}]}"##)),
        ("", schema(&wide)),
        ("", schema(&format!("{{\"not\": {}", "[".repeat(100_000)))),
    ]);
}

#[test]
fn charts_in_charts_end() {
    let mut files = vec![("Chart.yaml".to_owned(), META.to_owned())];
    for depth in 1..24 {
        files.push((
            format!("{}Chart.yaml", "charts/c/".repeat(depth)),
            META.to_owned(),
        ));
    }
    let deep = render(&Mem::from_files(files).unwrap(), ".");
    all_fail(vec![("deeper than 20 charts", deep)]);
    // Values that are imported from each other, and from themselves.
    let imports = "dependencies:\n- name: a\n  import-values: [{child: x, parent: a.x}, {child: ., parent: a}]\n\
                   - name: b\n  import-values: [{child: x, parent: a.x.x}, {child: a, parent: b}]\n";
    let made = chart(&[
        ("Chart.yaml", &format!("{META}{imports}")),
        ("charts/a/Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n"),
        ("charts/a/values.yaml", "x: {x: {x: 1}}"),
        ("charts/b/Chart.yaml", "apiVersion: v2\nname: b\nversion: 1.0.0\n"),
        ("charts/b/values.yaml", "x: {x: {x: 1}}\na: {x: 1}"),
        ("templates/x.yaml", "a: {{ toJson .Values | len }}"),
    ]);
    assert!(made.is_ok(), "{made:?}");
}

fn header(name: &str, size: u64, kind: tar::EntryType) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    let field = header.as_mut_bytes().get_mut(..name.len()).unwrap();
    field.copy_from_slice(name.as_bytes());
    header.set_size(size);
    header.set_mode(0o644);
    header.set_entry_type(kind);
    if kind.is_symlink() || kind.is_hard_link() {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    header
}

/// Gzips entries of an archive without its end: more may follow.
fn zipped(entries: &[(tar::Header, &[u8])]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for (header, data) in entries {
        encoder.write_all(header.as_bytes()).unwrap();
        encoder.write_all(data).unwrap();
        let padding = data.len().next_multiple_of(512) - data.len();
        encoder.write_all(&[0; 512][..padding]).unwrap();
    }
    encoder.finish().unwrap()
}

fn meta() -> (tar::Header, &'static [u8]) {
    let kind = tar::EntryType::Regular;
    (header("c/Chart.yaml", META.len() as u64, kind), META.as_bytes())
}

fn archive(bytes: Vec<u8>) -> Result<String, String> {
    let tree = Mem::from_files([("c.tgz", Bytes::from(bytes))]).unwrap();
    render(&tree, "c.tgz")
}

#[test]
fn archives_are_bounded_and_stay_inside() {
    let file = tar::EntryType::Regular;
    let named = |name: &str| archive(zipped(&[meta(), (header(name, 1, file), b"x")]));
    let huge = archive(zipped(&[meta(), (header("c/huge", 1 << 30, file), b"x")]));
    all_fail(vec![
        ("larger than the maximum file size", huge),
        ("parent directory", named("c/../../x")),
        ("absolute paths", named("c//etc/x")),
        ("", archive(b"\x1f\x8b\x08garbage".to_vec())),
    ]);
}

#[test]
fn links_lead_nowhere() {
    let template = br#"a: {{ .Files.Get "link" | quote }}{{ .Files.Get "../../etc/passwd" }}{{ .Files.Get "/etc/passwd" }}"#;
    let file = (
        header(
            "c/templates/x.yaml",
            template.len() as u64,
            tar::EntryType::Regular,
        ),
        template.as_slice(),
    );
    for kind in [tar::EntryType::Symlink, tar::EntryType::Link] {
        let link = (header("c/link", 0, kind), b"".as_slice());
        let evil = (header("c/templates/y.yaml", 0, kind), b"".as_slice());
        let made = archive(zipped(&[meta(), link, evil, file.clone()])).unwrap();
        assert_eq!(made, "---\n# Source: c/templates/x.yaml\na: \"\"\n");
    }
    let dir = tempfile::tempdir().unwrap();
    let chart = dir.path().join("c");
    fs::create_dir_all(chart.join("templates")).unwrap();
    fs::write(chart.join("Chart.yaml"), META).unwrap();
    fs::write(
        chart.join("templates/x.yaml"),
        "a: {{ .Files.Get \"link\" | quote }}",
    )
    .unwrap();
    fs::write(dir.path().join("outside"), "secret: 1").unwrap();
    for (link_path, target) in [
        ("link", "/etc/passwd"),
        ("link", "../outside"),
        ("templates/y.yaml", "../../outside"),
    ] {
        let link = chart.join(link_path);
        std::os::unix::fs::symlink(target, &link).unwrap();
        let tree = Disk::open(&chart, &Limits::default()).unwrap();
        let made = render(&tree, ".");
        fs::remove_file(link).unwrap();
        let output = made.unwrap_or_else(|error| error);
        assert!(
            !output.contains("root:") && !output.contains("secret"),
            "{output}"
        );
    }
}
