//! Files that are replaced or removed while somebody downloads them.

use std::{io::Write as _, net::SocketAddr};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::tests::start;
use crate::{
    Algorithm, Error, Key, Storage,
    digest::of,
    pack::Packed,
    storage::{ArtifactWriter, Retention},
};

const SIZE: usize = 24 << 20;
const FILE: &str = "large.tar.gz";

fn key() -> Key {
    Key::new("gitrepository", "ns", "slow").unwrap()
}

fn content(seed: u32) -> Vec<u8> {
    let words = (0..SIZE as u32 / 4).map(|at| at.wrapping_mul(0x9e37_79b1) ^ seed);
    words.flat_map(u32::to_le_bytes).collect()
}

fn store(storage: &Storage, file: &str, content: &[u8]) {
    let write = |out: &mut ArtifactWriter<'_>| {
        out.write_all(content).unwrap();
        let digest = of(Algorithm::Sha256, content);
        Ok::<_, Error>(Packed {
            sha256: digest.hex().to_owned(),
            sha1: String::new(),
            size: content.len() as u64,
            hashes: Vec::new(),
            digest,
        })
    };
    storage.store(&key(), file, None, write).unwrap();
}

fn replace(storage: &Storage, content: &[u8]) {
    let mut pieces = [Bytes::copy_from_slice(content)].into_iter();
    let digest = of(Algorithm::Sha256, content);
    let replaced = storage.restore::<Error>(&key(), FILE, &digest, || Ok(pieces.next()));
    assert!(replaced.unwrap());
}

async fn begin(address: SocketAddr) -> (TcpStream, String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /{} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        key().path(FILE)
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    loop {
        let mut piece = [0; 512];
        let n = stream.read(&mut piece).await.unwrap();
        answer.extend_from_slice(&piece[..n]);
        if let Some(at) = answer.windows(4).position(|four| four == b"\r\n\r\n") {
            let content = answer.split_off(at + 4);
            return (stream, String::from_utf8(answer).unwrap(), content);
        }
        assert_ne!(n, 0, "it ended early");
    }
}

async fn download(address: SocketAddr, meanwhile: impl FnOnce()) -> (String, Vec<u8>) {
    let (mut stream, head, mut content) = begin(address).await;
    meanwhile();
    stream.read_to_end(&mut content).await.unwrap();
    (head, content)
}

#[tokio::test(flavor = "multi_thread")]
async fn download_has_the_old_bytes_though_the_file_is_replaced_or_removed() {
    let server = start().await;
    let retention = Retention {
        ttl: std::time::Duration::ZERO,
        records: 1,
    };
    let storage = Storage::open(server.root.path(), "h", retention).unwrap();
    let (old, new) = (content(1), content(2));
    let changes: [(&str, &dyn Fn()); 3] = [
        ("replaced", &|| replace(&storage, &new)),
        ("collected", &|| {
            store(&storage, "next.tar.gz", b"next");
            let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
            assert!(storage.collect(&key(), "next.tar.gz", later).unwrap() > 0);
        }),
        ("removed", &|| storage.remove(&key()).unwrap()),
    ];
    for (how, change) in changes {
        storage.remove(&key()).unwrap();
        store(&storage, FILE, &old);
        let (head, read) = download(server.address, change).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{how}: {head}");
        assert!(head.contains(&of(Algorithm::Sha256, &old).to_string()), "{head}");
        assert!(read == old, "{how}: {} bytes, or others", read.len());
        // Later requests get the new file with its own tag, or none.
        let (head, read) = download(server.address, || {}).await;
        match how {
            "replaced" => {
                assert!(head.contains(&of(Algorithm::Sha256, &new).to_string()), "{head}");
                assert!(read == new, "{} bytes, or others", read.len());
            }
            _ => assert!(head.starts_with("HTTP/1.1 404"), "{how}: {head}"),
        }
    }
}
