//! Trusted host keys in the format of `known_hosts`.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;
use russh::keys::{Algorithm, HashAlg, PublicKey, parse_public_key_base64};

const MAX_LINES: usize = 20_000;
const MAX_BYTES: usize = 4 << 20;
/// Maximum size of all patterns with wildcards, in bytes: each is compared with the name of the host by the product of their lengths.
const MAX_WILDCARD_BYTES: usize = 256 << 10;
/// Maximum length of the name of a host with its port in bytes; longer ones are never trusted.
const MAX_NAME: usize = 300;

/// Trusted host keys in the format of `known_hosts`: names with wildcards and negations, hashed names, other ports than 22 as
/// `[host]:port`, several keys per host, and the markers `@revoked` and `@cert-authority`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownHosts(Arc<Entries>);

#[derive(Debug, Default, PartialEq, Eq)]
struct Entries {
    lines: Vec<Line>,
    revoked: Vec<PublicKey>,
    /// Number of the first line that can't be parsed.
    unread: Option<usize>,
    wildcard_bytes: usize,
    any: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Line {
    hosts: String,
    /// True for a key that signs certificates of hosts.
    authority: bool,
    key: PublicKey,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKnownHosts {
    #[error("line {0}: the revoked key cannot be read")]
    Revoked(usize),
    #[error("known_hosts is longer than {MAX_LINES} lines or {MAX_BYTES} bytes")]
    TooLong,
    #[error("known_hosts has more than {MAX_WILDCARD_BYTES} bytes of names with wildcards")]
    TooManyWildcards,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Trusted,
    Unknown {
        /// Number of the first line that can't be parsed.
        unread: Option<usize>,
        /// True if an authority may sign certificates of the host, which are not supported.
        authority: bool,
    },
    Mismatch(Vec<String>),
    Revoked,
}

impl KnownHosts {
    /// Parses `known_hosts` files. Invalid lines are skipped, unless they revoke a key.
    ///
    /// # Errors
    /// Fails if a revoked key cannot be read, and for more than 20,000 lines or 4 MiB.
    pub fn parse(content: &[u8]) -> Result<Self, InvalidKnownHosts> {
        if content.len() > MAX_BYTES {
            return Err(InvalidKnownHosts::TooLong);
        }
        let text = String::from_utf8_lossy(content);
        let mut entries = Entries::default();
        for (at, line) in text.lines().enumerate() {
            if at >= MAX_LINES {
                return Err(InvalidKnownHosts::TooLong);
            }
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                entries.add(at + 1, line)?;
            }
        }
        if entries.wildcard_bytes > MAX_WILDCARD_BYTES {
            return Err(InvalidKnownHosts::TooManyWildcards);
        }
        Ok(Self(Arc::new(entries)))
    }

    /// Trusts the key of every host: only for users who ask for it.
    #[must_use]
    pub fn any() -> Self {
        Self(Arc::new(Entries {
            any: true,
            ..Entries::default()
        }))
    }

    pub(crate) fn algorithms(&self, host: &str, port: u16) -> Vec<Algorithm> {
        let mut found: Vec<Algorithm> = Vec::new();
        for line in self.matching(host, port).filter(|line| !line.authority) {
            let algorithm = line.key.algorithm();
            if !found.contains(&algorithm) {
                found.push(algorithm);
            }
        }
        found
    }

    pub(crate) fn check(&self, host: &str, port: u16, key: &PublicKey) -> Verdict {
        let is = |known: &PublicKey| known.key_data() == key.key_data();
        if self.0.revoked.iter().any(is) {
            return Verdict::Revoked;
        }
        if self.0.any {
            return Verdict::Trusted;
        }
        let (authorities, known): (Vec<_>, Vec<_>) =
            self.matching(host, port).partition(|line| line.authority);
        if known.iter().any(|line| is(&line.key)) {
            return Verdict::Trusted;
        }
        if known.is_empty() {
            return Verdict::Unknown {
                unread: self.0.unread,
                authority: !authorities.is_empty(),
            };
        }
        Verdict::Mismatch(known.iter().map(|line| describe(&line.key)).collect())
    }

    fn matching(&self, host: &str, port: u16) -> impl Iterator<Item = &Line> {
        let name = name(host, port);
        self.0
            .lines
            .iter()
            .filter(move |line| name.len() <= MAX_NAME && matches_host(&line.hosts, &name))
    }
}

impl Entries {
    fn add(&mut self, number: usize, line: &str) -> Result<(), InvalidKnownHosts> {
        let mut words = line.split_ascii_whitespace();
        let mut first = words.next().unwrap_or_default();
        let marker = first.strip_prefix('@');
        if marker.is_some() {
            first = words.next().unwrap_or_default();
        }
        let patterns = first.split(',').filter(|pattern| pattern.contains(['*', '?']));
        self.wildcard_bytes += patterns.map(str::len).sum::<usize>();
        let key = words.nth(1).and_then(|key| parse_public_key_base64(key).ok());
        match (marker, key) {
            (Some("revoked"), Some(key)) => self.revoked.push(key),
            (Some("revoked"), None) => return Err(InvalidKnownHosts::Revoked(number)),
            (None | Some("cert-authority"), Some(key)) => self.lines.push(Line {
                hosts: first.to_owned(),
                authority: marker.is_some(),
                key,
            }),
            _ => self.unread = self.unread.or(Some(number)),
        }
        Ok(())
    }
}

pub(crate) fn name(host: &str, port: u16) -> String {
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    match port {
        22 => host,
        port => format!("[{host}]:{port}"),
    }
}

pub(crate) fn describe(key: &PublicKey) -> String {
    format!("{} {}", key.algorithm(), key.fingerprint(HashAlg::Sha256))
}

/// Returns true if a list of patterns names a host, and none of its negations does.
fn matches_host(patterns: &str, name: &str) -> bool {
    if let Some(hashed) = patterns.strip_prefix("|1|") {
        return matches_hash(hashed, name).unwrap_or(false);
    }
    let mut found = false;
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches_pattern(pattern, name) => return false,
            Some(_) => {}
            None => found = found || matches_pattern(pattern, name),
        }
    }
    found
}

