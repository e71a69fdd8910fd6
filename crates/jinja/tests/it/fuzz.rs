//! No template makes the renderer panic. `WEIR_FUZZ_SECONDS` prolongs the search.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jinja::{Renderer, Vars, on_deep_stack};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use tree::{Budget, Mem, TreePath};
use yaml::{Map, Value};

/// Pieces of templates that mean something, so that random sequences get past the parser.
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
    "{% break %}",
];

fn template() -> impl Strategy<Value = String> {
    let pieces =
        prop::collection::vec(prop::sample::select(PIECES), 0..14).prop_map(|pieces| pieces.concat());
    let expression = prop::collection::vec(prop::sample::select(PIECES), 1..7)
        .prop_map(|pieces| format!("{{{{ {} }}}}", pieces.concat()));
    prop_oneof![expression, pieces, ".{0,40}"]
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
fn templates_never_panic() {
    let seconds = std::env::var("WEIR_FUZZ_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok());
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(2));
    let vars = variables();
    let tree = Arc::new(Mem::from_files([("f", "{{ n }}")]).unwrap());
    on_deep_stack(move || {
        while Instant::now() < until {
            let mut runner = TestRunner::new(Config {
                cases: 200,
                failure_persistence: None,
                ..Config::default()
            });
            let result = runner.run(&template(), |template| {
                let mut renderer = Renderer::new(tree.clone(), &[TreePath::root()], &vars);
                let _ = renderer.render_str(&template, &Budget::default());
                let _ = renderer.condition(&template, &Budget::default());
                Ok(())
            });
            result.unwrap();
        }
    })
    .unwrap();
}
