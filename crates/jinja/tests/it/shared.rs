//! Values that share their parts, and deeply nested values.

use std::{sync::Arc, time::Duration};

use jinja::{Error, Renderer, Vars};
use tree::{Budget, Limits, Mem, TreePath, on_deep_stack};

fn tight() -> Budget {
    Budget::new(Limits {
        bytes: 1 << 20,
        steps: 400_000,
        ..Limits::default()
    })
    .with_timeout(Duration::from_secs(5))
}

fn render(template: &str) -> Result<String, Error> {
    render_with(template, &tight())
}

pub(super) fn render_with(template: &str, budget: &Budget) -> Result<String, Error> {
    let tree = Arc::new(Mem::from_files([("f", "{% set ns.x = [ns.x] %}")]).unwrap());
    on_deep_stack(|| Renderer::new(tree, &[TreePath::root()], &Vars::default()).render_str(template, budget))
        .unwrap()
}

/// Two equal values that unfold to 2^18 parts, more than one value may have, in one expression each.
fn shared(use_of_them: &str) -> String {
    let rounds = |name: &str| {
        format!("{{% for i in range(14) %}}{{% set ns.{name} = [ns.{name}, ns.{name}] %}}{{% endfor %}}")
    };
    format!(
        "{{% set ns = namespace(x=1, y=1) %}}{}{}{{% set x, y = ns.x, ns.y %}}{use_of_them}",
        rounds("x"),
        rounds("y")
    )
}

const USES: &[&str] = &[
    "A == B",
    "A != B",
    "A < B",
    "A >= B",
    "A < B < A",
    "A == B == A",
    "A in [B]",
    "A not in [B]",
    "A is eq B",
    "A is eq(B)",
    "A is ne(B)",
    "A is lt(B)",
    "A is ge(B)",
    "A is in [B]",
    "[A, B] | unique | list | length",
    "[A, B] | sort | length",
    "[A, B] | min | length",
    "[A, B] | max | length",
    "[{'a': A}, {'a': B}] | groupby('a') | length",
    "[{'a': A}, {'a': B}] | sort(attribute='a') | length",
    "{'a': A, 'b': B} | dictsort(by='value') | length",
    "[A] | select('eq', B) | list | length",
    "[A] | select('in', [B]) | list | length",
    "[{'a': A}] | selectattr('a', '==', B) | list | length",
    "[A].index(B)",
    "[A].count(B)",
    "{(A, 1): 1} | length",
    "{1: 1}[(A, 1)] | default(1)",
    "{1: 1}.get((A, 1))",
    "(A, 1) in {1: 1}",
    "A in 'abc'",
    "A | string | length",
    "A | to_json | length",
    "A | tojson | length",
    "A | to_yaml | length",
    "A | upper | length",
    "A | title | length",
    "A | safe | length",
    "A | trim | length",
    "A | striptags | length",
    "A | pprint | length",
    "A ~ B",
    "'%s' | format(A)",
    "get_var([A], 1)",
    "cycler(A) == cycler(B)",
    "cycler(A) | string",
    "(A + B) == (B + A)",
    "(A * 2) == (B * 2)",
    "[A, A] | map('string') | list | length",
    "dict(a=A) == dict(a=B)",
    "namespace(a=A) == namespace(a=B)",
];

#[test]
fn printing_shared_values_is_bounded() {
    // Within one expression a value is larger still.
    let (a, b) = ("[[[x,x],[x,x]],[[x,x],[x,x]]]", "[[[y,y],[y,y]],[[y,y],[y,y]]]");
    for use_of_them in USES {
        let used = use_of_them.replace('A', a).replace('B', b);
        let start = std::time::Instant::now();
        let _ = render(&shared(&format!("{{{{ {used} }}}}")));
        let took = start.elapsed();
        assert!(took < Duration::from_secs(4), "{use_of_them}: {took:?}");
        let many = format!("{{% for i in range(9000) %}}{{% set z = {used} %}}{{% endfor %}}");
        let start = std::time::Instant::now();
        let _ = render(&shared(&many));
        let took = start.elapsed();
        assert!(
            took < Duration::from_secs(7),
            "{use_of_them}, many times: {took:?}"
        );
    }
}

