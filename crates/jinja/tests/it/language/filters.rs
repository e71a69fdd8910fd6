//! Each filter with its arguments and inputs.

use super::check;

#[test]
fn string_filters_change_letters() {
    check(&[
        ("{{ host | upper }}", "WEB-01.EXAMPLE.ORG"),
        ("{{ 'ÀB ß' | lower }}", "àb ß"),
        ("{{ 'ß' | upper }}", "SS"),
        (
            "{{ 'hello-there big (world)' | title }}",
            "Hello-There Big (World)",
        ),
        ("{{ 'HELLO wORLD' | capitalize }}", "Hello world"),
        (r#"{{ '  x\t' | trim }}"#, "x"),
        ("{{ '--x-' | trim('-') }}", "x"),
        ("{{ 5 | trim | length }}", "1"),
        ("{{ host | replace('e', 'E') }}", "wEb-01.ExamplE.org"),
        ("{{ host | replace('.', '', 1) }}", "web-01example.org"),
        ("{{ 12.5 | replace('.', ',') }}", "12,5"),
        ("{{ 'abc' | reverse }}", "cba"),
        ("{{ text | wordcount }}", "9"),
        ("{{ 'a_b c-d' | wordcount }}", "3"),
        ("{{ 'x' | center(6) }}", "  x   "),
        ("{{ 'xy' | center(5) | length }}", "5"),
        ("{{ none | string ~ '!' }}", "None!"),
        ("{{ '%s has %d' | format('x', 3) }}", "x has 3"),
        ("{{ '%(a)s' | format(a=1) }}", "1"),
        ("{{ 'Ab' | list }}", "['A', 'b']"),
        ("{{ 'ab' | first }}", "a"),
        ("{{ 'ab' | last }}", "b"),
        ("{{ '' | first | default('nothing') }}", "nothing"),
        ("{{ 5 | string | length }}", "1"),
    ]);
}

#[test]
fn string_filters_lay_out_lines() {
    check(&[
        (
            "{{ text | indent }}",
            "The quick brown fox\n    jumps over\n\n    the lazy dog",
        ),
        (
            "{{ text | indent(2, true) }}",
            "  The quick brown fox\n  jumps over\n\n  the lazy dog",
        ),
        (
            "{{ text | indent(2, blank=true) }}",
            "The quick brown fox\n  jumps over\n  \n  the lazy dog",
        ),
        (
            "{{ text | indent('> ') }}",
            "The quick brown fox\n> jumps over\n\n> the lazy dog",
        ),
        ("{{ '' | indent(3, true) }}", "   "),
        ("{{ text | truncate(12) }}", "The..."),
        ("{{ text | truncate(12, true) }}", "The quick..."),
        ("{{ text | truncate(12, end='~') }}", "The quick~"),
        ("{{ text | truncate(12, true, '', 0) }}", "The quick br"),
        ("{{ 'short' | truncate(3) }}", "short"),
        ("{{ 'long enough' | truncate(5, leeway=0) }}", "lo..."),
        (
            "{{ text | wordwrap(7) }}",
            "The\nquick\nbrown\nfox\njumps\nover\n\nthe\nlazy\ndog",
        ),
        ("{{ 'abcdefghij' | wordwrap(4) }}", "abcd\nefgh\nij"),
        ("{{ 'abcdefghij kl' | wordwrap(4, false) }}", "abcdefghij\nkl"),
        ("{{ 'well-known-part' | wordwrap(6) }}", "well-\nknown-\npart"),
        (
            "{{ 'well-known-part' | wordwrap(6, break_on_hyphens=false) }}",
            "well-k\nnown-p\nart",
        ),
        ("{{ 'a b c' | wordwrap(1, wrapstring='|') }}", "a|b|c"),
        ("{{ ' second' | wordwrap(1) }}", " \ns\ne\nc\no\nn\nd"),
    ]);
}

#[test]
fn markup_filters_match_jinja() {
    check(&[
        (
            r#"{{ '<a href="x">&</a>' | e }}"#,
            "&lt;a href=&#34;x&#34;&gt;&amp;&lt;/a&gt;",
        ),
        ("{{ '<b>' | safe | e }}", "<b>"),
        ("{{ '<b>' | e | forceescape }}", "&amp;lt;b&amp;gt;"),
        ("{{ '<b>' | e ~ '<' }}", "&lt;b&gt;<"),
        ("{{ ['<', '&' | safe] | join('>') }}", "<>&"),
        ("{{ '<p>a  <b>b</b></p> &amp; <!-- c -->' | striptags }}", "a b &"),
        (
            "{{ {'id': 'a', 'data-x': none, 'n': 1} | xmlattr }}",
            r#" id="a" n="1""#,
        ),
        ("{{ {'id': 'a'} | xmlattr(false) }}", r#"id="a""#),
        ("{{ 'a b/c?d=é&e' | urlencode }}", "a%20b/c%3Fd%3D%C3%A9%26e"),
        ("{{ {'a b': 1, 'c': 'x y'} | urlencode }}", "a+b=1&c=x+y"),
        ("{{ [('a', 1), ('b', 2)] | urlencode }}", "a=1&b=2"),
        (
            "{{ 'see https://example.org/x, or mail to me@example.org.' | urlize }}",
            r#"see <a href="https://example.org/x" rel="noopener">https://example.org/x</a>, or mail to <a href="mailto:me@example.org">me@example.org</a>."#,
        ),
        (
            "{{ 'https://example.org/path' | urlize(12, nofollow=true, target='_blank') }}",
            r#"<a href="https://example.org/path" rel="nofollow noopener" target="_blank">https://exam...</a>"#,
        ),
        ("{{ ('<i>' | safe) + '<i>' }}", "<i>&lt;i&gt;"),
        ("{{ ('<%s>' | safe) % '<' }}", "<&lt;>"),
        ("{{ 'x' is escaped, ('x' | e) is escaped }}", "(False, True)"),
    ]);
}

#[test]
fn list_filters_match_jinja() {
    check(&[
        ("{{ tags | sort }}", "['a', 'b', 'C']"),
        ("{{ tags | sort(case_sensitive=true) }}", "['C', 'a', 'b']"),
        ("{{ tags | sort(reverse=true) }}", "['C', 'b', 'a']"),
        (
            "{{ pods | sort(attribute='cpu') | map(attribute='name') | join(' ') }}",
            "p3 p1 p2",
        ),
        (
            "{{ pods | sort(attribute='node,name') | map(attribute='name') | list }}",
            "['p2', 'p3', 'p1']",
        ),
        ("{{ [3, 1, 2] | max, [3, 1, 2] | min }}", "(3, 1)"),
        ("{{ tags | max, tags | min(case_sensitive=true) }}", "('C', 'C')"),
        (
            "{{ pods | max(attribute='cpu') }}",
            "{'name': 'p2', 'node': 'n1', 'cpu': 2}",
        ),
        ("{{ [1, 2, 3] | sum }}", "6"),
        ("{{ pods | sum(attribute='cpu') }}", "3.5"),
        ("{{ [[1], [2]] | sum(start=[]) }}", "[1, 2]"),
        ("{{ ['a', 'A', 'b', 'a'] | unique | list }}", "['a', 'b']"),
        ("{{ ['a', 'A'] | unique(true) | list }}", "['a', 'A']"),
        (
            "{{ pods | unique(attribute='node') | map(attribute='name') | list }}",
            "['p2', 'p1']",
        ),
        ("{{ [1, 2, 3, 4, 5] | batch(2) | list }}", "[[1, 2], [3, 4], [5]]"),
        ("{{ [1, 2, 3] | batch(2, 0) | list }}", "[[1, 2], [3, 0]]"),
        ("{{ [1, 2, 3, 4, 5] | slice(3) | list }}", "[[1, 2], [3, 4], [5]]"),
        (
            "{{ [1, 2, 3, 4, 5] | slice(3, 'x') | list }}",
            "[[1, 2], [3, 4], [5, 'x']]",
        ),
        (
            "{{ pods | groupby('node') | list }}",
            "[('n1', [{'name': 'p2', 'node': 'n1', 'cpu': 2}, {'name': 'p3', 'node': 'n1', 'cpu': 0.5}]), ('n2', [{'name': 'p1', 'node': 'n2', 'cpu': 1}])]",
        ),
        (
            "{{ pods | groupby('node') | map(attribute='grouper') | join(',') }}",
            "n1,n2",
        ),
        (
            "{{ pods | groupby('zone', default='none') | map('first') | list }}",
            "['none']",
        ),
        ("{{ [1, [2, 'x'], none] | join('/') }}", "1/[2, 'x']/None"),
        ("{{ pods | join(',', attribute='name') }}", "p2,p1,p3"),
        (
            "{{ tags | first, tags | last, tags | length, tags | count }}",
            "('b', 'C', 3, 3)",
        ),
        ("{{ [] | first is undefined }}", "True"),
        (
            "{{ (1, 2) | list, 'ab' | list, {'k': 1} | list }}",
            "([1, 2], ['a', 'b'], ['k'])",
        ),
        ("{{ [1, 2] | reverse | list }}", "[2, 1]"),
        ("{{ {'b': 1, 'a': 2} | dictsort }}", "[('a', 2), ('b', 1)]"),
        ("{{ {'b': 1, 'A': 2} | dictsort(true) }}", "[('A', 2), ('b', 1)]"),
        (
            "{{ {'b': 1, 'a': 2} | dictsort(by='value') }}",
            "[('b', 1), ('a', 2)]",
        ),
        (
            "{{ {'b': 1, 'a': 2} | dictsort(reverse=true) }}",
            "[('b', 1), ('a', 2)]",
        ),
        ("{{ {'a': 1} | items | list }}", "[('a', 1)]"),
    ]);
}

#[test]
fn applying_filters_match_jinja() {
    check(&[
        ("{{ tags | map('upper') | list }}", "['B', 'A', 'C']"),
        ("{{ pods | map(attribute='name') | list }}", "['p2', 'p1', 'p3']"),
        (
            "{{ pods | map(attribute='zone', default='-') | list }}",
            "['-', '-', '-']",
        ),
        ("{{ [[1, 2], [3]] | map('join', '+') | list }}", "['1+2', '3']"),
        ("{{ [[1, 2], [3]] | map(attribute=0) | list }}", "[1, 3]"),
        ("{{ [0, 1, '', 'x', none] | select | list }}", "[1, 'x']"),
        ("{{ [1, 2, 3] | select('odd') | list }}", "[1, 3]"),
        ("{{ [1, 2, 3] | reject('divisibleby', 3) | list }}", "[1, 2]"),
        ("{{ [0, 1] | reject | list }}", "[0]"),
        (
            "{{ pods | selectattr('cpu', 'gt', 1) | map(attribute='name') | list }}",
            "['p2']",
        ),
        (
            "{{ pods | rejectattr('node', '==', 'n1') | map(attribute='name') | list }}",
            "['p1']",
        ),
        (
            "{{ pods | selectattr('zone') | list if false else 'lazy' }}",
            "lazy",
        ),
        (
            "{{ [app] | selectattr('env.LOG', 'eq', 'debug') | list | length }}",
            "1",
        ),
        ("{{ ['1', '2'] | map('int') | sum }}", "3"),
        ("{{ [1, none, 2] | select('number') | list }}", "[1, 2]"),
    ]);
}

#[test]
fn number_filters_match_jinja() {
    check(&[
        ("{{ -5 | abs, -2.5 | abs, true | abs }}", "(5, 2.5, 1)"),
        (
            "{{ '42' | int, '0x1A' | int(base=16), '0b11' | int(0, 2), '1_000' | int }}",
            "(42, 26, 3, 1000)",
        ),
        (
            "{{ 'x' | int, 'x' | int(7), none | int, '3.9' | int, -3.9 | int }}",
            "(0, 7, 0, 3, -3)",
        ),
        ("{{ '12' | int(base=3) }}", "5"),
        (
            "{{ '1.5' | float, 'x' | float, 'x' | float(2.0), 3 | float, '1e3' | float }}",
            "(1.5, 0.0, 2.0, 3.0, 1000.0)",
        ),
        (
            "{{ 2.5 | round, 3.5 | round, -2.5 | round, 2.567 | round(2), 1234 | round(-2), 1250 | round(-2) }}",
            "(2.0, 4.0, -2.0, 2.57, 1200, 1200)",
        ),
        (
            "{{ 2.1 | round(0, 'ceil'), 2.9 | round(method='floor'), 2.341 | round(2, 'ceil'), -2.5 | round(0, 'floor') }}",
            "(3.0, 2.0, 2.35, -3.0)",
        ),
        ("{{ 42 | round(1), 42.0 | round }}", "(42, 42.0)"),
        (
            "{{ 0 | filesizeformat, 1 | filesizeformat, 999 | filesizeformat, 1000 | filesizeformat, 123456789 | filesizeformat }}",
            "('0 Bytes', '1 Byte', '999 Bytes', '1.0 kB', '123.5 MB')",
        ),
        (
            "{{ 1024 | filesizeformat(true), 123456789 | filesizeformat(binary=true), '2048' | filesizeformat }}",
            "('1.0 KiB', '117.7 MiB', '2.0 kB')",
        ),
    ]);
}

#[test]
fn encoding_filters_match_jinja() {
    check(&[
        (
            "{{ app | tojson }}",
            r#"{"env": {"LOG": "debug"}, "name": "shop", "replicas": 3}"#,
        ),
        (
            r#"{{ {'a': '<&\'>'} | tojson }}"#,
            r#"{"a": "\u003c\u0026\u0027\u003e"}"#,
        ),
        ("{{ [1, 2] | tojson(2) }}", "[\n  1,\n  2\n]"),
        (
            "{{ {'b': 1, 'a': [true, none, 1.5]} | to_json }}",
            r#"{"b": 1, "a": [true, null, 1.5]}"#,
        ),
        (r#"{{ 'é"' | to_json }}"#, r#""\u00e9\"""#),
        ("{{ 1e22 | to_json, 1e400 | to_json }}", "('1e+22', 'Infinity')"),
        (
            "{{ 'häh' | b64encode, 'aMOkaA==' | b64decode, 'a' | b64encode }}",
            "('aMOkaA==', 'häh', 'YQ==')",
        ),
        (
            "{{ '' | sha256 | length, 'x' | sha256(8), 'x' | sha256(0), 'x' | sha256(-60) }}",
            "(64, '2d711642', '', '2d71')",
        ),
        (
            "{{ {'b': [1, {'c': none}], 'a': 'x'} | pprint }}",
            "{'a': 'x', 'b': [1, {'c': None}]}",
        ),
        (
            "{{ ('word ' * 30).split() | pprint }}",
            "['word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word',\n 'word']",
        ),
        (
            "{{ none | default('d'), none | default('d', true), nope | default('d'), app.nope | default(1), '' | d('x', true) }}",
            "(None, 'd', 'd', 1, 'x')",
        ),
        (
            "{{ app | attr('items') is defined, app | attr('name') is defined }}",
            "(True, False)",
        ),
    ]);
}

#[test]
fn wordwrap_breaks_at_spaces_of_ascii_and_between_letters() {
    check(&[
        (
            r#"{{ "a\u00a0b c\u00a0d e" | wordwrap(5) }}"#,
            "a\u{a0}b\nc\u{a0}d e",
        ),
        (r#"{{ "a \u00a0 b" | wordwrap(2) }}"#, "a\n b"),
        (r#"{{ "a\u2003b c" | wordwrap(3) }}"#, "a\u{2003}b\nc"),
        (
            r#"{{ "well-known a-b x-ray foo--bar" | wordwrap(6) }}"#,
            "well-\nknown\na-b\nx-ray\nfoo--\nbar",
        ),
        (r#"{{ "aa-bb-cc" | wordwrap(4) }}"#, "aa-\nbb-\ncc"),
        (r#"{{ "x1-2yz ab-cd1" | wordwrap(5) }}"#, "x1-\n2yz\nab-\ncd1"),
        (r#"{{ "a--b -- c" | wordwrap(3) }}"#, "a--\nb\n--\nc"),
        (
            r#"{{ "--option-name value" | wordwrap(8) }}"#,
            "--option\n-name\nvalue",
        ),
        (r#"{{ "one\ttwo" | wordwrap(4) }}"#, "one\ntwo"),
        (r#"{{ "wait...--stop" | wordwrap(8) }}"#, "wait...\n--stop"),
    ]);
}

#[test]
fn slugify_keeps_words_apart() {
    check(&[
        (r#"{{ "é\nb" | slugify }}"#, "e-b"),
        (r#"{{ "é\tb" | slugify }}"#, "e-b"),
        (r#"{{ "ü\u0001x" | slugify }}"#, "u-x"),
        (r#"{{ "é\u2028b" | slugify }}"#, "e-b"),
        (r#"{{ "a\u00a0é\u0085b" | slugify }}"#, "a-eb"),
        (r#"{{ "é\nb" | slugify(allow_unicode=true) }}"#, "é-b"),
        (r#"{{ "é~b`c^" | slugify }}"#, "e-b-c"),
    ]);
}

#[test]
fn slugify_drops_emojis() {
    check(&[(r#"{{ "🎉 party ☃ a😀b ü" | slugify }}"#, "party-ab-u")]);
}

#[test]
fn strings_name_characters() {
    check(&[
        (r#"{{ "\N{BULLET}" }}"#, "•"),
        (r#"{{ '\N{bullet} \N{LATIN SMALL LETTER E WITH ACUTE}' }}"#, "• é"),
        (r#"{{ "\\N{BULLET}" }}"#, r"\N{BULLET}"),
        (
            r#"{{ "\N{HANGUL SYLLABLE GAG}\N{CJK UNIFIED IDEOGRAPH-4E00}" }}"#,
            "각一",
        ),
    ]);
}

#[test]
fn from_yaml_reads_as_pyyaml_does() {
    check(&[
        (r#"{{ "a: |\n  \tx\n  y\n" | from_yaml }}"#, r"{'a': '\tx\ny\n'}"),
        (r#"{{ "a: >\n  \tx\n  y\n" | from_yaml }}"#, r"{'a': '\tx\ny\n'}"),
        (r#"{{ "a: |-\n\n  \tx" | from_yaml }}"#, r"{'a': '\n\tx'}"),
        (r#"{{ "- |\n \tx\n" | from_yaml }}"#, r"['\tx\n']"),
        (r#"{{ "a: |2\n  \tx\n" | from_yaml }}"#, r"{'a': '\tx\n'}"),
        (r#"{{ "|\n \tx\n \t\n" | from_yaml | length }}"#, "5"),
        (r#"{{ "! '1'" | from_yaml + 1 }}"#, "2"),
        (
            r#"{{ "[a:[b], {c:}]" | from_yaml }}"#,
            "[{'a': ['b']}, {'c': None}]",
        ),
    ]);
}
