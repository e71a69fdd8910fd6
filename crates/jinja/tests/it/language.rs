//! Tests of the language in tables: templates and their results in the original.

mod failures;
mod filters;
mod methods;
mod statements;
mod tests_and_operators;

use std::sync::Arc;

use jinja::{Error, Renderer, Vars};
use tree::{Budget, Mem, TreePath};
use yaml::Value;

const VARIABLES: &str = r#"
host: web-01.example.org
port: 8080
ratio: 0.75
tags: [b, a, C]
none: null
"on": true
app: {name: shop, replicas: 3, env: {LOG: debug}}
pods:
- {name: p2, node: n1, cpu: 2}
- {name: p1, node: n2, cpu: 1}
- {name: p3, node: n1, cpu: 0.5}
text: "The quick brown fox\njumps over\n\nthe lazy dog"
"#;

fn render(template: &str) -> Result<String, Error> {
    let vars = match yaml::read::goyaml(VARIABLES, &Budget::default()).unwrap().value {
        Value::Map(map) => Vars::new(&map),
        _ => Vars::default(),
    };
    let file = TreePath::parse("t").unwrap();
    let tree = Arc::new(Mem::from_files([("t", crate::differ::always_rendered(template))]).unwrap());
    let mut renderer = Renderer::new(tree, &[TreePath::root()], &vars);
    let bytes = renderer.render_file(&file, &Budget::default())?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

/// Checks templates and their output.
#[track_caller]
fn check(rows: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (template, expected) in rows {
        match render(template) {
            Ok(text) if text == *expected => {}
            other => wrong.push(format!(
                "{template}\n  gives    {other:?}\n  expected {expected:?}"
            )),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks templates, the line of their error, and the start of its message.
#[track_caller]
fn check_failures(rows: &[(&str, usize, &str)]) {
    let mut wrong = Vec::new();
    for (template, line, expected) in rows {
        match render(template) {
            Err(Error::Template(failure))
                if failure.message.starts_with(expected) && failure.line == *line && failure.file == "t" => {}
            other => wrong.push(format!(
                "{template}\n  gives    {other:?}\n  expected {expected:?} in line {line}"
            )),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
