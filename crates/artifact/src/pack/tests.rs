use std::io::Read;

use flate2::read::GzDecoder;
use tree::{Budget, TreePath, ignore::Rules};

use super::*;
use crate::digest::of;

fn items(files: &[(&str, PathKind, &str)]) -> Vec<Item<Vec<u8>>> {
    let item = |(path, kind, content): &(&str, PathKind, &str)| Item {
        path: TreePath::parse(path).unwrap(),
        kind: *kind,
        content: content.as_bytes().to_vec(),
    };
    files.iter().map(item).collect()
}

fn run(items: Vec<Item<Vec<u8>>>) -> (Packed, Vec<u8>) {
    let mut out = Vec::new();
    let items = plan(items, &Rules::new(), &Budget::default()).unwrap().items;
    let read = |item: &Item<Vec<u8>>, buffer: &mut Vec<u8>| {
        buffer.extend_from_slice(&item.content);
        Ok::<(), Error>(())
    };
    let packed = pack(&items, read, Algorithm::Sha256, 1 << 20, &mut out).unwrap();
    (packed, out)
}

const FILE: PathKind = PathKind::File { executable: false };

fn golden() -> Vec<Item<Vec<u8>>> {
    let mut files = items(&[
        ("a.txt", FILE, "hello\n"),
        ("bin", PathKind::Dir, ""),
        ("bin/run.sh", PathKind::File { executable: true }, "#!/bin/sh\n"),
        ("empty", PathKind::Dir, ""),
        ("link", PathKind::Other, ""),
        ("ünï.yaml", FILE, "u: 1\n"),
        ("deep", PathKind::Dir, ""),
    ]);
    let mut path = "deep".to_owned();
    for _ in 0..12 {
        path.push_str("/0123456789abcdef");
        files.extend(items(&[(&path, PathKind::Dir, "")]));
    }
    files.extend(items(&[(&format!("{path}/f.yaml"), FILE, "x: 1\n")]));
    files
}

#[test]
fn the_tar_stream_is_the_one_that_upstream_writes() {
    let (packed, gzip) = run(golden());
    let mut tarball = Vec::new();
    GzDecoder::new(gzip.as_slice()).read_to_end(&mut tarball).unwrap();
    assert_eq!(tarball.len(), 14336);
    assert_eq!(
        of(Algorithm::Sha256, &tarball).hex(),
        "c1e4d710e9697304706b3b7e7a2be2830e1b2750ef7e5dc7fee87f5a55e474bc"
    );
    assert_eq!(gzip[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
    assert_eq!(packed.size, gzip.len() as u64);
    assert_eq!(packed.digest, of(Algorithm::Sha256, &gzip));
    assert_eq!(packed.sha256, packed.digest.hex());
    assert_eq!(packed.sha1, of(Algorithm::Sha1, &gzip).hex());
}

#[test]
fn the_order_of_the_files_makes_no_difference_and_their_content_does() {
    let first = run(golden());
    let mut reversed = golden();
    reversed.reverse();
    assert_eq!(run(reversed), first);
    let mut changed = golden();
    changed[0].content.push(b' ');
    assert_ne!(run(changed).0.digest, first.0.digest);
    let mut executable = golden();
    executable[0].kind = PathKind::File { executable: true };
    assert_ne!(run(executable).0.digest, first.0.digest);
}

#[test]
fn other_algorithms_give_other_digests_of_the_same_bytes() {
    let items = plan(golden(), &Rules::new(), &Budget::default()).unwrap().items;
    for algorithm in [
        Algorithm::Sha1,
        Algorithm::Sha384,
        Algorithm::Sha512,
        Algorithm::Blake3,
    ] {
        let mut out = Vec::new();
        let read = |item: &Item<Vec<u8>>, buffer: &mut Vec<u8>| {
            buffer.extend_from_slice(&item.content);
            Ok::<(), Error>(())
        };
        let packed = pack(&items, read, algorithm, 1 << 20, &mut out).unwrap();
        assert_eq!(packed.digest, of(algorithm, &out));
    }
}

#[test]
fn limits_and_failures_of_the_reader_end_the_run() {
    let files = items(&[("a", FILE, "12345"), ("b", FILE, "12345")]);
    let copy = |item: &Item<Vec<u8>>, buffer: &mut Vec<u8>| {
        buffer.extend_from_slice(&item.content);
        Ok::<(), Error>(())
    };
    let error = pack(&files, copy, Algorithm::Sha256, 9, io::sink()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the limit of 9 bytes of unpacked files was reached at 'b'"
    );
    let fail = |_: &Item<Vec<u8>>, _: &mut Vec<u8>| Err::<(), _>(Error::Malformed("no".to_owned()));
    assert!(pack(&files, fail, Algorithm::Sha256, 9, io::sink()).is_err());
}

#[test]
fn a_full_disk_is_an_error() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let error = pack(&golden(), |_, _| Ok::<(), Error>(()), Algorithm::Sha256, 9, Full).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn streams_make_the_same_tarball() {
    let (whole, expected) = run(golden());
    let items = plan(golden(), &Rules::new(), &Budget::default()).unwrap().items;
    let mut out = Vec::new();
    let open = |item: &Item<Vec<u8>>| {
        let content = item.content.clone();
        Ok::<_, Error>((content.len() as u64, io::Cursor::new(content)))
    };
    let packed = pack_streams(&items, open, Algorithm::Sha256, 1 << 20, &mut out).unwrap();
    assert_eq!((packed, out), (whole, expected));
}

#[test]
fn a_stream_that_ends_early_is_an_error() {
    let items = items(&[("a", FILE, "hello")]);
    for (size, fails) in [(5, false), (6, true), (1 << 21, true)] {
        let open = |item: &Item<Vec<u8>>| Ok::<_, Error>((size, io::Cursor::new(item.content.clone())));
        let packed = pack_streams(&items, open, Algorithm::Sha256, 1 << 20, io::sink());
        assert_eq!(packed.is_err(), fails, "{size}");
    }
}
