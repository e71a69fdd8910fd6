//! Credentials, tokens and signatures of AWS, GCP and Azure.
//!
//! [`Ambient`] finds the credentials that an environment, its files and its machine have, and [`http::Client`] sends requests to the
//! services. The rest is pure: a function of a request, credentials and the time. No programs are run.
//!
//! ```
//! use cloud::aws::{Credentials, endpoint};
//!
//! let keys = [("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", "secret")];
//! let variable = |name: &str| {
//!     let found = keys.iter().find(|(known, _)| *known == name);
//!     found.map(|(_, value)| (*value).to_owned())
//! };
//! assert_eq!(Credentials::of_variables(variable).unwrap().access_key_id, "AKID");
//! let url = endpoint("sts", "eu-west-1")?;
//! assert_eq!(url.as_str(), "https://sts.eu-west-1.amazonaws.com/");
//! # Ok::<(), cloud::Error>(())
//! ```

mod ambient;
pub mod aws;
pub mod azure;
mod cluster;
mod error;
#[cfg(test)]
mod fuzz;
pub mod gcp;
pub mod github;
pub mod http;
mod identity;
pub mod jwt;
mod token;
mod workload;

pub use ambient::{Ambient, TrustedToken};
pub use cluster::{Location, ManagedCluster};
pub use error::Error;
pub use identity::Identity;
pub use token::{Token, TokenRequest};
pub use workload::{Cloud, GcpWorkload, Workload, WorkloadIdentity, WorkloadLogin};