fn matches_hash(hashed: &str, name: &str) -> Option<bool> {
    let (salt, hash) = hashed.split_once('|')?;
    let (salt, hash) = (STANDARD.decode(salt).ok()?, STANDARD.decode(hash).ok()?);
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    Some(hmac::verify(&key, name.as_bytes(), &hash).is_ok())
}

/// Compares a name with a pattern with `*` and `?`, in time proportional to the product of their lengths.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern.eq_ignore_ascii_case(name);
    }
    let pattern = pattern.to_ascii_lowercase();
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut matched) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(&byte) = name.get(matched) {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, matched));
                at += 1;
            }
            Some(&wanted) if wanted == byte || wanted == b'?' => {
                at += 1;
                matched += 1;
            }
            _ => match star {
                Some((back, from)) => {
                    star = Some((back, from + 1));
                    (at, matched) = (back + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern
        .get(at..)
        .is_none_or(|rest| rest.iter().all(|byte| *byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const B: &str = "AAAAC3NzaC1lZDI1NTE5AAAAILIG2T/B0l0gaqj3puu510tu9N1OkQ4znY3LYuEm5zCF";

    fn key(text: &str) -> PublicKey {
        parse_public_key_base64(text).unwrap()
    }

    fn verdict(known: &str, host: &str, port: u16) -> Verdict {
        KnownHosts::parse(keyed(known).as_bytes())
            .unwrap()
            .check(host, port, &key(A))
    }

    fn keyed(known: &str) -> String {
        let own = format!("ssh-ed25519 {A}");
        known
            .replace("ssh-ed25519 A", &own)
            .replace("ssh-ed25519 B", &format!("ssh-ed25519 {B}"))
    }

    fn unknown() -> Verdict {
        Verdict::Unknown {
            unread: None,
            authority: false,
        }
    }

    #[test]
    fn hosts_are_found_by_name_pattern_port_and_hash() {
        for (known, host, port, trusted) in [
            ("h ssh-ed25519 A", "h", 22, true),
            ("h ssh-ed25519 A comment", "H", 22, true),
            ("g,h ssh-ed25519 A", "h", 22, true),
            ("# h ssh-ed25519 A", "h", 22, false),
            ("h ssh-ed25519 A", "h", 2222, false),
            ("[h]:2222 ssh-ed25519 A", "h", 2222, true),
            ("[h]:2222 ssh-ed25519 A", "h", 22, false),
            ("[::1]:2222 ssh-ed25519 A", "[::1]", 2222, true),
            ("::1 ssh-ed25519 A", "[::1]", 22, true),
            ("*.example.com ssh-ed25519 A", "git.example.com", 22, true),
            ("*.example.com ssh-ed25519 A", "example.com", 22, false),
            ("git?.x,!git2.x ssh-ed25519 A", "git1.x", 22, true),
            ("git?.x,!git2.x ssh-ed25519 A", "git2.x", 22, false),
            ("* ssh-ed25519 A", "h", 22, true),
            (
                "|1|O33ESRMWPVkMYIwJ1Uw+n877jTo=|nuuC5vEqXlEZ/8BXQR7m619W6Ak= ssh-ed25519 A",
                "example.com",
                22,
                true,
            ),
            (
                "|1|O33ESRMWPVkMYIwJ1Uw+n877jTo=|nuuC5vEqXlEZ/8BXQR7m619W6Ak= ssh-ed25519 A",
                "example.org",
                22,
                false,
            ),
            ("|1|?|? ssh-ed25519 A", "example.org", 22, false),
        ] {
            let known_hosts = KnownHosts::parse(keyed(known).as_bytes()).unwrap();
            let expected = if trusted { Verdict::Trusted } else { unknown() };
            assert_eq!(
                known_hosts.check(host, port, &key(A)),
                expected,
                "{known} {host}:{port}"
            );
        }
    }

    #[test]
    fn other_key_is_a_mismatch_unless_one_of_several_fits() {
        assert_eq!(
            verdict("h ssh-ed25519 B\nh ssh-ed25519 A", "h", 22),
            Verdict::Trusted
        );
        let Verdict::Mismatch(known) = verdict("h ssh-ed25519 B", "h", 22) else {
            panic!("no mismatch");
        };
        assert!(known.concat().starts_with("ssh-ed25519 SHA256:"), "{known:?}");
    }

    #[test]
    fn revoked_keys_are_refused_for_every_host() {
        for known in [
            "h ssh-ed25519 A\n@revoked other ssh-ed25519 A",
            "@revoked * ssh-ed25519 A\nh ssh-ed25519 A",
        ] {
            assert_eq!(verdict(known, "h", 22), Verdict::Revoked, "{known}");
        }
        let broken = KnownHosts::parse(b"\n@revoked h ssh-ed25519 nonsense");
        assert_eq!(broken, Err(InvalidKnownHosts::Revoked(2)));
    }

    #[test]
    fn key_of_an_authority_is_no_host_key() {
        let expected = Verdict::Unknown {
            unread: None,
            authority: true,
        };
        assert_eq!(verdict("@cert-authority * ssh-ed25519 A", "h", 22), expected);
    }

    #[test]
    fn lines_that_are_not_understood_are_left_out_and_counted() {
        let known = "h\nh ssh-ed25519 ?\n@other h ssh-ed25519 A";
        let expected = Verdict::Unknown {
            unread: Some(1),
            authority: false,
        };
        assert_eq!(verdict(known, "h", 22), expected);
        assert_eq!(verdict("?\nh ssh-ed25519 A", "h", 22), Verdict::Trusted);
    }

    #[test]
    fn long_lists_are_refused_and_patterns_are_fast() {
        let long = "#\n".repeat(MAX_LINES + 1);
        assert_eq!(
            KnownHosts::parse(long.as_bytes()),
            Err(InvalidKnownHosts::TooLong)
        );
        let stars = format!("{}b ssh-ed25519 {A}", "*a".repeat(10_000));
        let known = KnownHosts::parse(stars.as_bytes()).unwrap();
        assert_eq!(known.check(&"a".repeat(255), 22, &key(A)), unknown());
    }

    #[test]
    fn names_with_wildcards_are_bounded_by_their_product_with_the_name() {
        let line = format!("{} ssh-ed25519 A\n", "*a?".repeat(400));
        let few = keyed(&line.repeat(MAX_WILDCARD_BYTES / 1200));
        assert!(KnownHosts::parse(few.as_bytes()).is_ok());
        let many = keyed(&line.repeat(MAX_WILDCARD_BYTES / 1200 + 1));
        assert_eq!(
            KnownHosts::parse(many.as_bytes()),
            Err(InvalidKnownHosts::TooManyWildcards)
        );
        let plain = format!("{} ssh-ed25519 A\n", "host.example.com,".repeat(100));
        assert!(KnownHosts::parse(keyed(&plain.repeat(500)).as_bytes()).is_ok());
        let longest = "a".repeat(MAX_NAME);
        assert_eq!(verdict("* ssh-ed25519 A", &longest, 22), Verdict::Trusted);
        assert_eq!(verdict("* ssh-ed25519 A", &format!("{longest}a"), 22), unknown());
    }
}
