//! Variables of templates, and literals.

use serde_json::{Value as Json, json};
use testkit::fuzz::Random;

/// Generates the variables of a template.
pub(super) fn variables(random: &mut Random) -> Json {
    let (number, text, any) = (random.int(), random.text(PIECES, 0..6), random.json(PIECES));
    json!({
        "i1": 3, "i2": -7, "i3": number, "n1": 2.5, "n2": -0.125, "n3": random.float(), "s1": "Hello big World", "s2": text,
        "s3": "a,b;c\n second line\n\nlast", "s4": "<a href=\"x\">it's & more</a>",
        "l1": [3, 1, 2], "l2": ["b", "A", "c", "a"],
        "l3": [{"n": 2, "g": "x", "a": {"b": 1}}, {"n": 1, "g": "Y", "a": {"b": 2}}, {"n": 2, "g": "y", "a": {"b": []}}],
        "l4": [], "l5": [[1, "x"], [2, "y"], [0, "z"]], "l6": [1, 1.0, true, "1", null, 2],
        "d1": {"a": 1, "b": "two", "n": 3.5, "x": null}, "d2": {"a": {"b": {"x": [1, 2]}}, "items": 1, "s": "t", "l": [1, "q"]},
        "d3": {}, "d4": {"b": 2, "A": 1, "c": 0}, "b1": true, "b2": false, "a1": any, "a2": null
    })
}

pub(super) const INTS: &[&str] = &[
    "i1",
    "i2",
    "i3",
    "0",
    "1",
    "2",
    "7",
    "10",
    "255",
    "1000000",
    "-1",
    "l1[0]",
    "true",
    "1_000",
    "0x1f",
    "0b11",
    "0o17",
    "99999999999999999999",
];
pub(super) const SMALL: &[&str] = &[
    "0", "1", "2", "3", "4", "5", "8", "10", "13", "-1", "-2", "16", "36",
];
pub(super) const NUMBERS: &[&str] = &[
    "n1",
    "n2",
    "n3",
    "0.0",
    "1.0",
    "2.5",
    "0.1",
    "1e3",
    "-3.7",
    "1.5e-7",
    "1e16",
    "123456.789",
    "0.5",
    "1.005",
    "1e100",
    "3.0",
    "-0.0",
    "1e22",
    "0.00001",
];
pub(super) const LISTS: &[&str] = &[
    "l1",
    "l2",
    "l3",
    "l4",
    "l5",
    "l6",
    "[]",
    "[1, 'a', none]",
    "(1, 2)",
    "()",
    "['x', 'Y', 'z']",
    "[true, false]",
    "d2.l",
    "d2.a.b.x",
    "[[1], [2, 3]]",
    "[2.5, 1, -3]",
];
pub(super) const MAPS: &[&str] = &[
    "d1",
    "d2",
    "d3",
    "d4",
    "{}",
    "{'a': 1}",
    "l3[0]",
    "l3[1]",
    "d2.a",
    "{'b': [1], 'a': 'x'}",
    "{1: 2, 'n': 'g'}",
];
pub(super) const TRUTHS: &[&str] = &["b1", "b2", "true", "false", "True", "False"];
pub(super) const ANY: &[&str] = &[
    "a1",
    "a2",
    "none",
    "None",
    "nope",
    "s1",
    "i1",
    "n1",
    "l1",
    "l3",
    "d1",
    "d2",
    "namespace(a=1)",
    "cycler(1, 2)",
    "d1.keys",
    "l2.append",
    "range(3)",
    "s4 | safe",
    "joiner()",
    "s1.split",
];
const TEXTS: &[&str] = &[
    "s1",
    "s2",
    "s3",
    "s4",
    "d1.b",
    "''",
    "'a'",
    "'Hello World'",
    "\"it's\"",
    "'say \"hi\"'",
    "'%s'",
    "'%d|%5.2f'",
    "'{}'",
    "'{0:>5}|{1}'",
    "'é'",
    "'ß'",
    "'1'",
    "' 3.5 '",
    "'0x1F'",
    "'a,b,c'",
    "'l1\\nl2'",
    "'<b>&\"'",
    "'x-y z'",
    "'tab\\there'",
    "'back\\\\slash'",
    "'\\u00e9\\x41'",
    "'1e3'",
    "'true'",
    "'ǆ ﬁ'",
    "'straße'",
    "'a' 'b'",
    "' '",
    "','",
    "'o'",
    "'l'",
    "'http://x.org/a?b=1&c=2 www.y.com me@z.org'",
    "'one two three four five six seven'",
    "'a: 1\\nb: [x, y]\\n'",
    "'- 1\\n- {a: b}\\n'",
    "'017'",
    "'1:30'",
    "'2020-01-02'",
    "'~'",
    "'&x [1]'",
    "'{a: &q [1], b: *q}'",
    "'yes'",
    "'0.1'",
    "'-'",
    "'key: value # c'",
    "'  lead'",
    "'trail  '",
    "'long-hyphenated-words-here and averyveryverylongword'",
    "'😀'",
    "'İıK'",
    "'12'",
    "'٣'",
    "'²'",
    "'\\t\\n'",
    "'<p>a  b</p> &amp; &lt;c&gt; <!-- x -->'",
    "'UPPER lower Title'",
    "'%(a)s'",
    "'{a}'",
    "'{a[b]} {n!r}'",
    "'%5s|%-5s'",
    "'%x'",
    "'%'",
    "'{'",
    "'%c'",
];
const PIECES: &[&str] = &[
    "a", "B", "c d", " ", "\n", "1", "0", "-", "_", ".", ",", ":", "é", "'", "\"", "<", "&", "%", "{", "}",
    "\\", "/", "x.y", "#", "true", "null", "[", "*", "\t", "word", "Ünï", "!", "12", "~",
];

/// Generates a string literal, or a variable with a string.
pub(super) fn text(random: &mut Random) -> String {
    if random.one_in(8) {
        return quoted(&random.text(PIECES, 0..7));
    }
    random.pick(TEXTS).to_string()
}

pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("'");
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}
