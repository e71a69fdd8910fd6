//! Tests of the behaviour that templates may rely on, and of their errors.

use std::sync::Arc;

use jinja::{Error, Renderer, Vars};
use tree::{Budget, Mem, TreePath};
use yaml::{Map, Value};

fn vars(text: &str) -> Map {
    match yaml::read::goyaml(text, &Budget::default()).unwrap().value {
        Value::Map(map) => map,
        _ => Map::new(),
    }
}

fn renderer(files: &[(&str, &str)], search: &[&str]) -> Renderer {
    let files = files.iter().map(|(path, text)| (*path, text.to_string()));
    let search: Vec<TreePath> = search.iter().map(|dir| TreePath::parse(dir).unwrap()).collect();
    let vars = vars("{a: {z: 1, b: [1, x, null, true, 1.5]}, 'n': 5, name: shop, big: 12345678901234567890}");
    Renderer::new(
        Arc::new(Mem::from_files(files).unwrap()),
        &search,
        &Vars::sorted(&vars),
    )
}

fn render(template: &str) -> Result<String, Error> {
    renderer(&[], &[]).render_str(template, &Budget::default())
}

fn render_file(files: &[(&str, &str)], search: &[&str], file: &str) -> Result<String, String> {
    let file = TreePath::parse(file).unwrap();
    let rendered = renderer(files, search).render_file(&file, &Budget::default());
    rendered
        .map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
        .map_err(|error| error.to_string())
}

#[test]
fn values_print_as_in_python() {
    for (template, expected) in [
        ("{{ a }}", "{'b': [1, 'x', None, True, 1.5], 'z': 1}"),
        (
            "{{ true }} {{ none }} {{ 2.0 }} {{ 1e16 }} {{ 0.00001 }}",
            "True None 2.0 1e+16 1e-05",
        ),
        (
            "{{ (1,) }} {{ \"it's\" }} {{ [\"it's\"] }}",
            "(1,) it's [\"it's\"]",
        ),
        ("{{ big }}", "12345678901234567890"),
        (
            "{{ 7 // 2 }} {{ -7 // 2 }} {{ 4 / 2 }} {{ 2 ** 10 }}",
            "3 -4 2.0 1024",
        ),
        ("{{ 'x' ~ none ~ 1.0 }}", "xNone1.0"),
        ("{{ a.b | join('-') }}", "1-x-None-True-1.5"),
    ] {
        assert_eq!(render(template).unwrap(), expected, "{template}");
    }
}

#[test]
fn string_without_a_brace_is_unchanged() {
    let budget = Budget::default();
    let files = [("plain", "a\r\nb\n\n"), ("crlf", "a {# c #}\r\nb\r\n\r\n")];
    let mut renderer = renderer(&files, &[""]);
    assert_eq!(renderer.render_str("a\r\n\n", &budget).unwrap(), "a\r\n\n");
    let plain = renderer
        .render_file(&TreePath::parse("plain").unwrap(), &budget)
        .unwrap();
    assert_eq!(&plain[..], b"a\r\nb\n\n");
    let crlf = renderer
        .render_file(&TreePath::parse("crlf").unwrap(), &budget)
        .unwrap();
    assert_eq!(&crlf[..], b"a \nb\n");
}

#[test]
fn binary_files_pass_unless_they_contain_a_brace() {
    let mut mem = Mem::new();
    mem.insert(TreePath::parse("plain").unwrap(), vec![0xff, 0xfe, 0], false);
    mem.insert(TreePath::parse("brace").unwrap(), vec![0xff, b'{'], false);
    let mut renderer = Renderer::new(Arc::new(mem), &[TreePath::root()], &Vars::default());
    let mut render = |name: &str| renderer.render_file(&TreePath::parse(name).unwrap(), &Budget::default());
    assert_eq!(&render("plain").unwrap()[..], [0xff, 0xfe, 0]);
    assert!(
        render("brace")
            .unwrap_err()
            .to_string()
            .contains(".templateignore")
    );
}

