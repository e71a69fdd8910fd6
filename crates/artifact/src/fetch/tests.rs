mod memory;

use std::sync::atomic::Ordering;

use tokio::net::TcpListener;
use tree::{Tree, TreePath};

use super::{
    testing::{answer, artifact, hostile, open, path, server, setup, simple, tarball},
    *,
};
use crate::{Algorithm, digest::of};

#[tokio::test]
async fn an_artifact_is_fetched_once_for_all_and_read_as_a_tree() {
    let bytes = simple();
    let (url, count) = server(vec![answer("200 OK", &bytes)]).await;
    let setup = setup(Limits::default());
    let wanted = artifact(&url, &bytes);
    let (a, b) = tokio::join!(setup.fetch(&wanted), setup.fetch(&wanted));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert!(Arc::ptr_eq(&a, &b));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!(a.read(&path("a/b.yaml")).unwrap().as_ref(), b"b: 1\n");
    assert_eq!(a.bytes(), 6);
    // The checksum of older sources is enough.
    for checksum in [of(Algorithm::Sha256, &bytes), of(Algorithm::Sha1, &bytes)] {
        let older = Artifact {
            digest: None,
            checksum: Some(checksum.hex().to_owned()),
            ..wanted.clone()
        };
        setup.fetch(&older).await.unwrap();
    }
}

#[tokio::test]
async fn unused_artifacts_are_removed_over_the_limit() {
    let bytes = simple();
    let (url, count) = server(vec![answer("200 OK", &bytes)]).await;
    let setup = setup(Limits {
        cache_bytes: 0,
        ..Limits::default()
    });
    let wanted = artifact(&url, &bytes);
    let held = setup.fetch(&wanted).await.unwrap();
    setup.fetch(&wanted).await.unwrap();
    assert_eq!(
        (count.load(Ordering::SeqCst), setup.fetcher.usage().artifacts),
        (1, 1)
    );
    drop(held);
    let other = artifact("http://127.0.0.1:1/x", b"other");
    let _ = setup
        .fetcher
        .fetch(&other, Duration::ZERO, &CancellationToken::new())
        .await;
    assert_eq!(setup.fetcher.usage(), Usage::default());
}

#[tokio::test]
async fn unused_artifacts_are_bounded_in_number_whatever_their_size() {
    let tarball = |number: usize| tarball(&[(&format!("empty-{number}"), tar::EntryType::Regular, b"")]);
    let all: Vec<Vec<u8>> = (0..8).map(tarball).collect();
    let (url, _) = server(all.iter().map(|bytes| answer("200 OK", bytes)).collect()).await;
    let setup = setup(Limits {
        cache_bytes: 4 * (64 << 10),
        ..Limits::default()
    });
    for bytes in &all {
        setup.fetch(&artifact(&url, bytes)).await.unwrap();
    }
    let Usage { artifacts, bytes } = setup.fetcher.usage();
    assert!(
        (1..=4).contains(&artifacts) && bytes == 0,
        "{artifacts} artifacts"
    );
}

#[tokio::test]
async fn wrong_digest_is_refused_without_naming_the_digest_of_the_bytes() {
    let bytes = simple();
    let mut altered = bytes.clone();
    altered[20] ^= 1;
    for body in [altered.as_slice(), &bytes[..bytes.len() / 2], b""] {
        let (url, _) = server(vec![answer("200 OK", body)]).await;
        let setup = setup(Limits::default());
        let error = setup.fetch(&artifact(&url, &bytes)).await.unwrap_err();
        assert!(matches!(error, Error::DigestMismatch { .. }), "{error}");
        let (wanted, found) = (of(Algorithm::Sha256, &bytes), of(Algorithm::Sha256, body));
        assert!(error.to_string().contains(wanted.hex()), "{error}");
        assert!(
            !error.to_string().contains(found.hex()),
            "it names the digest of the bytes: {error}"
        );
        assert_eq!((setup.leftovers(), setup.fetcher.usage()), (0, Usage::default()));
    }
}

#[tokio::test]
async fn failures_of_the_server_are_retried_and_absence_is_not() {
    let bytes = simple();
    let half = answer("200 OK", &bytes)[..60].to_vec();
    let answers = vec![
        answer("503 Service Unavailable", b""),
        half,
        answer("200 OK", &bytes),
    ];
    let (url, count) = server(answers).await;
    setup(Limits::default())
        .fetch(&artifact(&url, &bytes))
        .await
        .unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 3);

    let (url, count) = server(vec![answer("404 Not Found", b"")]).await;
    let error = setup(Limits::default())
        .fetch(&artifact(&url, &bytes))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    assert_eq!(count.load(Ordering::SeqCst), 1);

    let redirect =
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".to_vec();
    let (url, _) = server(vec![redirect]).await;
    let error = setup(Limits::default())
        .fetch(&artifact(&url, &bytes))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("redirects"), "{error}");
}

