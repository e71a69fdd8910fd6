use std::collections::{BTreeMap, BTreeSet};

use testkit::fuzz::{self, Random};

use super::*;
use crate::Mem;

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

fn overlay() -> Overlay {
    let base = Mem::from_files([("a/b", "base b"), ("a/c", "base c"), ("d", "base d")]).unwrap();
    Overlay::new(Arc::new(base))
}

#[test]
fn overlay_writes_hide_the_base_without_changing_it() {
    let base: Arc<dyn Tree> = Arc::new(Mem::from_files([("a/b", "old")]).unwrap());
    let overlay = Overlay::new(Arc::clone(&base));
    overlay.write(path("a/b"), "new").unwrap();
    overlay.write_mode(path("a/x/y"), "more", true).unwrap();
    assert_eq!(&overlay.read(&path("a/b")).unwrap()[..], b"new");
    assert_eq!(names(&overlay, "a"), ["b", "x"]);
    assert_eq!(overlay.kind(&path("a/x")).unwrap(), Some(NodeKind::Dir));
    assert_eq!(
        overlay.kind(&path("a/x/y")).unwrap(),
        Some(NodeKind::File {
            executable: true,
            len: 4
        })
    );
    assert_eq!(&base.read(&path("a/b")).unwrap()[..], b"old");
    assert!(!base.is_dir(&path("a/x")));
}

#[test]
fn overlay_removal_hides_a_directory_until_it_is_rewritten() {
    let overlay = overlay();
    overlay.write(path("a/new"), "1").unwrap();
    overlay.remove(path("a"));
    assert!(matches!(overlay.list(&path("a")), Err(TreeError::NotFound(_))));
    assert!(matches!(overlay.read(&path("a/b")), Err(TreeError::NotFound(_))));
    assert_eq!(names(&overlay, ""), ["d"]);
    overlay.write(path("a/z"), "2").unwrap();
    assert_eq!(names(&overlay, ""), ["a", "d"]);
    assert_eq!(names(&overlay, "a"), ["z"], "what was removed stays away");
}

#[test]
fn overlay_refuses_a_file_in_place_of_a_directory() {
    let overlay = overlay();
    assert!(matches!(
        overlay.write(path("a"), ""),
        Err(TreeError::NotAFile(_))
    ));
    assert!(matches!(
        overlay.write(path("d/x"), ""),
        Err(TreeError::NotADirectory(_))
    ));
    assert!(matches!(
        overlay.write(TreePath::root(), ""),
        Err(TreeError::NotAFile(_))
    ));
    overlay.remove(path("a"));
    overlay.write(path("a"), "now a file").unwrap();
    assert!(matches!(
        overlay.list(&path("a")),
        Err(TreeError::NotADirectory(_))
    ));
    assert!(matches!(overlay.read(&path("a/b")), Err(TreeError::NotFound(_))));
}

#[test]
fn overlay_can_be_written_during_reads() {
    let overlay = overlay();
    let shared: &dyn Tree = &overlay;
    std::thread::scope(|scope| {
        scope.spawn(|| (0..200).for_each(|n| overlay.write(path(&format!("w/{n}")), "x").unwrap()));
        scope.spawn(|| (0..200).for_each(|_| assert_eq!(&shared.read(&path("d")).unwrap()[..], b"base d")));
    });
    assert_eq!(names(shared, "w").len(), 200);
}

#[derive(Debug, Clone)]
enum Action {
    Write(String, u8),
    Remove(String),
}

fn actions(random: &mut Random) -> Vec<Action> {
    random.list(0..12, |random| {
        let path = random.list(1..4, |random| *random.pick(&["a", "b"])).join("/");
        if random.one_in(4) {
            Action::Remove(path)
        } else {
            Action::Write(path, random.below(256) as u8)
        }
    })
}

/// Reads everything below the root, through [`Tree`] alone.
fn walk(tree: &dyn Tree, dir: &TreePath, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in tree.list(dir).unwrap() {
        let path = dir.child(&entry.name);
        assert_eq!(tree.is_dir(&path), entry.is_dir);
        if entry.is_dir {
            walk(tree, &path, found);
        } else {
            found.insert(path.to_string(), tree.read(&path).unwrap().to_vec());
        }
    }
}

/// A model of an overlay: the expected content of a directory.
#[derive(Debug, Default)]
struct Model {
    files: BTreeMap<String, Vec<u8>>,
    /// Directories of the base, which stay when they are emptied.
    dirs: BTreeSet<String>,
}

impl Model {
    fn write(&mut self, to: &str, content: u8) -> bool {
        let blocked =
            |other: &String| other.starts_with(&format!("{to}/")) || to.starts_with(&format!("{other}/"));
        let free = !self.dirs.contains(to) && !self.files.keys().any(blocked);
        if free {
            self.files.insert(to.to_owned(), vec![content]);
        }
        free
    }

    fn remove(&mut self, from: &str) {
        let stays = |other: &str| other != from && !other.starts_with(&format!("{from}/"));
        self.files.retain(|path, _| stays(path));
        self.dirs.retain(|path| stays(path));
    }
}

#[test]
fn fuzz_it_behaves_like_one_folder() {
    fuzz::run("overlay", |random| {
        let (base, later) = (actions(random), actions(random));
        random.note("base, later", &(&base, &later));
        let mut model = Model::default();
        let mut mem = Mem::new();
        for action in base {
            if let Action::Write(to, content) = action
                && model.write(&to, content)
            {
                mem.insert(path(&to), vec![content], false);
                let mut above = path(&to).parent();
                while let Some(dir) = above {
                    model.dirs.insert(dir.as_str().to_owned());
                    above = dir.parent();
                }
            }
        }
        let overlay = Overlay::new(Arc::new(mem));
        for action in later {
            match action {
                Action::Write(to, content) => {
                    let written = overlay.write(path(&to), vec![content]);
                    assert_eq!(written.is_ok(), model.write(&to, content));
                }
                Action::Remove(from) => {
                    overlay.remove(path(&from));
                    model.remove(&from);
                }
            }
        }
        let mut found = BTreeMap::new();
        walk(&overlay, &TreePath::root(), &mut found);
        assert_eq!(found, model.files);
    });
}
