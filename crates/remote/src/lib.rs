//! Fetches repositories, artifacts, charts and files from other servers, for programs that render: with the credentials of
//! users, and under the policy of addresses. Nothing is checked out, and no program is run.
//!
//! [`ServerAccess`] has the policy and the credentials. [`RemoteFetcher`] fetches bases and files of
//! kustomizations, [`ChartDownloader`] and [`ChartCache`] pull charts, `git_files` and `artifacts` fetch sources by commit
//! and digest, which a [`SourceCache`] keeps.

mod access;
mod address;
pub mod artifacts;
mod chart_cache;
mod charts;
mod connections;
mod credentials;
mod download;
mod error;
mod fetcher;
#[cfg(test)]
mod fuzz;
pub mod git_files;
mod loopback;
mod path_pattern;
mod secret_credentials;
pub mod service_account;
mod source_cache;
mod url_credentials;

pub use access::ServerAccess;
pub use address::ServerAddress;
pub use chart_cache::{ChartCache, ChartKey};
pub use charts::{ChartDownloader, ChartVersion};
pub use connections::GitConnections;
pub use credentials::{CredentialsIdentity, ServerKind, SourceCredentials};
pub use error::Error;
pub use fetcher::RemoteFetcher;
pub use git::SshConnections;
pub use loopback::uses_plain_http;
pub use path_pattern::is_path_match;
pub use secret_credentials::{CredentialEntry, SecretCredentials};
pub use service_account::{ServiceAccountRole, ServiceAccountVault};
pub use source_cache::{FetchedFiles, ScopedCache, SourceCache};
pub use url_credentials::{LoginError, ReadSecret, SecretEntries, UrlCredentials};
