//! Statements, scopes and white space.

use super::check;

#[test]
fn loops_match_jinja() {
    check(&[
        (
            "{% for x in tags %}{{ loop.index }}/{{ loop.length }}{{ x }}{{ ',' if not loop.last }}{% endfor %}",
            "1/3b,2/3a,3/3C",
        ),
        (
            "{% for x in tags %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }} {% endfor %}",
            "032TrueFalse 121FalseFalse 210FalseTrue ",
        ),
        (
            "{% for x in [1, 2, 3] %}{{ loop.previtem | default('-') }}<{{ x }}>{{ loop.nextitem | default('-') }} {% endfor %}",
            "-<1>2 1<2>3 2<3>- ",
        ),
        (
            "{% for x in [1, 1, 2] %}{{ loop.changed(x) }} {{ loop.cycle('a', 'b') }} {% endfor %}",
            "True a False b True a ",
        ),
        (
            "{% for x in [] %}x{% else %}none{% endfor %}{% for x in [1] %}{{ x }}{% else %}none{% endfor %}",
            "none1",
        ),
        (
            "{% for x in range(9) if x is odd %}{{ loop.index }}:{{ x }} {% endfor %}",
            "1:1 2:3 3:5 4:7 ",
        ),
        (
            "{% for x in range(9) %}{% if x == 2 %}{% continue %}{% elif x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}",
            "0134",
        ),
        (
            "{% for a, (b, c) in [(1, (2, 3)), (4, (5, 6))] %}{{ a }}{{ b }}{{ c }} {% endfor %}",
            "123 456 ",
        ),
        (
            "{% for x in [1, [2, [3]]] recursive %}{{ loop.depth }}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}",
            "111(222(33))",
        ),
        (
            "{% for k in app %}{{ k }} {% endfor %}{% for c in 'ab' %}<{{ c }}>{% endfor %}",
            "name replicas env <a><b>",
        ),
        (
            "{% for x in [1, 2] %}{% for y in [3] %}{{ loop.index }}{{ x }}{{ y }} {% endfor %}{{ loop.index }}{% endfor %}",
            "113 1123 2",
        ),
        ("{% for x in [1] %}{{ loop }}{% endfor %}", "<LoopContext 1/1>"),
    ]);
}

