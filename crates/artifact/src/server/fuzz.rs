//! Hostile requests: to the functions that parse them, and over the wire.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use testkit::fuzz::{self, Random};

use super::request::{Part, http_date, not_modified, part, storage_path};
use crate::Digest;

const PATH: &[&str] = &[
    "/",
    "a",
    "gitrepository",
    "ns",
    "1.tar.gz",
    "..",
    ".",
    "%2e",
    "%2F",
    "%2f",
    "%00",
    "%",
    "%+f",
    "%zz",
    "%ff",
    "\\",
    "//",
    "sha256%3Aab",
    ":",
    "?",
    "é",
    "latest.tar.gz",
];
const RANGE: &[&str] = &[
    "bytes=",
    "bytes",
    "=",
    "0",
    "1",
    "5",
    "9",
    "10",
    "-",
    ",",
    " ",
    "+",
    "18446744073709551615",
    "18446744073709551616",
    "x",
    "lines=",
];
const TAGS: &[&str] = &["\"e\"", "\"x\"", "W/", "*", ",", " ", "\"", "e", "W/\"e\""];
const DATES: &[&str] = &[
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 -0000",
    "Mon, ",
    "06 Nov",
    " ",
    "1994",
    "9999",
    "23:59:60",
    "GMT",
    "+9999",
    "0",
    "-",
];

fn headers(random: &mut Random) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut insert = |name: HeaderName, text: String| {
        if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
            headers.append(name, value);
        }
    };
    for _ in 0..random.below(5) {
        let form = random.below(2);
        match random.below(4) {
            0 => insert(
                header::RANGE,
                format!("{}{}", random.pick(&["bytes=", ""]), random.text(RANGE, 0..6)),
            ),
            1 => insert(header::IF_RANGE, random.text([TAGS, DATES][form], 0..4)),
            2 => insert(header::IF_NONE_MATCH, random.text(TAGS, 0..5)),
            _ => insert(header::IF_MODIFIED_SINCE, random.text(DATES, 0..5)),
        }
    }
    headers
}

#[test]
fn fuzz_requests_are_read() {
    fuzz::run("requests", |random| {
        let path = format!("{}{}", random.pick(&["/", ""]), random.text(PATH, 0..9));
        random.note("path", &path);
        if let Some(found) = storage_path(&path) {
            let parts: Vec<&str> = found.split('/').collect();
            assert_eq!(parts.len(), 4);
            assert!(
                parts
                    .iter()
                    .all(|part| !part.is_empty() && !part.starts_with('.') && !part.contains('\0'))
            );
            // With every byte encoded, it means the same; only hexadecimal digits encode.
            let encoded: String = found.bytes().map(|byte| format!("%{byte:02x}")).collect();
            assert_eq!(storage_path(&format!("/{encoded}")), Some(found));
            assert!(!path.contains("%+"));
        }
        let (headers, modified, size) = (headers(random), random.int(), random.int().unsigned_abs());
        random.note("headers, modified, size", &(&headers, modified, size));
        let _ = (not_modified(&headers, "\"e\"", modified), http_date(modified));
        if let Part::Bytes(first, last) = part(&headers, "\"e\"", modified, size) {
            assert!(first <= last && last < size);
        }
        let digest = random.text(
            &["sha256", "sha1", "sha512", ":", "0123456789abcdef", "F", "é", "g"],
            0..8,
        );
        random.note("digest", &digest);
        if let Ok(read) = Digest::parse(&digest) {
            assert_eq!(Digest::parse(&read.to_string()).unwrap(), read);
        }
    });
}

/// Writes requests line by line, mostly valid ones.
fn raw(random: &mut Random, damaged: bool) -> Vec<u8> {
    let mut lines = vec![format!(
        "{} {}{} {}",
        random.pick(&["GET", "HEAD", "GET", "HEAD", "POST", "OPTIONS", "get", ""]),
        random.pick(&[
            "/gitrepository/ns/a/1.tar.gz",
            "/",
            "",
            "http://h/gitrepository/ns/a/1.tar.gz",
            "*"
        ]),
        if random.flag() {
            random.text(PATH, 0..9)
        } else {
            String::new()
        },
        random.pick(&["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", ""]),
    )];
    if !random.one_in(8) {
        lines.push("Host: h".to_owned());
    }
    for (name, value) in &headers(random) {
        lines.push(format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())));
    }
    if random.one_in(6) {
        lines.push(format!(
            "Content-Length: {}",
            random.pick(&["0", "5", "-1", "99999999999999999999"])
        ));
    }
    if random.one_in(6) {
        lines.push(format!(
            "Transfer-Encoding: {}",
            random.pick(&["chunked", "x", "chunked, chunked"])
        ));
    }
    lines.push("Connection: close\r\n\r\n".to_owned());
    let mut bytes = lines.join("\r\n").into_bytes();
    if damaged {
        random.damage(&mut bytes, 3);
    }
    bytes
}

const GOOD: &[u8] = b"GET /gitrepository/ns/a/1.tar.gz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

#[test]
fn fuzz_the_server_answers_and_goes_on() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(super::tests::start());
    std::fs::write(server.root.path().join("canary"), "canary").unwrap();
    let ask = |request: &[u8], ends: bool| {
        let exchange = async {
            let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
            let sent = stream.write_all(request).await;
            if ends {
                let _ = stream.shutdown().await;
            }
            let mut answer = Vec::new();
            let read = stream.read_to_end(&mut answer).await;
            (answer, (sent, read))
        };
        let answer = async { tokio::time::timeout(std::time::Duration::from_secs(8), exchange).await };
        runtime.block_on(answer).expect("an answer in time")
    };
    fuzz::run("server", |random| {
        let damaged = random.one_in(4);
        let request = raw(random, damaged);
        random.note("request", &String::from_utf8_lossy(&request));
        // Incomplete requests are ended, or the server would rightly wait.
        let (answer, _) = ask(&request, damaged);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1."), "{answer}");
        assert!(
            !answer.contains("canary") && !answer.contains(" 500 "),
            "{answer}"
        );
        let (good, exchange) = ask(GOOD, false);
        assert!(
            good.ends_with(b"0123456789"),
            "the next request: {:?}, {exchange:?}",
            String::from_utf8_lossy(&good)
        );
    });
}
