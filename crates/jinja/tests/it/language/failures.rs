//! Tests of failing templates: exception, message and line.

use super::check_failures;

#[test]
fn undefined_values_match_jinja() {
    check_failures(&[
        ("{{ nope }}", 1, "UndefinedError: 'nope' is undefined"),
        (
            "\n{{ app.nope }}",
            2,
            "UndefinedError: 'dict object' has no attribute 'nope'",
        ),
        (
            "{{ app.name.x }}",
            1,
            "UndefinedError: 'str object' has no attribute 'x'",
        ),
        (
            "\n\n{{ app.nope.x }}",
            3,
            "UndefinedError: 'dict object' has no attribute 'nope'",
        ),
        ("{{ tags[7] }}", 1, "UndefinedError: list object has no element 7"),
        (
            "{{ app['nope'] }}",
            1,
            "UndefinedError: 'dict object' has no attribute 'nope'",
        ),
        ("{{ none.x }}", 1, "UndefinedError: 'None' has no attribute 'x'"),
        ("{{ nope() }}", 1, "UndefinedError: 'nope' is undefined"),
        ("{{ nope + 1 }}", 1, "UndefinedError: 'nope' is undefined"),
        (
            "{% if nope %}{% endif %}",
            1,
            "UndefinedError: 'nope' is undefined",
        ),
        (
            "{% for x in nope %}{% endfor %}",
            1,
            "UndefinedError: 'nope' is undefined",
        ),
        ("{{ nope | upper }}", 1, "UndefinedError: 'nope' is undefined"),
        ("{{ nope | length }}", 1, "UndefinedError: 'nope' is undefined"),
        ("{{ nope in [1] }}", 1, "UndefinedError: 'nope' is undefined"),
        (
            "{{ [] | first }}",
            1,
            "UndefinedError: No first item, sequence was empty.",
        ),
        (
            "{{ [] | max }}",
            1,
            "UndefinedError: No aggregated item, sequence was empty.",
        ),
        (
            "{{ app.nope | default('x') ~ app.nope }}",
            1,
            "UndefinedError: 'dict object' has no attribute 'nope'",
        ),
        ("{{ 'x' ~ nope }}", 1, "UndefinedError: 'nope' is undefined"),
        (
            "{% set x = nope %}ok\n{{ x }}",
            2,
            "UndefinedError: 'nope' is undefined",
        ),
        (
            "{{ ('a' if false).x }}",
            1,
            "UndefinedError: the inline if-expression on line 1 in 't' evaluated to false and no else section was defined.",
        ),
    ]);
}

