//! Credentials and signatures of AWS, GCP and Azure.
//!
//! Everything here is a function of what it is given: a request, credentials and the time. Nothing is sent, and nothing is
//! looked up in the environment. Who sends a [`TokenRequest`] gives the answer to [`Token::from_answer`].

pub mod aws;
pub mod azure;
mod error;
#[cfg(test)]
mod fuzz;
pub mod gcp;
mod jwt;
mod token;

pub use error::Error;
pub use token::{Token, TokenRequest};
