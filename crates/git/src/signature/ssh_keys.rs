//! Signatures by SSH keys, as `ssh-keygen -Y sign` makes them.

use russh::keys::ssh_key::{HashAlg, PublicKey, SshSig, authorized_keys::AuthorizedKeys};

use super::keys::{Parsed, SSH_SUFFIX, Unverified};

const NAMESPACE: &str = "git";
const END: &str = "-----END SSH SIGNATURE-----";

#[derive(Debug, Clone, Default)]
pub(super) struct SshKeys(Parsed<PublicKey>);

impl SshKeys {
    pub(super) fn add(&mut self, content: &[u8]) {
        self.0.add(parse(content));
    }

    pub(super) fn verify(&self, signature: &str, payload: &[u8]) -> Result<String, Unverified> {
        let keys = self.0.usable("SSH", SSH_SUFFIX)?;
        let malformed = || Unverified::Malformed("unable to unarmor SSH signature".to_owned());
        // Content after the end is not part of it.
        let text = signature.trim_start();
        let end = text.find(END).ok_or_else(malformed)? + END.len();
        let text = text.get(..end).ok_or_else(malformed)?;
        let signature = SshSig::from_pem(format!("{text}\n")).map_err(|_| malformed())?;
        // Hashed once for all keys, and only the key in the signature can have made it.
        let hash = signature.hash_alg().digest(payload);
        let named = keys.iter().find(|key| key.key_data() == signature.public_key());
        let made = |key: &&PublicKey| key.verify_prehash(NAMESPACE, hash.as_slice(), &signature).is_ok();
        let signer = named.filter(made);
        let signer = signer.ok_or(Unverified::NoMatch("authorized keys"))?;
        Ok(signer.fingerprint(HashAlg::Sha256).to_string())
    }
}

fn parse(content: &[u8]) -> Result<Vec<PublicKey>, String> {
    let failed = |why: &str| format!("unable to parse authorized key: {why}");
    let text = std::str::from_utf8(content).map_err(|_| failed("it is not UTF-8"))?;
    let mut keys = Vec::new();
    for entry in AuthorizedKeys::new(text) {
        let entry = entry.map_err(|error| failed(&error.to_string()))?;
        keys.push(entry.public_key().clone());
    }
    match keys.is_empty() {
        true => Err(failed("there is none")),
        false => Ok(keys),
    }
}
