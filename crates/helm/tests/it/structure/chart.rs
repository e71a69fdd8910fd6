//! The files of a chart with its subcharts.

use std::collections::BTreeMap;

use testkit::archive::{gzip, tar_gz};

use super::{
    maker::Maker,
    metadata::{self, Said},
    template, values,
};

pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Paths of templates, and of files that only look like templates.
const TEMPLATES: &str = "config.yaml¦a.yaml¦z.yaml¦b.yml¦c.json¦deploy.yaml¦_under.yaml¦sub/dir/x.yaml¦sub/a.yaml¦.hidden.yaml¦NOTES.txt¦\
    sub/NOTES.txt¦t.txt¦t.tpl¦a b.yaml¦é.yaml¦UPPER.YAML¦tests/test.yaml¦noext¦_h.tpl¦sub/_h.tpl¦sub/.hidden¦a.yaml.bak¦_d/x.yaml¦\
    aNOTES.txt¦.hid/x.yaml¦notes.txt¦crds/x.yaml¦0.yaml¦a-b.yaml¦a.b.yaml¦A.yaml";
const OTHERS: &str = "a.txt¦files/b.txt¦files/deep/c.txt¦README.md¦.dot¦.dotdir/x¦_under¦LICENSE¦a b.txt¦bin¦values.schema.yaml¦values.yml¦\
    chart.yaml¦templates.txt¦crds.yaml¦ci/values.yaml¦charts.txt¦Values.yaml¦sub/Chart.yaml¦sub/templates/a.yaml¦tmpl/NOTES.txt";
const TEXTS: &str =
    "x¦text\n¦two\nlines\n¦¦\u{feff}bom\n¦crlf\r\nx\r\n¦{{ .Values.a }}¦é\n¦\n\n¦a: 1\n¦a¦tail\n\n";
const CRDS: &str = "a.yaml¦b.yaml¦z.yml¦c.json¦sub/d.yaml¦README.md¦x.txt¦.hid.yaml¦_u.yaml¦E.YAML";
const CRD: &str = "kind: CustomResourceDefinition\nmetadata: {name: x}\n¦---\nkind: A\n---\nkind: B\n¦¦\n¦{{ not a template }}\n¦kind: C¦\
    \n\nkind: C\n\n\n¦a: [\n¦# c\n¦kind: A\r\nb: 1\r\n¦\u{feff}kind: A\n";
const IGNORE: &str = "*.txt\n¦files/\n¦/files\n¦# c\n¦\n¦files/*\n¦.*\n¦templates/*\n¦/templates/a.yaml\n¦charts/\n¦values.yaml\r\n¦*.ya?l\n¦\
    [a-c]*\n¦a\n¦x/\n¦/x\n¦crds\n¦_*\n¦README.md\n¦   a.txt   \n¦\\#a\n¦[^a]*\n¦./a.txt\n¦files/b.txt\n¦*.md\n";
const ODD_IGNORE: &str = "!a.txt\n¦*\n¦**/x\n¦Chart.yaml\n¦[\n¦!*.yaml\n¦templates\n¦!/templates/\n¦[a-\n¦a\\\n¦{a,b}.txt\n¦/\n¦!\n¦//\n¦**\n";

pub(super) fn whole(maker: &mut Maker<'_>) -> Files {
    let mut files = chart(maker, "top", 0);
    // A file's path cannot be a directory.
    let names: Vec<String> = files.keys().cloned().collect();
    files.retain(|name, _| {
        let below = format!("{name}/");
        !names.iter().any(|other| other.starts_with(&below))
    });
    files
}

