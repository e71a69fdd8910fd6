use tar::EntryType::{self, Directory, GNULongName, Link, Regular, Symlink, XHeader};
use testkit::archive::gzip;

use super::*;
use crate::fetch::{
    memory_quota::MemoryQuota,
    testing::{Outcome, entry, hostile, in_memory, on_disk, simple, tarball},
};

type Packed<'a> = (&'a str, EntryType, &'a [u8]);

fn unpacked(tarball: &[u8], limits: &Limits) -> Option<Outcome> {
    let dir = tempfile::tempdir().unwrap();
    let disk = on_disk(tarball, &dir.path().join("root"), limits);
    let memory = in_memory(tarball, limits)?;
    assert_eq!(memory, disk);
    Some(disk)
}

fn skipping_links() -> Limits {
    Limits {
        skip_links: true,
        ..Limits::default()
    }
}

#[test]
fn files_are_the_same_in_memory_and_on_disk() {
    let long = format!("{}/{}", "d".repeat(255), "f".repeat(255));
    let pax = format!("20 path=p/{}\n", "a".repeat(9));
    let mut modes = Vec::new();
    for mode in [0o644, 0o755, 0o010, 0, 0o4000] {
        let mut header = tar::Header::new_ustar();
        header.set_path(format!("mode/{mode}")).unwrap();
        header.set_mode(mode);
        header.set_size(0);
        header.set_cksum();
        modes.extend_from_slice(header.as_bytes());
    }
    let all: [Packed<'_>; 14] = [
        ("./", Directory, b""),
        ("empty", Directory, b""),
        ("empty", Directory, b""),
        ("deep/er/empty/", Directory, b""),
        ("a-b", Regular, b"between a and a/b in the order of bytes"),
        ("a/b//c/./d", Regular, b"d"),
        ("a/b", Directory, b""),
        ("a.b", Regular, b""),
        ("long", GNULongName, long.as_bytes()),
        ("short", Regular, b"long"),
        ("long", XHeader, pax.as_bytes()),
        ("short", Regular, b"pax"),
        ("\u{e9}\n", Regular, b"e"),
        ("large", Regular, &[b'x'; 40_000]),
    ];
    let kinds = all
        .iter()
        .flat_map(|(name, kind, content)| entry(name, *kind, content));
    let mixed = gzip(&kinds.chain(modes).collect::<Vec<u8>>());
    for bytes in [mixed, simple(), tarball(&[]), gzip(&[])] {
        let (counted, answers) = unpacked(&bytes, &Limits::default()).unwrap().unwrap();
        assert!(counted.entries > 0 || answers.len() == 2, "{answers:?}");
    }
}

#[test]
fn hostile_tarballs_are_refused_with_the_same_errors_in_memory_and_on_disk() {
    for (bytes, expected) in hostile() {
        let error = unpacked(&bytes, &Limits::default()).unwrap().unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
        unpacked(&bytes, &skipping_links()).unwrap().ok();
    }
}

#[test]
fn tarball_that_is_cut_off_has_the_same_result_in_memory_and_on_disk() {
    let bytes = simple();
    for len in 0..bytes.len() {
        let result = unpacked(&bytes[..len], &Limits::default());
        assert!(result.unwrap().is_err() || len + 20 > bytes.len(), "{len}");
    }
}

#[test]
fn links_are_left_out_in_memory_and_on_disk() {
    let bytes = tarball(&[
        ("out", Symlink, b""),
        ("out/file", Regular, b"x"),
        ("hard", Link, b""),
        ("hard", Regular, b"y"),
    ]);
    let (counted, _) = unpacked(&bytes, &skipping_links()).unwrap().unwrap();
    assert_eq!((counted.bytes, counted.entries), (2, 5));
}

