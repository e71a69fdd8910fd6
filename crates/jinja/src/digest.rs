//! Checksums.

use sha2::{Digest as _, Sha256};

/// Returns the digest in hex, truncated to a number of characters.
pub(crate) fn digest(bytes: &[u8], len: Option<i64>) -> String {
    let mut digest = hex::encode(Sha256::digest(bytes));
    // A negative length counts from the end, as in Python's slices.
    digest.truncate(match len {
        Some(len) if len < 0 => digest
            .len()
            .saturating_sub(usize::try_from(len.unsigned_abs()).unwrap_or(usize::MAX)),
        Some(len) => usize::try_from(len).unwrap_or(usize::MAX),
        None => usize::MAX,
    });
    digest
}
