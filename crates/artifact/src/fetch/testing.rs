//! Tarballs, a server of artifacts, and a cache, for tests.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use api::Artifact;
use net::AddressPolicy;
use testkit::archive::gzip;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;
use tree::{Disk, Tree, TreePath};

use super::{
    ArtifactCache, Limits, Unpacked,
    memory_quota::MemoryQuota,
    unpack::{Counted, unpack_into_directory, unpack_into_memory},
};
use crate::{Algorithm, Error, digest::of};

/// Writes a header by hand, for names that no library would write.
pub(super) fn entry(name: impl AsRef<[u8]>, kind: tar::EntryType, content: &[u8]) -> Vec<u8> {
    let name = name.as_ref();
    let mut header = tar::Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o755);
    if kind == tar::EntryType::Symlink || kind == tar::EntryType::Link {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    let mut out = header.as_bytes().to_vec();
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(512), 0);
    out
}

pub(super) fn tarball(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut out: Vec<u8> = entries
        .iter()
        .flat_map(|(name, kind, content)| entry(name, *kind, content))
        .collect();
    out.resize(out.len() + 1024, 0);
    gzip(&out)
}

pub(super) fn simple() -> Vec<u8> {
    use tar::EntryType::{Directory, Regular};
    tarball(&[
        (".", Directory, b""),
        ("a", Directory, b""),
        ("a/b.yaml", Regular, b"b: 1\n"),
        ("c/d", Regular, b"d"),
    ])
}

pub(super) fn hostile() -> Vec<(Vec<u8>, &'static str)> {
    use tar::EntryType::{
        Block, Char, Directory, Fifo, GNULongName, GNUSparse, Link, Regular, Symlink, XHeader,
    };
    vec![
        (tarball(&[("../up", Regular, b"x")]), "leads out"),
        (tarball(&[("a/../../up", Regular, b"x")]), "leads out"),
        (tarball(&[("a/../b", Regular, b"x")]), "leads out"),
        (tarball(&[("/abs", Regular, b"x")]), "is not relative"),
        (tarball(&[("a\\b", Regular, b"x")]), "backslash"),
        (tarball(&[("l", Symlink, b"")]), "symbolic link"),
        (tarball(&[("l", Link, b"")]), "hard link"),
        (tarball(&[("d", Char, b"")]), "device"),
        (tarball(&[("d", Block, b"")]), "device"),
        (tarball(&[("p", Fifo, b"")]), "pipe"),
        (tarball(&[("a", Regular, b"1"), ("a", Regular, b"2")]), "twice"),
        (
            tarball(&[("a", Regular, b"1"), ("a/b", Regular, b"2")]),
            "a file and a directory",
        ),
        (
            tarball(&[("a", Regular, b"1"), ("a", Directory, b"")]),
            "a file and a directory",
        ),
        (
            tarball(&[("a", Regular, b"1"), ("a/b/c", Directory, b"")]),
            "'a/b' is a file and a directory",
        ),
        (tarball(&[("a/b", Regular, b"1"), ("a", Regular, b"2")]), "twice"),
        (tarball(&[(".", Regular, b"x")]), "a file and a directory"),
        (tarball(&[("", Regular, b"x")]), "is empty"),
        (
            tarball(&[("n", GNULongName, &[b'n'; 256]), ("y", Regular, b"")]),
            "255 bytes of a file name",
        ),
        (
            tarball(&[
                ("n", GNULongName, "a/".repeat(2048).as_bytes()),
                ("y", Directory, b""),
            ]),
            "4096 bytes of a path",
        ),
        (tarball(&[("s", GNUSparse, b"")]), "of an unknown type"),
        (
            tarball(&[("x", XHeader, b"12 size=100\n"), ("y", Regular, b"")]),
            "extended size",
        ),
        (b"no gzip at all".to_vec(), "malformed"),
        (gzip(&[0x41; 2000]), "malformed"),
        (simple()[..40].to_vec(), "malformed"),
    ]
}

/// Returns a tree's answers about each of its files and directories, and about a missing sibling of each.
pub(super) fn answers(tree: &dyn Tree) -> Vec<String> {
    let mut lines = Vec::new();
    let mut next = vec![TreePath::root()];
    while let Some(path) = next.pop() {
        let listed = tree.list(&path).unwrap_or_default();
        next.extend(listed.iter().map(|entry| path.child(&entry.name)));
        for path in [path.child("missing"), path] {
            let (kind, resolved) = (tree.kind(&path), tree.resolve(&path));
            let (list, content) = (tree.list(&path), tree.read(&path));
            lines.push(format!("{path}: {kind:?} {resolved:?} {list:?} {content:?}"));
        }
    }
    lines.extend(tree.left_out().iter().map(ToString::to_string));
    lines
}

pub(super) type Outcome = Result<(Counted, Vec<String>), String>;

pub(super) fn in_memory(tarball: &[u8], limits: &Limits) -> Option<Outcome> {
    match unpack_into_memory(tarball, limits, &MemoryQuota::default()) {
        Ok(unpacked) => unpacked.map(|(tree, counted)| Ok((counted, answers(tree.tree())))),
        Err(error) => Some(Err(error.to_string())),
    }
}

pub(super) fn on_disk(mut tarball: &[u8], root: &Path, limits: &Limits) -> Outcome {
    let unpacked = unpack_into_directory(&mut tarball, root, limits, &mut |_, _| Ok(true));
    let counted = unpacked.map_err(|error| error.to_string())?;
    Ok((counted, answers(&Disk::open(root, &limits.tree).unwrap())))
}

/// Answers each connection with the next of `answers`, and repeats the last one; counts them.
pub(super) async fn server(answers: Vec<Vec<u8>>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "http://{}/gitrepository/ns/a/1.tar.gz",
        listener.local_addr().unwrap()
    );
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let n = counter.fetch_add(1, Ordering::SeqCst);
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(&answers[n.min(answers.len() - 1)]).await;
        }
    });
    (url, count)
}

pub(super) fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub(super) fn artifact(url: &str, bytes: &[u8]) -> Artifact {
    let digest = Some(of(Algorithm::Sha256, bytes).to_string());
    Artifact {
        url: url.to_owned(),
        digest,
        ..Artifact::default()
    }
}

pub(super) struct Setup {
    pub(super) dir: tempfile::TempDir,
    pub(super) fetcher: ArtifactCache,
}

pub(super) fn open() -> AddressPolicy {
    AddressPolicy::command_line()
}

pub(super) fn setup(limits: Limits) -> Setup {
    let dir = tempfile::tempdir().unwrap();
    let fetcher = ArtifactCache::new(&dir.path().join("work"), None, limits, open()).unwrap();
    Setup { dir, fetcher }
}

impl Setup {
    pub(super) async fn fetch(&self, artifact: &Artifact) -> Result<Arc<Unpacked>, Error> {
        self.fetcher
            .fetch(artifact, Duration::from_secs(10), &CancellationToken::new())
            .await
    }

    pub(super) fn leftovers(&self) -> usize {
        std::fs::read_dir(self.dir.path().join("work")).unwrap().count()
    }
}

pub(super) fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}
