//! Servers and stores of secrets that variables are read from: plain http, Vault, AWS Secrets Manager, Google Secret Manager
//! and Azure Key Vault.
//!
//! A [`Client`] asks them, each by the calls of its REST interface. Everything that is read is bounded, link-local addresses and
//! those that the [`Settings`] name are never asked, and no error repeats a credential. [`Ambient`] is who a program is by
//! its environment; it is looked at only when it is asked for, and the machine that it runs on only when that is allowed.

mod ambient;
mod aws;
mod azure;
mod client;
mod error;
mod gcp;
mod vault;

pub use ambient::{Ambient, TrustedToken};
pub use client::{Answer, Client, Request, Settings};
pub use error::Error;
