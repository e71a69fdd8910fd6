//! Templates that want too much.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use jinja::{Error, Renderer, Vars, on_deep_stack};
use tree::{Budget, Limits, Mem, TreePath};

fn render_with(files: &[(&str, &str)], budget: &Budget) -> Result<(), Error> {
    let files = files.iter().map(|(path, text)| (*path, text.to_string()));
    let tree = Arc::new(Mem::from_files(files).unwrap());
    let file = TreePath::parse("main").unwrap();
    on_deep_stack(|| {
        let mut renderer = Renderer::new(tree, &[TreePath::root()], &Vars::default());
        renderer.render_file(&file, budget).map(|_| ())
    })
    .unwrap()
}

fn render(template: &str) -> Result<(), Error> {
    render_with(
        &[("main", template), ("again", "{% include 'again' %}")],
        &Budget::default(),
    )
}

#[test]
fn loops_output_and_recursion_end() {
    for (template, says) in [
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "2000000 steps of one template",
        ),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion"),
        ("{% include 'again' %}", "recursion"),
        (
            "{% set t = '{{ render(t) }}' %}{{ render(t) }}",
            "nested calls of render",
        ),
        ("{{ load_template('./main') }}", "nested calls of render"),
        (
            "{% for a in range(900) %}{{ 'x' * 99999 }}{% endfor %}",
            "bytes of rendered output",
        ),
        ("{{ range(9999999999) }}", "range has too many elements"),
        ("{{ 'a' | indent(99999999) }}", "over the limit"),
        ("{{ 'a'.ljust(99999999) }}", "over the limit"),
        ("{{ 'a' * 999999999 }}", "too large"),
    ] {
        let error = render(template).unwrap_err().to_string();
        assert!(error.contains(says), "{template}: {error}");
    }
}

#[test]
fn deeply_nested_values_end_without_harm() {
    for use_of_it in [
        "{{ ns.x }}",
        "{{ ns.x | to_json }}",
        "{{ ns.x | to_yaml }}",
        "",
        "{{ ns.x | pprint }}",
    ] {
        let nest =
            "{% set ns = namespace(x=1) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor %}";
        let _ = render(&format!("{nest}{use_of_it}"));
    }
}

#[test]
fn a_budget_ends_the_work() {
    let cancelled = Arc::new(AtomicBool::new(true));
    for budget in [
        Budget::default().with_cancellation(cancelled),
        Budget::default().with_timeout(Duration::ZERO),
        Budget::new(Limits {
            bytes: 1,
            ..Limits::default()
        }),
        Budget::new(Limits {
            steps: 1,
            ..Limits::default()
        }),
    ] {
        let result = render_with(&[("main", "{{ 'abc' }}{{ 1 }}{{ 2 }}")], &budget);
        assert!(matches!(result, Err(Error::Budget { .. })), "{result:?}");
    }
}
