//! Tests, operators, and types of values.

use super::check;

#[test]
fn tests_match_jinja() {
    check(&[
        (
            "{{ host is defined, nope is defined, nope is undefined, app.nope is defined }}",
            "(True, False, True, False)",
        ),
        ("{{ none is none, 0 is none }}", "(True, False)"),
        (
            "{{ true is boolean, 1 is boolean, 1 is true, true is true, false is false }}",
            "(True, False, False, True, True)",
        ),
        (
            "{{ 1 is integer, true is integer, 1.0 is integer, 1.0 is float, '1' is number, 2 is number, true is number }}",
            "(True, False, False, True, False, True, True)",
        ),
        (
            "{{ 'x' is string, ('x' | safe) is string, [] is sequence, {} is mapping, {} is sequence, 'x' is iterable, 5 is iterable }}",
            "(True, True, True, True, True, True, False)",
        ),
        (
            "{{ range is callable, 5 is callable, 'x'.upper is callable }}",
            "(True, False, True)",
        ),
        (
            "{{ 3 is odd, 3 is even, 6 is divisibleby 3, 6 is divisibleby(4) }}",
            "(True, False, True, False)",
        ),
        (
            "{{ 'ab' is lower, 'AB' is upper, '1' is lower }}",
            "(True, True, False)",
        ),
        (
            "{{ 1 is eq 1, 1 is equalto 2, 1 is ne 2, 2 is gt 1, 2 is ge 2, 1 is lt 2, 1 is le 0 }}",
            "(True, False, True, True, True, True, False)",
        ),
        (
            "{{ 1 is in [1, 2], 'x' is in 'xyz', 'q' is not in {'q': 1} }}",
            "(True, True, False)",
        ),
        (
            "{{ none is sameas none, 1 is sameas true, app is sameas app }}",
            "(True, False, True)",
        ),
        (
            "{{ 'upper' is filter, 'nope' is filter, 'odd' is test, 'nope' is test }}",
            "(True, False, True, False)",
        ),
        (
            "{{ not host is string, host is not none and on }}",
            "(False, True)",
        ),
    ]);
}

#[test]
fn comparisons_match_python() {
    check(&[
        (
            "{{ 1 < 2 < 3, 1 < 3 < 2, 1 == 1.0 == true }}",
            "(True, False, True)",
        ),
        (
            "{{ 'a' < 'b', 'B' < 'a', [1, 2] < [1, 3], (1,) < (1, 0) }}",
            "(True, True, True, True)",
        ),
        (
            "{{ [1] == (1,), {'a': 1} == {'a': 1.0}, 'x' == ('x' | safe) }}",
            "(False, True, True)",
        ),
        (
            "{{ 2 in [1, 2], 'k' in {'k': 1}, 'ell' in 'hello', 3 not in range(3), 2.0 in range(3) }}",
            "(True, True, True, True, True)",
        ),
        (
            "{{ {'a': 1}.keys() == {'a': 2}.keys(), {'a': 1}.items() == {'a': 1}.items(), {}.values() == {}.values() }}",
            "(True, True, False)",
        ),
        (
            "{{ none or 'x', 0 or [] or 'last', 1 and '' and 2, not [] }}",
            "('x', 'last', '', True)",
        ),
        (
            "{{ 10**20 > 1e19, 2**64 == 18446744073709551616, 2**53 + 1 == 2.0**53 }}",
            "(True, True, False)",
        ),
        (
            "{{ range(3) == range(0, 3, 1), range(0) == range(5, 5) }}",
            "(True, True)",
        ),
    ]);
}