#[test]
fn templates_are_found_in_search_directories_and_relative_to_their_caller() {
    let files = [
        (
            "p/item/main",
            "{% include 'own' %}{% include 'shared' %}{% include './own' %}{% include '../up' %}",
        ),
        ("p/item/own", "o"),
        ("p/up", "u"),
        ("shared", "s"),
        ("other/x", "never"),
        ("p/item/deep/a", "{% include './b' %}"),
        ("p/item/deep/b", "b"),
        ("p/item/nested", "{% include 'deep/a' %}"),
        ("p/item/out", "{% include '../../other/x' %}"),
        ("p/item/escape", "{% include '../../../x' %}"),
        ("p/item/absolute", "{% include '/other/x' %}"),
        ("p/item/missing", "\n{% include 'nope' %}"),
        ("p/item/optional", "[{% include 'nope' ignore missing %}]"),
        ("p/item/macros", "{% macro m(x) %}{{ x }}{{ name }}{% endmacro %}"),
        ("p/item/import", "{% from 'macros' import m %}{{ m(1) }}"),
    ];
    let own = |file: &str| render_file(&files, &["p/item", "p"], file);
    let with_root = |file: &str| render_file(&files, &["p/item", "p", ""], file);
    assert_eq!(with_root("p/item/main").unwrap(), "osou");
    assert_eq!(own("p/item/main").unwrap_err(), "template shared not found");
    assert_eq!(own("p/item/nested").unwrap(), "b");
    assert_eq!(own("p/item/out").unwrap_err(), "template ../../other/x not found");
    assert_eq!(with_root("p/item/out").unwrap(), "never");
    assert_eq!(own("p/item/escape").unwrap_err(), "template ../../../x not found");
    assert_eq!(own("p/item/absolute").unwrap_err(), "template /other/x not found");
    assert_eq!(own("p/item/missing").unwrap_err(), "template nope not found");
    assert_eq!(own("p/item/optional").unwrap(), "[]");
    assert_eq!(own("p/item/import").unwrap(), "1shop");
}

#[test]
fn failures_name_file_line_and_exception() {
    let files = [
        ("undefined", "a: 1\nb: {{ nope }}\n"),
        ("attribute", "\n\n{{ a.nope.x }}"),
        ("syntax", "x\n{% if %}\n"),
        ("filter", "{{ 1 | nofilter }}"),
        ("outer", "x\n{% include 'inner' %}"),
        ("inner", "\n\n  {{ nope }}"),
        ("raise", "{{ raise('no: ' ~ 1) }}"),
        ("time", "{{ time.now() }}"),
    ];
    for (file, expected) in [
        (
            "undefined",
            "File \"undefined\", line 2, in top-level template code\n    b: {{ nope }}\nUndefinedError: 'nope' is undefined",
        ),
        (
            "attribute",
            "File \"attribute\", line 3, in top-level template code\n    {{ a.nope.x }}\n\
             UndefinedError: 'dict object' has no attribute 'nope'",
        ),
        (
            "syntax",
            "File \"syntax\", line 2, in template\n    {% if %}\nTemplateSyntaxError: ",
        ),
        (
            "filter",
            "File \"filter\", line 1, in template\n    {{ 1 | nofilter }}\n\
             TemplateAssertionError: No filter named 'nofilter'.",
        ),
        (
            "outer",
            "File \"inner\", line 3, in top-level template code\n    {{ nope }}\nUndefinedError: 'nope' is undefined",
        ),
        (
            "raise",
            "File \"raise\", line 1, in top-level template code\n    {{ raise('no: ' ~ 1) }}\nTemplateError: no: 1",
        ),
        (
            "time",
            "File \"time\", line 1, in top-level template code\n    {{ time.now() }}\n\
             NotImplementedError: time.now: no clock is given to this render",
        ),
    ] {
        let error = render_file(&files, &[""], file).unwrap_err();
        assert!(error.starts_with(expected), "{file}: {error}");
    }
    let error = render("{{ nope }}").unwrap_err().to_string();
    let expected =
        "File \"<template>\", line 1, in top-level template code\nUndefinedError: 'nope' is undefined";
    assert_eq!(error, expected);
}

