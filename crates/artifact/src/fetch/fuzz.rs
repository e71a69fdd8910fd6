//! Hostile tarballs: nothing leaves the root, the limits hold, and memory and disk give the same result.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tar::EntryType;
use testkit::{
    archive::gzip,
    fuzz::{self, Random},
};

use super::{
    Limits,
    testing::{in_memory, on_disk},
};

const NAMES: &[&str] = &[
    "a", "b", "/", "..", ".", "./", "../", "a/b", "//", "\\", "\\..\\", "\n", "é", "root", "canary",
    "x.yaml", "C:", "%2e%2e",
];
const KINDS: &[u8] = b"0025\0\0L3412x67KgLxDSVMN";
const BYTES: u64 = 4096;
const ENTRIES: u64 = 12;

fn entry(random: &mut Random, out: &mut Vec<u8>) {
    let name = name(random);
    let kind = *random.pick(KINDS);
    let content = match kind {
        b'x' | b'g' => records(random),
        b'L' | b'K' => random.text(NAMES, 0..300).into_bytes(),
        _ if random.one_in(8) => vec![b'0'; random.below(BYTES as usize * 2)],
        _ => random.bytes(0..20),
    };
    let mut header = tar::Header::new_ustar();
    let field = &mut header.as_mut_bytes()[..100];
    let length = name.len().min(100);
    field[..length].copy_from_slice(&name.as_bytes()[..length]);
    if random.one_in(6) {
        let prefix = random.text(NAMES, 0..6);
        let length = prefix.len().min(155);
        header.as_mut_bytes()[345..345 + length].copy_from_slice(&prefix.as_bytes()[..length]);
    }
    if matches!(kind, b'1' | b'2') {
        let _ = header.set_link_name_literal(random.pick(&["..", "/", "a", "../canary", "b"]));
    }
    header.set_entry_type(EntryType::new(kind));
    header.set_mode(*random.pick(&[0o644, 0o755, 0o4777, 0, u32::MAX >> 11]));
    header.set_size(match random.below(12) {
        11 => random.bits() >> random.below(64),
        _ => content.len() as u64,
    });
    if random.one_in(12) {
        let at = random.below(512);
        header.as_mut_bytes()[at] = random.below(256) as u8;
    }
    if !random.one_in(30) {
        header.set_cksum();
    }
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(&content);
    out.resize(out.len().next_multiple_of(512), 0);
}

fn name(random: &mut Random) -> String {
    if random.flag() {
        let parts = random.list(1..4, |random| *random.pick(&["a", "b", "c", "x.yaml"]));
        return parts.join("/");
    }
    random.text(NAMES, 0..6)
}

fn records(random: &mut Random) -> Vec<u8> {
    let record = |random: &mut Random| {
        let key = *random.pick(&[
            "path",
            "linkpath",
            "size",
            "mtime",
            "uid",
            "GNU.sparse.name",
            "comment",
        ]);
        let rest = format!(
            " {key}={}\n",
            if random.flag() {
                name(random)
            } else {
                random.int().to_string()
            }
        );
        let length = (1..)
            .map(|digits| rest.len() + digits)
            .find(|all| all.to_string().len() + rest.len() == *all);
        let length = if random.one_in(8) {
            random.below(40)
        } else {
            length.unwrap_or(0)
        };
        format!("{length}{rest}")
    };
    random.list(0..4, record).concat().into_bytes()
}

fn tarball(random: &mut Random) -> Vec<u8> {
    let mut tar = Vec::new();
    for _ in 0..random.list(0..16, |_| ()).len() {
        entry(random, &mut tar);
    }
    if !random.one_in(8) {
        tar.resize(tar.len() + 1024, 0);
    }
    if random.one_in(16) {
        // Much from little: content after the end is not expanded, or up to the limit.
        tar.resize(tar.len() + (1 << 20), 0);
    }
    random.damage(&mut tar, 1);
    let mut bytes = gzip(&tar);
    if random.one_in(6) {
        random.damage(&mut bytes, 3);
    }
    if random.one_in(6) {
        let again = bytes.clone();
        bytes.extend(again);
    }
    bytes
}

fn walk(dir: &Path, found: &mut Vec<(PathBuf, fs::FileType, u64)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        found.push((entry.path(), kind, entry.metadata().unwrap().len()));
        if kind.is_dir() {
            walk(&entry.path(), found);
        }
    }
}

#[test]
fn fuzz_unpacking_stays_inside_its_root() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("deep/root");
    fs::create_dir(outer.path().join("deep")).unwrap();
    fs::write(outer.path().join("canary"), "canary").unwrap();
    let [refused, skipped] = [false, true].map(|skip_links| Limits {
        unpacked_bytes: BYTES,
        entries: ENTRIES,
        skip_links,
        ..Limits::default()
    });
    fuzz::run("unpack", |random| {
        let bytes = tarball(random);
        let limits = if random.one_in(4) { &skipped } else { &refused };
        random.note("gzip", &hex::encode(&bytes));
        let unpacked = on_disk(&bytes, &root, limits);
        // Everything within these limits fits.
        assert_eq!(in_memory(&bytes, limits).as_ref(), Some(&unpacked));
        let mut found = Vec::new();
        walk(&root, &mut found);
        fs::remove_dir_all(&root).unwrap();
        let mut outside = Vec::new();
        walk(outer.path(), &mut outside);
        assert_eq!(outside.len(), 2, "{outside:?}");
        assert_eq!(fs::read(outer.path().join("canary")).unwrap(), b"canary");
        assert!(
            found.iter().all(|(_, kind, _)| kind.is_file() || kind.is_dir()),
            "{found:?}"
        );
        let files = found.iter().filter(|(_, kind, _)| kind.is_file());
        let written: u64 = files.clone().map(|(.., size)| size).sum();
        assert!(written <= BYTES && files.count() as u64 <= ENTRIES, "{found:?}");
        match unpacked {
            // The announced size of a directory counts, too.
            Ok((counted, _)) => assert!(
                counted.bytes >= written && counted.entries <= ENTRIES,
                "{counted:?} {found:?}"
            ),
            Err(error) => assert!(!error.is_empty()),
        }
    });
}
