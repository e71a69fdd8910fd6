//! Servers and stores of secrets that variables are read from: plain http, Vault, AWS Secrets Manager, Google Secret Manager
//! and Azure Key Vault.
//!
//! A [`Client`] sends the requests of their REST interfaces, with credentials from `cloud`. Answers are bounded, the policy of
//! addresses in the settings holds, and no error repeats a credential.

mod aws;
mod azure;
mod client;
mod error;
mod gcp;
mod vault;

pub use client::Client;
pub use cloud::{
    Ambient, TrustedToken,
    http::{Answer, Request, Settings},
};
pub use error::Error;
