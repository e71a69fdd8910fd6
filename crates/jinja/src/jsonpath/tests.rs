//! Valid and invalid paths.

use super::{Path, parse::parse};

#[test]
fn paths_are_read() {
    let field = |name: &str| Box::new(Path::Fields(vec![name.to_owned()]));
    for (text, expected) in [
        ("a", *field("a")),
        ("$", Path::Root),
        ("a.b", Path::Child(field("a"), field("b"))),
        ("a['b.c']", Path::Child(field("a"), field("b.c"))),
        (
            "a[-1]",
            Path::Child(field("a"), Box::new(Path::Indexes(vec![-1]))),
        ),
        (
            "a[1:2]",
            Path::Child(field("a"), Box::new(Path::Slice(Some(1), Some(2), None))),
        ),
        ("a..b", Path::Descendants(field("a"), field("b"))),
        ("a|b", Path::Union(field("a"), field("b"))),
        (
            "a.b|c.d",
            Path::Child(
                Box::new(Path::Child(
                    field("a"),
                    Box::new(Path::Union(field("b"), field("c"))),
                )),
                field("d"),
            ),
        ),
        ("a.80", Path::Child(field("a"), field("80"))),
        ("a-b*", *field("a-b*")),
    ] {
        assert_eq!(parse(text), Ok(expected), "{text}");
    }
    for text in [
        "", "a.", "a..", "a[", "a['b", "a.b c", "a]", "a[?", "a..[", "a +", "1.5", "+ 1", "a ** 2",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    assert!(parse(&"(".repeat(5000)).is_err());
    assert!(parse(&"a.".repeat(5000)).is_err());
}

#[test]
fn invalid_paths_are_located() {
    for (text, expected) in [
        ("m.`a`", "Unknown named operator `a` at 1:4"),
        ("m.a / 2", "Parse error at 1:4 near token / (SORT_DIRECTION)"),
        ("m.a -1", "Parse error at 1:4 near token -1 (NUMBER)"),
        ("ports.80 80", "Parse error at 1:9 near token 80 (NUMBER)"),
        ("ports.1.5", "Parse error near the end of string!"),
        ("m.true", "Parse error at 1:2 near token True (BOOL)"),
        ("m.~a", "Parse error at 1:2 near token ~ (~)"),
        ("..a", "Parse error at 1:0 near token .. (DOUBLEDOT)"),
        ("m[`len`]", "Parse error at 1:6 near token len (NAMED_OPERATOR)"),
        ("m.ä", "Error on line 1, col 2: Unexpected character: ä "),
        ("m.'a", "Unexpected EOF in string literal or identifier"),
        ("s.`sub()`", "sub() is not valid"),
        ("m.a == 1", "Parse error at 1:4 near token == (FILTER_OP)"),
    ] {
        assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
    }
}