#[test]
fn scopes_match_jinja() {
    check(&[
        (
            "{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}",
            "21",
        ),
        ("{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "2"),
        (
            "{% set ns = namespace(n=0, l=[]) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }} {{ ns.l }}",
            "6 []",
        ),
        (
            "{% set x = 1 %}{% with x = 2, y = x %}{{ x }}{{ y }}{% endwith %}{{ x }}",
            "211",
        ),
        (
            "{% set x %}a{{ 1 + 1 }}{% endset %}{{ x }} {% set y | upper | trim %} b {% endset %}{{ y }}",
            "a2 B",
        ),
        (
            "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}",
            "1221",
        ),
        ("{% set port = 1 %}{{ port }} {{ self is defined }}", "1 True"),
        (
            "{% block b %}{% set q = 1 %}{{ q }}{% endblock %}{{ q is defined }}",
            "1False",
        ),
        (
            "{% filter upper %}a{% set z = 1 %}{{ z }}{% endfilter %}{{ z is defined }}",
            "A1False",
        ),
    ]);
}

#[test]
fn macros_match_jinja() {
    check(&[
        (
            "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=3) }} {{ m(b=1, a=0) }}",
            "121 123 010",
        ),
        (
            "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
            "(1, 2){'x': 3}",
        ),
        (
            "{% macro m(a) %}<{{ caller() }}>{% endmacro %}{% call m(1) %}body{{ port }}{% endcall %}",
            "<body8080>",
        ),
        (
            "{% macro m() %}{% for i in [1, 2] %}{{ caller(i, 'x') }}{% endfor %}{% endmacro %}{% call(a, b='d') m() %}{{ a }}{{ b }} {% endcall %}",
            "1x 2x ",
        ),
        (
            "{% macro m(n) %}{{ n }}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
            "3210",
        ),
        (
            "{% macro m(a, b=1) %}{% endmacro %}{{ m.name }} {{ m.arguments }} {{ m.catch_varargs }} {{ m.caller }} {{ m }}",
            "m ('a', 'b') False False <Macro 'm'>",
        ),
        (
            "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 2 %}{{ x }}{% endmacro %}{% set x = 3 %}{{ m() }}{{ x }}",
            "323",
        ),
        (
            "{% macro m() %}a{% endmacro %}{{ m() | upper ~ m() }} {{ m()[0] }}",
            "Aa a",
        ),
    ]);
}

#[test]
fn whitespace_control_matches_jinja() {
    check(&[
        ("a \n {%- if true -%} \n b \n {%- endif -%} \n c", "abc"),
        ("  {{- 'x' -}}  y", "xy"),
        ("a\n{# c #}\nb {#- c -#} d", "a\n\nbd"),
        ("{% raw %}{{ x }}{% if %}{% endraw %}", "{{ x }}{% if %}"),
        ("{%- raw -%}  {{ x }}  {%- endraw -%}  y", "{{ x }}y"),
        ("x\n", "x"),
        ("x\n\n", "x\n"),
        ("{{ 'x' }}\n", "x"),
        ("\n\n{{ 1 }}\n\n", "\n\n1\n"),
        ("a{%+ if true +%}b{%+ endif %}", "ab"),
        ("{{'a'}}{{- 'b' }}\t{{ 'c' -}}\n", "ab\tc"),
        ("{#\n{{ no }}\n#}x", "x"),
        ("{% if true %}\n  x\n{% endif %}\ny", "\n  x\n\ny"),
    ]);
}

#[test]
fn globals_match_jinja() {
    check(&[
        (
            "{{ range(3) | list, range(1, 7, 2) | list, range(3, 0, -1) | list }}",
            "([0, 1, 2], [1, 3, 5], [3, 2, 1])",
        ),
        (
            "{{ dict(a=1), dict({'b': 2}, c=3), dict([['d', 4]]) }}",
            "({'a': 1}, {'b': 2, 'c': 3}, {'d': 4})",
        ),
        ("{{ cycler('a', 'b').next(), cycler(1, 2).current }}", "('a', 1)"),
        ("{{ lipsum is callable }}", "True"),
        (
            "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}",
            "ababNonea",
        ),
        (
            "{% set j = joiner('|') %}{% for x in tags %}{{ j() }}{{ x }}{% endfor %}",
            "b|a|C",
        ),
        (
            "{{ merge_dict({'a': {'b': 1}, 'l': [1]}, {'a': {'c': 2}, 'l': [2]}) }}",
            "{'a': {'b': 1, 'c': 2}, 'l': [2]}",
        ),
        (
            "{% set d = {'a': {'b': 1}} %}[{{ update_dict(d, {'a': {'c': 2}, 'x': none}) }}] {{ d }} {{ merge_dict(d, none) is sameas d }}",
            "[] {'a': {'b': 1, 'c': 2}, 'x': None} False",
        ),
        (
            "{% set y = 2 %}{{ render('{{ y }} {{ port }}') }} {{ '{{ 1 + 1 }}' | render }}",
            "2 8080 2",
        ),
    ]);
}

#[test]
fn yaml_is_written_as_in_python() {
    check(&[
        (
            "{{ {'b': 1, 'a': [1, 'x', none, true, 1.5, 1e16, 1e22]} | to_yaml }}",
            "b: 1\na:\n- 1\n- x\n- null\n- true\n- 1.5\n- 1.0e+16\n- 1.0e+22\n",
        ),
        ("{{ [] | to_yaml }}", "[]\n"),
        ("{{ {} | to_yaml }}", "{}\n"),
        ("{{ 'x' | to_yaml }}", "x\n...\n"),
        ("{{ 5 | to_yaml }}", "5\n...\n"),
        ("{{ none | to_yaml }}", "null\n...\n"),
        (r#"{{ 'multi\nline\n' | to_yaml }}"#, "|\n  multi\n  line\n"),
        (
            r#"{{ {'t': 'a\nb', 'u': 'a\n', 'v': ' lead', 'w': 'trail '} | to_yaml }}"#,
            "t: |-\n  a\n  b\nu: 'a\n\n  '\nv: ' lead'\nw: 'trail '\n",
        ),
        (
            "{{ ['yes', 'no', 'null', '~', '1', '1.5', '1e3', '0x1', '017', '1:30', '2020-01-02', '=', '<<', ''] | to_yaml }}",
            "- 'yes'\n- 'no'\n- 'null'\n- '~'\n- '1'\n- '1.5'\n- 1e3\n- '0x1'\n- '017'\n- '1:30'\n- '2020-01-02'\n- '='\n- '<<'\n- ''\n",
        ),
        (
            r#"{{ ['a: b', '- a', '#c', 'a #b', '*a', '&a', '!a', '%a', '@a', '`a', '{a', '[a', '|', '>', '? a', "it's", 'é', 'tab\tx'] | to_yaml }}"#,
            "- 'a: b'\n- '- a'\n- '#c'\n- 'a #b'\n- '*a'\n- '&a'\n- '!a'\n- '%a'\n- '@a'\n- '`a'\n- '{a'\n- '[a'\n- '|'\n- '>'\n- '? a'\n- it's\n- \"\\xE9\"\n- \"tab\\tx\"\n",
        ),
        (
            "{{ {'': 1, none: 2, true: 3, 1: 4, 1.5: 5} | to_yaml }}",
            "? ''\n: 1\nnull: 2\ntrue: 4\n1.5: 5\n",
        ),
        ("{{ {(1, 2): 3} | to_yaml }}", "? - 1\n  - 2\n: 3\n"),
        (
            "{{ {'k': 'word ' * 30} | to_yaml }}",
            "k: 'word word word word word word word word word word word word word word word word\n  word word word word word word word word word word word word word word '\n",
        ),
        (
            "{{ {'nested': {'list': [[1, 2], {'a': [{}]}]}} | to_yaml }}",
            "nested:\n  list:\n  - - 1\n    - 2\n  - a:\n    - {}\n",
        ),
        (
            "{{ {'long ' * 30: 1} | to_yaml }}",
            "? 'long long long long long long long long long long long long long long long long\n  long long long long long long long long long long long long long long '\n: 1\n",
        ),
        (
            "{% set a = [1] %}{{ {'x': a, 'y': a, 'z': [a]} | to_yaml }}",
            "x: &id001\n- 1\ny: *id001\nz:\n- *id001\n",
        ),
        (
            "{% set a = {'k': 1} %}{{ [a, {'b': a}] | to_yaml }}",
            "- &id001\n  k: 1\n- b: *id001\n",
        ),
    ]);
}

#[test]
fn yaml_is_read_as_in_python() {
    check(&[
        (
            r#"{{ 'a: 1\nb: [x, 1.5, null, yes, ~]\n' | from_yaml }}"#,
            "{'a': 1, 'b': ['x', 1.5, None, True, None]}",
        ),
        (
            "{{ '[017, 0o17, 0x1F, 0b11, 1:30, 1_000, 1e3, 1.0e+3, .5, .inf, -.inf]' | from_yaml }}",
            "[15, '0o17', 31, 3, 90, 1000, '1e3', 1000.0, 0.5, inf, -inf]",
        ),
        (
            "{{ '{1: a, true: b, null: c, 1.5: d}' | from_yaml }}",
            "{1: 'b', None: 'c', 1.5: 'd'}",
        ),
        (
            r#"{{ '- &a {x: 1}\n- *a\n- <<: *a\n  y: 2\n' | from_yaml }}"#,
            "[{'x': 1}, {'x': 1}, {'x': 1, 'y': 2}]",
        ),
        (
            r#"{{ '- &a {x: 1}\n- &b {x: 2, z: 3}\n- <<: [*a, *b]\n  y: 2\n' | from_yaml }}"#,
            "[{'x': 1}, {'x': 2, 'z': 3}, {'x': 1, 'z': 3, 'y': 2}]",
        ),
        (
            r#"{{ 'a: |\n  x\n  y\nb: >\n  x\n  y\n' | from_yaml }}"#,
            r#"{'a': 'x\ny\n', 'b': 'x y\n'}"#,
        ),
        (
            "{{ '[2020-01-02, 2020-01-02 03:04:05, 2020-01-02T03:04:05.5Z, 2020-01-02 03:04:05+02:00]' | from_yaml }}",
            "[datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5), datetime.datetime(2020, 1, 2, 3, 4, 5, 500000, tzinfo=datetime.timezone.utc), datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.timezone(datetime.timedelta(seconds=7200)))]",
        ),
        ("{{ '2020-01-02' | from_yaml }}", "2020-01-02"),
        ("{{ '!!str 5' | from_yaml }}", "5"),
        (
            r#"{{ '!!int "5"' if false else '!!float 5' | from_yaml }}"#,
            "5.0",
        ),
        ("{{ '[!!str 1, !!binary aGk=]' | from_yaml }}", "['1', b'hi']"),
        ("{{ '=: =' | from_yaml }}", "{'=': '='}"),
        ("{{ '' | from_yaml }}", "None"),
        ("{{ '# only a comment' | from_yaml }}", "None"),
        (r#"{{ '"a\\x41\\u00e9"' | from_yaml }}"#, "aAé"),
        (r#"{{ "'it''s'" | from_yaml }}"#, "it's"),
        ("{{ '!!omap [a: 1, b: 2]' | from_yaml }}", "[('a', 1), ('b', 2)]"),
        ("{% set d = '&a [1]' | from_yaml %}{{ d }}", "[1]"),
        (
            "{% set t = '[&a [1], *a]' %}{% set l = t | from_yaml %}{% set _ = l[0].append(2) %}{{ l }} {{ l | to_yaml }}",
            "[[1, 2], [1, 2]] - &id001\n  - 1\n  - 2\n- *id001\n",
        ),
        (
            "{% set d = '2024-02-29' | from_yaml %}{{ d.year }} {{ d.month }} {{ d.weekday() }} {{ d.isoformat() }} {{ [d] | to_yaml }}{{ d < ('2024-03-01' | from_yaml) }} {{ d.strftime('%d.%m.%Y') }}",
            "2024 2 3 2024-02-29 - 2024-02-29\nTrue 29.02.2024",
        ),
    ]);
}
