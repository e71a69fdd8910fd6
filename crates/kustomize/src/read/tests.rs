use tree::Budget;

use super::*;
use crate::Options;

fn read(text: &str) -> Result<Vec<String>, String> {
    let budget = Budget::default();
    let run = Run::new(Options::default(), &budget);
    let file = Arc::new(TreePath::parse("m.yaml").unwrap());
    let read = resources(text.as_bytes(), &file, &run).map_err(|error| error.to_string())?;
    Ok(read
        .iter()
        .map(|resource| format!("{} {}", resource.id(), resource.line))
        .collect())
}

#[test]
fn documents_become_objects_with_the_line_of_their_start() {
    let text = "# first\napiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n---\n# none\n---\nkind: B\nmetadata:\n  name: b\n";
    assert_eq!(
        read(text).unwrap(),
        ["A.v1.[noGrp]/a.[noNs] 2", "B.[noVer].[noGrp]/b.[noNs] 9"]
    );
}

#[test]
fn documents_of_joined_files_are_read_like_files() {
    let object = |name: &str| format!("kind: A\nmetadata: {{name: {name}}}\n");
    let (a, b) = (object("a"), object("b"));
    let both = ["A.[noVer].[noGrp]/a.[noNs] 1", "A.[noVer].[noGrp]/b.[noNs] 4"];
    for separator in [
        "---\n\u{feff}",
        "---\r\n\u{feff}",
        "---#comment\n",
        "---\t# comment\n",
        "---\u{b}\n",
        "---\u{a0}\n",
        "--- # comment\n\u{feff}",
    ] {
        assert_eq!(
            read(&format!("{a}{separator}{b}")).unwrap(),
            both,
            "{separator:?}"
        );
    }
    assert_eq!(read(&format!("\u{feff}{a}---\n\u{feff}")).unwrap(), both[..1]);
    assert_eq!(read(&format!("{a}---\n\u{feff}---\n")).unwrap(), both[..1]);
    // The second of two lines of dashes begins a document, which may be in the same line.
    let text = format!("{a}---\n--- {{kind: A, metadata: {{name: b}}}}\n");
    assert_eq!(read(&text).unwrap(), both);
}

#[test]
fn byte_order_marks_elsewhere_are_content() {
    let text = "---\n\u{feff}kind: A\nmetadata: {name: a}\n";
    let error = read(text).unwrap_err();
    assert!(error.starts_with("m.yaml:2: missing kind"), "{error}");
    let text = "kind: A\nmetadata: {name: a}\n---\n\n\u{feff}kind: A\nmetadata: {name: b}\n";
    assert!(read(text).unwrap_err().contains("missing kind"));
}

#[test]
fn items_of_lists_come_last() {
    let text = "kind: AList\nitems:\n- {kind: A, metadata: {name: i1}}\n- null\n- {kind: List, items: [{kind: A, metadata: {name: i2}}]}\n---\nkind: A\nmetadata: {name: after}\n";
    let names: Vec<_> = read(text).unwrap();
    assert_eq!(
        names,
        [
            "A.[noVer].[noGrp]/after.[noNs] 7",
            "A.[noVer].[noGrp]/i1.[noNs] 3",
            "A.[noVer].[noGrp]/i2.[noNs] 5"
        ]
    );
    assert_eq!(read("kind: List\nitems: null\n").unwrap(), [""; 0]);
    assert_eq!(
        read("kind: AList\n").unwrap(),
        ["AList.[noVer].[noGrp]/[noName].[noNs] 1"]
    );
}

#[test]
fn invalid_objects_are_refused_with_their_position() {
    let cases = [
        ("a: 1\n", "m.yaml:1: missing Resource metadata"),
        ("- 1\n", "m.yaml:1: missing Resource metadata"),
        (
            "kind: A\n---\napiVersion: v1\nmetadata: {name: a, labels: {x: y}}\n",
            "m.yaml:1: missing metadata.name in object {{ A} {{ } map[] map[]}}",
        ),
        (
            "apiVersion: v1\nmetadata: {name: a, labels: {x: y, b: 1}}\n",
            "m.yaml:1: missing kind in object {{v1 } {{a } map[b:1 x:y] map[]}}",
        ),
        (
            "kind: AList\nitems: {}\n",
            "m.yaml:1: expected array in AList/items, but found map[string]interface {}",
        ),
        (
            "kind: A\n--- b\nkind: B\n",
            "m.yaml:2: invalid document separator: only a comment may follow ---",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text).unwrap_err(), expected, "{text}");
    }
    let broken = read("kind: [\n").unwrap_err();
    assert!(
        broken.starts_with("m.yaml:2: MalformedYAMLError: yaml: line "),
        "{broken}"
    );
    assert!(broken.ends_with("in File: m.yaml"), "{broken}");
}
