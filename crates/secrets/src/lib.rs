//! Files that SOPS encrypted, and the keys that open them.
//!
//! A [`File`] is read in one of five [`Format`]s. [`File::data_key`] asks [`Keys`] for the key of its values: first the keys
//! that need no network (age, OpenPGP), then the services (AWS, GCP, Azure, Vault). [`File::decrypt`] is pure: it decrypts the
//! values, prints them as `sops --decrypt` does, and checks the [`Mac`]; callers decide about a mismatch. [`decrypt`] is all
//! three in one; a [`Session`] does it for many files, and decides about the MAC.
//!
//! Only [`Keys::from_environment`] reads keys of the environment. Controllers use keys of Secrets, and identities at clouds: of an account
//! ([`CloudAccount`]), or of their environment where they are allowed to. No program is run: no gpg, no
//! agent, no plugin of age.

mod attempts;
mod cipher;
mod data_key;
mod document;
mod error;
mod file;
mod format;
#[cfg(test)]
mod fuzz;
mod keys;
mod metadata;
mod selection;
mod session;
mod shamir;
mod store;
#[cfg(test)]
mod tests;
mod walk;

pub use cipher::DataKey;
pub use cloud::{Ambient, Cloud, TrustedToken, Workload};
pub use error::Error;
pub use file::{Decrypted, File, Mac, decrypt, is_encrypted};
pub use format::Format;
pub use keys::{AwsRole, CloudAccount, Keys, RoleError, VaultAccount, VaultLogin};
pub use session::{Cache, Opened, Original, Session};
