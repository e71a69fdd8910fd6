//! Digests.

use ring::digest::{SHA256, digest};

/// Returns the SHA-256 in hexadecimal digits. ring is fast in debug builds, too, in which `make dist` hashes all programs.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes))
}
