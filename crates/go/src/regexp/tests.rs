//! Tests of regular expressions.

use super::*;

#[test]
fn errors_are_those_of_go() {
    for (expression, expected) in [
        ("a**", "invalid nested repetition operator: `**`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(", "missing closing ): `(`"),
        (")", "unexpected ): `)`"),
        ("[a", "missing closing ]: `[a`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        (r"\q", r"invalid escape sequence: `\q`"),
        ("(?<>a)", "invalid named capture: `(?<>`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("*?", "missing argument to repetition operator: `*?`"),
        ("(?i)*", "missing argument to repetition operator: `*`"),
        ("(((a{100}){100}){100})", "invalid repeat count: `{100}`"),
        ("(?:a{2,}){501}", "invalid repeat count: `{501}`"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        (
            r"\p{Alphabetic}",
            r"invalid character class range: `\p{Alphabetic}`",
        ),
        (r"\p{Zyyy}", r"invalid character class range: `\p{Zyyy}`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"\x{+1}", r"invalid escape sequence: `\x{+`"),
        (r"\xZZ", r"invalid escape sequence: `\xZZ`"),
        ("(?P<é>a)", "invalid named capture: `(?P<é>`"),
        ("[[::alpha:]]", "invalid character class range: `[::alpha:]`"),
    ] {
        let error = Regexp::compile(expression).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), format!("error parsing regexp: {expected}"));
    }
    assert_eq!(
        Regexp::compile(r"\pL{1000}").map(|_| ()),
        Err(RegexpError::TooLarge)
    );
    let error = Regexp::compile("a`**").map(|_| ()).unwrap_err();
    assert_eq!(
        error.panic_message("a`**"),
        "regexp: Compile(\"a`**\"): error parsing regexp: invalid nested repetition operator: `**`"
    );
}

#[test]
fn expressions_have_the_meaning_of_go() {
    for (expression, text, expected) in [
        (r"\d", "٣", None),
        (r"\bé", "é", None),
        ("a{,2}", "a{,2}", Some(0..5)),
        ("[[a]", "[", Some(0..1)),
        ("[a&&b]", "&", Some(0..1)),
        (r"\Qa.b\E", "xa.b", Some(1..4)),
        ("(?i)É", "é", Some(0..2)),
        (r"\x{e9}", "é", Some(0..2)),
        ("a|ab", "ab", Some(0..1)),
        (r"^\B$", "", Some(0..0)),
        (r"é\B", "éb", None),
        (r"é\B", "éé", Some(0..2)),
        ("a*(?i)+B", "aab", Some(0..3)),
        (r"ab\Q\E*", "abb", Some(0..3)),
        ("(?ii-s:A)", "a", Some(0..1)),
        ("(?P<n>a)(?P<n>b)", "ab", Some(0..2)),
        (r"\x{D800}|a", "a", Some(0..1)),
        (r"[\x{D7FF}-\x{D801}]", "\u{d7ff}", Some(0..3)),
        (r"\p{Cs}|\p{lowercase letter}", "b", Some(0..1)),
        ("[[:]]", ":]", Some(0..2)),
        (r"(?:a{0}){1000}b", "b", Some(0..1)),
    ] {
        assert_eq!(
            Regexp::compile(expression).unwrap().find(text),
            expected,
            "{expression}"
        );
    }
}

#[test]
fn templates_expand_groups() {
    let expression = Regexp::compile(r"(?P<name>\w+)=(\w*)").unwrap();
    let found = expression.captures_iter("a=b").next().unwrap();
    let mut out = String::new();
    found.expand("$2 ${name}x $namex $$ $ ${2", &mut out);
    assert_eq!(out, "b ax  $ $ ${2");
    assert_eq!(found.range(), Some(0..3));
}

#[test]
fn quoted_strings_match_themselves() {
    let text = r"\.+*?()|[]{}^$ a";
    assert!(Regexp::compile(&quote_meta(text)).unwrap().is_match(text));
}

/// A search of a string that counts visits.
fn counted(expression: &str, text: &str) -> (Vec<Range<usize>>, u64, u64) {
    let expression = Regexp::compile_unicode(expression).unwrap();
    let (mut visits, mut most, mut found) = (0, 0, Vec::new());
    {
        let mut search = expression.search(text, |count| {
            visits += count;
            most = most.max(count);
            Ok::<_, Infallible>(())
        });
        while let Some(range) = search.next().unwrap() {
            found.push(range);
        }
    }
    (found, visits, most)
}

#[test]
fn searches_find_the_matches_of_crate_regex() {
    let pieces = [
        "a", "b", "é", ".", "[ab]", "[^a]", "(a|ab)", "(?:b|)", r"\b", "^", "$", "(?m:^)", "x{0,3}", "(a+?)",
        r"\w", "(b*)",
    ];
    let operators = ["", "", "*", "+?", "?", "|", "{2}"];
    let texts = ["", "a", "abab", "aéb", "xxabx\naab", "b é a", "ééabababé"];
    let mut random = 7_u64;
    let mut below = |limit: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % limit
    };
    for _ in 0..600 {
        let length = 1 + below(5);
        let parts = (0..length).map(|_| {
            format!(
                "{}{}",
                pieces[below(pieces.len())],
                operators[below(operators.len())]
            )
        });
        let expression: String = parts.collect();
        let Ok(theirs) = regex::Regex::new(&expression) else {
            continue;
        };
        let ours = Regexp::compile_unicode(&expression).unwrap();
        for text in texts {
            let groups = |found: regex::Captures<'_>| {
                let all = found
                    .iter()
                    .map(|group| group.map_or("", |group| group.as_str()).to_owned());
                (found.get(0).unwrap().range(), all.collect::<Vec<_>>())
            };
            let expected: Vec<_> = theirs.captures_iter(text).map(groups).collect();
            let found: Vec<_> = ours
                .captures_iter(text)
                .map(|found| {
                    let all = (0..theirs.captures_len()).map(|number| found.group(number).to_owned());
                    (found.range().unwrap(), all.collect::<Vec<_>>())
                })
                .collect();
            assert_eq!(found, expected, "{expression:?} in {text:?}");
            assert_eq!(
                ours.is_match(text),
                theirs.is_match(text),
                "{expression:?} in {text:?}"
            );
            let ranges: Vec<_> = expected.into_iter().map(|(range, _)| range).collect();
            assert_eq!(
                ours.find_iter(text).collect::<Vec<_>>(),
                ranges,
                "{expression:?} in {text:?}"
            );
        }
    }
}

