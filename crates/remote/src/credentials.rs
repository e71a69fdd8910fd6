//! Credentials of servers, by the URLs of their repositories.

use std::fmt;

use net::Need;

use crate::Error;

/// A SHA-256 hash that identifies credentials.
pub type CredentialsIdentity = [u8; 32];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerKind {
    Helm,
    Registry,
    Git,
}

impl ServerKind {
    /// Returns the kind of the server of charts at a URL: a registry for `oci://`, otherwise a Helm repository.
    #[must_use]
    pub fn of_charts(url: &str) -> Self {
        match url.starts_with("oci://") {
            true => Self::Registry,
            false => Self::Helm,
        }
    }
}

pub trait SourceCredentials: Send + Sync {
    /// Returns username and password for a Git repository, and a CA bundle (PEM) to trust in addition to the system's.
    fn git(&self, url: &str) -> Result<(Option<git::Auth>, Option<Vec<u8>>), Error>;

    /// Adds keys and known hosts to a Git repository over SSH; none, the default, if there are none for it.
    fn ssh(&self, remote: git::Remote) -> Result<git::Remote, Error> {
        Ok(remote)
    }

    fn registry(&self, url: &str) -> Result<oci::Access, Error>;

    /// Returns the credentials and TLS settings of a Helm repository. An ID (`credentialsId` of a chart) takes precedence over the URL.
    fn helm(&self, url: &str, credentials_id: Option<&str>) -> Result<oci::Access, Error>;

    /// Returns a hash of all credentials of Git repositories and registries, which the cache of sources has in its keys. `None`, the
    /// default, if their sources are not cached.
    fn identity(&self) -> Option<CredentialsIdentity> {
        None
    }

    /// Returns advice about a server's demand, as in `use --git-ca-file`. `None`, the default, if there is none.
    fn remedy(&self, server: ServerKind, need: Need) -> Option<String> {
        let _ = (server, need);
        None
    }
}

impl fmt::Debug for dyn SourceCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourceCredentials")
    }
}
