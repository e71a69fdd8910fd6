//! Random and damaged answers of Git servers: packet lines, lists of refs, packs.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use testkit::fuzz::{self, Random};

use super::{Announcements, Network};
use crate::{Call, Error, Remote, Selector};

const COMMIT: &str = "1f3d5b7a9c1e2d4f6b8a0c2e4d6f8a0b1c3e5d7f";
const PIECES: &[&str] = &[
    "0000",
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "fff0",
    "ffff",
    "zzzz",
    "003d",
    "ERR no",
    "version 1",
    "version 2\n",
    "refs/heads/main",
    "refs/heads/../x",
    " peeled:",
    " symref-target:",
    "unborn HEAD",
    "object-format=sha256",
    "\u{1}",
    "\u{2}",
    "\u{3}",
    "PACK\0\0\0\u{2}\0\0\0\0",
    "packfile\n",
    "acknowledgments\n",
    "shallow ",
    "\0",
    "\n",
    " ",
    COMMIT,
];

type Answers = Arc<Mutex<[Vec<u8>; 3]>>;

fn line(to: &mut Vec<u8>, content: &[u8]) {
    to.extend(format!("{:04x}", content.len() + 4).into_bytes());
    to.extend(content);
}

fn answer(lines: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for content in lines {
        match *content {
            b"" => bytes.extend(b"0000"),
            content => line(&mut bytes, content),
        }
    }
    bytes
}

fn undamaged() -> [Vec<u8>; 3] {
    let main = format!("{COMMIT} refs/heads/main\n");
    [
        answer(&[
            b"# service=git-upload-pack\n",
            b"",
            b"version 2\n",
            b"ls-refs=unborn\n",
            b"fetch=shallow\n",
            b"object-format=sha1\n",
            b"",
        ]),
        answer(&[main.as_bytes(), b""]),
        answer(&[
            b"packfile\n",
            b"\x01PACK\0\0\0\x02\0\0\0\0",
            b"\x02a message\n",
            b"",
        ]),
    ]
}

fn answers(random: &mut Random) -> [Vec<u8>; 3] {
    let mut answers = undamaged();
    for bytes in &mut answers {
        match random.below(4) {
            0 => {}
            1 => random.damage(bytes, 3),
            2 => {
                let at = random.below(bytes.len() + 1);
                let piece = random.text(PIECES, 1..4);
                bytes.splice(at..at, piece.into_bytes());
            }
            _ => {
                *bytes = random.text(PIECES, 0..20).into_bytes();
                if random.flag() {
                    *bytes = answer(&[bytes, b""]);
                }
            }
        }
    }
    answers
}

fn respond(stream: &TcpStream, answers: &Answers) -> std::io::Result<()> {
    let (mut reader, mut head, mut length) = (BufReader::new(stream), String::new(), 0);
    while reader.read_line(&mut head)? > 2 {
        let last = head.lines().last().unwrap_or_default().to_ascii_lowercase();
        if let Some(value) = last.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let is_fetch = body.windows(13).any(|part| part == b"command=fetch");
    let (index, kind) = match (head.starts_with("GET"), is_fetch) {
        (true, _) => (0, "advertisement"),
        (false, false) => (1, "result"),
        (false, true) => (2, "result"),
    };
    let content = answers.lock()[index].clone();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-{kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    let mut writer = stream;
    writer.write_all(head.as_bytes())?;
    writer.write_all(&content)
}

fn serve(answers: Answers) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = respond(&stream, &answers);
        }
    });
    format!("http://{address}/x.git")
}

struct Served {
    _runtime: tokio::runtime::Runtime,
    answers: Answers,
    network: Network,
    remote: Remote,
}

impl Served {
    fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let answers = Answers::default();
        Self {
            network: Network::new(runtime.handle().clone(), net::AddressPolicy::command_line()),
            remote: Remote::new(&serve(Arc::clone(&answers))).unwrap(),
            answers,
            _runtime: runtime,
        }
    }

    fn fetch(&self, answers: &[Vec<u8>; 3]) -> Result<(), Error> {
        self.answers.lock().clone_from(answers);
        let main = Selector {
            branch: Some("main".to_owned()),
            ..Selector::default()
        };
        let network = Network {
            announcements: Announcements::default(),
            ..self.network.clone()
        };
        let call = Call::new(Duration::from_secs(60));
        let dir = tempfile::tempdir().unwrap();
        let mut session = network.open(&self.remote, &call)?;
        let resolved = session.resolve(&main.reference()?)?;
        assert!(resolved.commit.len() == 40 && resolved.revision().ends_with(&resolved.commit));
        session.fetch(&resolved, dir.path()).map(drop)
    }
}

#[test]
fn fuzz_packet_lines_of_servers_end_in_an_answer() {
    let served = Served::start();
    fuzz::run("packet lines", |random| {
        let answers = answers(random);
        random.note("answers", &answers);
        match served.fetch(&answers) {
            Ok(()) => panic!("no answer has the commit"),
            Err(Error::Timeout { .. }) => panic!("a connection that ended is given up"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

#[test]
fn server_that_only_acknowledges_is_given_up() {
    let served = Served::start();
    let [handshake, refs, _] = undamaged();
    let error = served
        .fetch(&[handshake, refs, answer(&[b"acknowledgments\n", b""])])
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("answered 64 requests without sending"), "{text}");
}
