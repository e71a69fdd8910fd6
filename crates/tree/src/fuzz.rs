//! Random paths, ignore rules and directories of links.

use std::os::unix::fs::symlink;

use testkit::fuzz::{self, Random};

use crate::{Budget, Disk, Limits, NodeKind, Tree, TreeError, TreePath, ignore::Rules};

const PARTS: &[&str] = &["a", "b", "/", "..", ".", "/../", "//", "\\", "c.d", "é"];

fn raw_path(random: &mut Random) -> String {
    random.text(PARTS, 0..9)
}

fn path(random: &mut Random) -> TreePath {
    let parts = random.list(0..6, |random| {
        random.pick(&["a", "b", "ab", "c.d", "é", "[a]"]).to_string()
    });
    TreePath::parse(&parts.join("/")).unwrap()
}

#[test]
fn fuzz_paths_stay_below_the_root() {
    fuzz::run("paths", |random| {
        let (base, text) = (path(random), raw_path(random));
        random.note("base, text", &(&base, &text));
        let Ok(joined) = base.join(&text) else { return };
        let parts: Vec<&str> = joined.components().collect();
        assert!(
            parts
                .iter()
                .all(|part| !matches!(*part, "" | "." | "..") && !part.contains('/'))
        );
        assert!(!joined.as_str().starts_with('/') && !joined.as_str().contains('\0'));
        assert_eq!(TreePath::parse(joined.as_str()).as_ref(), Ok(&joined));
        let parent = joined.parent();
        assert_eq!(parent.is_none(), joined.is_root());
        if let Some(parent) = parent {
            assert_eq!(parent.child(joined.name()), joined);
            assert_eq!(joined.strip(&parent), Some(joined.name()));
        }
    });
}

const PATTERNS: &[&str] = &[
    "a", "b", "ab", "*", "?", "**", "/", "!", "#", "\\", "[", "]", "[a-c]", "[^a]", "[]a]", "-", " ", "\\ ",
    ".", "c.d", "**/", "/**", "a*", "*a*", "é", "\n", "\r\n", "\t",
];

#[test]
fn fuzz_ignore_rules_answer() {
    fuzz::run("ignore rules", |random| {
        let files = random.list(1..4, |random| (path(random), random.text(PATTERNS, 0..24)));
        let (asked, is_dir) = (path(random), random.flag());
        random.note("files, path, is_dir", &(&files, &asked, is_dir));
        let mut rules = Rules::new();
        for (domain, text) in &files {
            rules.add_file(domain, text);
        }
        let budget = Budget::default();
        let is_ignored = |rules: &Rules| rules.is_ignored(&asked, is_dir, &budget).unwrap();
        let ignored = is_ignored(&rules);
        assert!(!(ignored && rules.is_empty()));
        // Rules apply to their own directory alone, and the last match counts.
        let inside = |(domain, _): &(TreePath, String)| asked.strip(domain).is_some();
        assert!(!ignored || files.iter().any(inside));
        let Some(first) = asked.components().next().map(str::to_owned) else {
            return;
        };
        if first.contains('[') {
            return;
        }
        rules.add(&TreePath::root(), &format!("/{first}"));
        assert!(is_ignored(&rules), "the last rule names it");
        rules.add(&TreePath::root(), &format!("!/{first}"));
        assert!(!is_ignored(&rules), "the last rule takes it back");
    });
}

#[test]
fn fuzz_long_ignore_rules_take_no_time() {
    fuzz::run("long ignore rules", |random| {
        let star = *random.pick(&["*", "*a", "a*", "?*", "[a-b]*", "**/", "**/a/", "a/**/"]);
        let (times, length) = (random.below(2000), random.below(2000));
        let (separator, end) = (*random.pick(&["a", "a/", "b"]), *random.pick(&["", "c", "/c"]));
        random.note("pattern, times, name, length", &(star, times, separator, length));
        let mut rules = Rules::new();
        rules.add(&TreePath::root(), &format!("{}{end}", star.repeat(times)));
        let path = TreePath::parse(&separator.repeat(length)).unwrap();
        let started = std::time::Instant::now();
        let _ = rules.is_ignored(&path, false, &Budget::default());
        // Steps are at most the product of both lengths; the bound allows for a busy machine.
        assert!(started.elapsed().as_secs() < 5, "it took {:?}", started.elapsed());
    });
}

#[test]
fn fuzz_links_on_disk_stay_inside() {
    fuzz::run("links on disk", |random| {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(outer.path().join("out")).unwrap();
        for inside in ["f", "a/f", "a/b/f"] {
            std::fs::write(root.join(inside), "inside").unwrap();
        }
        for outside in ["f", "out/f"] {
            std::fs::write(outer.path().join(outside), "outside").unwrap();
        }
        const NAMES: &[&str] = &["l", "m", "a/l", "a/m", "a/b/l"];
        const TARGETS: &[&str] = &[
            "..",
            "/",
            "a",
            "f",
            "l",
            "m",
            "b",
            "out",
            "../",
            "a/b/",
            "../../out/f",
            ".",
            "root",
        ];
        let links = random.list(0..5, |random| (*random.pick(NAMES), random.text(TARGETS, 1..5)));
        let asked = random
            .list(1..5, |random| *random.pick(&["a", "b", "l", "m", "f", "out"]))
            .join("/");
        random.note("links, path", &(&links, &asked));
        for (name, target) in &links {
            let target = match random.below(4) {
                0 => format!("{}/{target}", outer.path().display()),
                _ => target.clone(),
            };
            let _ = symlink(target, root.join(name));
        }
        let disk = Disk::open(&root, &Limits::default()).unwrap();
        let path = TreePath::parse(&asked).unwrap();
        match disk.read(&path) {
            Ok(bytes) => assert_eq!(&bytes[..], b"inside", "{path}"),
            Err(TreeError::Open { .. }) => panic!("{path}: the root is open"),
            Err(_) => {}
        }
        for entry in disk.list(&path).into_iter().flatten() {
            let child = path.child(&entry.name);
            match disk.kind(&child) {
                Ok(kind) => assert_eq!(kind == Some(NodeKind::Dir), entry.is_dir, "{child}"),
                Err(error) => panic!("{child} is listed, but {error}"),
            }
            if !entry.is_dir {
                assert_eq!(&disk.read(&child).unwrap()[..], b"inside");
            }
            let (place, itself) = (disk.resolve(&child).unwrap(), disk.resolve(&path).unwrap());
            let beside = itself.map(|dir| dir.child(&entry.name));
            assert_eq!(place != beside, entry.is_link, "{child}");
        }
    });
}