/// A value that contains itself twice at each of many levels is small, but prints without end.
#[test]
fn recursive_values_are_printed_with_dots() {
    for (first, step) in [
        ("1", "{% set ns.x = [ns.x, ns.x] %}"),
        ("1", "{% set ns.x = (ns.x, ns.x) %}"),
        ("1", "{% set ns.x = ns.x, ns.x %}"),
        ("1", "{% set ns.x = {'a': ns.x, 'b': ns.x} %}"),
        ("1", "{% set ns.x = dict(a=ns.x, b=ns.x) %}"),
        ("[1]", "{% set ns.x = [ns.x] * 2 %}"),
        ("[1]", "{% set ns.x = [ns.x] + [ns.x] %}"),
        ("1", "{% set ns.x, ns.y = [ns.x, ns.x], 1 %}"),
    ] {
        let made =
            format!("{{% set ns = namespace(x={first}) %}}\n{{% for i in range(40) %}}{step}{{% endfor %}}");
        assert_eq!(
            render(&format!("{made}{{{{ ns.x == ns.x }}}}")).unwrap().trim(),
            "True",
            "{step}"
        );
        for use_of_it in ["{{ ns.x }}", "{{ ns.x | to_json }}", "{{ ns.x | pprint }}"] {
            let error = render(&format!("{made}{use_of_it}")).expect_err(step).to_string();
            assert!(error.contains("the limit of"), "{step}: {error}");
        }
    }
}

#[test]
fn deep_values_are_compared_safely() {
    for step in [
        "{% set ns.x = [ns.x] %}",
        "{% set ns.x = (ns.x,) %}",
        "{% set ns.x = {'a': ns.x} %}",
        "{% set ns.x = [ns.x] + [1] %}",
        "{% set ns.x = [ns.x] | batch(1) | list %}",
        "{% set ns.x = [ns.x] | slice(1) | list %}",
        "{% set ns.x = [{'a': ns.x}] | groupby('a') %}",
        "{% set ns.x = {'a': ns.x}.items() | list %}",
        "{% set ns.x = dict(a=ns.x) %}",
        "{% set ns.x = merge_dict({}, {'a': ns.x}) %}",
        "{% set ns.x = namespace(a=ns.x) %}",
        "{% set ns.x = cycler(ns.x) %}",
        "{% set ns.x = [ns.x].append %}",
        "{% set ns.x = [ns.x] | map('upper') %}",
        "{% set ns.x = ns.x | default([]) | map('upper') %}",
        "{% set ns.x = range(2) | map('upper') | list | select %}",
        "{% macro m() %}{{ ns.x }}{% endmacro %}{% set ns.x = m %}",
        "{% for j in [ns.x] %}{% set ns.x = loop %}{% endfor %}",
        "{% set _ = render('{% set ns.x = [ns.x] %}') %}",
        "{% include 'f' %}",
    ] {
        for use_of_it in ["{{ ns.x }}", "{{ ns.x == [ns.x] }}", "{{ {(ns.x, 1): 1} }}", ""] {
            let _ = render(&format!(
                "{{% set ns = namespace(x=1) %}}{{% for i in range(4000) %}}{step}{{% endfor %}}{use_of_it}"
            ));
        }
    }
}

#[test]
fn values_may_hold_themselves() {
    for (template, expected) in [
        ("{% set l = [1] %}{% set _ = l.append(l) %}{{ l }}", "[1, [...]]"),
        (
            "{% set d = {} %}{% set _ = d.update(d=d) %}{{ d }}",
            "{'d': {...}}",
        ),
        (
            "{% set l = [] %}{% set _ = l.append((l,)) %}{{ l }}",
            "[([...],)]",
        ),
        ("{% set l = [] %}{% set _ = l.append(l) %}{{ l == l }}", "True"),
        (
            "{% set l = [] %}{% set _ = l.append(l) %}{{ l | to_yaml }}",
            "&id001\n- *id001\n",
        ),
        (
            "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns.x.x is sameas ns }}",
            "True",
        ),
    ] {
        assert_eq!(render(template).unwrap(), expected, "{template}");
    }
    for template in [
        "{% set l = [] %}{% set _ = l.append(l) %}{{ l | to_json }}",
        "{% set l = [] %}{% set _ = l.append(l) %}{{ l | pprint }}",
        "{% set d = {} %}{% set _ = d.update(d=d) %}{{ merge_dict(d, d) }}",
        "{% set a, b = [], [] %}{% set _ = a.append(a) %}{% set _ = b.append(b) %}{{ a == b }}",
        "{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}",
    ] {
        assert!(render(template).is_err(), "{template}");
    }
}

