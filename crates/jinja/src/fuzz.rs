//! No template makes the renderer panic.

use std::sync::Arc;

use testkit::fuzz::{self, Random};
use tree::{Budget, Mem, TreePath, on_deep_stack};
use yaml::{Map, Value};

use crate::{Renderer, Vars};

/// Meaningful pieces of templates, so that random sequences get past the parser.
const PIECES: &[&str] = &[
    "{{ ",
    " }}",
    "{% if ",
    " %}",
    "{% endif %}",
    "{% for x in ",
    "{% endfor %}",
    "{% set x = ",
    "a",
    "x",
    "n",
    "'t'",
    "1",
    "-1",
    "2.5",
    "99999999999999999999",
    "none",
    "true",
    "[1, 'b', [2]]",
    "{'k': 1}",
    "(1, 2)",
    ".b",
    "[0]",
    "[-1:]",
    "[::2]",
    " + ",
    " - ",
    " * ",
    " / ",
    " // ",
    " % ",
    " ** ",
    " ~ ",
    " == ",
    " < ",
    " in ",
    " is ",
    " not ",
    " and ",
    " | ",
    "length",
    "default('d')",
    "upper",
    "b64encode",
    "b64decode",
    "to_yaml",
    "to_json",
    "tojson",
    "from_yaml",
    "sha256(-3)",
    "slugify",
    "indent(2)",
    "truncate(3)",
    "wordwrap(2)",
    "center(9)",
    "int",
    "float",
    "round(2)",
    "round(-2)",
    "sort",
    "unique",
    "groupby('k')",
    "dictsort",
    "join(',')",
    "batch(2)",
    "slice(0)",
    "urlencode",
    "xmlattr",
    "filesizeformat",
    "replace('a', '')",
    "format(1)",
    "string",
    "list",
    "first",
    "random",
    "map('upper')",
    "get_var('a.b')",
    "merge_dict(a, a)",
    "render('{{ n }}')",
    "load_template('f')",
    "range(3)",
    "cycler(1).next()",
    "namespace(q=1)",
    ".zfill(3)",
    ".rsplit()",
    ".partition('b')",
    ".expandtabs(0)",
    ".split('')",
    ".format(1)",
    ".items()",
    ".index(1)",
    ".title()",
    "{% macro m(a=1) %}",
    "{% endmacro %}",
    "m(1)",
    "{% include 'f' %}",
    "{#",
    "#}",
    "{%- raw -%}",
    "{% endraw %}",
    "\n",
    "\r\n",
    "é",
    "\u{1F600}",
    "\\",
    "\"",
    "loop.index",
    "ns.x",
    "ns.y",
    "[ns.x, ns.x]",
    "(ns.y, ns.x)",
    "{ns.x: ns.y}",
    "{(ns.x, 1): ns.y}",
    " not in ",
    " >= ",
    " is eq ",
    "loop.changed(ns.x)",
    "{% set ns.x = ",
    "{% set ns.x, ns.y = ",
    "{% break %}",
];

fn template(random: &mut Random) -> String {
    match random.below(9) {
        0 => random.word(0..40),
        8 => shared(random),
        1..5 => format!("{{{{ {} }}}}", random.text(PIECES, 1..7)),
        _ => random.text(PIECES, 0..14),
    }
}

/// Generates a template that nests a value in itself many times, and uses the result.
fn shared(random: &mut Random) -> String {
    let (made, used) = (random.text(PIECES, 1..4), random.text(PIECES, 1..5));
    let rounds = random.below(60);
    format!(
        "{{% set ns = namespace(x=1, y=[1]) %}}{{% for i in range({rounds}) %}}{{% set ns.x = [ns.x, {made}] %}}\
         {{% set ns.y = [ns.y, ns.y] if i < 12 else ns.y %}}{{% endfor %}}{{{{ ns.x {used} ns.y }}}}"
    )
}

fn variables() -> Vars {
    let mut inner = Map::new();
    inner.insert("b", vec![Value::from(1), Value::from("x"), Value::Null]);
    let mut vars = Map::new();
    vars.insert("a", inner);
    vars.insert("n", 5);
    Vars::new(&vars)
}

#[test]
fn fuzz_templates_never_panic() {
    let vars = variables();
    let tree = Arc::new(Mem::from_files([("f", "{{ n }}")]).unwrap());
    let search = || {
        fuzz::run("templates", |random| {
            let template = template(random);
            random.note("template", &template);
            let mut renderer = Renderer::new(tree.clone(), &[TreePath::root()], &vars);
            let _ = renderer.render_str(&template, &Budget::default());
            let _ = renderer.condition(&template, &Budget::default());
        });
    };
    on_deep_stack(search).unwrap();
}
