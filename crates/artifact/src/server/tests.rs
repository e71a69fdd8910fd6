use std::{io::Write as _, os::unix::fs::symlink, path::Path};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinHandle,
};

use super::*;
use crate::{Algorithm, Key, digest::of, pack::Packed, storage::Retention};

pub(super) struct Running {
    pub(super) root: tempfile::TempDir,
    pub(super) address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

pub(super) async fn start(limits: Limits) -> Running {
    let root = tempfile::tempdir().unwrap();
    let storage = Storage::open(root.path(), "h", Retention::default()).unwrap();
    let key = Key::new("gitrepository", "ns", "a").unwrap();
    let write = |out: &mut std::io::BufWriter<&std::fs::File>| {
        out.write_all(b"0123456789").unwrap();
        let digest = of(Algorithm::Sha256, b"0123456789");
        Ok::<_, Error>(Packed {
            digest,
            sha256: String::new(),
            sha1: String::new(),
            size: 10,
        })
    };
    storage.store(&key, "1.tar.gz", None, write).unwrap();
    let server = Server::bind("127.0.0.1:0", Arc::new(storage), limits)
        .await
        .unwrap();
    let address = server.local_addr().unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(server.run(stop.clone()));
    Running {
        root,
        address,
        stop,
        task,
    }
}

/// Sends raw bytes and returns all that comes back until the server closes.
async fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A reset after the answer is as good as an end.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn get(address: SocketAddr, path: &str, headers: &str) -> String {
    raw(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{headers}\r\n"),
    )
    .await
}

const FILE: &str = "/gitrepository/ns/a/1.tar.gz";

#[tokio::test]
async fn files_are_served_whole_in_parts_and_not_at_all() {
    let server = start(Limits::default()).await;
    let at = server.address;
    let whole = get(at, FILE, "").await;
    assert!(
        whole.starts_with("HTTP/1.1 200") && whole.ends_with("\r\n\r\n0123456789"),
        "{whole}"
    );
    let digest = of(Algorithm::Sha256, b"0123456789");
    for header in [
        "content-length: 10",
        "accept-ranges: bytes",
        "content-type: application/gzip",
        "last-modified: ",
        &format!("etag: \"{digest}\""),
    ] {
        assert!(whole.contains(header), "{header} in {whole}");
    }
    assert!(
        get(at, "/gitrepository/ns/a/latest.tar.gz", "")
            .await
            .ends_with("0123456789")
    );
    let part = get(at, FILE, "Range: bytes=2-4\r\n").await;
    assert!(
        part.starts_with("HTTP/1.1 206") && part.ends_with("\r\n\r\n234"),
        "{part}"
    );
    assert!(part.contains("content-range: bytes 2-4/10"), "{part}");
    let outside = get(at, FILE, "Range: bytes=20-\r\n").await;
    assert!(
        outside.starts_with("HTTP/1.1 416") && outside.contains("bytes */10"),
        "{outside}"
    );
    let same = get(at, FILE, &format!("If-None-Match: \"{digest}\"\r\n")).await;
    assert!(
        same.starts_with("HTTP/1.1 304") && same.ends_with("\r\n\r\n"),
        "{same}"
    );
    let head = raw(
        at,
        &format!("HEAD {FILE} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
    )
    .await;
    assert!(
        head.contains("content-length: 10") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn nothing_but_artifacts_is_served() {
    let server = start(Limits::default()).await;
    let root = server.root.path();
    std::fs::write(root.join("secret"), b"canary").unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(outside.path(), b"canary").unwrap();
    let dir = root.join("gitrepository/ns/a");
    symlink(outside.path(), dir.join("absolute.tar.gz")).unwrap();
    symlink("1.tar.gz", dir.join("inside.tar.gz")).unwrap();
    symlink(Path::new("a"), root.join("gitrepository/ns/linked")).unwrap();
    std::fs::write(dir.join(".2.tar.gz.1.0.tmp"), b"canary").unwrap();
    for path in [
        "/secret",
        "/gitrepository",
        "/gitrepository/ns/a/",
        "/gitrepository/ns/a",
        "/gitrepository/ns/a/none.tar.gz",
        "/gitrepository/ns/a/absolute.tar.gz",
        "/gitrepository/ns/a/inside.tar.gz",
        "/gitrepository/ns/linked/1.tar.gz",
        "/gitrepository/ns/a/../../../secret",
        "/gitrepository/ns/%2e%2e/secret",
        "/gitrepository/ns/a/.2.tar.gz.1.0.tmp",
        "/gitrepository/ns/a/..%2f..%2f..%2fsecret",
    ] {
        let answer = get(server.address, path, "").await;
        assert!(
            answer.starts_with("HTTP/1.1 404") && answer.ends_with("404 page not found\n"),
            "{path}: {answer}"
        );
    }
    let post = raw(
        server.address,
        &format!("POST {FILE} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
    )
    .await;
    assert!(post.starts_with("HTTP/1.1 405"), "{post}");
    let root = get(server.address, "/", "").await;
    assert!(
        root.starts_with("HTTP/1.1 200") && root.ends_with("\r\n\r\n"),
        "{root}"
    );
}

#[tokio::test]
async fn slow_and_long_heads_are_cut_off() {
    let limits = Limits {
        header_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = start(limits).await;
    let answer = raw(server.address, "GET / HTTP/1.1\r\nHost:").await;
    assert!(!answer.contains("200"), "{answer}");
    let long = "x".repeat(64 << 10);
    let answer = raw(
        server.address,
        &format!("GET / HTTP/1.1\r\nHost: h\r\nX: {long}\r\n\r\n"),
    )
    .await;
    assert!(!answer.contains("200"), "{answer}");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let server = start(Limits {
        connections: 1,
        ..Limits::default()
    })
    .await;
    let first = TcpStream::connect(server.address).await.unwrap();
    let waiting = tokio::spawn(get(server.address, FILE, ""));
    drop(first);
    assert!(waiting.await.unwrap().ends_with("0123456789"));
}

#[tokio::test]
async fn it_stops_when_told_and_idle_connections_do_not_hold_it() {
    let server = start(Limits::default()).await;
    let _idle = TcpStream::connect(server.address).await.unwrap();
    assert!(get(server.address, FILE, "").await.ends_with("0123456789"));
    server.stop.cancel();
    timeout(Duration::from_secs(10), server.task)
        .await
        .unwrap()
        .unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}