#[test]
fn undefined_is_strict() {
    for template in [
        "{{ x }}",
        "{% if x %}{% endif %}",
        "{% for i in x %}{% endfor %}",
        "{{ x == 1 }}",
        "{{ 'a' in x }}",
        "{{ x | length }}",
        "{{ x or 'd' }}",
        "{{ a.x }}",
        "{{ a.x.y is defined }}",
        "{{ a.x.y | default('q') }}",
        "{{ null }}",
        "{{ [1, 2, 3][5] }}",
        "{{ [] | first }}",
        "{{ unknown_fn() }}",
        "{{ x | indent(2) }}",
        "{{ 'a' + 1 }}",
        "{{ 5 | sha256 }}",
    ] {
        assert!(render(template).is_err(), "{template}");
    }
    for (template, expected) in [
        (
            "{{ x is defined }} {{ a.x is defined }} {{ x is none }}",
            "False False False",
        ),
        (
            "{{ x | default('d') }}{{ a.x | default('z') }}{{ (x | default({})).y | default('n') }}",
            "dzn",
        ),
        (
            "{{ none | default('q') }} {{ none | default('q', true) }}",
            "None q",
        ),
        ("{% set y = x %}ok{{ 1 if false }}", "ok"),
    ] {
        assert_eq!(render(template).unwrap(), expected, "{template}");
    }
}

#[test]
fn kluctl_functions_are_available() {
    for (template, expected) in [
        (
            "{{ 'héllo' | b64encode }} {{ 'aMOpbGxv' | b64decode }}",
            "aMOpbGxv héllo",
        ),
        ("{{ '!!' | b64decode }}", ""),
        (
            "{{ {'b': 1, 'a': [1, 'x']} | to_json }}",
            "{\"b\": 1, \"a\": [1, \"x\"]}",
        ),
        ("{{ {'b': '1', 'a': ['x']} | to_yaml }}", "b: '1'\na:\n- x\n"),
        ("{{ 'a: [1, yes]' | from_yaml }}", "{'a': [1, True]}"),
        (
            "{{ 'x' | sha256(6) }} {{ 'x' | sha256(digest_len=4) }}",
            "2d7116 2d71",
        ),
        (
            "{{ 'Feature/ABC-12_x!' | slugify }} {{ 'a b c' | slugify(separator='_', max_length=3) }}",
            "feature-abc-12-x a_b",
        ),
        (
            "{{ get_var('a.b[1]') }} {{ get_var(['zz', 'n']) }} {{ get_var('zz', 'd') }} {{ get_var('zz') }}",
            "x 5 d None",
        ),
        (
            "{{ merge_dict({'a': {'b': 1}}, {'a': {'c': 2}}) }}",
            "{'a': {'b': 1, 'c': 2}}",
        ),
        (
            "{{ merge_dict({'a': (1, [(2,)])}, {'b': (3,)}) }}",
            "{'a': [1, [[2]]], 'b': (3,)}",
        ),
        ("{{ get_var(('zz', 'n'), 'd') }}", "d"),
        (
            "{{ render('{{ n }}{{ a.z }}') }} {{ '{{ n }}' | render }}",
            "51 5",
        ),
        ("{% set t = 'top' %}{{ render('{{ t }}') }}", "top"),
        ("{{ debug_print('x') }}", ""),
    ] {
        assert_eq!(render(template).unwrap(), expected, "{template}");
    }
    for (template, expected) in [
        (
            "{% set d = {} %}{{ update_dict(d, {'a': 1}) }}{{ d }}",
            "{'a': 1}",
        ),
        (
            "{{ images.get_image('x') }}",
            "XXXXXbegin_get_image_eyJpbWFnZSI6ICJ4In0=_end_get_imageXXXXX",
        ),
        ("{{ version.semver() }}", "semver(allow_no_nums=False)"),
        ("{{ a.update({'q': 1}) }}{{ a.q }}", "None1"),
    ] {
        assert_eq!(render(template).unwrap(), expected, "{template}");
    }
    for template in ["{{ lipsum() }}", "{{ [1] | random }}", "{{ time.now() }}"] {
        let error = render(template).unwrap_err().to_string();
        assert!(error.contains("given to this render"), "{template}: {error}");
    }
}

