//! age: X25519 identities, and SSH keys.

use std::{fmt, io::Read, sync::Arc};

use age::{Decryptor, armor::ArmoredReader, ssh, x25519};
use zeroize::Zeroizing;

use super::OpenError;
use crate::Error;

const WHAT: &str = "age identities";
const MAX_BYTES: u64 = 4096;
const MAX_IDENTITIES: usize = 1000;

/// Identities. Debug output shows only their number.
#[derive(Clone, Default)]
pub(super) struct Identities(Vec<Arc<dyn age::Identity + Send + Sync>>);

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} age identities", self.0.len())
    }
}

impl Identities {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, text: &str) -> Result<(), Error> {
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // The line must not be repeated: it may be a key with a typo.
            let wrong = |why: &str| Error::key(WHAT, format!("line {number}: {why}"));
            let identity = match line {
                _ if line.starts_with("AGE-PLUGIN-") => {
                    return Err(wrong("plugins are programs, and none is run"));
                }
                _ if line.starts_with("AGE-SECRET-KEY-PQ-") => {
                    return Err(wrong("post-quantum identities are not supported"));
                }
                _ => line
                    .parse::<x25519::Identity>()
                    .map_err(|_| wrong("it is no identity, which begins with AGE-SECRET-KEY-1"))?,
            };
            self.push(Arc::new(identity))?;
        }
        Ok(())
    }

    pub(super) fn add_ssh(&mut self, text: &str) -> Result<(), Error> {
        const SSH: &str = "private SSH key";
        let identity = ssh::Identity::from_buffer(text.as_bytes(), None)
            .map_err(|_| Error::key(SSH, "it cannot be read"))?;
        match identity {
            ssh::Identity::Unencrypted(_) => self.push(Arc::new(identity)),
            ssh::Identity::Encrypted(_) => Err(Error::key(SSH, "it has a passphrase")),
            ssh::Identity::Unsupported(_) => Err(Error::key(SSH, "only ed25519 and RSA keys can be used")),
        }
    }

    fn push(&mut self, identity: Arc<dyn age::Identity + Send + Sync>) -> Result<(), Error> {
        if self.0.len() >= MAX_IDENTITIES {
            return Err(Error::key(WHAT, format!("there are more than {MAX_IDENTITIES}")));
        }
        self.0.push(identity);
        Ok(())
    }

    pub(super) fn open(&self, enc: &str) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        if self.is_empty() {
            return Err(OpenError::NoKey("no age identity is given"));
        }
        let decryptor = Decryptor::new_buffered(ArmoredReader::new(enc.as_bytes()))
            .map_err(|_| OpenError::InvalidCiphertext("its encrypted key is no age file"))?;
        if decryptor.is_scrypt() {
            return Err(OpenError::Unsupported(
                "it is encrypted with a passphrase, and none is asked for",
            ));
        }
        let identities = self.0.iter().map(|identity| &**identity as &dyn age::Identity);
        let reader = decryptor.decrypt(identities).map_err(|error| match error {
            age::DecryptError::NoMatchingKeys => OpenError::NoKey("no age identity that is given matches"),
            _ => OpenError::InvalidCiphertext("its encrypted key is damaged"),
        })?;
        let mut key = Zeroizing::new(Vec::new());
        let read = reader.take(MAX_BYTES).read_to_end(&mut key);
        read.map_err(|_| OpenError::InvalidCiphertext("its encrypted key is damaged"))?;
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        Identities::default().add(text).unwrap_err().to_string()
    }

    #[test]
    fn identities_are_parsed_and_never_printed() {
        let mut identities = Identities::default();
        let text = "# key\n\n AGE-SECRET-KEY-1Q5M93U82SGJ9MGPA2Q3HVA4NMC4V2EWZTDY3XA7ZSP4R9VJ63UESL03U4P \n";
        identities.add(text).unwrap();
        assert_eq!(format!("{identities:?}"), "1 age identities");
        assert_eq!(
            message("#\nAGE-SECRET-KEY-1HUNTER2"),
            "age identities: line 2: it is no identity, which begins with AGE-SECRET-KEY-1"
        );
        assert!(message("AGE-PLUGIN-X-1").contains("none is run"));
        assert!(message("AGE-SECRET-KEY-PQ-1X").contains("post-quantum"));
        let many = std::iter::repeat_n(text, 1001).collect::<String>();
        assert!(message(&many).contains("more than 1000"));
        assert!(identities.add_ssh("nope").is_err());
    }

    #[test]
    fn passphrases_are_not_worked_on() {
        let mut recipient = age::scrypt::Recipient::new("x".to_owned().into());
        recipient.set_work_factor(2);
        let sealed = age::encrypt_and_armor(&recipient, b"key").unwrap();
        let mut identities = Identities::default();
        identities.push(Arc::new(x25519::Identity::generate())).unwrap();
        assert!(
            identities
                .open(&sealed)
                .unwrap_err()
                .to_string()
                .contains("passphrase")
        );
        assert!(
            Identities::default()
                .open(&sealed)
                .unwrap_err()
                .to_string()
                .contains("no age identity")
        );
        assert!(
            identities
                .open("x")
                .unwrap_err()
                .to_string()
                .contains("no age file")
        );
    }
}
