//! Literals of random templates and their values.

use serde_json::{Map, Value as Json, json};
use testkit::fuzz::Random;

use super::table::Sort;

// Words that are quoted unchanged have Go's escapes.

const TEXTS: &str = "a¦¦b c¦Hello World¦ ¦\n¦é¦straße¦日本¦😀¦1¦-5¦0x1F¦1e3¦0.50¦true¦null¦a,b,c¦foo-bar_baz¦\
    CamelCaseID¦<&>'\"¦\t¦\\¦$1¦key: value¦- x¦{{¦%d¦the quick brown fox¦YWJj¦~¦ÀÉ¦a.b¦x=y¦#¦aaa¦\
    A1b2¦\u{301}¦\u{a0}¦\r\n¦\u{7f}¦İ¦ǆ¦ﬁ¦0o17¦1_000¦+7¦inf¦NaN¦MFRGG===¦\u{2028}¦\u{feff}¦\0¦'¦\
    ---¦[1]¦yes¦2020-01-02¦1:30¦9223372036854775808";
const KEYS: &str = "a¦b¦c¦x-y¦¦é¦A¦1";
const REGEXES: &str = "a¦.¦[a-z]+¦(a)(b)?¦^¦$¦\\\\d+¦\\\\s*¦(?i)hello¦a|b¦(?P<n>[aeiou])¦[^a-c]¦x*¦\
    \\\\w+¦\\\\b¦(¦[¦a{2,3}¦a+?¦(?:b)¦\\\\p{L}¦[[:alpha:]]¦(?s).+¦(?m)^.¦\\\\.¦é¦*¦a**¦\\\\z¦(?=a)¦\
    a{1001}¦\\\\Q.\\\\E¦\\\\pN¦[\\\\d-]¦(?U)a+¦\\\\8¦[z-a]¦.*¦(a|ab)(c|bcd)?¦\\\\x{41}¦[\\\\W_]";
const REPLACEMENTS: &str = "¦x¦$1¦${1}y¦$0¦$n¦${n}¦$$¦$1x¦${9}¦$¦\\\\1¦é¦${¦$é";
const YAMLS: &str = "a: 1¦a: {b: [1, 2.5, null]}¦- 1\\n- x¦a: b: c¦x¦¦a: &x 1\\nb: *x¦1: 2¦\
    a: 0o17\\nb: 0x1f\\nc: 1_000¦a: yes\\nb: ~\\nc: .inf¦a: |\\n  x\\n  y\\n¦a: >-\\n  x\\n  y\\n¦{¦\
    a: \\\"q\\\"¦a: 2020-01-02¦a: 1\\na: 2¦null¦a: 1e3\\nb: 1.0\\nc: -0¦[1, [2]]¦a: !!str 1¦\
    ? a\\n: b¦\\ta: 1¦a: *x¦a: 123456789012345678901¦# c¦---\\na: 1\\n---\\nb: 2¦a: <<\\n<<: {b: 1}¦\
    \\\"a\\\": '\\\\u00e9'¦true: 1¦a: 'x¦a:\\n- b\\n- c:\\n    d: e¦3.0: x¦%¦a: @b¦[a¦a: 12:30";
const JSONS: &str = "{}¦[1, 2.5, \\\"x\\\", null]¦{\\\"a\\\": {\\\"b\\\": [true]}}¦x¦¦{\\\"a\\\":1,}¦1¦\\\"s\\\"¦[1¦{\\\"a\\\":\\\"\\\\u00e9\\\"}¦{\\\"a\\\" 1}¦[01]¦tru¦{} x¦\
    {\\\"a\\\":123456789012345678901}¦[\\\"\\\\ud83d\\\"]¦{\\\"b\\\":1,\\\"a\\\":2,\\\"b\\\":3}¦ [ ] ¦\
    {a:1}¦-¦[1 2]¦\\\"\\\\x\\\"¦1.¦'a'¦[-0, 1.0, 1e3]¦true";
const TOMLS: &str = "a = 1¦a = 'x'\\n[b]\\nc = [1, 2]¦¦[[l]]\\nx = 1\\n[[l]]\\nx = 2¦a = 1.5\\nb = true¦a = {b = 1}¦\
    a.b.c = 'd'¦a = 0x1f¦a = '''x\\ny''' # c¦a = [{b = 1}, {}]¦a = 1e3¦a = [[1], ['x']]";
const VERSIONS: &str = "1.2.3¦v1.2.3¦1.2¦1¦1.2.3-beta.1¦1.2.3+build¦x¦¦0.0.0¦1.2.3-alpha-x.10+b.1¦01.2.3¦1.2.3.4¦\
    v1.30.0-gke.100¦99999999999999999999.0.0¦1.2.3-¦ 1.2.3¦2.0.0-rc.1";
