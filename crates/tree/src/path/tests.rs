use super::*;

#[test]
fn paths_are_normalised_below_the_root() {
    for (text, expected) in [
        ("", ""),
        (".", ""),
        ("a", "a"),
        ("a/b", "a/b"),
        ("./a//b/./c/", "a/b/c"),
        ("a/../b", "b"),
        ("a/b/..", "a"),
        ("a/..", ""),
        ("...", "..."),
        ("a b/ü", "a b/ü"),
    ] {
        assert_eq!(TreePath::parse(text).unwrap().as_str(), expected, "{text:?}");
    }
}

#[test]
fn paths_out_of_the_root_are_refused() {
    for text in ["..", "a/../..", "../a", "a/../../b", "./.."] {
        assert_eq!(TreePath::parse(text), Err(PathError::Escapes(text.to_owned())));
    }
    assert_eq!(TreePath::parse("/a"), Err(PathError::Absolute("/a".to_owned())));
    assert_eq!(TreePath::parse("a\0b"), Err(PathError::Nul("a\0b".to_owned())));
    let dir = TreePath::parse("a/b").unwrap();
    assert_eq!(dir.join("../../c").unwrap().as_str(), "c");
    assert!(dir.join("../../../c").is_err());
    assert!(dir.join("/c").is_err());
}

#[test]
fn path_accessors_return_its_parts() {
    let path = TreePath::parse("a/b/c.yaml").unwrap();
    assert_eq!(path.name(), "c.yaml");
    assert_eq!(path.parent().unwrap().as_str(), "a/b");
    assert_eq!(TreePath::parse("a").unwrap().parent(), Some(TreePath::root()));
    assert_eq!(TreePath::root().parent(), None);
    assert_eq!(path.components().collect::<Vec<_>>(), ["a", "b", "c.yaml"]);
    assert_eq!(path.strip(&TreePath::parse("a").unwrap()), Some("b/c.yaml"));
    assert_eq!(path.strip(&TreePath::parse("a/b/c").unwrap()), None);
    assert_eq!(path.strip(&path), Some(""));
    assert_eq!(path.strip(&TreePath::root()), Some("a/b/c.yaml"));
    assert_eq!(TreePath::root().child("x").child("y").as_str(), "x/y");
    assert_eq!(TreePath::root().to_string(), ".");
}