#[test]
fn files_are_loaded_hashed_and_encoded() {
    let files = [
        (
            "i/main",
            "{{ load_template('./part', x=1) }} {{ load_base64('part') }} {{ load_sha256('part', 4) }}",
        ),
        ("i/part", "{{ x | default(0) }}{{ n }}"),
        ("i/self", "{{ load_sha256('./self', 6) }}{# x #}"),
    ];
    let main = render_file(&files, &["i"], "i/main").unwrap();
    assert_eq!(main, "15 e3sgeCB8IGRlZmF1bHQoMCkgfX17eyBuIH19 c975");
    // The hashed file contains a fixed word instead of its own checksum.
    assert_eq!(render_file(&files, &["i"], "i/self").unwrap(), "707105");
}

#[test]
fn debug_print_messages_are_collected() {
    let mut renderer = renderer(&[], &[]);
    renderer
        .render_str("{{ debug_print('n is ' ~ n) }}", &Budget::default())
        .unwrap();
    assert_eq!(renderer.take_messages(), ["debug_print: n is 5"]);
    assert!(renderer.take_messages().is_empty());
}

#[test]
fn render_value_renders_strings_only() {
    let mut renderer = renderer(&[], &[]);
    let budget = Budget::default();
    let value = Value::Map(vars(
        "{'{{ name }}': '{{ n }}', list: ['{{ n + 1 }}', 7], plain: x}",
    ));
    let expected = Value::Map(vars("{shop: '5', list: ['6', 7], plain: x}"));
    assert_eq!(renderer.render_value(&value, &budget).unwrap(), expected);
    let broken = Value::Map(vars("{a: '{{ x }}', b: '{{ n }}', c: '{{ y }}'}"));
    assert_eq!(renderer.render_value(&broken, &budget).unwrap_err().len(), 2);
    let (partly, errors) = renderer.render_partly(&broken, &budget);
    assert_eq!(
        (partly, errors.len()),
        (Value::Map(vars("{a: '{{ x }}', b: '5', c: '{{ y }}'}")), 2)
    );
}

#[test]
fn conditions_are_true_or_false() {
    let mut renderer = renderer(&[], &[]);
    let budget = Budget::default();
    for (expression, expected) in [
        ("", true),
        ("n == 5", true),
        ("n > 5", false),
        ("a.b and name", true),
    ] {
        assert_eq!(
            renderer.condition(expression, &budget).unwrap(),
            expected,
            "{expression}"
        );
    }
    for expression in ["nope", "n ==", "true %}x{% if true"] {
        assert!(renderer.condition(expression, &budget).is_err(), "{expression}");
    }
}