const CONSTRAINTS: &str = "^1.2.0¦>=1.2¦~1.2¦<2.0.0-0¦>1.0.0 <2.0.0¦1.2.x¦*¦=1.2.3¦!=1.2.3¦1.2 - 1.4¦^0.0.1¦\
    >= 1.2.3, < 3 || 0.0.x¦x¦¦>¦~>1¦=>1.0¦^1.2.3-beta.0¦>=1.19.0-0¦1.2.3-beta.1¦<=1¦||¦!1¦~0¦^0.2¦\
    > 1.2.3 beta";
const PATHS: &str = "a/b.txt¦¦/¦../x¦a//b/./c/..¦/a/b/¦a.tar.gz¦.hidden¦é/ü.y¦a/..¦//¦a.¦.¦..¦/../a";
const URLS: &str = "http://user:pw@host:80/p/a?q=1&r=%20#f¦host/path¦¦://x¦mailto:a@b¦http://[::1]:80/¦/only/path¦\
    http://h/%zz¦HTTP://H/é?x¦a:b:c¦http://a b/¦?q¦#f¦http://h:x/¦http://h/a%2fb¦//h/p¦http://u@h¦\
    http://h?¦1http://x¦http://é.com/";
const TIMES: &str = "(toDate \\\"2006-01-02\\\" \\\"2020-02-29\\\")¦0¦1700000000¦-1¦\
    (toDate \\\"2006-01-02T15:04:05Z07:00\\\" \\\"2021-12-31T23:59:59+05:30\\\")¦(int64 1e9)¦\
    (toDate \\\"15:04\\\" \\\"07:08\\\")¦951782400";
const ENCRYPTED: &str = "¦b9zBB+vCB/3vEQFdDSRvGLtrSqHsnHos+st5Wgl7kRA=¦FdYRe9JNEoU9sw1VxEg24Uwrt5kdtU4DAQ9iNqt44Mw=¦x¦YQ==¦\
    GqChlgfKFAxHQxX/w0Bn4ch9HOAU63aLzCqE1i/dCgpxr8dXD5z3G5IeJJoaKlh8";
const LAYOUTS: &str = "2006-01-02¦15:04:05¦Mon, 02 Jan 2006 15:04:05 MST¦2006-01-02T15:04:05Z07:00¦3:04PM¦Jan _2 06¦\
    January Monday .000 -0700¦¦x¦2006-002¦04.05,999¦1/2/06 03pm¦__2¦\
    2006-01-02T15:04:05.999999999Z07:00";
const DATES: &str = "2020-02-29¦2021-12-31T23:59:59+05:30¦07:08:09¦x¦2020-13-01¦29 Feb 21¦3:04PM¦2020-02-30";
const ZONES: &str = "UTC¦Europe/Berlin¦America/New_York¦¦Local¦Nowhere/City¦Asia/Kolkata";
const DURATIONS: &str = "1h¦-1.5h¦2h45m10s¦720h¦90s¦x¦¦1ms¦0¦9000h¦1d¦+1m¦2400h10m10s¦5us¦.5h¦1h-2m";
const TYPES: &str = "string¦int¦float64¦map¦slice¦bool¦invalid¦*int¦[]interface {}¦map[string]interface {}¦int64¦\
    list¦";

fn one_of(random: &mut Random, words: &'static str) -> &'static str {
    let words: Vec<&str> = words.split('¦').collect();
    random.pick::<&str>(&words)
}

/// Quotes a string as Go does.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{feff}') => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Generates a string of one to three pieces.
pub(super) fn text(random: &mut Random) -> String {
    if random.one_in(20) {
        return random
            .word(0..6)
            .chars()
            .filter(|c| *c < '\u{10000}' && *c != '\u{85}')
            .collect();
    }
    random.list(1..4, |random| one_of(random, TEXTS)).concat()
}

pub(super) fn key(random: &mut Random) -> &'static str {
    one_of(random, KEYS)
}

fn number(random: &mut Random) -> String {
    let float = random.float();
    match random.below(6) {
        0 | 1 => random.below(20).to_string(),
        2 => random.int().to_string(),
        3 => format!("{float:e}"),
        4 => quoted(random.pick::<&str>(&[
            "1", "-5", "0x1F", "1e3", "2.5", "x", "", "010", "1_0", " 1", "1.0", "1.9", "+2", "0b11",
            "1e400", ".5",
        ])),
        _ => format!("{float:.3}"),
    }
}

