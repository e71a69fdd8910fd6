//! The servers that may be reached, and the credentials for them.

use std::sync::Arc;

use git::{Network, Remote};
use net::{AddressPolicy, Need};
use oci::{Access, Client, Limits};
use tokio::runtime::Handle;

use crate::{
    CredentialsIdentity, Error, GitConnections, ScopedCache, ServerKind, SourceCache, SourceCredentials,
};

#[derive(Debug, Clone)]
pub struct ServerAccess {
    /// Default: the command line's.
    pub addresses: AddressPolicy,
    pub credentials: Option<Arc<dyn SourceCredentials>>,
    pub git_connections: GitConnections,
    /// Cache of Git repositories and OCI artifacts; none by default. It is used for credentials with an identity.
    pub source_cache: Option<SourceCache>,
    /// Tenant whose parts of caches, threads and memory fetches use, such as a namespace; none for the host of the server.
    pub tenant: String,
}

impl Default for ServerAccess {
    fn default() -> Self {
        Self {
            addresses: AddressPolicy::command_line(),
            credentials: None,
            git_connections: GitConnections::default(),
            source_cache: None,
            tenant: String::new(),
        }
    }
}

impl ServerAccess {
    #[must_use]
    pub fn network(&self, runtime: &Handle) -> Network {
        self.git_connections.network(runtime, &self.addresses)
    }

    pub fn git_remote(&self, url: &str) -> Result<Remote, Error> {
        let remote = Remote::new(url).map_err(|error| Error::Git(error.to_string()))?;
        let Some(credentials) = &self.credentials else {
            return Ok(remote);
        };
        if remote.is_ssh() {
            return credentials.ssh(remote);
        }
        let (auth, ca) = credentials.git(url)?;
        let remote = match auth {
            Some(auth) => remote.with_auth(auth),
            None => remote,
        };
        Ok(match ca {
            Some(ca) => remote.with_ca(ca),
            None => remote,
        })
    }

    /// May block while the credentials are read.
    pub fn oci_access(&self, url: &str, credentials_id: Option<&str>) -> Result<Access, Error> {
        match (&self.credentials, ServerKind::of_charts(url)) {
            (Some(credentials), ServerKind::Registry) => credentials.registry(url),
            (Some(credentials), _) => credentials.helm(url, credentials_id),
            (None, _) => Ok(Access::default()),
        }
    }

    /// Creates a client of a registry or a Helm repository. It doesn't connect yet.
    pub fn oci_client(&self, access: Access) -> Result<Client, oci::Error> {
        Client::new(access, Limits::default(), self.addresses.clone())
    }

    /// Returns the cached sources of a URL that were fetched with the same credentials; `None` if nothing is cached.
    #[must_use]
    pub fn cached(&self, url: &str) -> Option<ScopedCache> {
        let identity = match &self.credentials {
            Some(credentials) => credentials.identity()?,
            None => CredentialsIdentity::default(),
        };
        Some(self.source_cache.as_ref()?.of(&self.tenant, url, identity))
    }

    /// Returns the message of a failure with advice about the server's demand, if there is any.
    #[must_use]
    pub fn explain(&self, message: String, server: ServerKind, need: Option<Need>) -> String {
        let credentials = self.credentials.as_ref();
        match need.and_then(|need| credentials?.remedy(server, need)) {
            Some(remedy) => format!("{message}: {remedy}"),
            None => message,
        }
    }

    #[must_use]
    pub fn explain_oci(&self, url: &str, error: &oci::Error) -> String {
        self.explain(error.to_string(), ServerKind::of_charts(url), error.need())
    }
}
