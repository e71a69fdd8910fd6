//! `Chart.yaml` and its dependencies.

use super::maker::Maker;

const RANGES: &str = "0.1.0¦^0.1.0¦~0.1¦\"\"¦1.2.3¦\">0.5\"¦x¦\"not a range\"¦0.1¦\"<1.0.0-0\"¦null¦\"0.1.0 || 1.2.3\"¦=0.1.0¦\
    \">=0.1.0 <2\"¦0.1.0-rc¦1";
const CONDITIONS: &str = "one.enabled¦enabled¦a.enabled¦x.y¦one.enabled,a.enabled¦al.enabled,enabled¦\" a.enabled \"¦\
    \"a.enabled, one.enabled\"¦\",a.enabled\"¦global.enabled¦one.two.enabled¦one¦al.enabled¦two.enabled¦\".enabled\"¦\"a..b\"¦list¦b";
const IMPORTS: &str = "data¦default¦{child: a, parent: b}¦{child: exports, parent: .}¦{child: ., parent: imp}¦{child: x, parent: global}¦\
    {child: a, parent: a.b.c}¦{child: default.data, parent: one}¦{child: nope, parent: x}¦{child: a}¦{parent: a}¦1¦null¦[a]¦\"\"¦a.b¦\
    {child: b, parent: b}¦{child: global, parent: c}¦{child: c, parent: two}¦{child: a, parent: \"\"}¦{child: 1, parent: 2}";
const KUBE: &str = "\">=1.10\"¦\">= 1.19.0-0\"¦^1.20.0¦1.20.x¦\"\"¦\"1.20 - 1.22 || >3\"¦\">=1.20.0 <1.22\"¦\"*\"¦\">=1.19, <2\"";
const WRONG_KUBE: &str =
    "\"<1.20\"¦~1.20¦x¦1.20¦\"!=1.20.0\"¦v1.20.0¦\">1.20.0-rc\"¦\"=>1.2\"¦\"~>1.2\"¦\"1.20.0 1.20.0\"¦>-1";
const WRONG_VERSIONS: &str =
    "1¦v1.2.3¦1.2¦01.2.3¦x¦\"\"¦1.10¦1.2.3.4¦1.0.0-¦1e3¦2001-01-01¦\" 1.0.0\"¦1.0.0+a_b¦0.1.0-01";

/// Optional lines with their alternatives.
const LINES: &[(usize, &str, &str, &str)] = &[
    (
        5,
        "appVersion",
        "1.16.0¦\"1.16.0\"¦1.10¦1e3¦true¦null¦\"{{ x }}\"¦2001-01-01¦0x10¦1_000¦\"a\\nb\"¦1.0",
        "[a]",
    ),
    (6, "kubeVersion", KUBE, WRONG_KUBE),
    (
        8,
        "description",
        "A chart¦\"a\\tb\\u200bc\"¦\"two\\nlines\"¦1¦null¦\"\\u00a0x\\u0007\"",
        "{}",
    ),
    (10, "deprecated", "true¦false¦yes¦null", "\"true\"¦1"),
    (
        8,
        "annotations",
        "{a: b, c: 1}¦{}¦null¦{a: null}¦{a: true, \"b/c\": 1.50}",
        "[]¦{a: [1]}¦text",
    ),
    (8, "keywords", "[a, b]¦[]¦[1, null, true]¦[\"a\\tb\"]", "a¦[[a]]"),
    (
        10,
        "maintainers",
        "[{name: m, email: e, url: u}]¦[]¦[{name: 1}]¦[{}]¦[{name: m, other: o}]",
        "[text]¦{}",
    ),
    (12, "sources", "[https://x, z]¦[]", "x"),
    (12, "home", "https://x", "[]"),
    (12, "icon", "https://i", "[]"),
    (20, "condition", "a.b", "[]"),
    (20, "tags", "t1", "[t1]"),
    (20, "unknown", "{a: 1}", "[a"),
];

/// The `Chart.yaml` of a chart, and its `requirements.yaml` if it has one.
pub(super) struct Said {
    pub(super) chart: String,
    pub(super) requirements: Option<String>,
}