/// Generates a literal of the sort, or an equivalent call.
pub(super) fn literal(random: &mut Random, sort: Sort) -> String {
    let from = |random: &mut Random, words| format!("\"{}\"", one_of(random, words));
    match sort {
        Sort::Small => (random.within(0..12) as i64 - if random.one_in(12) { 14 } else { 0 }).to_string(),
        Sort::Index => (*random.pick(&["0", "0", "0", "0", "1", "1", "2", "5"])).to_owned(),
        Sort::Int => random.int().to_string(),
        Sort::Float => format!("{:.2}", random.int() as f64 / 8.0),
        Sort::Number => number(random),
        Sort::Bool => (*random.pick(&["true", "false"])).to_owned(),
        Sort::Key => quoted(key(random)),
        Sort::Regex => from(random, REGEXES),
        Sort::Replacement => from(random, REPLACEMENTS),
        Sort::Yaml => from(random, YAMLS),
        Sort::Json => from(random, JSONS),
        Sort::Toml => from(random, TOMLS),
        Sort::Version => from(random, VERSIONS),
        Sort::Constraint => from(random, CONSTRAINTS),
        Sort::Path => from(random, PATHS),
        Sort::Url => from(random, URLS),
        Sort::Time => one_of(random, TIMES).replace('\\', ""),
        Sort::Moment => loop {
            let time = one_of(random, TIMES);
            if time.starts_with('(') && !time.contains("int64") {
                break time.replace('\\', "");
            }
        },
        Sort::Password => from(random, "weir¦weir¦weir¦¦x"),
        Sort::Encrypted => from(random, ENCRYPTED),
        Sort::Layout => from(random, LAYOUTS),
        Sort::Zone => from(random, ZONES),
        Sort::Duration => from(random, DURATIONS),
        Sort::Type => from(random, TYPES),
        Sort::Parts => format!("(urlParse {})", from(random, URLS)),
        Sort::List => format!("(list {})", random.list(0..4, scalar).join(" ")),
        Sort::Dict | Sort::Fresh => {
            let entry = |random: &mut Random| format!("{} {}", quoted(key(random)), nested(random));
            format!("(dict {})", random.list(0..4, entry).join(" "))
        }
        Sort::Any | Sort::Scalar => scalar(random),
        Sort::Text | Sort::Name | Sort::Template => match random.below(12) {
            11 => from(random, DATES),
            10 => (*random.pick(&["\"\\xff\"", "`raw\\n`", "\"\\u00e9\\t\""])).to_owned(),
            _ => quoted(&text(random)),
        },
    }
}

fn scalar(random: &mut Random) -> String {
    match random.below(8) {
        0 => random.below(10).to_string(),
        1..=3 => quoted(&text(random)),
        4 => "nil".to_owned(),
        5 => (*random.pick(&["true", "false"])).to_owned(),
        6 => (*random.pick(&["1.5", "'a'", "0x10", "1e3", "-0.0", "1e21", "100000.0", "1e-7"])).to_owned(),
        _ => number(random),
    }
}

fn nested(random: &mut Random) -> String {
    match random.below(6) {
        4 => format!("(list {})", random.list(0..3, scalar).join(" ")),
        5 => format!("(dict {} {})", quoted(key(random)), scalar(random)),
        _ => scalar(random),
    }
}

/// Generates a value of a values file.
fn value(random: &mut Random, depth: usize) -> Json {
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 | 1 => text(random).into(),
        2 => random.below(100).into(),
        3 => random.float().into(),
        4 => random.flag().into(),
        5 => Json::Null,
        6 => random.list(0..4, |random| value(random, depth - 1)).into(),
        _ => map(random, depth - 1),
    }
}

fn map(random: &mut Random, depth: usize) -> Json {
    let entries = random.list(0..4, |random| (key(random).to_owned(), value(random, depth)));
    Json::Object(entries.into_iter().collect())
}

/// Generates the values of a template; [`path`] knows their names.
pub(super) fn values(random: &mut Random) -> Json {
    let inner = |random: &mut Random| {
        Map::from_iter([
            ("a".to_owned(), value(random, 1)),
            ("b".to_owned(), map(random, 1)),
        ])
    };
    json!({
        "s": text(random), "t": text(random),
        "n": random.below(12), "f": random.float(), "i": random.int() as f64,
        "yes": true, "no": false, "nil": null,
        "l": random.list(0..5, |random| value(random, 2)), "e": [],
        "w": random.list(0..5, text),
        "m": map(random, 2), "d": {"a": inner(random), "b": inner(random)}, "o": {},
    })
}

/// Picks a path, below the values, for a value of the sort.
pub(super) fn path(random: &mut Random, sort: Sort) -> &'static str {
    let words = match sort {
        Sort::Small => "n",
        Sort::Int | Sort::Float | Sort::Number => "n¦f¦i¦s¦yes",
        Sort::Bool => "yes¦no¦b",
        Sort::List => "l¦l¦w¦w¦e¦e¦nil",
        Sort::Dict => "m¦d¦o¦d.a¦d.b.b",
        Sort::Any | Sort::Scalar => {
            "s¦n¦f¦i¦yes¦no¦nil¦none¦l¦w¦e¦m¦d¦o¦m.a¦m.b.c¦d.a.a¦d.b.b.c¦none.x¦s.x¦l.a"
        }
        _ => "s¦t¦s¦t¦s¦t¦s¦t¦m.a",
    };
    one_of(random, words)
}
