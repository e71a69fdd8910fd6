use std::{fs, os::unix::fs as unix};

use tempfile::TempDir;

use super::*;

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn folders() -> (TempDir, Disk) {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir_all(temp.path().join("outside/dir")).unwrap();
    fs::write(temp.path().join("outside/secret"), "secret").unwrap();
    let root = temp.path().join("root");
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/file"), "content").unwrap();
    fs::write(root.join("a/b/deep"), "deep").unwrap();
    let disk = Disk::open(&root, &Limits::default()).unwrap();
    (temp, disk)
}

fn link(temp: &TempDir, target: &str, at: &str) {
    unix::symlink(target, temp.path().join("root").join(at)).unwrap();
}

#[test]
fn disk_lists_files_and_directories() {
    let (temp, disk) = folders();
    let script = temp.path().join("root/run");
    fs::write(&script, "#!").unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(&disk.read(&path("a/file")).unwrap()[..], b"content");
    assert_eq!(disk.kind(&TreePath::root()).unwrap(), Some(NodeKind::Dir));
    assert_eq!(
        disk.kind(&path("run")).unwrap(),
        Some(NodeKind::File {
            executable: true,
            len: 2
        })
    );
    let entries = disk.list(&path("a")).unwrap();
    assert_eq!(
        entries,
        [
            Entry {
                name: "b".to_owned(),
                is_dir: true,
                is_link: false,
            },
            Entry {
                name: "file".to_owned(),
                is_dir: false,
                is_link: false,
            },
        ]
    );
    assert!(matches!(disk.read(&path("a")), Err(TreeError::NotAFile(_))));
    assert!(matches!(disk.read(&path("none")), Err(TreeError::NotFound(_))));
    assert!(matches!(
        disk.list(&path("a/file")),
        Err(TreeError::NotADirectory(_))
    ));
    assert_eq!(
        disk.kind(&path("a/file/x")).unwrap(),
        None,
        "below a file nothing can be"
    );
    assert_eq!(
        disk.kind(&path(&"x".repeat(300))).unwrap(),
        None,
        "no name is that long"
    );
    assert!(matches!(
        Disk::open(temp.path().join("none"), &Limits::default()),
        Err(TreeError::Open { .. })
    ));
}

#[test]
fn disk_follows_links_inside_the_root() {
    let (temp, disk) = folders();
    link(&temp, "a/file", "to-file");
    link(&temp, "a", "to-dir");
    link(&temp, "../a/file", "a/up-and-down");
    link(&temp, "to-dir/b", "chain");
    assert_eq!(&disk.read(&path("to-file")).unwrap()[..], b"content");
    assert_eq!(&disk.read(&path("to-dir/b/deep")).unwrap()[..], b"deep");
    assert_eq!(&disk.read(&path("a/up-and-down")).unwrap()[..], b"content");
    assert_eq!(&disk.read(&path("chain/deep")).unwrap()[..], b"deep");
    assert_eq!(disk.kind(&path("to-dir")).unwrap(), Some(NodeKind::Dir));
    assert_eq!(disk.list(&path("chain")).unwrap().len(), 1);
}

#[test]
fn disk_refuses_links_that_leave_the_root() {
    let (temp, disk) = folders();
    let absolute = temp.path().join("outside/secret").display().to_string();
    for (target, at) in [
        ("../outside/secret", "relative"),
        (absolute.as_str(), "absolute"),
        ("/etc/passwd", "system"),
        ("../../outside/secret", "a/two-up"),
        ("relative", "chain"),
        ("../root/a/file", "out-and-back"),
        ("..", "parent"),
        ("/proc/self/root", "proc"),
    ] {
        link(&temp, target, at);
        let at = path(at);
        let refused = disk.read(&at).unwrap_err();
        assert!(matches!(refused, TreeError::Escapes(_)), "{at}: {refused}");
        assert!(matches!(disk.kind(&at), Err(TreeError::Escapes(_))), "{at}");
        assert!(!disk.is_file(&at) && !disk.is_dir(&at), "{at}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
    assert!(matches!(
        disk.read(&path("parent/outside/secret")),
        Err(TreeError::Escapes(_))
    ));
    assert!(matches!(disk.list(&path("parent")), Err(TreeError::Escapes(_))));
    let names: Vec<_> = disk
        .list(&TreePath::root())
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["a"], "links out of the root are not listed");
}

#[test]
fn disk_hides_dangling_links_and_loops() {
    let (temp, disk) = folders();
    link(&temp, "nowhere", "dangling");
    link(&temp, "loop", "loop");
    assert_eq!(disk.kind(&path("dangling")).unwrap(), None);
    assert!(matches!(
        disk.read(&path("dangling")),
        Err(TreeError::NotFound(_))
    ));
    assert!(disk.read(&path("loop")).is_err());
    assert_eq!(disk.left_out(), []);
    assert_eq!(disk.list(&TreePath::root()).unwrap().len(), 1);
    assert_eq!(disk.left_out(), [path("dangling"), path("loop")]);
}

#[test]
fn disk_refuses_a_link_that_was_replaced_after_opening() {
    let (temp, disk) = folders();
    fs::rename(temp.path().join("root/a"), temp.path().join("root/was-a")).unwrap();
    link(&temp, "../outside", "a");
    assert!(matches!(disk.read(&path("a/secret")), Err(TreeError::Escapes(_))));
    // The root was opened, not named: its path doesn't matter any more.
    fs::rename(temp.path().join("root"), temp.path().join("moved")).unwrap();
    assert_eq!(&disk.read(&path("was-a/file")).unwrap()[..], b"content");
}

#[test]
fn disk_hides_sockets_and_pipes_without_blocking() {
    let (temp, disk) = folders();
    let _socket = std::os::unix::net::UnixListener::bind(temp.path().join("root/socket")).unwrap();
    assert_eq!(disk.kind(&path("socket")).unwrap(), None);
    assert!(matches!(disk.read(&path("socket")), Err(TreeError::NotAFile(_))));
    assert_eq!(disk.list(&TreePath::root()).unwrap().len(), 1);
}

#[test]
fn disk_refuses_files_over_the_limit() {
    let (temp, _) = folders();
    let limits = Limits {
        file_bytes: 7,
        ..Limits::default()
    };
    let disk = Disk::open(temp.path().join("root"), &limits).unwrap();
    assert_eq!(disk.read(&path("a/file")).unwrap().len(), 7);
    fs::write(temp.path().join("root/a/file"), "too long").unwrap();
    assert_eq!(
        disk.read(&path("a/file")).unwrap_err().to_string(),
        "a/file: file of 8 bytes is larger than the limit of 7 bytes"
    );
}

#[test]
fn disk_resolves_links_inside_the_root() {
    let (temp, disk) = folders();
    link(&temp, "a/b", "linked");
    link(&temp, "../outside", "out");
    let resolved = |text: &str| Ok(disk.resolve(&path(text))?.map(|found| found.to_string()));
    assert_eq!(resolved("linked/deep").unwrap().as_deref(), Some("a/b/deep"));
    assert_eq!(resolved(".").unwrap().as_deref(), Some("."));
    assert_eq!(resolved("a/b/deep").unwrap().as_deref(), Some("a/b/deep"));
    assert_eq!(resolved("none").unwrap(), None);
    let out: Result<_, TreeError> = resolved("out");
    assert!(matches!(out, Err(TreeError::Escapes(_))));
}