#[tokio::test]
async fn silence_ends_at_the_deadline_and_cancellation_ends_it_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let setup = setup(Limits::default());
    let wanted = artifact(&url, b"x");
    let cancel = CancellationToken::new();
    let error = setup
        .fetcher
        .fetch(&wanted, Duration::from_millis(50), &cancel)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Interrupted { .. }), "{error}");
    cancel.cancel();
    let error = setup
        .fetcher
        .fetch(&wanted, Duration::from_secs(3600), &cancel)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Interrupted { .. }), "{error}");
}

#[tokio::test]
async fn an_artifact_needs_a_digest_and_a_usable_url() {
    let setup = setup(Limits::default());
    let url = "http://u:canary@127.0.0.1:1/x?token=canary";
    let cases = [
        Artifact {
            url: url.to_owned(),
            ..Artifact::default()
        },
        Artifact {
            url: url.to_owned(),
            digest: Some("md5:1".to_owned()),
            ..Artifact::default()
        },
        artifact("file:///etc/passwd", b""),
        artifact("/etc/passwd", b""),
        artifact(url, b""),
    ];
    for case in cases {
        let cancel = CancellationToken::new();
        let error = setup
            .fetcher
            .fetch(&case, Duration::from_millis(100), &cancel)
            .await
            .unwrap_err();
        assert!(!error.to_string().contains("canary"), "{error}");
    }
}

#[tokio::test]
async fn refused_addresses_are_not_downloaded_from() {
    let bytes = simple();
    let (url, _) = server(vec![answer("200 OK", &bytes)]).await;
    let dir = tempfile::tempdir().unwrap();
    let strict = AddressPolicy::controller(net::ClusterServices::default());
    let fetcher = ArtifactCache::new(dir.path(), None, Limits::default(), strict).unwrap();
    let wanted = artifact(&url, &bytes);
    let error = fetcher
        .fetch(&wanted, Duration::from_secs(10), &CancellationToken::new())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("loopback addresses are not allowed"),
        "{error}"
    );
}

