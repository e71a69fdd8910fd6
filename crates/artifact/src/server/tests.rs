use std::{
    convert::Infallible, io::Write as _, net::SocketAddr, os::unix::fs::symlink, path::Path, sync::Arc,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::{Algorithm, Error, Key, Storage, digest::of, pack::Packed, storage::Retention};

pub(super) struct Running {
    pub(super) root: tempfile::TempDir,
    pub(super) address: SocketAddr,
}

/// Serves a storage with one artifact for as long as the test's runtime lives.
pub(super) async fn start() -> Running {
    let root = tempfile::tempdir().unwrap();
    let storage = Storage::open(root.path(), "h", Retention::default()).unwrap();
    let key = Key::new("gitrepository", "ns", "a").unwrap();
    let write = |out: &mut crate::storage::ArtifactWriter<'_>| {
        out.write_all(b"0123456789").unwrap();
        let digest = of(Algorithm::Sha256, b"0123456789");
        Ok::<_, Error>(Packed {
            digest,
            sha256: String::new(),
            sha1: String::new(),
            size: 10,
            hashes: Vec::new(),
        })
    };
    storage.store(&key, "1.tar.gz", None, write).unwrap();
    storage.renew_alias(&key, "1.tar.gz").unwrap();
    let storage = Arc::new(storage);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let storage = Arc::clone(&storage);
            let service = service_fn(move |request| {
                let answer = answer(Arc::clone(&storage), request);
                async { Ok::<_, Infallible>(answer.await) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Running { root, address }
}

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
    let server = start().await;
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
    let server = start().await;
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