pub(super) fn make(maker: &mut Maker<'_>, name: &str, is_top: bool, asked: Option<&str>) -> Said {
    let api = match maker.odd(20) {
        false => maker.of("v2¦v2¦v1"),
        true => maker.of("\"\"¦v3¦1¦V2"),
    };
    let mut text = match maker.odd(40) {
        false => format!("apiVersion: {api}\n"),
        true => String::new(),
    };
    let name = match maker.odd(30) {
        false => name,
        true => maker.of("a/b¦\"\"¦My.Chart¦\"a\\tb\"¦é"),
    };
    let version = maker.of_or(12, "0.1.0¦0.1.0¦1.2.3¦1.0.0-rc.1+b", WRONG_VERSIONS);
    text += &format!("name: {name}\nversion: {version}\n");
    if maker.rare(5) {
        let wrong = "library¦application¦Library¦\"\"¦x";
        text += &format!(
            "type: {}\n",
            maker.of_or(
                4,
                if is_top {
                    "application"
                } else {
                    "library¦application"
                },
                wrong
            )
        );
    }
    for (n, key, fine, wrong) in LINES {
        if maker.rare(*n) {
            text += &format!("{key}: {}\n", maker.of_or(15, fine, wrong));
        }
    }
    let mut requirements = None;
    if let Some(asked) = asked {
        let in_requirements = if api == "v1" { !maker.odd(2) } else { maker.odd(20) };
        if in_requirements || maker.odd(20) {
            requirements = Some(asked.to_owned());
        }
        if !in_requirements {
            text += asked;
        }
    }
    if maker.odd(20) {
        text = match maker.below(6) {
            0 => format!("\u{feff}{text}"),
            1 => text.replace('\n', "\r\n"),
            2 => format!("---\n{text}"),
            3 => format!("{text}---\nname: z\n"),
            4 => format!("{text}name: again\n"),
            _ => format!("{text}  x\n"),
        };
    }
    Said {
        chart: text,
        requirements,
    }
}

/// Generates the dependencies: the charts in `charts`, also under aliases, and others.
pub(super) fn asked(maker: &mut Maker<'_>, charts: &[&'static str]) -> String {
    let mut names = Vec::new();
    let mut text = String::from("dependencies:\n");
    for name in charts {
        if maker.rare(8) {
            continue;
        }
        for turn in 0..1 + usize::from(maker.rare(5)) {
            entry(maker, name, turn > 0, &mut names, &mut text);
        }
    }
    if maker.odd(12) {
        let name = maker.of("missing¦three¦one");
        entry(maker, name, false, &mut names, &mut text);
    }
    if maker.odd(60) {
        text += maker.of("- text\n¦- []\n");
    }
    match names.is_empty() {
        true => maker.of("dependencies: []\n¦dependencies:\n").to_owned(),
        false => text,
    }
}

fn entry(
    maker: &mut Maker<'_>,
    name: &'static str,
    again: bool,
    names: &mut Vec<&'static str>,
    text: &mut String,
) {
    let alias =
        (again || maker.rare(4)).then(|| maker.of_or(6, "al¦al2", "one¦two¦b¦A_1¦\"a.b\"¦\"\"¦global¦x-y"));
    let visible = alias.unwrap_or(name);
    if names.contains(&visible) && !maker.odd(10) {
        return;
    }
    names.push(visible);
    *text += &format!("- name: {name}\n");
    let mut line = |key: &str, value: &str| *text += &format!("  {key}: {value}\n");
    if !maker.odd(10) {
        line(
            "version",
            maker.of_or(3, "x.x.x¦\">=0.0.0-0\"¦\"*\"¦0.x.x || >=1", RANGES),
        );
    }
    if !maker.rare(3) {
        line(
            "repository",
            maker.of("\"\"¦https://x¦file://../x¦\"@x\"¦oci://y"),
        );
    }
    if let Some(alias) = alias {
        line("alias", alias);
    }
    if maker.rare(3) {
        line("condition", maker.of(CONDITIONS));
    }
    if maker.rare(4) {
        line("tags", maker.of_or(4, "[t1]¦[t1, t2]¦[t2]¦[]¦[1]¦[t3]", "t1"));
    }
    if maker.rare(10) {
        line("enabled", maker.of_or(4, "true¦false¦null", "x"));
    }
    if maker.rare(4) {
        let imports: Vec<&str> = (0..1 + maker.below(3)).map(|_| maker.of(IMPORTS)).collect();
        line("import-values", &format!("[{}]", imports.join(", ")));
    }
}