#[test]
fn type_errors_match_python() {
    check_failures(&[
        (
            "{{ 'a' + 1 }}",
            1,
            r#"TypeError: can only concatenate str (not "int") to str"#,
        ),
        (
            "{{ 1 + 'a' }}",
            1,
            "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        ),
        (
            "{{ [1] + 'a' }}",
            1,
            r#"TypeError: can only concatenate list (not "str") to list"#,
        ),
        (
            "{{ 'a' - 1 }}",
            1,
            "TypeError: unsupported operand type(s) for -: 'str' and 'int'",
        ),
        (
            "{{ {} * 2 }}",
            1,
            "TypeError: unsupported operand type(s) for *: 'dict' and 'int'",
        ),
        (
            "{{ 'a' < 1 }}",
            1,
            "TypeError: '<' not supported between instances of 'str' and 'int'",
        ),
        (
            "{{ [1] < {} }}",
            1,
            "TypeError: '<' not supported between instances of 'list' and 'dict'",
        ),
        ("{{ -'a' }}", 1, "TypeError: bad operand type for unary -: 'str'"),
        (
            "{{ 5 | length }}",
            1,
            "TypeError: object of type 'int' has no len()",
        ),
        ("{{ 5 | first }}", 1, "TypeError: 'int' object is not iterable"),
        ("{{ {tags: 1} }}", 1, "TypeError: unhashable type: 'list'"),
        ("{{ 'x'() }}", 1, "TypeError: 'str' object is not callable"),
        (
            "{{ 5 | sha256 }}",
            1,
            "AttributeError: 'int' object has no attribute 'encode'",
        ),
        (
            "{{ [3, 'a'] | sort }}",
            1,
            "TypeError: '<' not supported between instances of 'str' and 'int'",
        ),
        (
            "{{ 1 // 0 }}",
            1,
            "ZeroDivisionError: integer division or modulo by zero",
        ),
        ("{{ 1.0 / 0 }}", 1, "ZeroDivisionError: float division by zero"),
        ("{{ 5 % 0 }}", 1, "ZeroDivisionError: integer modulo by zero"),
        (
            "{{ '%d' % 'x' }}",
            1,
            "TypeError: %d format: a real number is required, not str",
        ),
        (
            "{{ '%s %s' % 'x' }}",
            1,
            "TypeError: not enough arguments for format string",
        ),
        (
            "{{ '{} {}'.format(1) }}",
            1,
            "IndexError: Replacement index 1 out of range for positional args tuple",
        ),
        (
            "{{ '{:d}'.format('x') }}",
            1,
            "ValueError: Unknown format code 'd' for object of type 'str'",
        ),
        ("{{ 'abc'.index('x') }}", 1, "ValueError: substring not found"),
        (
            "{{ [1].remove(2) }}",
            1,
            "ValueError: list.remove(x): x not in list",
        ),
        ("{{ [].pop() }}", 1, "IndexError: pop from empty list"),
        ("{{ {}.pop('x') }}", 1, "KeyError: 'x'"),
        (
            "{{ 'x'.join([1]) }}",
            1,
            "TypeError: sequence item 0: expected str instance, int found",
        ),
        (
            "{{ 'x'.center(nope) }}",
            1,
            "TypeError: 'StrictUndefined' object cannot be interpreted as an integer",
        ),
    ]);
}

#[test]
fn call_errors_match_python() {
    check_failures(&[
        (
            "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
            1,
            "TypeError",
        ),
        (
            "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=1) }}",
            1,
            "TypeError",
        ),
        (
            "{% macro m(a) %}{{ a }}{% endmacro %}{{ m() }}",
            1,
            "UndefinedError",
        ),
        (
            "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
            1,
            "UndefinedError",
        ),
        ("{% for a, b in [(1, 2), (3,)] %}{% endfor %}", 1, "ValueError"),
        ("{% set a, b = 1 %}", 1, "TypeError"),
        ("{% set app.x = 1 %}", 1, "TemplateRuntimeError"),
        ("{{ 2.5 | round(1, 'up') }}", 1, "FilterArgumentError"),
        ("{{ {'a b': 1} | xmlattr }}", 1, "ValueError"),
        ("{{ ['x'] | map('nofilter') | list }}", 1, "TemplateRuntimeError"),
        ("{{ ['x'] | select('notest') | list }}", 1, "TemplateRuntimeError"),
        ("{{ raise('my words') }}", 1, "TemplateError"),
        ("{{ 'x' | truncate(1) }}", 1, "AssertionError"),
        ("{{ range(0, 5, 0) }}", 1, "ValueError"),
        ("{{ cycler() }}", 1, "RuntimeError"),
    ]);
}

#[test]
fn syntax_errors_match_jinja() {
    check_failures(&[
        (
            "{{ 1 + }}",
            1,
            "TemplateSyntaxError: unexpected 'end of print statement'",
        ),
        ("{{ (1 }}", 1, "TemplateSyntaxError: unexpected '}', expected ')'"),
        ("{{ [1 }}", 1, "TemplateSyntaxError: unexpected '}', expected ']'"),
        (
            "{{ 1 2 }}",
            1,
            "TemplateSyntaxError: expected token 'end of print statement', got 'integer'",
        ),
        ("{{ 'x }}", 1, r#"TemplateSyntaxError: unexpected char "'" at 3"#),
        (
            "{{ x y }}",
            1,
            "TemplateSyntaxError: expected token 'end of print statement', got 'y'",
        ),
        (
            "{{ }}",
            1,
            "TemplateSyntaxError: Expected an expression, got 'end of print statement'",
        ),
        (
            "\n{% if %}{% endif %}",
            2,
            "TemplateSyntaxError: Expected an expression, got 'end of statement block'",
        ),
        (
            "{% if true %}",
            1,
            "TemplateSyntaxError: Unexpected end of template. Jinja was looking for the following tags: 'elif' or 'else' or 'endif'. The innermost block that needs to be closed is 'if'.",
        ),
        (
            "{% for x in %}{% endfor %}",
            1,
            "TemplateSyntaxError: Expected an expression, got 'end of statement block'",
        ),
        (
            "{% endif %}",
            1,
            "TemplateSyntaxError: Encountered unknown tag 'endif'.",
        ),
        (
            "{% nope %}",
            1,
            "TemplateSyntaxError: Encountered unknown tag 'nope'.",
        ),
        (
            "{% if a %}{% endfor %}",
            1,
            "TemplateSyntaxError: Encountered unknown tag 'endfor'. Jinja was looking for the following tags: 'elif' or 'else' or 'endif'. The innermost block that needs to be closed is 'if'.",
        ),
        (
            "a\n{% for x in y %}\n{% if z %}\n{% endfor %}",
            4,
            "TemplateSyntaxError: Encountered unknown tag 'endfor'. You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for 'elif' or 'else' or 'endif'. The innermost block that needs to be closed is 'if'.",
        ),
        (
            "{{ 1 | nofilter }}",
            1,
            "TemplateAssertionError: No filter named 'nofilter'.",
        ),
        (
            "{{ 1 is notest }}",
            1,
            "TemplateAssertionError: No test named 'notest'.",
        ),
        ("{{ a..b }}", 1, "TemplateSyntaxError: expected name or number"),
        ("{{ ! }}", 1, "TemplateSyntaxError: unexpected char '!' at 3"),
        ("{{ a ? b }}", 1, "TemplateSyntaxError: unexpected char '?' at 5"),
        (
            "{% set 1 = 2 %}",
            1,
            "TemplateSyntaxError: can't assign to 'const'",
        ),
        (
            "{% set none = 1 %}",
            1,
            "TemplateSyntaxError: can't assign to 'const'",
        ),
        (
            "{% block a %}{% endblock %}{% block a %}{% endblock %}",
            1,
            "TemplateAssertionError: block 'a' defined twice",
        ),
        (
            "{% macro m(a=1, b) %}{% endmacro %}",
            1,
            "TemplateSyntaxError: non-default argument follows default argument",
        ),
        (
            "{{ f(a=1, 2) }}",
            1,
            "TemplateSyntaxError: invalid syntax for function call expression",
        ),
        (
            "{% from 'x' %}",
            1,
            "TemplateSyntaxError: expected token 'import', got 'end of statement block'",
        ),
        (
            "{{ {1, 2} }}",
            1,
            "TemplateSyntaxError: expected token ':', got ','",
        ),
        (
            "{{ a if }}",
            1,
            "TemplateSyntaxError: unexpected 'end of print statement'",
        ),
        (
            "{{ 'a' is in }}",
            1,
            "TypeError: test_in() missing 1 required positional argument: 'seq'",
        ),
        (
            "{% include %}",
            1,
            "TemplateSyntaxError: unexpected 'end of statement block'",
        ),
        (
            "{% extends %}",
            1,
            "TemplateSyntaxError: unexpected 'end of statement block'",
        ),
    ]);
}

#[test]
fn methods_refuse_arguments_of_another_kind() {
    check_failures(&[
        (
            "{{ 'abc'.replace('a', 'b', count=1) }}",
            1,
            "TypeError: str.replace() takes no keyword arguments",
        ),
        (
            "{{ 'abc'.encode().replace('b', 'x') }}",
            1,
            "TypeError: a bytes-like object is required, not 'str'",
        ),
        (
            "{{ {'a': 1}.values() < {'a': 1}.values() }}",
            1,
            "TypeError: '<' not supported between instances of 'dict_values' and 'dict_values'",
        ),
    ]);
}
