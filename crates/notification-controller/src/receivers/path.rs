//! The paths of webhooks.

use sha2::{Digest, Sha256};

pub(super) const PREFIX: &str = "/hook/";

/// Returns the path of a webhook, which anyone with the token can compute.
pub(crate) fn path(token: &[u8], name: &str, namespace: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(token);
    hash.update(name.as_bytes());
    hash.update(namespace.as_bytes());
    format!("{PREFIX}{}", hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_digests_of_token_name_and_namespace() {
        // echo -n "tokentestdefault" | sha256sum
        let expected = hex::encode(Sha256::digest(b"tokentestdefault"));
        assert_eq!(path(b"token", "test", "default"), format!("/hook/{expected}"));
        assert_ne!(
            path(b"token\n", "test", "default"),
            path(b"token", "test", "default")
        );
    }
}