fn chart(maker: &mut Maker<'_>, name: &str, depth: usize) -> Files {
    let mut files = Files::new();
    let charts = charts(maker, depth);
    let asks = !charts.is_empty() && !maker.rare(6) || maker.rare(12);
    let asked = asks.then(|| metadata::asked(maker, &charts));
    let Said { chart, requirements } = metadata::make(maker, name, depth == 0, asked.as_deref());
    let mut put = |name: &str, text: &str| {
        files.insert(name.to_owned(), text.into());
    };
    if !maker.odd(80) {
        put("Chart.yaml", &chart);
    }
    if let Some(requirements) = requirements {
        put("requirements.yaml", &requirements);
    }
    if !maker.rare(5) {
        put("values.yaml", &values::file(maker));
    }
    for _ in 0..[1, 1, 0, 2, 2, 3][maker.below(6)] {
        put(
            &format!("templates/{}", maker.of(TEMPLATES)),
            &template::file(maker),
        );
    }
    if maker.rare(2) {
        put("templates/_h.tpl", &template::partials(maker));
    }
    if maker.rare(5) {
        put("templates/NOTES.txt", template::notes(maker));
    }
    for _ in 0..maker.below(3) {
        put(maker.of(OTHERS), maker.of(TEXTS));
    }
    if maker.rare(12) {
        put(
            maker.of("Chart.lock¦requirements.lock"),
            maker.of_or(3, "digest: x\n¦", "x¦[]¦a: [\n"),
        );
    }
    if maker.rare(5) {
        for _ in 0..1 + maker.below(3) {
            put(&format!("crds/{}", maker.of(CRDS)), maker.of(CRD));
        }
    }
    if maker.rare(10) {
        put("values.schema.json", values::schema(maker));
    }
    if maker.rare(if depth == 0 { 8 } else { 25 }) {
        let lines: Vec<&str> = (0..1 + maker.below(3))
            .map(|_| maker.of_or(3, IGNORE, ODD_IGNORE))
            .collect();
        put(".helmignore", &lines.concat());
    }
    for name in charts {
        bring(maker, name, depth, &mut files);
    }
    if maker.odd(10) {
        let name_in_charts = maker.of(
            "README.md¦_x/Chart.yaml¦.x/y¦a.prov¦x.tgz¦empty/x¦one/extra.txt¦.gitkeep¦_partial.tpl¦one.prov",
        );
        files.insert(format!("charts/{name_in_charts}"), maker.of(TEXTS).into());
    }
    files
}

fn charts(maker: &mut Maker<'_>, depth: usize) -> Vec<&'static str> {
    let known: &[&str] = match depth {
        0 => &["one", "two", "three"],
        1 => &["one", "two", "deep"],
        _ => &[],
    };
    let n = if depth == 0 { 2 } else { 4 };
    known.iter().copied().filter(|_| maker.rare(n)).collect()
}

/// Puts a chart into another one, as a directory or as an archive.
fn bring(maker: &mut Maker<'_>, name: &str, depth: usize, files: &mut Files) {
    let called = if maker.odd(20) { "other" } else { name };
    let inner = chart(maker, called, depth + 1);
    if maker.odd(20) {
        return;
    }
    let name_in_charts = if maker.odd(12) {
        maker.of("_x¦.x¦X¦other-0.1.0")
    } else {
        name
    };
    if !maker.rare(4) {
        files.extend(
            inner
                .into_iter()
                .map(|(path, data)| (format!("charts/{name_in_charts}/{path}"), data)),
        );
        return;
    }
    let base = match maker.odd(20) {
        false => format!("{name}/"),
        true => maker.of("./¦q/¦¦q/r/").to_owned(),
    };
    let data = if maker.odd(40) {
        maker
            .random
            .pick(&[b"".to_vec(), b"x".to_vec(), gzip(b""), gzip(&[0; 1024])])
            .clone()
    } else {
        let named: Vec<(String, Vec<u8>)> = inner
            .into_iter()
            .map(|(path, data)| (format!("{base}{path}"), data))
            .collect();
        let named: Vec<(&str, &[u8])> = named
            .iter()
            .map(|(path, data)| (path.as_str(), data.as_slice()))
            .collect();
        tar_gz(&named)
    };
    let end = maker.of_or(20, ".tgz¦-0.1.0.tgz", ".tar.gz¦.TGZ¦.tgz/x");
    files.insert(format!("charts/{name_in_charts}{end}"), data);
}