#[test]
fn operators_bind_as_they_are_written() {
    for (template, expected) in [
        ("{{ 1 + 2 * 3 - 4 + 5 }}", "8"),
        ("{{ -2 * 3 + 2 ** 3 * 2 }}", "10"),
        (
            "{{ 2 * (1 + 2) ~ 'a' ~ 1 + 1 if false else 'x' ~ (1 + 1) * 2 }}",
            "x4",
        ),
        ("{{ 'a' ~ 'b' | upper ~ 'c' }}", "aBc"),
        ("{{ ('a' ~ 'b') | upper ~ 'c' }}", "ABc"),
        ("{{ [1] + [2] * 2 + [3] }}", "[1, 2, 2, 3]"),
        ("{{ (1, 2) + (3,) }}", "(1, 2, 3)"),
        ("{{ 'ab' * 2 + 'c' ~ 1.0 ~ none ~ true }}", "ababc1.0NoneTrue"),
        ("{{ 'a~b+c*d' ~ '\"' ~ \"'\" }}", "a~b+c*d\"'"),
        ("{{ 'abcdef'[1:3] ~ 'abcdef'[::-1][1:] }}", "bcedcba"),
        ("{{ [1, 2, 3][1:] + [4] }}", "[2, 3, 4]"),
        (
            "{{ [1, 2, 3][1:] }}{{ [1, 2, 3][1:][0] }}{{ [3, 2][:1] | length }}",
            "[2, 3]21",
        ),
        ("{{ not 'a' ~ 'b' == 'ab' }}", "False"),
        ("{{ 'b' in 'a' ~ 'b' and (1 + 1) is even }}", "True"),
        (
            "{{ range(*[1] + [3]) | list }}{{ dict(**{'a': 1 + 1}) }}",
            "[1, 2]{'a': 2}",
        ),
        ("{{ {'a' ~ 1: 2 * 2}['a' ~ 1] }}", "4"),
        (
            "{% macro m(a='x' ~ 'y') %}{{ a ~ caller() }}{% endmacro %}{% call m() %}{{ 1 + 1 }}{% endcall %}",
            "xy2",
        ),
        (
            "{% set x %}{% raw %}{{ a ~ b }}{% endraw %}{% endset %}{{ x ~ '' }}",
            "{{ a ~ b }}",
        ),
        (
            "{%- for x in [1] + [2] if x + 1 > 2 -%} {{ x ~ 'é' }} {%- endfor -%}",
            "2é",
        ),
        ("é{{ 'ü' ~ 'ä' }}é{{ 1 + 1 }}", "éüäé2"),
    ] {
        assert_eq!(render(template).unwrap(), expected, "{template}");
    }
    let long = "y".repeat(100);
    for (template, expected) in [
        (
            "{% set x -%} LONG {%- if true %} LONG{%- endif %}{% endset %}{{ x }}",
            "LONG LONG",
        ),
        (
            "{% set x %}\nLONG { {%- if true %}{% endif %}{% endset %}{{ x }}",
            "\nLONG {",
        ),
        (
            "{% set x %} {%- raw -%} LONG{{ {%- endraw -%} {% endset %}{{ x }}",
            "LONG{{",
        ),
        ("{% set raw %}LONG{% endset %}{{ raw }}", "LONG"),
    ] {
        let (template, expected) = (template.replace("LONG", &long), expected.replace("LONG", &long));
        assert_eq!(render(&template).unwrap(), expected, "{template}");
    }
    let chain = |operator: &str| format!("{{{{ 1{} }}}}", format!(" {operator} 1").repeat(1000));
    assert_eq!(render(&chain("+")).unwrap(), "1001");
    assert_eq!(render(&chain("~")).unwrap().len(), 1001);
}

#[test]
fn errors_show_the_source_line() {
    let files = [
        ("main", "a\n{{ 'x' ~ 1 + nope * 2 }}\n"),
        ("types", "\n  {{ 'a' ~ 'b' + 1 }}"),
    ];
    assert_eq!(
        render_file(&files, &[""], "main").unwrap_err(),
        "File \"main\", line 2, in top-level template code\n    {{ 'x' ~ 1 + nope * 2 }}\n\
         UndefinedError: 'nope' is undefined"
    );
    let error = render_file(&files, &[""], "types").unwrap_err();
    assert!(
        error.starts_with(
            "File \"types\", line 2, in top-level template code\n    {{ 'a' ~ 'b' + 1 }}\nTypeError: "
        ),
        "{error}"
    );
    assert!(!error.contains("__op"), "{error}");
}
