//! Methods of Python's values.

use super::check;

#[test]
fn string_methods_match_python() {
    check(&[
        (
            "{{ 'a,b,,c'.split(','), ' a  b '.split(), 'a,b,c'.split(',', 1), 'a,b,c'.rsplit(',', 1), 'a b c'.split(none, 1), ' a b '.rsplit(none, 1) }}",
            "(['a', 'b', '', 'c'], ['a', 'b'], ['a', 'b,c'], ['a,b', 'c'], ['a', 'b c'], [' a', 'b'])",
        ),
        (
            r#"{{ 'a\nb\r\nc\n'.splitlines(), 'a\nb'.splitlines(true) }}"#,
            r#"(['a', 'b', 'c'], ['a\n', 'b'])"#,
        ),
        (
            "{{ 'a=b=c'.partition('='), 'a=b=c'.rpartition('='), 'abc'.partition('x'), 'abc'.rpartition('x') }}",
            "(('a', '=', 'b=c'), ('a=b', '=', 'c'), ('abc', '', ''), ('', '', 'abc'))",
        ),
        (
            "{{ ' x '.strip() ~ '|' ~ ' x '.lstrip() ~ '|' ~ ' x '.rstrip() ~ '|', 'xxaxx'.strip('x'), 'abcba'.lstrip('ab') }}",
            "('x|x | x|', 'a', 'cba')",
        ),
        (
            "{{ 'hello'.find('l'), 'hello'.rfind('l'), 'hello'.find('z'), 'hello'.index('e'), 'hello'.rindex('l'), 'hello'.count('l'), 'hello'.find('l', 3), 'hello'.count('') }}",
            "(2, 3, -1, 1, 3, 2, 3, 6)",
        ),
        (
            "{{ 'hello'.startswith('he'), 'hello'.endswith(('x', 'lo')), 'hello'.startswith('l', 2), 'hello'.endswith('l', 0, 4) }}",
            "(True, True, True, True)",
        ),
        (
            "{{ 'hello'.replace('l', 'L'), 'hello'.replace('l', 'L', 1), 'ab'.replace('', '-') }}",
            "('heLLo', 'heLlo', '-a-b-')",
        ),
        (
            "{{ 'x'.join(['a', 'b']), '-'.join('abc'), ','.join({'a': 1, 'b': 2}) }}",
            "('axb', 'a-b-c', 'a,b')",
        ),
        (
            r#"{{ 'Ab'.upper(), 'Ab'.lower(), 'ab cd'.title(), "they're".title(), 'aB'.swapcase(), 'hELLO'.capitalize(), 'ẞ'.casefold() }}"#,
            r#"('AB', 'ab', 'Ab Cd', "They'Re", 'Ab', 'Hello', 'ss')"#,
        ),
        (
            r#"{{ '5'.zfill(3), '-5'.zfill(4), 'x'.ljust(3) ~ '|', 'x'.rjust(3, '.'), 'x'.center(4, '*'), 'a\tb'.expandtabs(4) }}"#,
            "('005', '-005', 'x  |', '..x', '*x**', 'a   b')",
        ),
        (
            "{{ 'prefix-x'.removeprefix('prefix-'), 'x.yaml'.removesuffix('.yaml'), 'x'.removeprefix('y') }}",
            "('x', 'x', 'x')",
        ),
        (
            r#"{{ '12'.isdigit(), '½'.isnumeric(), '²'.isdigit(), '²'.isdecimal(), 'ab'.isalpha(), 'a1'.isalnum(), ' '.isspace(), 'Ab C'.istitle(), 'a'.isupper(), 'a_1'.isidentifier(), 'é'.isascii(), '\n'.isprintable(), ''.isalpha() }}"#,
            "(True, True, True, False, True, True, True, True, False, True, False, False, False)",
        ),
        ("{{ 'abc'.translate({97: 'x', 98: none}) }}", "xc"),
        ("{{ 'a'.__len__(), 'abc'.__contains__('b') }}", "(1, True)"),
        ("{{ 'x'.encode(), 'é'.encode('utf-8').decode() }}", "(b'x', 'é')"),
    ]);
}

