//! Decrypts all values of a file in order, and computes their MAC.

use sha2::{Digest, Sha512};
use tree::Budget;

use crate::{
    DataKey, Error,
    document::{Branch, Item, Value},
    metadata::Metadata,
    selection::Scope,
};

/// Prefix of the MAC input when the MAC covers only encrypted values: SHA-256 of the word `sops`.
const ONLY_ENCRYPTED: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b, 0x0b,
    0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

pub(crate) fn decrypt(
    documents: &mut [Branch],
    metadata: &Metadata,
    key: &DataKey,
    budget: &Budget,
) -> Result<String, Error> {
    let mut walk = Walk {
        metadata,
        key,
        budget,
        path: Vec::new(),
        scope: Scope::new(&metadata.selection),
        hash: Sha512::new(),
    };
    if metadata.mac_only_encrypted {
        walk.hash.update(ONLY_ENCRYPTED);
    }
    for document in documents {
        walk.branch(document)?;
    }
    Ok(hex::encode_upper(walk.hash.finalize()))
}

struct Walk<'a> {
    metadata: &'a Metadata,
    key: &'a DataKey,
    budget: &'a Budget,
    path: Vec<String>,
    scope: Scope<'a>,
    hash: Sha512,
}

impl Walk<'_> {
    fn branch(&mut self, branch: &mut Branch) -> Result<(), Error> {
        self.scope.push_level();
        for item in branch {
            match item {
                Item::Comment(text) => {
                    self.scope.add_comment(text, self.budget)?;
                    if let Some(clear) = self.comment(text)? {
                        *text = clear;
                    }
                }
                Item::Entry(key, value) => {
                    self.path.push(key.clone());
                    self.scope.push_key(key, self.budget)?;
                    self.value(value)?;
                    self.path.pop();
                    self.scope.pop_key();
                    self.scope.forget_comments();
                }
            }
        }
        self.scope.pop_level();
        Ok(())
    }

    fn value(&mut self, value: &mut Value) -> Result<(), Error> {
        self.budget.step(1)?;
        match value {
            Value::Null => Ok(()),
            Value::Map(branch) => self.branch(branch),
            Value::Seq(items) => self.seq(items),
            Value::Comment(text) => {
                if let Some(clear) = self.comment(text)? {
                    *text = clear;
                }
                Ok(())
            }
            leaf => self.leaf(leaf),
        }
    }

    fn seq(&mut self, items: &mut [Value]) -> Result<(), Error> {
        self.scope.push_level();
        for item in items {
            let comment = match item {
                Value::Comment(text) => Some(text.clone()),
                _ => None,
            };
            if let Some(text) = &comment {
                self.scope.add_comment(text, self.budget)?;
            }
            self.value(item)?;
            if comment.is_none() {
                self.scope.forget_comments();
            }
        }
        self.scope.pop_level();
        Ok(())
    }

    fn leaf(&mut self, leaf: &mut Value) -> Result<(), Error> {
        let selected = self.scope.picks(false);
        if selected {
            let Value::Text(text) = &*leaf else {
                return Err(self.failed("it is to be encrypted, and is no text"));
            };
            let aad = self.aad()?;
            *leaf = self.key.open(text, &aad).map_err(|why| self.failed(why))?;
        }
        if selected || !self.metadata.mac_only_encrypted {
            self.hash.update(leaf.mac_bytes());
        }
        Ok(())
    }

    /// Returns the decrypted comment; one that was never encrypted stays as it is. The MAC doesn't cover comments, except
    /// values that were encrypted as another type.
    fn comment(&mut self, text: &str) -> Result<Option<String>, Error> {
        self.budget.step(1)?;
        let selected = self.scope.picks(true);
        if !selected {
            return Ok(None);
        }
        Ok(match self.key.open(text, &self.aad()?) {
            Ok(Value::Comment(clear)) => Some(clear),
            Ok(other) => {
                self.hash.update(other.mac_bytes());
                match other {
                    Value::Text(clear) => Some(clear),
                    _ => return Err(self.failed("a comment was encrypted as something else")),
                }
            }
            Err(_) => None,
        })
    }

    /// Returns the keys joined. They may be long, and are read for each value.
    fn aad(&self) -> Result<String, Error> {
        let aad = self.path.join(":") + ":";
        self.budget.step(aad.len() as u64 / 64)?;
        Ok(aad)
    }

    fn failed(&self, why: &'static str) -> Error {
        Error::Value {
            path: self.path.join("."),
            why,
        }
    }
}
