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
        ("a-b*", *field("a-b*")),
    ] {
        assert_eq!(parse(text), Ok(expected), "{text}");
    }
    for text in ["", "a.", "a..", "a[", "a['b", "a.b c", "a]", "a[?", "a..["] {
        assert!(parse(text).is_err(), "{text}");
    }
    assert!(parse(&"(".repeat(5000)).is_err());
    assert!(parse(&"a.".repeat(5000)).is_err());
}