#[test]
fn arithmetic_matches_python() {
    check(&[
        (
            "{{ 7 // 2, -7 // 2, 7 // -2, 7 % 3, -7 % 3, 7 % -3, 7.5 // 2, -7.5 % 2 }}",
            "(3, -4, -4, 1, 2, -2, 3.0, 0.5)",
        ),
        (
            "{{ 1 / 4, 4 / 2, 2 ** 10, 2 ** -1, 2 ** 0.5, (-2) ** 3, -2 ** 2 }}",
            "(0.25, 2.0, 1024, 0.5, 1.4142135623730951, -8, 4)",
        ),
        (
            "{{ 1 + 1.5, 0.1 + 0.2, 3 * 1.5, 1e16 + 1, true + true }}",
            "(2.5, 0.30000000000000004, 4.5, 1e+16, 2)",
        ),
        (
            "{{ 2 ** 3 ** 2, 10 - 3 - 2, 2 + 3 * 4, -3 | abs }}",
            "(64, 5, 14, 3)",
        ),
        (
            "{{ 'ab' * 3, 2 * [1], (1,) * 2, 'x' * -1, [] * 5 }}",
            "('ababab', [1, 1], (1, 1), '', [])",
        ),
        (
            "{{ [1] + [2], (1,) + (2,), 'a' + 'b', 'a' ~ 1 ~ none ~ 1.0 }}",
            "([1, 2], (1, 2), 'ab', 'a1None1.0')",
        ),
        (
            "{{ 1_000 + 0x1f + 0o17 + 0b11, 1e3, 1.5E-7, 0.1e1 }}",
            "(1049, 1000.0, 1.5e-07, 1.0)",
        ),
    ]);
}

#[test]
fn integers_have_any_size() {
    check(&[
        (
            "{{ 2 ** 127, -(2 ** 64), 2 ** 64 - 1, 2 ** 63 }}",
            "(170141183460469231731687303715884105728, -18446744073709551616, 18446744073709551615, 9223372036854775808)",
        ),
        (
            "{{ 123456789012345678901234567890 + 1, 10**30 // 7, -(10**30) // 7, 10**30 % 7, -(10**30) % 7 }}",
            "(123456789012345678901234567891, 142857142857142857142857142857, -142857142857142857142857142858, 1, 6)",
        ),
        (
            "{{ 10**30 / 10**28, 10**20 * 10**20, 10**25 - 10**25 + 5 }}",
            "(100.0, 10000000000000000000000000000000000000000, 5)",
        ),
        (
            "{{ (10**25) | string | length, '1' * 25 | int, ('9' * 20) | int + 1 }}",
            "(26, '1111111111111111111111111', 100000000000000000000)",
        ),
        (
            "{{ '%d' % 10**22, '{:,}'.format(10**22), '%x' % 2**70, '{:b}'.format(2**65) | length }}",
            "('10000000000000000000000', '10,000,000,000,000,000,000,000', '400000000000000000', 66)",
        ),
        (
            "{{ (10**22) | tojson, {'a': 10**22} | to_yaml, '18446744073709551617' | from_yaml + 1 }}",
            r#"(Markup('10000000000000000000000'), 'a: 10000000000000000000000\n', 18446744073709551618)"#,
        ),
        (
            "{{ 2**70 in [2**70], {2**70: 1}[2**70], 2**70 == 2.0**70, 2**70 > 2**69 }}",
            "(True, 1, True, True)",
        ),
        (
            "{{ [2**70, 1, 2**65] | sort, (2**70) | float, 1e25 | int, (2**64) | filesizeformat }}",
            "([1, 36893488147419103232, 1180591620717411303424], 1.1805916207174113e+21, 10000000000000000905969664, '18.4 EB')",
        ),
        (
            "{{ (2**70).bit_length(), -(2**65) | abs }}",
            "(71, 36893488147419103232)",
        ),
    ]);
}

#[test]
fn floats_print_as_in_python() {
    check(&[
        (
            "{{ 1.0, 1e15, 1e16, 123456789012345680.0, 1e-4, 1e-5, 0.1, 1/3, 2/3, 5e-324, 1.7976931348623157e308 }}",
            "(1.0, 1000000000000000.0, 1e+16, 1.2345678901234568e+17, 0.0001, 1e-05, 0.1, 0.3333333333333333, 0.6666666666666666, 5e-324, 1.7976931348623157e+308)",
        ),
        (
            "{{ -0.0, 0.0, 1e22, 1e21, 100000.0, 123456.789, 271503538875741.625 }}",
            "(-0.0, 0.0, 1e+22, 1e+21, 100000.0, 123456.789, 271503538875741.62)",
        ),
        (
            "{{ 1e400, -1e400, (1e400 - 1e400) | string, 1e400 == 1e400 }}",
            "(inf, -inf, 'nan', True)",
        ),
    ]);
}