#[tokio::test]
async fn another_host_can_stand_in_for_that_of_the_url() {
    let bytes = simple();
    let (url, _) = server(vec![answer("200 OK", &bytes)]).await;
    let host = url.split('/').nth(2).unwrap().to_owned();
    let dir = tempfile::tempdir().unwrap();
    let fetcher = ArtifactCache::new(dir.path(), Some(host), Limits::default(), open()).unwrap();
    let wanted = artifact(
        "http://source-controller.ns.svc.cluster.local./gitrepository/ns/a/1.tar.gz",
        &bytes,
    );
    fetcher
        .fetch(&wanted, Duration::from_secs(10), &CancellationToken::new())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_host_that_cannot_stand_in_is_named() {
    for host in ["h:99999", "h:http", "h/x:1", "[::1"] {
        let dir = tempfile::tempdir().unwrap();
        let fetcher =
            ArtifactCache::new(dir.path(), Some(host.to_owned()), Limits::default(), open()).unwrap();
        assert!(fetcher.client.url("http://a/b").is_err(), "{host}");
    }
    for (host, expected) in [
        ("h", "http://h/b"),
        ("h:81", "http://h:81/b"),
        ("[::1]", "http://[::1]/b"),
        ("[::1]:81", "http://[::1]:81/b"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let fetcher =
            ArtifactCache::new(dir.path(), Some(host.to_owned()), Limits::default(), open()).unwrap();
        assert_eq!(fetcher.client.url("http://a:9/b").unwrap().to_string(), expected);
    }
}

#[tokio::test]
async fn source_watcher_has_a_host_of_its_own_that_stands_in() {
    let url = |host: Option<&str>, watcher: Option<&str>, url: &str| {
        let dir = tempfile::tempdir().unwrap();
        let host = host.map(str::to_owned);
        let cache = ArtifactCache::new(dir.path(), host, Limits::default(), open()).unwrap();
        let cache = cache.with_watcher_host(watcher.map(str::to_owned));
        cache.client.url(url).unwrap().to_string()
    };
    let (source, watcher) = ("http://source-controller.ns/b", "http://source-watcher.ns/b");
    for (host, watcher_host, expected) in [
        (None, None, [source, watcher]),
        (Some("h"), None, ["http://h/b", "http://h/b"]),
        (Some("h"), Some("w:81"), ["http://h/b", "http://w:81/b"]),
        (None, Some("w:81"), [source, "http://w:81/b"]),
        (None, Some(""), [source, watcher]),
    ] {
        let found = [source, watcher].map(|one| url(host, watcher_host, one));
        assert_eq!(found, expected, "{host:?} {watcher_host:?}");
    }
}

#[tokio::test]
async fn hostile_tarballs_are_refused() {
    for (bytes, expected) in hostile() {
        let (url, _) = server(vec![answer("200 OK", &bytes)]).await;
        let setup = setup(Limits::default());
        let error = setup.fetch(&artifact(&url, &bytes)).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert_eq!(setup.leftovers(), 0);
    }
}

#[test]
fn directories_that_a_tarball_does_not_name_are_asked_for_before_they_are_filled() {
    let dir = tempfile::tempdir().unwrap();
    let (file, root) = (dir.path().join("tarball"), dir.path().join("root"));
    let packed = tarball(&[
        ("a/b/c", tar::EntryType::Regular, b"123"),
        ("a/d", tar::EntryType::Regular, b"4"),
    ]);
    std::fs::write(&file, packed).unwrap();
    let mut asked = Vec::new();
    let mut select = |path: &TreePath, bytes| {
        assert!(!root.join(path.as_str()).is_file());
        asked.push((path.as_str().to_owned(), bytes));
        Ok(true)
    };
    let unpacked = super::unpack_with(&file, &root, (&Limits::default(), &mut select)).unwrap();
    assert_eq!((unpacked.bytes, unpacked.not_utf8), (4, vec![]));
    asked.sort();
    let expected = [("a", 0), ("a/b", 0), ("a/b/c", 3), ("a/d", 1)];
    assert_eq!(asked, expected.map(|(path, bytes)| (path.to_owned(), bytes)));
}

#[test]
fn links_are_left_out_on_demand() {
    use tar::EntryType::{Fifo, Link, Regular, Symlink};
    let dir = tempfile::tempdir().unwrap();
    let unpack = |entries: &[(&str, tar::EntryType, &[u8])], name: &str| {
        let (file, root) = (dir.path().join(format!("{name}.tgz")), dir.path().join(name));
        std::fs::write(&file, tarball(entries)).unwrap();
        let limits = Limits {
            skip_links: true,
            ..Limits::default()
        };
        (super::unpack(&file, &root, &limits), root)
    };
    let entries: &[(&str, tar::EntryType, &[u8])] = &[
        ("out", Symlink, b""),
        ("out/file", Regular, b"x"),
        ("hard", Link, b""),
        ("hard", Regular, b"y"),
    ];
    let (unpacked, root) = unpack(entries, "links");
    assert_eq!(unpacked.unwrap(), 2);
    assert!(root.join("out").symlink_metadata().unwrap().is_dir());
    assert_eq!(std::fs::read(root.join("out/file")).unwrap(), b"x");
    assert_eq!(std::fs::read(root.join("hard")).unwrap(), b"y");
    let (refused, _) = unpack(&[("pipe", Fifo, b"")], "pipe");
    assert!(refused.unwrap_err().to_string().contains("a pipe"));
}

#[tokio::test]
async fn long_names_of_both_kinds_are_unpacked() {
    use tar::EntryType::{GNULongName, Regular, XHeader};
    let long = format!("{}/file", "d".repeat(150));
    let gnu = format!("{long}-gnu\0");
    let record = format!("path={long}-pax\n");
    let pax = format!("{} {record}", record.len() + 4);
    let bytes = tarball(&[
        ("long", GNULongName, gnu.as_bytes()),
        ("short", Regular, b"gnu"),
        ("long", XHeader, pax.as_bytes()),
        ("short", Regular, b"pax"),
        ("short", Regular, b"short"),
    ]);
    let (url, _) = server(vec![answer("200 OK", &bytes)]).await;
    let setup = setup(Limits::default());
    let unpacked = setup.fetch(&artifact(&url, &bytes)).await.unwrap();
    for (name, content) in [
        (format!("{long}-gnu"), "gnu"),
        (format!("{long}-pax"), "pax"),
        ("short".into(), "short"),
    ] {
        assert_eq!(unpacked.read(&path(&name)).unwrap(), content);
    }
}

#[tokio::test]
async fn bombs_meet_their_limits() {
    let limits = Limits {
        unpacked_bytes: 100_000,
        entries: 3,
        download_bytes: 20_000,
        ..Limits::default()
    };
    let zeros = vec![0; 1 << 20];
    let many: Vec<_> = ["a", "b", "c", "d"]
        .map(|name| (name, tar::EntryType::Regular, b"".as_slice()))
        .into();
    let cases = [
        (
            tarball(&[("big", tar::EntryType::Regular, &zeros)]),
            "100000 bytes of unpacked files",
        ),
        (
            tarball(&[
                ("x", tar::EntryType::GNULongName, &zeros),
                ("y", tar::EntryType::Regular, b""),
            ]),
            "65536 bytes of a name",
        ),
        (
            tarball(&[
                ("x", tar::EntryType::XHeader, &zeros),
                ("y", tar::EntryType::Regular, b""),
            ]),
            "65536 bytes of a name",
        ),
        (tarball(&many), "3 files and directories"),
        (
            tarball(&[("a/b/c/d", tar::EntryType::Regular, b"")]),
            "3 files and directories",
        ),
        (
            tarball(&[
                ("x", tar::EntryType::GNULongName, "a/".repeat(2049).as_bytes()),
                ("y", tar::EntryType::Directory, b""),
            ]),
            "4096 bytes of a path",
        ),
        (vec![1; 25_000], "20000 bytes of a download"),
    ];
    for (bytes, expected) in cases {
        let (url, _) = server(vec![answer("200 OK", &bytes)]).await;
        let error = setup(limits.clone())
            .fetch(&artifact(&url, &bytes))
            .await
            .unwrap_err();
        assert!(matches!(&error, Error::TooLarge { .. }), "{expected}: {error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
