//! age: X25519 and post-quantum identities, and SSH keys.

mod hybrid;

use std::{fmt, io::Read, sync::Arc};

use age::{Decryptor, armor::ArmoredReader, ssh, x25519};
use zeroize::Zeroizing;

use super::OpenError;
use crate::{Error, attempts::Attempts};
use hybrid::HybridIdentity;

const WHAT: &str = "age identities";
const MAX_BYTES: u64 = 4096;
const MAX_IDENTITIES: usize = 1000;
/// Maximum size of an encrypted data key in bytes.
const MAX_ENCRYPTED_BYTES: usize = 64 << 10;
/// Attempts between two polls of the budget: one for each identity and recipient.
const MAX_ATTEMPTS: usize = 512;

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
                _ if line.starts_with(hybrid::PREFIX) => {
                    let identity = HybridIdentity::parse(line);
                    Arc::new(identity.ok_or_else(|| wrong("it is not a valid post-quantum identity"))?) as _
                }
                _ => {
                    let identity = line.parse::<x25519::Identity>();
                    Arc::new(
                        identity
                            .map_err(|_| wrong("it is no identity, which begins with AGE-SECRET-KEY-1"))?,
                    ) as _
                }
            };
            self.push(identity)?;
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

    /// Opens a data key. Each identity is tried for each recipient.
    pub(super) fn open(
        &self,
        enc: &str,
        attempts: &mut Attempts<'_>,
    ) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        if self.is_empty() {
            return Err(OpenError::NoKey("no age identity is given"));
        }
        let recipients = recipients(enc)?;
        attempts.expect((self.0.len() * recipients) as u64)?;
        for identities in self.0.chunks((MAX_ATTEMPTS / recipients).max(1)) {
            attempts.charge((identities.len() * recipients) as u64)?;
            let identities = identities.iter().map(|each| &**each as &dyn age::Identity);
            let reader = match decryptor(enc)?.decrypt(identities) {
                Ok(reader) => reader,
                Err(age::DecryptError::NoMatchingKeys) => continue,
                Err(_) => return Err(OpenError::InvalidCiphertext("its encrypted key is damaged")),
            };
            let mut key = Zeroizing::new(Vec::new());
            let read = reader.take(MAX_BYTES).read_to_end(&mut key);
            read.map_err(|_| OpenError::InvalidCiphertext("its encrypted key is damaged"))?;
            return Ok(key);
        }
        Err(OpenError::NoKey("no age identity that is given matches"))
    }
}

const NO_AGE_FILE: OpenError = OpenError::InvalidCiphertext("its encrypted key is no age file");

fn decryptor(enc: &str) -> Result<Decryptor<impl Read + '_>, OpenError> {
    let decryptor = Decryptor::new_buffered(ArmoredReader::new(enc.as_bytes())).map_err(|_| NO_AGE_FILE)?;
    if decryptor.is_scrypt() {
        return Err(OpenError::Unsupported(
            "it is encrypted with a passphrase, and none is asked for",
        ));
    }
    Ok(decryptor)
}

/// Returns the number of recipients in the header, or more; at least one.
fn recipients(enc: &str) -> Result<usize, OpenError> {
    if enc.len() > MAX_ENCRYPTED_BYTES {
        return Err(NO_AGE_FILE);
    }
    let mut bytes = Vec::new();
    let reader = ArmoredReader::new(enc.as_bytes());
    reader
        .take(MAX_ENCRYPTED_BYTES as u64)
        .read_to_end(&mut bytes)
        .map_err(|_| NO_AGE_FILE)?;
    let found = bytes.windows(3).filter(|window| window == b"\n->").count();
    Ok(found.max(1))
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, sync::atomic::AtomicBool};

    use age::{
        Encryptor,
        armor::{ArmoredWriter, Format},
    };
    use tree::Budget;

    use crate::attempts::Refused;

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
                .open(&sealed, &mut Attempts::new(&Budget::default()))
                .unwrap_err()
                .to_string()
                .contains("passphrase")
        );
        assert!(
            Identities::default()
                .open(&sealed, &mut Attempts::new(&Budget::default()))
                .unwrap_err()
                .to_string()
                .contains("no age identity")
        );
        assert!(
            identities
                .open("x", &mut Attempts::new(&Budget::default()))
                .unwrap_err()
                .to_string()
                .contains("no age file")
        );
    }

    #[test]
    fn attempts_are_identities_times_recipients_and_refused_before_they_are_made() {
        let own = x25519::Identity::generate();
        let other: Arc<dyn age::Identity + Send + Sync> = Arc::new(x25519::Identity::generate());
        let stranger = x25519::Identity::generate().to_public();
        let sealed = |others: usize| {
            let mut all = vec![stranger.clone(); others];
            all.push(own.to_public());
            let all = all.iter().map(|each| each as &dyn age::Recipient);
            let mut armored = ArmoredWriter::wrap_output(Vec::new(), Format::AsciiArmor).unwrap();
            let mut writer = Encryptor::with_recipients(all)
                .unwrap()
                .wrap_output(&mut armored)
                .unwrap();
            writer.write_all(b"key").unwrap();
            writer.finish().unwrap();
            String::from_utf8(armored.finish().unwrap()).unwrap()
        };
        let (few, many) = (sealed(9), sealed(299));
        let mut identities = Identities::default();
        for _ in 1..MAX_IDENTITIES {
            identities.push(Arc::clone(&other)).unwrap();
        }
        identities.push(Arc::new(own.clone())).unwrap();
        let budget = Budget::default();
        let mut attempts = Attempts::new(&budget);
        let error = identities.open(&many, &mut attempts).unwrap_err();
        assert!(error.to_string().contains("too many attempts"), "{error}");
        assert_eq!(attempts.spent(), 0);

        let mut identities = Identities::default();
        for _ in 0..60 {
            identities.push(Arc::clone(&other)).unwrap();
        }
        identities.push(Arc::new(own)).unwrap();
        assert_eq!(*identities.open(&few, &mut attempts).unwrap(), b"key");
        // With a recipient that age invents, at times.
        assert!(
            (610..=61 * 12).contains(&attempts.spent()),
            "{}",
            attempts.spent()
        );
        let flag = Arc::new(AtomicBool::new(true));
        let budget = Budget::default().with_cancellation(flag);
        let error = identities.open(&few, &mut Attempts::new(&budget)).unwrap_err();
        assert!(
            matches!(error, OpenError::TooMuch(Refused::Exceeded(_))),
            "{error}"
        );
        let long = "A".repeat(MAX_ENCRYPTED_BYTES + 1);
        let error = identities.open(&long, &mut attempts).unwrap_err();
        assert!(error.to_string().contains("no age file"), "{error}");
    }
}
