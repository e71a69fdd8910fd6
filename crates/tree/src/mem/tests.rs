use super::*;

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn names(tree: &dyn Tree, dir: &str) -> Vec<String> {
    tree.list(&path(dir))
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect()
}

#[test]
fn mem_derives_directories_from_files() {
    let mut mem = Mem::from_files([("a/b/c", "1"), ("a/b.x", "2"), ("a/b-c/d", "3"), ("z", "4")]).unwrap();
    mem.insert(path("run.sh"), "#!", true);
    assert_eq!(names(&mem, ""), ["a", "run.sh", "z"]);
    assert_eq!(names(&mem, "a"), ["b", "b-c", "b.x"]);
    assert_eq!(names(&mem, "a/b"), ["c"]);
    assert_eq!(
        mem.kind(&path("run.sh")).unwrap(),
        Some(NodeKind::File {
            executable: true,
            len: 2
        })
    );
    assert_eq!(mem.kind(&path("a/b")).unwrap(), Some(NodeKind::Dir));
    assert_eq!(mem.kind(&path("a/b/x")).unwrap(), None);
    assert_eq!(&mem.read(&path("a/b/c")).unwrap()[..], b"1");
}

#[test]
fn mem_keeps_directories_that_were_added() {
    let mut mem = Mem::from_files([("a/b", "1"), ("a-b", "2"), ("f", "3")]).unwrap();
    for dir in ["a", "e/f", "f", ""] {
        mem.insert_dir(path(dir));
    }
    let listed = mem.list(&TreePath::root()).unwrap();
    let found: Vec<_> = listed
        .iter()
        .map(|entry| (entry.name.as_str(), entry.is_dir))
        .collect();
    assert_eq!(found, [("a", true), ("a-b", false), ("e", true), ("f", false)]);
    assert_eq!(names(&mem, "a"), ["b"]);
    assert!(names(&mem, "e/f").is_empty());
    assert_eq!(mem.kind(&path("e/f")).unwrap(), Some(NodeKind::Dir));
    assert!(matches!(mem.read(&path("e/f")), Err(TreeError::NotAFile(_))));
    assert_eq!(
        &mem.read(&path("f")).unwrap()[..],
        b"3",
        "a directory replaces no file"
    );
}

#[test]
fn mem_fails_for_missing_paths() {
    let mem = Mem::from_files([("a/b", "1")]).unwrap();
    assert!(matches!(mem.read(&path("a")), Err(TreeError::NotAFile(_))));
    assert!(matches!(mem.read(&path("b")), Err(TreeError::NotFound(_))));
    assert!(matches!(mem.list(&path("a/b")), Err(TreeError::NotADirectory(_))));
    assert!(matches!(mem.list(&path("b")), Err(TreeError::NotFound(_))));
    let empty = Mem::new();
    assert!(names(&empty, "").is_empty(), "the root always exists");
    assert!(matches!(
        empty.read(&TreePath::root()),
        Err(TreeError::NotAFile(_))
    ));
    assert!(Mem::from_files([("../x", "")]).is_err());
}
