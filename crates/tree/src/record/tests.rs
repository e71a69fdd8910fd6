use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use super::*;
use crate::{Disk, Limits, Mem};

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn disk(root: &Path) -> Disk {
    Disk::open(root, &Limits::default()).unwrap()
}

fn project(root: &Path) {
    for (name, content) in [
        ("app/a.yaml", "a"),
        ("app/sub/b.yaml", "b"),
        ("shared/c.yaml", "c"),
        ("other/d.yaml", "d"),
    ] {
        let file = root.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    std::os::unix::fs::symlink("../shared/c.yaml", root.join("app/link")).unwrap();
}

/// Reads existing and missing files, as a render does.
fn work(tree: &dyn Tree) {
    tree.list(&path("app")).unwrap();
    tree.read(&path("app/a.yaml")).unwrap();
    tree.read(&path("app/link")).unwrap();
    tree.resolve(&path("app/link")).unwrap();
    tree.read(&path("app/missing.yaml")).unwrap_err();
    tree.list(&path("app/a.yaml")).unwrap_err();
    tree.kind(&path("app/sub/b.yaml")).unwrap();
    assert!(!tree.is_dir(&path("charts")) && !tree.is_file(&path("app/.helmignore")));
    tree.left_out();
}

/// Returns true if a record holds after a change of the project.
fn holds_after(change: impl FnOnce(&Path)) -> bool {
    let dir = tempfile::tempdir().unwrap();
    project(dir.path());
    let recording = Recording::new(Arc::new(disk(dir.path())));
    work(&recording);
    work(&recording);
    let record = recording.take().unwrap();
    assert!(record.holds_on(&disk(dir.path()), || false));
    assert!(!record.holds_on(&disk(dir.path()), || true), "cancelled");
    change(dir.path());
    record.holds_on(&disk(dir.path()), || false)
}

type Change = fn(&Path);

#[test]
fn record_holds_if_only_other_files_change() {
    let changes: [(&str, Change); 5] = [
        ("nothing", |_| {}),
        ("a file elsewhere", |root| {
            fs::write(root.join("other/d.yaml"), "x").unwrap();
        }),
        ("a new file elsewhere", |root| {
            fs::write(root.join("shared/new.yaml"), "x").unwrap();
        }),
        ("a directory elsewhere", |root| {
            fs::remove_dir_all(root.join("other")).unwrap();
        }),
        ("content of a file that was only looked for", |root| {
            fs::write(root.join("app/sub/b.yaml"), "x").unwrap();
        }),
    ];
    for (what, change) in changes {
        assert!(holds_after(change), "{what}");
    }
}

#[test]
fn record_fails_if_an_answer_changes() {
    let changes: [(&str, Change); 11] = [
        ("content", |root| fs::write(root.join("app/a.yaml"), "x").unwrap()),
        ("content behind a link", |root| {
            fs::write(root.join("shared/c.yaml"), "x").unwrap();
        }),
        ("target of a link with the same content", |root| {
            fs::write(root.join("shared/d.yaml"), "c").unwrap();
            fs::remove_file(root.join("app/link")).unwrap();
            std::os::unix::fs::symlink("../shared/d.yaml", root.join("app/link")).unwrap();
        }),
        ("link that leaves the root", |root| {
            std::os::unix::fs::symlink("../..", root.join("app/out")).unwrap();
        }),
        ("missing file", |root| {
            fs::remove_file(root.join("app/a.yaml")).unwrap();
        }),
        ("file that was missing", |root| {
            fs::write(root.join("app/missing.yaml"), "").unwrap();
        }),
        ("file in a list", |root| {
            fs::write(root.join("app/z.yaml"), "").unwrap();
        }),
        ("directory that was missing", |root| {
            fs::create_dir(root.join("charts")).unwrap();
        }),
        ("directory in place of a file", |root| {
            fs::remove_file(root.join("app/a.yaml")).unwrap();
            fs::create_dir(root.join("app/a.yaml")).unwrap();
        }),
        ("length of a file", |root| {
            fs::write(root.join("app/sub/b.yaml"), "longer").unwrap();
        }),
        ("mode of a file", |root| {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(root.join("app/sub/b.yaml"), mode).unwrap();
        }),
    ];
    for (what, change) in changes {
        assert!(!holds_after(change), "{what}");
    }
}

/// Records have no order of their own, so one attempt proves little.
#[test]
fn record_knows_all_links_that_leave_the_root() {
    for _ in 0..50 {
        let leave = |root: &Path| std::os::unix::fs::symlink("../..", root.join("app/out")).unwrap();
        assert!(!holds_after(leave), "a new one");
        let dir = tempfile::tempdir().unwrap();
        project(dir.path());
        leave(dir.path());
        let recording = Recording::new(Arc::new(disk(dir.path())));
        assert_eq!(recording.left_out(), []);
        work(&recording);
        assert_eq!(recording.left_out(), [path("app/out")]);
        let record = recording.take().unwrap();
        assert!(record.holds_on(&disk(dir.path()), || false), "an old one");
    }
}

#[test]
fn large_records_are_dropped() {
    let recording = Recording::new(Arc::new(Mem::new()));
    for number in 0..MAX_CALLS {
        recording.is_file(&path(&number.to_string()));
    }
    recording.is_file(&path("0"));
    assert!(recording.take().is_some());
    for number in 0..=MAX_CALLS {
        recording.is_file(&path(&number.to_string()));
    }
    assert!(recording.take().is_none());
    let long = "x".repeat(MAX_PATH_BYTES / 16);
    for (most, kept) in [(15, true), (16, false)] {
        for number in 0..most {
            recording.is_file(&path(&format!("{number}{long}")));
        }
        assert_eq!(recording.take().is_some(), kept, "{most}");
    }
}

#[test]
fn tree_that_changes_while_it_is_read_has_no_record() {
    let dir = tempfile::tempdir().unwrap();
    project(dir.path());
    let recording = Recording::new(Arc::new(disk(dir.path())));
    work(&recording);
    fs::write(dir.path().join("app/a.yaml"), "x").unwrap();
    work(&recording);
    assert!(recording.take().is_none());
}
