//! Templates that exceed limits.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use jinja::{Error, Renderer, Vars};
use tree::{Budget, Limits, Mem, TreePath, on_deep_stack};

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
fn loops_output_and_recursion_are_bounded() {
    for (template, says) in [
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "20000000 steps of one template",
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
        ("{{ range(9999999999999999999) }}", "beyond 64 bits"),
        ("{{ 'a' | indent(99999999) }}", "bytes of one value"),
        ("{{ 'a'.ljust(99999999) }}", "bytes of one value"),
        ("{{ 'a' * 999999999 }}", "bytes of one value in a template"),
        (
            "{% set t = 'a' * 9999999 %}{% for a in range(99) %}{% set b = t.encode() %}{% endfor %}",
            "bytes of all values in a template",
        ),
        (
            "{{ ('a' * 9999999).split('a') }}",
            "bytes of one value in a template",
        ),
        (
            "{{ ('a ' * 9999999).rsplit() }}",
            "bytes of one value in a template",
        ),
        (
            "{{ ('\n' * 9999999).splitlines() }}",
            "bytes of one value in a template",
        ),
    ] {
        let error = render(template).unwrap_err().to_string();
        assert!(error.contains(says), "{template}: {error}");
    }
}

#[test]
fn deeply_nested_values_are_dropped_safely() {
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
fn exceeded_budget_ends_the_render() {
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

/// A small budget, so that tests which reach it are fast.
fn small() -> Budget {
    Budget::new(Limits {
        bytes: 1 << 19,
        ..Limits::default()
    })
}

/// A template that wants more memory than the limit must end with an error at once.
fn assert_bounded(template: &str, budget: &Budget) {
    let start = std::time::Instant::now();
    let error = render_with(&[("main", template)], budget)
        .expect_err(template)
        .to_string();
    assert!(
        [
            "bytes of",
            "over the limit",
            "too many",
            "too large",
            "recursion",
            "steps of"
        ]
        .iter()
        .any(|says| error.contains(says)),
        "{template}: {error}"
    );
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{template}: {:?}",
        start.elapsed()
    );
}

#[test]
fn operators_are_bounded() {
    let rounds = |first: &str, step: &str| {
        format!(
            "{{% set ns = namespace(s={first}) %}}{{% for i in range(60) %}}{step}{{% endfor %}}{{{{ ns.s | length }}}}"
        )
    };
    for (first, step) in [
        ("'ab'", "{% set ns.s = ns.s ~ ns.s %}"),
        ("'ab'", "{% set ns.s = ns.s + ns.s %}"),
        ("'ab'", "{% set ns.s = ns.s * 2 %}"),
        ("[1]", "{% set ns.s = ns.s + ns.s %}"),
        ("[1]", "{% set ns.s = ns.s * 2 %}"),
        ("(1,)", "{% set ns.s = ns.s + ns.s %}"),
        ("[1, 2][0:]", "{% set ns.s = (ns.s + ns.s)[0:] %}"),
        (
            "'ab'",
            "{% set x %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = x %}",
        ),
        (
            "'ab'",
            "{% macro m(x) %}{{ x }}{{ x }}{% endmacro %}{% set ns.s = m(ns.s) %}",
        ),
        ("'ab'", "{% set ns.s = [ns.s, ns.s] | join %}"),
        ("'ab'", "{% set ns.s = ns.s.join(['', '', '']) ~ ns.s %}"),
        ("'a,'", "{% set ns.s = ns.s | replace('a', 'aa,aa') %}"),
        ("'a,'", "{% set ns.s = ns.s.replace('a', 'aa,aa') %}"),
        ("'ab'", "{% set ns.s = '%s%s' | format(ns.s, ns.s) %}"),
        ("'ab'", "{% set ns.s = '{0}{0}'.format(ns.s) %}"),
        ("'ab'", "{% set ns.s = render('{{ ns.s }}{{ ns.s }}') %}"),
        ("[1]", "{% set ns.s = [ns.s, ns.s] %}{{ ns.s }}"),
        ("[1]", "{% set ns.s = [ns.s] + [ns.s] %}{{ ns.s }}"),
        (
            "[1]",
            "{% set ns.s = [ns.s, ns.s] %}{{ ns.s | to_json | length }}",
        ),
        ("[1]", "{% set ns.s = [ns.s, ns.s] %}{{ (ns.s ~ '') | length }}"),
        (
            "[1]",
            "{% set ns.s = [ns.s, ns.s] %}{{ '%s' | format(ns.s) | length }}",
        ),
    ] {
        assert_bounded(&rounds(first, step), &small());
    }
}

#[test]
fn values_are_bounded_by_their_size() {
    for template in [
        "{{ ('a,' * 100000) | replace('a', 'b' * 100000) | length }}",
        "{{ ('a,' * 100000).replace('a', 'b' * 100000) | length }}",
        "{{ '{:>1000000000}'.format('x') }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ '%*d' | format(1000000000, 1) }}",
        "{{ '%.1000000000f' | format(1.5) }}",
        "{{ ('%9000d' * 100000) | format(*range(100000)) | length }}",
        "{{ range(100000) | join('b' * 100000) | length }}",
        "{{ ('b' * 100000).join(['a'] * 100000) | length }}",
        "{{ ('a\n' * 1000000) | indent('b' * 100000) | length }}",
        "{{ ('a\n' * 1000000) | indent(9999) | length }}",
        "{{ ('ab ' * 10000000) | wordwrap(2) | length }}",
        "{{ 'a' | center(1000000000) }}",
        "{{ 'a'.center(1000000000) }}",
        "{{ [1] | batch(1000000000, 'x') | list }}",
        "{{ [1] | slice(1000000000) | list }}",
        "{{ range(4000000000) | list }}",
        "{{ ('\t' * 1000000).expandtabs(9999) | length }}",
        "{{ ('a-' * 1000000) | slugify(separator='b' * 100000) | length }}",
        "{{ ([1] * 90000000) | list | length }}",
        "{{ ((1,) * 90000000) | length }}",
        "{{ ('a' * 60000000) | list | length }}",
        "{{ (('a,' * 20000000).split(',')) | length }}",
        "{{ (('- a\n' * 10000000) | from_yaml) | length }}",
        "{{ 'x' * 99999999 }}",
    ] {
        assert_bounded(template, &Budget::default());
    }
}

#[test]
fn values_are_bounded_together() {
    let appended = |make: &str| {
        format!(
            "{{% set t = 'ab' * 100000 %}}{{% set l = [1] * 9000 %}}{{% set ns = namespace(s=[]) %}}\
             {{% for i in range(90000) %}}{{% set ns.s = [ns.s, {make}] %}}{{% endfor %}}"
        )
    };
    for make in [
        "t ~ i",
        "t + 'x'",
        "t * 2",
        "t[1:]",
        "t[::-1]",
        "t | upper",
        "t.lower()",
        "t | reverse",
        "t | b64encode",
        "t | urlencode",
        "t | escape",
        "l | list",
        "l | map('string') | list",
        "l | select('odd')",
        "l | sort",
        "l | to_json",
        "l | from_yaml if false else cycler(*l)",
        "l[1:] | list",
        "debug_print(t)",
        "render('{{ t }}')",
        "t | safe",
        "t | striptags",
    ] {
        assert_bounded(&appended(make), &small());
    }
    let text = "y".repeat(100_000);
    for capture in [
        format!("{{% set x %}}{text}{{% endset %}}{{% set ns.s = [ns.s, x] %}}"),
        format!("{{% set x %}}{{% raw %}}{text}{{% endraw %}}{{% endset %}}{{% set ns.s = [ns.s, x] %}}"),
        format!("{{% macro m() %}}{text}{{% endmacro %}}{{% set ns.s = [ns.s, m()] %}}"),
        format!("{{% set x %}}{{% for j in range(9000) %}}{text}{{% endfor %}}{{% endset %}}"),
    ] {
        let template =
            format!("{{% set ns = namespace(s=[]) %}}{{% for i in range(90000) %}}{capture}{{% endfor %}}");
        assert_bounded(&template, &small());
    }
}

#[test]
fn included_text_is_counted_where_it_becomes_a_value() {
    let text = "y".repeat(100_000);
    let include = "{% set ns = namespace(s=[]) %}{% for i in range(90000) %}\
                   {% set x %}{% include 'text' %}{% endset %}{% set ns.s = [ns.s, x] %}{% endfor %}";
    let error = render_with(&[("main", include), ("text", &text)], &small()).unwrap_err();
    assert!(error.to_string().contains("bytes of all values"), "{error}");
    let once = "{% set x %}{% include 'text' %}{% endset %}{{ x | length }}";
    render_with(&[("main", once), ("text", &text)], &small()).unwrap();
}

/// Documents that contain themselves, or the same value many times.
#[test]
fn yaml_aliases_are_bounded() {
    let laughs: String = (0..60)
        .map(|level| format!("b{0}: &b{0} {{<<: [*b{1}, *b{1}], k{0}: 1}}\\n", level + 1, level))
        .collect();
    for document in [
        "&a {<<: [*a, *a]}".to_owned(),
        "&a {x: *a, <<: *a}".to_owned(),
        format!("b0: &b0 {{x: 1}}\\n{laughs}"),
        format!("{}1{}", "[".repeat(5000), "]".repeat(5000)),
    ] {
        let start = std::time::Instant::now();
        let template = format!("{{% set t = '{document}' %}}{{{{ t | from_yaml | to_yaml | length }}}}");
        assert!(
            render_with(&[("main", &template)], &Budget::default()).is_err(),
            "{document}"
        );
        assert!(start.elapsed() < Duration::from_secs(20), "{document}");
    }
}