#[test]
fn string_formats_match_python() {
    check(&[
        (
            "{{ '{} {}'.format(1, 'x'), '{1} {0}'.format('a', 'b'), '{a}'.format(a=none), '{0.real} {1[k]} {2[1]}'.format(5, {'k': 'v'}, [1, 2]) }}",
            "('1 x', 'b a', 'None', '5 v 2')",
        ),
        (
            "{{ '{:>6}|{:<6}|{:^6}|{:*^7}'.format('ab', 'ab', 'ab', 'ab') }}",
            "    ab|ab    |  ab  |**ab***",
        ),
        (
            "{{ '{:5d}|{:05d}|{:+d}|{: d}|{:,}|{:_}'.format(42, 42, 42, 42, 1234567, 1234567) }}",
            "   42|00042|+42| 42|1,234,567|1_234_567",
        ),
        (
            "{{ '{:x} {:X} {:#x} {:o} {:b} {:#b} {:c}'.format(255, 255, 255, 8, 5, 5, 65) }}",
            "ff FF 0xff 10 101 0b101 A",
        ),
        (
            "{{ '{:.2f} {:8.3f} {:e} {:g} {:g} {:%} {:.1%}'.format(3.14159, 2.5, 12345.678, 0.00001, 1e20, 0.5, 0.256) }}",
            "3.14    2.500 1.234568e+04 1e-05 1e+20 50.000000% 25.6%",
        ),
        (
            "{{ '{!r} {!s} {!r:>6}'.format('x', 'x', 'x'), '{{}} {}'.format(1), '{:{}}|'.format('a', 4), '{:>{w}}'.format('a', w=3) }}",
            r#"("'x' x    'x'", '{} 1', 'a   |', '  a')"#,
        ),
        (
            "{{ '{:>5}'.format(true), '{:5}|'.format(none | string), '{:.2}'.format('abc') }}",
            "('    1', 'None |', 'ab')",
        ),
        (
            "{{ '%s %r %d %i' % ('x', 'x', 3.9, true), '%5s|%-5s|%.2s' % ('ab', 'ab', 'abc'), '%05d|%+d|% d|%-5d|' % (42, 42, 42, 42) }}",
            r#"("x 'x' 3 1", '   ab|ab   |ab', '00042|+42| 42|42   |')"#,
        ),
        (
            "{{ '%x %X %#x %o %e %g %.3f %c %c %%' % (255, 255, 255, 8, 1.5, 1.5, 2.0, 65, 'z') }}",
            "ff FF 0xff 10 1.500000e+00 1.5 2.000 A z %",
        ),
        (
            "{{ '%(a)s-%(b)03d' % {'a': 'x', 'b': 7}, '%s' % [1], '%s' % ((1, 2),), '%*d|%.*f' % (5, 42, 2, 1.0) }}",
            "('x-007', '[1]', '(1, 2)', '   42|1.00')",
        ),
        (
            "{{ '%a' % ('é',), '%5.1f%%' % 99.5 }}",
            r#"("'\\xe9'", ' 99.5%')"#,
        ),
    ]);
}

#[test]
fn list_methods_match_python() {
    check(&[
        (
            "{% set l = [3, 1] %}{{ l.append(2) }}{{ l.extend([5, 4]) }}{{ l.insert(0, 9) }}{{ l }}",
            "NoneNoneNone[9, 3, 1, 2, 5, 4]",
        ),
        (
            "{% set l = [3, 1, 2] %}{{ l.sort() }}{{ l }}{{ l.sort(reverse=true) }}{{ l }}{{ l.reverse() }}{{ l }}",
            "None[1, 2, 3]None[3, 2, 1]None[1, 2, 3]",
        ),
        (
            "{% set l = [3, 1, 2, 1] %}{{ l.pop() }} {{ l.pop(0) }} {{ l.index(2) }} {{ l.count(1) }} {{ l.remove(1) }} {{ l }}{{ l.clear() }}{{ l }}",
            "1 3 1 1 None [2]None[]",
        ),
        (
            "{% set l = [1] %}{% set m = l %}{% set c = l.copy() %}{% set _ = m.append(2) %}{{ l }} {{ c }}",
            "[1, 2] [1]",
        ),
        (
            "{{ (1, 2, 1).count(1) }} {{ (1, 2).index(2) }} {{ range(9).index(3) }}",
            "2 1 3",
        ),
        (
            "{% set l = [[3, 'a'], [1, 'b']] %}{{ l.sort() }}{{ l }}",
            "None[[1, 'b'], [3, 'a']]",
        ),
    ]);
}

