//! The keys that somebody has.

mod age;
mod pgp;

use api::Secret;
use zeroize::Zeroizing;

use self::{age::Identities, pgp::SecretKeys};
use crate::{
    Error,
    metadata::{Kind, Master},
};

/// What can open files. Without anything put into it, it opens none: nothing is looked up in the environment.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    age: Identities,
    pgp: SecretKeys,
    /// Why keys that might have been there are not.
    notes: Vec<String>,
}

impl Keys {
    /// No keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the age identities of a text, one a line; empty lines and those with `#` are skipped.
    ///
    /// # Errors
    /// When a line is no X25519 identity.
    pub fn add_age(&mut self, text: &Secret<String>) -> Result<(), Error> {
        self.age.add(text.expose())
    }

    /// Adds a private SSH key (ed25519 or RSA, without a passphrase) as an age identity.
    ///
    /// # Errors
    /// When it is none, or has a passphrase.
    pub fn add_ssh(&mut self, text: &Secret<String>) -> Result<(), Error> {
        self.age.add_ssh(text.expose())
    }

    /// Adds the OpenPGP private keys of a text, armored or not. They have no passphrase.
    ///
    /// # Errors
    /// When it holds no private key.
    pub fn add_pgp(&mut self, text: &Secret<Vec<u8>>) -> Result<(), Error> {
        self.pgp.add(text.expose())
    }

    /// Whether there is nothing that could open a file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.age.is_empty() && self.pgp.is_empty()
    }

    /// Opens what was encrypted for one key, or says why not.
    pub(crate) async fn open(&self, master: &Master) -> Result<Zeroizing<Vec<u8>>, String> {
        match &master.kind {
            Kind::Age { .. } => self.age.open(&master.enc),
            Kind::Pgp { .. } => self.pgp.open(&master.enc),
            _ => Err("keys of this kind are not supported".to_owned()),
        }
    }

    /// Why keys that might have been there are not.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}
