//! Signatures of commits and tags, by OpenPGP and SSH keys. Pure.

mod keys;
mod pgp_keys;
mod ssh_keys;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

use gix::bstr::ByteSlice;

use self::{keys::SSH_SUFFIX, pgp_keys::PgpKeys, ssh_keys::SshKeys};
pub use keys::Unverified;

const PGP: &str = "-----BEGIN PGP SIGNATURE-----";
const SSH: &str = "-----BEGIN SSH SIGNATURE-----";
const X509: &str = "-----BEGIN SIGNED MESSAGE-----";
const KEY_BYTES: usize = 1 << 20;
const SIGNATURE_BYTES: usize = 64 << 10;
/// Maximum size of a signed commit or tag in bytes.
const PAYLOAD_BYTES: usize = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignatureType {
    OpenPgp,
    Ssh,
    X509,
    Empty,
    Unknown,
}

impl SignatureType {
    fn of(signature: &str) -> Self {
        match signature.trim_start() {
            "" => Self::Empty,
            text if text.starts_with(PGP) => Self::OpenPgp,
            text if text.starts_with(SSH) => Self::Ssh,
            text if text.starts_with(X509) => Self::X509,
            _ => Self::Unknown,
        }
    }
}

/// A commit or an annotated tag, split into the signed part and the signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedObject {
    pub id: String,
    payload: Vec<u8>,
    signature: String,
}

impl SignedObject {
    /// Parses a commit: its signature is a header.
    pub(crate) fn of_commit(id: String, object: &[u8]) -> Self {
        let (mut payload, mut signature) = (Vec::with_capacity(object.len()), Vec::new());
        let (mut in_headers, mut in_signature) = (true, false);
        for line in object.lines_with_terminator() {
            if in_headers {
                in_headers = line != b"\n";
                // Another header ends the signature; continuation lines start with a space.
                in_signature = match line.strip_prefix(b"gpgsig ") {
                    Some(first) => {
                        signature.extend_from_slice(first);
                        true
                    }
                    None => in_signature && line.starts_with(b" "),
                };
                if in_signature {
                    signature.extend_from_slice(line.strip_prefix(b" ").unwrap_or_default());
                    continue;
                }
            }
            payload.extend_from_slice(line);
        }
        Self {
            id,
            payload,
            signature: String::from_utf8_lossy(&signature).into_owned(),
        }
    }

    /// Parses a tag: its signature is the end of its message.
    pub(crate) fn of_tag(id: String, object: &[u8]) -> Self {
        let (mut at, mut begin) = (0, None);
        for line in object.lines_with_terminator() {
            if [PGP, SSH, X509]
                .iter()
                .any(|first| line.starts_with(first.as_bytes()))
            {
                begin = Some(at);
            }
            at += line.len();
        }
        let (payload, signature) = object.split_at(begin.unwrap_or(object.len()));
        Self {
            id,
            payload: payload.to_vec(),
            signature: String::from_utf8_lossy(signature).into_owned(),
        }
    }

    #[must_use]
    pub fn is_signed(&self) -> bool {
        !self.signature.is_empty()
    }

    /// Returns the key that signed the object: the 16 hex digits of the primary OpenPGP key, or the SHA-256 fingerprint of the
    /// SSH key.
    ///
    /// # Errors
    /// Fails unless one of the keys made the signature.
    pub fn verify(&self, keys: &TrustedKeys) -> Result<String, Unverified> {
        if self.signature.len() > SIGNATURE_BYTES {
            let why = format!("the signature has more than {SIGNATURE_BYTES} bytes");
            return Err(Unverified::Malformed(why));
        }
        if self.payload.len() > PAYLOAD_BYTES {
            let why = format!("the signed object has more than {PAYLOAD_BYTES} bytes");
            return Err(Unverified::Malformed(why));
        }
        match SignatureType::of(&self.signature) {
            SignatureType::OpenPgp => keys.pgp.verify(&self.signature, &self.payload),
            SignatureType::Ssh => keys.ssh.verify(&self.signature, &self.payload),
            SignatureType::X509 => Err(Unverified::Unsupported("x509")),
            SignatureType::Empty => Err(Unverified::Unsupported("empty")),
            SignatureType::Unknown => Err(Unverified::Unsupported("unknown")),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct TrustedKeys {
    pgp: PgpKeys,
    ssh: SshKeys,
    fingerprint: String,
}

impl TrustedKeys {
    /// Parses the entries of a Secret. Names that end with `.sshpub` have lines as in `authorized_keys`, all others armored
    /// OpenPGP key rings. An invalid entry counts only if there is no other of its type.
    ///
    /// # Errors
    /// Fails if there are more than 1 MiB of keys.
    pub fn parse<'a>(entries: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Self, Unverified> {
        let (mut keys, mut bytes) = (Self::default(), 0);
        let mut sorted: Vec<_> = entries.into_iter().collect();
        sorted.sort_unstable();
        let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
        for (name, content) in sorted {
            bytes += content.len();
            if bytes > KEY_BYTES {
                return Err(Unverified::Malformed(format!(
                    "the public keys have more than {KEY_BYTES} bytes"
                )));
            }
            for part in [name.as_bytes(), content] {
                hash.update(&(part.len() as u64).to_be_bytes());
                hash.update(part);
            }
            match name.ends_with(SSH_SUFFIX) {
                true => keys.ssh.add(content),
                false => keys.pgp.add(content),
            }
        }
        let digest = hash.finish();
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        keys.fingerprint = format!("sha256:{hex}");
        Ok(keys)
    }

    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}
