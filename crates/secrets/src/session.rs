//! Files of one operation: each data key is asked for once, and a MAC mismatch is judged.

use std::collections::HashMap;

use parking_lot::Mutex;
use tree::Budget;

use crate::{DataKey, Error, File, Format, Keys, Mac};

#[derive(Debug)]
pub struct Session<'k> {
    keys: &'k Keys,
    cache: &'k Cache,
}

#[derive(Debug, Default)]
pub struct Cache(Mutex<HashMap<[u8; 32], DataKey>>);

#[derive(Clone, PartialEq, Eq)]
pub struct Opened {
    pub content: Vec<u8>,
    /// True if it changed after its encryption: after it was read from its repository, by templates for example.
    pub changed: bool,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opened(*** changed: {})", self.changed)
    }
}

/// The original file before any operation on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Original {
    Unknown,
    Bytes(Vec<u8>),
}

impl<'k> Session<'k> {
    #[must_use]
    pub fn new(keys: &'k Keys, cache: &'k Cache) -> Self {
        Self { keys, cache }
    }

    /// Decrypts a file; `None` if it is not encrypted. `original` is asked only when its MAC doesn't match.
    ///
    /// # Errors
    /// Fails as [`File`] does, and with [`Error::Mac`] when the file in the repository changed after its encryption.
    pub async fn open(
        &self,
        format: Format,
        bytes: &[u8],
        original: impl FnOnce() -> Original,
        budget: &Budget,
    ) -> Result<Option<Opened>, Error> {
        let Some(file) = File::read(format, bytes, budget)? else {
            return Ok(None);
        };
        let key = self.data_key(&file, budget).await?;
        let found = file.decrypt(&key, budget)?;
        let changed = found.mac != Mac::Verified;
        if changed {
            self.check(format, bytes, original(), budget).await?;
        }
        Ok(Some(Opened {
            content: found.content,
            changed,
        }))
    }

    async fn check(
        &self,
        format: Format,
        bytes: &[u8],
        original: Original,
        budget: &Budget,
    ) -> Result<(), Error> {
        let original = match original {
            Original::Unknown => return Ok(()),
            Original::Bytes(original) if original == bytes => return Err(Error::Mac),
            Original::Bytes(original) => original,
        };
        let Ok(Some(file)) = File::read(format, &original, budget) else {
            return Err(Error::Mac);
        };
        let key = self.data_key(&file, budget).await?;
        match file.decrypt(&key, budget)?.mac {
            Mac::Verified => Ok(()),
            Mac::Mismatch | Mac::Absent => Err(Error::Mac),
        }
    }

    async fn data_key(&self, file: &File, budget: &Budget) -> Result<DataKey, Error> {
        let id = file.key_id();
        let known = |cache: &Cache| {
            let keys = cache.0.lock();
            keys.get(&id).cloned()
        };
        if let Some(key) = known(self.cache) {
            return Ok(key);
        }
        let key = file.data_key_within(self.keys, budget).await?;
        let mut keys = self.cache.0.lock();
        keys.insert(id, key.clone());
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{age_keys, fixture, wait};

    fn open(text: &str, original: Original) -> Result<Option<Opened>, Error> {
        let (keys, cache) = (age_keys(), Cache::default());
        let session = Session::new(&keys, &cache);
        wait(session.open(Format::Yaml, text.as_bytes(), || original, &Budget::default()))
    }

    #[test]
    fn the_mac_is_that_of_the_repository() {
        let good = String::from_utf8(fixture("secret.yaml")).unwrap();
        let changed = good.replace("name: shop", "name: store");
        let bytes = |text: &str| Original::Bytes(text.as_bytes().to_vec());
        let outcome = |text, original| open(text, original).map(|opened| opened.unwrap().changed);
        assert!(!outcome(&good, Original::Unknown).unwrap());
        assert!(outcome(&changed, bytes(&good)).unwrap());
        assert!(outcome(&changed, Original::Unknown).unwrap());
        for original in [
            bytes(&changed),
            bytes("name: {{ x }}"),
            bytes(&changed.replace("store", "x")),
        ] {
            assert!(matches!(outcome(&changed, original), Err(Error::Mac)));
        }
        assert_eq!(open("a: 1", Original::Unknown).unwrap(), None);
    }

    #[test]
    fn a_data_key_is_asked_for_once() {
        let cache = Cache::default();
        let bytes = fixture("secret.yaml");
        let with = |keys: &Keys| {
            let session = Session::new(keys, &cache);
            wait(session.open(Format::Yaml, &bytes, || Original::Unknown, &Budget::default())).map(|_| ())
        };
        assert!(with(&Keys::new()).is_err());
        with(&age_keys()).unwrap();
        with(&Keys::new()).unwrap();
    }
}