#[test]
fn dict_methods_match_python() {
    check(&[
        (
            "{% set d = {'a': 1} %}{{ d.get('a') }} {{ d.get('b') }} {{ d.get('b', 2) }} {{ d.setdefault('c', []) }} {{ d }}",
            "1 None 2 [] {'a': 1, 'c': []}",
        ),
        (
            "{% set d = {'a': 1, 'b': 2} %}{{ d.pop('a') }} {{ d.pop('z', 'none') }} {{ d.popitem() }} {{ d }}",
            "1 none ('b', 2) {}",
        ),
        (
            "{% set d = {'a': 1} %}{{ d.update({'b': 2}) }}{{ d.update(c=3) }}{{ d.update([('d', 4)]) }}{{ d }}",
            "NoneNoneNone{'a': 1, 'b': 2, 'c': 3, 'd': 4}",
        ),
        (
            "{% set d = {'a': 1} %}{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %} {{ d.keys() | list }} {{ d.values() | list }}",
            "a=1 ['a'] [1]",
        ),
        (
            "{% set d = {'a': 1} %}{% set c = d.copy() %}{{ d.clear() }}{{ d }} {{ c }} {{ {}.fromkeys(['x', 'y'], 0) }}",
            "None{} {'a': 1} {'x': 0, 'y': 0}",
        ),
        (
            "{% set d = {1: 'int', '1': 'text', true: 'one'} %}{{ d }} {{ d[1.0] }} {{ d | length }}",
            "{1: 'one', '1': 'text'} one 2",
        ),
        (
            "{{ {'b': 1, 'a': 2, 'b': 3} }} {{ dict(a=1, **{'b': 2}) }} {{ dict([('x', 1)], y=2) }}",
            "{'b': 3, 'a': 2} {'a': 1, 'b': 2} {'x': 1, 'y': 2}",
        ),
    ]);
}

#[test]
fn number_methods_match_python() {
    check(&[
        (
            "{{ (5).bit_length(), (255).bit_count(), (5).real, (5).imag, (5).denominator, (2.5).is_integer(), (0.75).as_integer_ratio(), (3).as_integer_ratio() }}",
            "(3, 8, 5, 0, 1, False, (3, 4), (3, 1))",
        ),
        (
            "{{ true.real, (5).conjugate(), 1.0.is_integer() }}",
            "(1, 5, True)",
        ),
    ]);
}

#[test]
fn bytes_have_the_methods_of_strings() {
    check(&[
        (
            "{{ 'abcé'.encode().upper() }} {{ 'a b'.encode().split() }} {{ ' a '.encode().strip() }}",
            r"b'ABC\xc3\xa9' [b'a', b'b'] b'a'",
        ),
        (
            "{{ 'abc'.encode().replace('b'.encode(), 'xx'.encode()) }} {{ 'abc'.encode().startswith('a'.encode()) }}",
            "b'axxc' True",
        ),
        (
            "{{ 'abc'.encode().find('c'.encode()) }} {{ 'abc'.encode().find(99) }} {{ 'abc'.encode().endswith(('c'.encode(),)) }}",
            "2 2 True",
        ),
        (
            "{{ ','.encode().join(['x'.encode(), 'y'.encode()]) }} {{ 'a-b'.encode().partition('-'.encode()) }} {{ '7'.encode().zfill(3) }}",
            "b'x,y' (b'a', b'-', b'b') b'007'",
        ),
        (
            "{{ 'é'.encode().isalpha() }} {{ 'ab'.encode().isalpha() }}",
            "False True",
        ),
    ]);
}

#[test]
fn case_is_folded_as_in_unicode() {
    check(&[(
        "{{ 'ßẞſ İŉΐΰևﬀᾳ ͅΣςϐᏸꭰı'.casefold() }}",
        "sssss i\u{307}ʼnι\u{308}\u{301}υ\u{308}\u{301}եւffαι ισσβᏰᎠı",
    )]);
}

#[test]
fn views_are_compared_as_sets() {
    check(&[
        (
            "{{ {'a': 1}.keys() < {'a': 2, 'b': 1}.keys() }} {{ {'a': 1}.keys() <= {'a': 2}.keys() }} {{ {'a': 1}.items() < {'a': 2, 'b': 1}.items() }}",
            "True True False",
        ),
        (
            "{{ {'a': 1}.keys() > {'a': 2, 'b': 1}.keys() }} {{ {'a': 1}.keys() >= {'a': 2}.keys() }} {{ {'a': 1}.keys() < {'b': 2}.keys() }}",
            "False True False",
        ),
    ]);
}