#[test]
fn names_that_are_not_utf8_are_passed_over_in_memory_and_on_disk() {
    let names = [b"a".as_slice(), b"b\xff", b"d\xe9/", b"d\xe9/file", b"e"];
    let mut bytes: Vec<u8> = names
        .iter()
        .flat_map(|name| match name.ends_with(b"/") {
            true => entry(name, Directory, b""),
            false => entry(name, Regular, b"x"),
        })
        .collect();
    bytes.resize(bytes.len() + 1024, 0);
    let (counted, answers) = unpacked(&gzip(&bytes), &Limits::default()).unwrap().unwrap();
    let passed: Vec<_> = counted.not_utf8.iter().map(TreePath::as_str).collect();
    assert_eq!(passed, ["b\u{fffd}", "d\u{fffd}", "d\u{fffd}/file"]);
    let found = |name: &str| {
        answers
            .iter()
            .any(|line| line.starts_with(&format!("{name}: Ok(Some")))
    };
    assert!(found("a") && found("e") && !found("b\u{fffd}"), "{answers:?}");
    let outside = gzip(&entry(b"../\xff", Regular, b"x"));
    let error = unpacked(&outside, &Limits::default()).unwrap().unwrap_err();
    assert!(error.contains("leads out of its directory"), "{error}");
}

#[test]
fn limits_are_the_same_in_memory_and_on_disk() {
    let limits = Limits {
        unpacked_bytes: 10,
        entries: 3,
        ..Limits::default()
    };
    let cases: [(&[Packed<'_>], &str); 3] = [
        (&[("a/b/c/d", Regular, b"")], "3 files and directories"),
        (
            &[("a", Regular, b"12345"), ("b", Regular, b"678901")],
            "10 bytes of unpacked",
        ),
        // Larger than the quota of memory.
        (&[("a", Regular, &[0; 70_000])], "10 bytes of unpacked"),
    ];
    for (entries, expected) in cases {
        let error = unpacked(&tarball(entries), &limits).unwrap().unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn what_is_too_large_for_memory_is_not_unpacked_there() {
    let fits = |entries: &[Packed<'_>], limits: &Limits| {
        in_memory(&tarball(entries), limits).map(Result::unwrap).is_some()
    };
    let most = (memory::MAX_UNPACKED_BYTES - ENTRY_BYTES - 1) as usize;
    let content = vec![0; most + 1];
    let limits = Limits::default();
    assert!(fits(&[("f", Regular, &content[..most])], &limits));
    assert!(!fits(&[("f", Regular, &content)], &limits));
    assert!(!fits(
        &[("g", Regular, &content[..most]), ("f", Regular, b"")],
        &limits
    ));
    assert!(fits(
        &["d/"; 127].map(|name| (name, Directory, b"".as_slice())),
        &limits
    ));
    assert!(!fits(
        &["d/"; 128].map(|name| (name, Directory, b"".as_slice())),
        &limits
    ));
    // Directories without an entry count, too, and so do their paths.
    let deep = "d/".repeat(150);
    let named = ("name", GNULongName, deep.as_bytes());
    assert!(!fits(&[named, ("short", Directory, b"")], &limits));
    // The tree of a directory refuses a file that must not be read.
    let small = Limits {
        tree: tree::Limits {
            file_bytes: 10,
            ..tree::Limits::default()
        },
        ..Limits::default()
    };
    assert!(fits(&[("f", Regular, &content[..10])], &small));
    assert!(!fits(&[("f", Regular, &content[..11])], &small));
}

#[test]
fn memory_is_held_by_what_is_in_it_alone() {
    let quota = MemoryQuota::default();
    let all = quota.left();
    let unpack = |bytes: &[u8]| unpack_into_memory(bytes, &Limits::default(), &quota);
    let (held, _) = unpack(&tarball(&[("a/b", Regular, b"1234")])).unwrap().unwrap();
    let entries = 2 * ENTRY_BYTES as usize + "a".len() + "a/b".len();
    let expected = (memory::ARTIFACT_BYTES as usize + entries + 4).next_multiple_of(1024);
    assert_eq!(all - quota.left(), expected);
    assert!(unpack(&hostile()[0].0).is_err());
    assert!(
        unpack(&tarball(&[("f", Regular, &[0; 70_000])]))
            .unwrap()
            .is_none()
    );
    assert_eq!(all - quota.left(), expected);
    let mut others = quota.reserve_nothing();
    assert!(others.try_grow(quota.left() as u64).is_ok() && others.try_grow(1).is_err());
    assert!(unpack(&simple()).unwrap().is_none());
    drop((held, others));
    assert_eq!(quota.left(), all);
}
