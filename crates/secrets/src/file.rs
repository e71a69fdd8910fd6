//! A file, from its encrypted bytes to its content.

use sha2::{Digest, Sha256};
use tree::{Budget, Exceeded};

use crate::{
    DataKey, Error, Format, Keys, data_key,
    document::{Branch, Value, Wiped, printed_size},
    metadata::Metadata,
    store, walk,
};

/// Maximum size of a decrypted file, relative to the size that an encrypted one may have.
const PRINTED: u64 = 4;

pub struct File {
    metadata: Metadata,
    documents: Vec<Branch>,
    format: Format,
}

/// Result of checking the MAC of a file's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mac {
    Verified,
    /// They changed since, or the file was made without the key.
    Mismatch,
    Absent,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Decrypted {
    /// As `sops --decrypt` prints it.
    pub content: Vec<u8>,
    pub mac: Mac,
}

impl std::fmt::Debug for Decrypted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decrypted(*** {:?})", self.mac)
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "File({:?})", self.format)
    }
}

impl File {
    /// Reads a file; `None` if it has no SOPS metadata, and so is not encrypted.
    pub fn read(format: Format, bytes: &[u8], budget: &Budget) -> Result<Option<Self>, Error> {
        let Some(loaded) = store::load(format, bytes, budget)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            metadata: Metadata::read(&loaded.metadata)?,
            documents: loaded.documents,
            format,
        }))
    }

    /// Returns a hash of the encrypted data key. Files with equal hashes share one data key, which is decrypted only once.
    #[must_use]
    pub fn key_id(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.metadata.threshold.to_le_bytes());
        for group in &self.metadata.groups {
            hash.update(group.len().to_le_bytes());
            for master in group {
                for part in [master.name(), master.enc.clone()] {
                    hash.update(part.len().to_le_bytes());
                    hash.update(part);
                }
            }
        }
        hash.finalize().into()
    }

    pub async fn data_key(&self, keys: &Keys) -> Result<DataKey, Error> {
        self.data_key_within(keys, &Budget::default()).await
    }

    /// Returns the data key. Attempts with keys that need no network are charged to the budget, which is polled between them.
    pub async fn data_key_within(&self, keys: &Keys, budget: &Budget) -> Result<DataKey, Error> {
        data_key::get(&self.metadata, keys, budget).await
    }

    /// Decrypts the values, and prints them in the format of the file. A MAC that does not match is not an error.
    pub fn decrypt(self, key: &DataKey, budget: &Budget) -> Result<Decrypted, Error> {
        let format = self.format;
        self.decrypt_as(format, key, budget)
    }

    pub fn decrypt_as(self, format: Format, key: &DataKey, budget: &Budget) -> Result<Decrypted, Error> {
        let mut documents = Wiped(self.documents);
        let computed = walk::decrypt(&mut documents.0, &self.metadata, key, budget)?;
        // Indentation may take much more than the content.
        let limit = PRINTED * budget.limits().file_bytes;
        if printed_size(&documents.0) > limit {
            return Err(Error::Exceeded(Exceeded::Limit {
                what: "bytes of one decrypted file",
                limit,
            }));
        }
        Ok(Decrypted {
            content: store::print(format, &documents.0)?,
            mac: verified(&self.metadata, key, &computed),
        })
    }
}

/// Compares the file's MAC with the computed one. A MAC that cannot be decrypted doesn't match.
fn verified(metadata: &Metadata, key: &DataKey, computed: &str) -> Mac {
    if metadata.mac.is_empty() {
        return Mac::Absent;
    }
    match key.open(&metadata.mac, &metadata.last_modified) {
        Ok(Value::Text(mac)) if mac == computed => Mac::Verified,
        _ => Mac::Mismatch,
    }
}

pub async fn decrypt(
    format: Format,
    bytes: &[u8],
    keys: &Keys,
    budget: &Budget,
) -> Result<Option<Decrypted>, Error> {
    let Some(file) = File::read(format, bytes, budget)? else {
        return Ok(None);
    };
    let key = file.data_key_within(keys, budget).await?;
    file.decrypt(&key, budget).map(Some)
}

/// Returns true if a file has SOPS metadata. An invalid file counts as not encrypted.
#[must_use]
pub fn is_encrypted(format: Format, bytes: &[u8], budget: &Budget) -> bool {
    store::load(format, bytes, budget).is_ok_and(|loaded| loaded.is_some())
}
