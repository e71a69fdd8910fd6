//! Random addresses, known hosts, and beginnings of connections.

use russh::keys::parse_public_key_base64;
use testkit::fuzz;

use super::{
    address,
    known_hosts::{KnownHosts, Verdict},
};
use crate::Remote;

const ADDRESSES: &[&str] = &[
    "ssh://",
    "git+ssh://",
    "git",
    "@",
    ":",
    "/",
    "//",
    "~",
    "h",
    "[",
    "]",
    "::1",
    "22",
    "2222",
    "99999",
    "-",
    "%2f",
    "%00",
    "%",
    "'",
    "!",
    "?",
    "#",
    " ",
    "\n",
    "é",
    "..",
    "\\",
    "127.0.0.1",
    "0x7f.1",
    "ext::",
];

const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

const KNOWN: &[&str] = &[
    "h",
    "H",
    "g",
    ",",
    "!",
    "*",
    "?",
    "[h]:22",
    "[h]:2222",
    "|1|",
    "|",
    "O33ESRMWPVkMYIwJ1Uw+n877jTo=",
    " ",
    "\t",
    "\n",
    "#",
    "@revoked ",
    "@cert-authority ",
    "@x ",
    "ssh-ed25519",
    " ssh-ed25519 ",
    KEY,
    "AAAA",
    "=",
    "é",
];

#[test]
fn fuzz_addresses_of_ssh() {
    fuzz::run("ssh addresses", |random| {
        let text = random.text(ADDRESSES, 0..12);
        random.note("address", &text);
        let remote = Remote::new(&text);
        if !address::is_ssh(&text) {
            return assert!(!remote.is_ok_and(|remote| remote.is_ssh()));
        }
        let Ok(address) = address::parse(&text) else {
            return assert!(remote.is_err());
        };
        // A shell reads exactly two words.
        let command = address.command(super::address::FETCH);
        let quoted = command.strip_prefix("git-upload-pack '").unwrap();
        let quoted = quoted.strip_suffix('\'').unwrap();
        assert_eq!(
            quoted.replace(r"'\''", "").replace(r"'\!'", "").find(['\'', '!']),
            None
        );
        assert!(!command.chars().any(char::is_control));
        assert!(!address.path.starts_with('-') && !address.user.unwrap_or_default().starts_with('-'));
        assert!(!address.host.to_string().starts_with('-'));
    });
}

#[test]
fn fuzz_known_hosts() {
    let key = parse_public_key_base64(KEY).unwrap();
    fuzz::run("known hosts", |random| {
        let text = random.text(KNOWN, 0..40);
        random.note("known hosts", &text);
        let Ok(known) = KnownHosts::parse(text.as_bytes()) else {
            return assert!(text.contains("@revoked"));
        };
        let verdict = known.check("h", 22, &key);
        if verdict == Verdict::Trusted {
            assert!(text.contains(KEY), "trusted without its key");
            let all = KnownHosts::parse(format!("{text}\n@revoked * ssh-ed25519 {KEY}").as_bytes());
            assert_eq!(all.unwrap().check("h", 22, &key), Verdict::Revoked);
        }
    });
}

struct Nobody;

impl russh::client::Handler for Nobody {
    type Error = russh::Error;
}

#[test]
fn fuzz_banners_and_first_packets() {
    let pieces = [
        "SSH-2.0-x",
        "SSH-1.99-",
        "SSH-1.5-",
        "\r\n",
        "\n",
        "\r",
        "\0",
        "x",
        "\u{14}",
        "\0\0\u{1}\u{c}",
        "\u{7f}",
    ];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    fuzz::run("ssh banners", |random| {
        let mut bytes = random.text(&pieces, 0..20).into_bytes();
        if random.flag() {
            bytes.extend(random.bytes(0..600));
        }
        random.note("bytes", &bytes);
        let connected = runtime.block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(1 << 16);
            tokio::io::AsyncWriteExt::write_all(&mut theirs, &bytes)
                .await
                .unwrap();
            tokio::io::AsyncWriteExt::shutdown(&mut theirs).await.unwrap();
            let connecting = russh::client::connect_stream(std::sync::Arc::default(), ours, Nobody);
            let ended = tokio::time::timeout(std::time::Duration::from_secs(10), connecting).await;
            ended.expect("a connection that ended is given up").is_ok()
        });
        assert!(!connected, "random bytes are no server");
    });
}