#[test]
fn values_print_as_in_python() {
    check(&[
        (
            r#"{{ [none, true, 1, 1.0, 'x', "it's", 'say "hi"', 'both \' and "', 'a\nb\t\\'] }}"#,
            r#"[None, True, 1, 1.0, 'x', "it's", 'say "hi"', 'both \' and "', 'a\nb\t\\']"#,
        ),
        (
            r#"{{ ('é', '\u200b', '\x01', '\x7f', '😀') }}"#,
            r#"('é', '\u200b', '\x01', '\x7f', '😀')"#,
        ),
        (
            "{{ {'a': {'b': (1,)}, 2: [], 1.5: (), none: {}} }}",
            "{'a': {'b': (1,)}, 2: [], 1.5: (), None: {}}",
        ),
        ("{{ (), (1,), (1, 2), [[]], {} }}", "((), (1,), (1, 2), [[]], {})"),
        (
            "{{ range(3), range(1, 9, 2), {'a': 1}.keys(), {'a': 1}.values(), {'a': 1}.items() }}",
            "(range(0, 3), range(1, 9, 2), dict_keys(['a']), dict_values([1]), dict_items([('a', 1)]))",
        ),
        (
            "{{ namespace(a=1, b='x'), 'x' | safe, ['x' | safe] }}",
            "(<Namespace {'a': 1, 'b': 'x'}>, Markup('x'), [Markup('x')])",
        ),
        ("{{ true ~ false ~ none }}", "TrueFalseNone"),
        (
            "{{ range, dict, 'x'.__class__, 5 .__class__.__name__ }}",
            "(<class 'range'>, <class 'dict'>, <class 'str'>, 'int')",
        ),
    ]);
}

#[test]
fn subscripts_and_slices_match_python() {
    check(&[
        (
            "{{ tags[0], tags[-1], host[0], host[-1], (1, 2)[1], range(5)[-1] }}",
            "('b', 'C', 'w', 'g', 2, 4)",
        ),
        (
            "{{ host[:3], host[3:6], host[-3:], host[::4], host[::-1], tags[1:], tags[::-1], (1, 2, 3)[:2] }}",
            "('web', '-01', 'org', 'w0xlr', 'gro.elpmaxe.10-bew', ['a', 'C'], ['C', 'a', 'b'], (1, 2))",
        ),
        (
            "{{ tags[5:], tags[-9:1], 'abc'[2:1], 'abc'[::2], range(10)[2:8:3], range(10)[::-1] }}",
            "([], ['b'], '', 'ac', range(2, 8, 3), range(9, -1, -1))",
        ),
        (
            "{{ app['name'], app.name, app['env'].LOG, app.env['LOG'], app['na' ~ 'me'] }}",
            "('shop', 'shop', 'debug', 'debug', 'shop')",
        ),
        (
            "{{ app.items is callable, app['items'] is callable, {'items': 1}['items'], {'items': 1}.items is callable }}",
            "(True, True, 1, True)",
        ),
        (
            "{{ pods[0].name, pods[-1]['cpu'], pods.0.name }}",
            "('p2', 0.5, 'p2')",
        ),
    ]);
}

#[test]
fn conditions_match_jinja() {
    check(&[
        (
            "{{ 'a' if on else 'b', 'a' if not on else 'b', ('a' if false) ~ '|' }}",
            "('a', 'b', '|')",
        ),
        ("{{ 1 if 0 else 2 if 0 else 3 }}", "3"),
        ("{{ ('x' if nope is defined else 'y') }}", "y"),
    ]);
}