#[test]
fn searches_count_their_work_and_are_interrupted() {
    let text = "a".repeat(4_000);
    let (found, visits, most) = counted("(a?){100}(a?){100}b$", &text);
    assert!(found.is_empty());
    assert!(visits > 4_000 * 200, "{visits}");
    assert!(most < 3 * 4096, "{most}");
    // Each match reads the whole rest.
    let (found, visits, _) = counted("a.*z|a", &text[..2_000]);
    assert_eq!(found.len(), 2_000);
    assert!(visits > 2_000 * 1_000, "{visits}");
    let expression = Regexp::compile("(a?){100}(a?){100}b$").unwrap();
    let mut left = 10;
    let ended = expression.search(&text, |_| {
        if left == 0 {
            Err("ended")
        } else {
            left -= 1;
            Ok(())
        }
    });
    assert_eq!(ended.is_match(), Err("ended"));
}

#[test]
fn strings_without_a_first_byte_are_skipped() {
    let text = format!("{}needle", " ".repeat(1_000_000));
    let (found, visits, most) = counted("ne+dle", &text);
    assert_eq!(found.first(), Some(&(1_000_000..1_000_006)));
    assert!(visits < 20_000, "{visits}");
    assert!(most <= 5_000, "{most}");
}

#[test]
fn translated_groups_capture_nothing() {
    for (expression, translated) in [
        ("()(a)", "(?:)(?:a)"),
        ("(?P<n>a)(?<1>b)(?P<n>c)", "(?:a)(?:b)(?:c)"),
        ("(?i:a)(b|(c))*", "(?i:a)(?:b|(?:c))*"),
    ] {
        assert_eq!(to_rust(expression).as_deref(), Ok(translated));
    }
}

#[test]
fn large_expressions_are_refused_before_they_take_memory() {
    for expression in [r"\pL".repeat(2_000), r"\PN".repeat(2_000), "a".repeat(100 << 10)] {
        assert_eq!(to_rust(&expression), Err(RegexpError::TooLarge));
        assert_eq!(
            Regexp::compile(&expression).map(|_| ()),
            Err(RegexpError::TooLarge)
        );
    }
    for expression in [
        r"\pL".repeat(2_000),
        "a".repeat(200 << 10),
        "(a)".repeat(5_000),
        r"(\w{100}){100}".to_owned(),
    ] {
        assert_eq!(
            Regexp::compile_unicode(&expression).unwrap_err(),
            RegexpError::TooLarge
        );
    }
    let size = Regexp::compile_unicode(r"\w{50}").unwrap().size();
    assert!((100_000..4 << 20).contains(&size), "{size}");
    assert!(
        Regexp::compile_unicode("a(")
            .unwrap_err()
            .to_string()
            .contains("unclosed group")
    );
}
