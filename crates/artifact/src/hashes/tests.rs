use std::sync::Arc;

use tree::{Mem, Recording, Tree};

use super::*;
use crate::{Algorithm, Error, pack, pack::Item};

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn text(files: &[(&str, &str)]) -> Vec<u8> {
    let items = files.iter().map(|(name, content)| {
        let kind = match (name.strip_suffix('/'), name.strip_prefix("x:")) {
            (Some(_), _) => PathKind::Dir,
            (_, executable) => PathKind::File {
                executable: executable.is_some(),
            },
        };
        let name = name.trim_end_matches('/').trim_start_matches("x:");
        Item {
            path: TreePath::root().child(name),
            kind,
            content: (*content).to_owned(),
        }
    });
    let rules = tree::ignore::Rules::new();
    let items = pack::plan(items.collect(), &rules, &tree::Budget::default())
        .unwrap()
        .items;
    let read = |item: &Item<String>, content: &mut Vec<u8>| {
        content.extend_from_slice(item.content.as_bytes());
        Ok::<_, Error>(())
    };
    let packed = pack::pack(&items, read, Algorithm::Sha256, 1 << 20, std::io::sink());
    packed.unwrap().hashes
}

fn hashes(files: &[(&str, &str)]) -> DirectoryHashes {
    DirectoryHashes::parse(&text(files)).unwrap()
}

const FILES: [(&str, &str); 6] = [
    ("a", "1"),
    ("deploy/.kluctl.yaml", "2"),
    ("deploy/app/b.yaml", "3"),
    ("deploy/app-2/c.yaml", "4"),
    ("empty/", ""),
    ("other/deep/er/d", "5"),
];

#[test]
fn each_directory_has_two_hashes_of_its_entries() {
    let text = String::from_utf8(text(&FILES)).unwrap();
    let paths: Vec<_> = text
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap())
        .collect();
    let dirs = [
        "deploy",
        "deploy/app",
        "deploy/app-2",
        "empty",
        "other",
        "other/deep",
        "other/deep/er",
    ];
    assert_eq!(paths, [&["0", "."][..], &dirs].concat());
    let entry =
        |letter: char, name: &str, hash: [u8; 32]| [format!("{letter}{name}\0").as_bytes(), &hash].concat();
    let sha256 = |bytes: &[u8]| -> [u8; 32] { Sha256::digest(bytes).into() };
    let app = sha256(&entry('f', "b.yaml", sha256(b"3")));
    let second = sha256(&entry('f', "c.yaml", sha256(b"4")));
    let deploy = [
        entry('f', ".kluctl.yaml", sha256(b"2")),
        entry('d', "app", app),
        entry('d', "app-2", second),
    ];
    let expected = hex::encode(sha256(&deploy.concat()));
    assert_eq!(hashes(&FILES).all(&path("deploy")), Some(expected));
    assert_eq!(hashes(&FILES).all(&path("missing")), None);
}

#[test]
fn hash_of_a_directory_changes_with_what_is_below_it_alone() {
    let before = hashes(&FILES);
    for (change, changed) in [
        (
            ("other/deep/er/d", "changed"),
            &["", "other", "other/deep", "other/deep/er"][..],
        ),
        (("a", "changed"), &[""]),
        (("x:deploy/app/b.yaml", "3"), &["", "deploy", "deploy/app"]),
        (("deploy/app/new", ""), &["", "deploy", "deploy/app"]),
        (("deploy/new/", ""), &["", "deploy"]),
    ] {
        let mut files = FILES.to_vec();
        files.retain(|(name, _)| *name != change.0.trim_start_matches("x:"));
        files.push(change);
        let after = hashes(&files);
        for dir in [
            "",
            "deploy",
            "deploy/app",
            "other",
            "other/deep",
            "other/deep/er",
            "empty",
        ] {
            let is_same = before.all(&path(dir)) == after.all(&path(dir));
            assert_eq!(is_same, !changed.contains(&dir), "{change:?} {dir}");
        }
    }
}

/// Reads like a render, also missing paths.
fn record(files: &[(&str, &str)]) -> Record {
    let mut tree = Mem::new();
    for (name, content) in files.iter().filter(|(name, _)| !name.ends_with('/')) {
        tree.insert(path(name), content.as_bytes().to_vec(), false);
    }
    let tree = Recording::new(Arc::new(tree));
    tree.list(&path("deploy")).unwrap();
    tree.read(&path("deploy/app/b.yaml")).unwrap();
    tree.is_dir(&path("deploy/app-2"));
    tree.is_file(&path(".sops.yaml"));
    tree.is_file(&path("deploy/app/charts/x/Chart.yaml"));
    tree.list(&path("deploy/app/missing")).unwrap_err();
    tree.take().unwrap()
}

#[test]
fn record_holds_if_the_directories_that_it_visited_are_the_same() {
    let (before, record) = (hashes(&FILES), record(&FILES));
    for (change, holds) in [
        (("other/deep/er/d", "changed"), true),
        (("other/new/e", ""), true),
        (("deploy/app-2/c.yaml", "changed"), true),
        (("deploy/app-2/sub/f", "new"), true),
        (("deploy/app/b.yaml", "changed"), false),
        (("deploy/new", ""), false),
        (("deploy/new-dir/g", ""), false),
        (("deploy/app/charts/x/Chart.yaml", ""), false),
        (("deploy/app/missing/h", ""), false),
        ((".sops.yaml", ""), false),
    ] {
        let mut files = FILES.to_vec();
        files.retain(|(name, _)| *name != change.0);
        files.push(change);
        let after = hashes(&files);
        assert_eq!(before.are_same_for(&after, &record), holds, "{change:?}");
        assert_eq!(after.are_same_for(&before, &record), holds, "{change:?} undone");
    }
}

#[test]
fn deepest_levels_are_left_out_of_a_large_text_and_not_trusted() {
    let long = "x".repeat(200);
    let many: Vec<_> = (0..13_000)
        .map(|number| format!("deploy/{long}{number}/f"))
        .collect();
    let mut files = FILES.to_vec();
    files.extend(many.iter().map(|name| (name.as_str(), "")));
    let text = text(&files);
    assert!(text.len() < 4096, "{} bytes", text.len());
    let few = DirectoryHashes::parse(&text).unwrap();
    assert_eq!(few.left_out, 13_004);
    assert!(few.all(&path("deploy")).is_some() && few.all(&path("deploy/app")).is_none());
    let record = record(&FILES);
    assert!(
        !few.are_same_for(&few, &record),
        "what is in deploy/app is not known"
    );
    let (all, in_sight) = (hashes(&FILES), Recording::new(Arc::new(Mem::new())));
    in_sight.is_file(&path("deploy/x"));
    let in_sight = in_sight.take().unwrap();
    assert!(few.are_same_for(&few, &in_sight) && !all.are_same_for(&few, &in_sight));
}

#[test]
fn text_that_is_malformed_is_refused() {
    let good = String::from_utf8(text(&FILES)).unwrap();
    assert!(DirectoryHashes::parse(good.as_bytes()).is_some());
    for bad in [
        String::new(),
        good.replace(" v1", " v2"),
        good.trim_end().to_owned(),
        good.replacen("v1 0", "v1", 1),
        good.replacen("v1 0", "v1 -1", 1),
        format!("{good}\n"),
        format!("{good}abc def dir\n"),
        format!("{good}{}", " ".repeat(MAX_BYTES)),
    ] {
        assert_eq!(DirectoryHashes::parse(bad.as_bytes()), None, "{bad:.300}");
    }
}