#[test]
fn deep_calls_and_lazy_lists_are_bounded() {
    let nested = format!("{}x{}", "[".repeat(100), "]".repeat(100));
    for template in [
        format!("{{% macro m(x) %}}{{{{ m({nested}) }}}}{{% endmacro %}}{{{{ m(1) }}}}"),
        format!("{{% macro m(x) %}}{{{{ x == {nested} }}}}{{{{ m({nested}) }}}}{{% endmacro %}}{{{{ m(1) }}}}"),
        format!("{{% set x = 1 %}}{}{{{{ x }}}}", format!("{{% set x = {nested} %}}").repeat(2000)),
        "{% set ns = namespace(x=[1]) %}{% for i in range(90000) %}{% set ns.x = ns.x[0:] %}{% endfor %}{{ ns.x }}"
            .to_owned(),
        "{% set ns = namespace(x=[1]) %}{% for i in range(90000) %}{% set ns.x = ns.x * 1 %}{% endfor %}{{ ns.x }}"
            .to_owned(),
        "{% set ns = namespace(x=[1]) %}{% for i in range(90000) %}{% set ns.x = ns.x | reverse %}{% endfor %}{{ ns.x }}"
            .to_owned(),
        "{% set ns = namespace(x=[1]) %}{% for i in range(90000) %}{% set ns.x = ns.x + [] %}{% endfor %}{{ ns.x }}"
            .to_owned(),
    ] {
        let _ = render(&template);
    }
}

#[test]
fn long_renders_check_the_deadline() {
    let compare = "{% set a = range(3000) | list %}{% set b = range(3000) | list %}\
                   {% for i in range(90000) %}{% if a == b %}{% endif %}{% endfor %}";
    let budget = Budget::default().with_timeout(Duration::from_millis(50));
    let start = std::time::Instant::now();
    let error = render_with(compare, &budget).unwrap_err().to_string();
    assert!(error.contains("time limit"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn sorting_compares_as_python_does() {
    for (expression, expected) in [
        ("[1, 2] == [1, 2]", "True"),
        ("(1, 2) == [1, 2]", "False"),
        ("[1, [2]] != [1, [3]]", "True"),
        ("{'a': 1, 'b': [2]} == {'b': [2], 'a': 1}", "True"),
        ("{'a': 1} == {'b': 1}", "False"),
        ("1 == 1.0", "True"),
        ("1 == '1'", "False"),
        ("none == none", "True"),
        ("[1, 2] < [1, 3]", "True"),
        ("[1] < [1, 0]", "True"),
        ("1 < 2 <= 2 < 3", "True"),
        ("1<2==2", "True"),
        ("1+1==2", "True"),
        ("1*2~3=='23'", "True"),
        ("not 1 == 2", "True"),
        ("not 1 in [1]", "False"),
        ("1 not in [2] and 2 in [2]", "True"),
        ("2 in {'a': 1}", "False"),
        ("('a' in {'a': 1}) is true", "True"),
        ("'b' in 'abc'", "True"),
        ("1 is in [1]", "True"),
        ("1 is not in [1]", "False"),
        ("1 is eq 1 and 2 is gt 1", "True"),
        ("1 if 1 == 1 else 2", "1"),
        ("{'a' ~ 1: 2, 3: {4 + 1: 6}}", "{'a1': 2, 3: {5: 6}}"),
        ("{(1, 2): 3}[(1, 2)]", "3"),
        ("[[1, 2], [3, 4]][1][0 + 1]", "4"),
        ("dict(a=1)['a']", "1"),
        ("[3, 1, 3] | unique | sort | list", "[1, 3]"),
        ("[(1,), (1,), (2,)] | unique | list", "[(1,), (2,)]"),
        ("[[2], [1]] | sort", "[[1], [2]]"),
        ("[1, 2, 1].count(1)", "2"),
        ("[1, 2, 1] | select('eq', 1) | list", "[1, 1]"),
    ] {
        let rendered = render(&format!("{{{{ {expression} }}}}"));
        let rendered = rendered.unwrap_or_else(|error| panic!("{expression}: {error}"));
        assert_eq!(rendered, expected, "{expression}");
    }
    let changed = "{% for i in [1, 1, 2] %}{{ loop.changed(i) }} {% endfor %}";
    assert_eq!(render(changed).unwrap(), "True False True ");
    let append = "{% set ns = namespace(l=[]) %}{% for i in range(2000) %}\
                  {% set ns.l = ns.l + [{'a': i}] %}{% endfor %}{{ ns.l | length }}";
    assert_eq!(render_with(append, &Budget::default()).unwrap(), "2000");
    for template in [
        "{{ {[1]: 2} }}",
        "{{ [1] in 'abc' }}",
        "{{ nothing == 1 }}",
        "{{ 1 in nothing }}",
    ] {
        assert!(render(template).is_err(), "{template}");
    }
}
