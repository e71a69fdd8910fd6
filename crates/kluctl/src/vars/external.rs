//! Variables from external sources: the callbacks that read them.

use std::fmt;

use bytes::Bytes;
use tree::Budget;
use yaml::Value;

/// Reads variables from the environment, the cluster, servers and stores of secrets. Methods that are not implemented refuse
/// their kind of source by name.
pub trait VarsSources: Send + Sync {
    /// Returns a variable of the environment; `None` if it isn't set.
    fn environment(&self, name: &str) -> Result<Option<String>, VarsError> {
        Err(refused(&format!("the environment variable {name} is not read")))
    }

    /// Returns the objects of a query, in any order; none if no object matches.
    fn objects(&self, _: &ObjectQuery, _: &Budget) -> Result<Vec<Value>, VarsError> {
        Err(VarsError::Failed(
            "loading vars from cluster is disabled".to_owned(),
        ))
    }

    /// Sends a request to an HTTP server and returns its response, whatever its status.
    fn http(&self, _: &HttpRequest, _: &Budget) -> Result<HttpAnswer, VarsError> {
        Err(refused("servers are not asked"))
    }

    /// Returns the content of a secret in a store.
    fn secret(&self, query: &SecretQuery, _: &Budget) -> Result<String, VarsError> {
        Err(refused(&format!("{} is not asked", query.store())))
    }
}

impl fmt::Debug for dyn VarsSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VarsSources")
    }
}

fn refused(what: &str) -> VarsError {
    VarsError::Failed(format!("{what} here: remove the source, or use another one"))
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VarsError {
    /// The value is missing, which `ignoreMissing` allows.
    #[error("{0}")]
    Missing(String),
    #[error("{0}")]
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectQuery {
    /// As `apps/v1`; without it, the kind must be the only one of that name.
    pub api_version: Option<String>,
    pub kind: String,
    pub namespace: Option<String>,
    pub which: ObjectSelection,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectSelection {
    Name(String),
    Labels(Vec<(String, String)>),
}

#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Addresses, headers and bodies may hold secrets.
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
pub struct HttpAnswer {
    pub status: u16,
    pub body: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretQuery {
    /// HashiCorp Vault: the `data` at a path, in JSON.
    Vault { address: String, path: String },
    /// AWS Secrets Manager.
    Aws {
        /// The name, or the ARN.
        name: String,
        /// If absent, the ARN's region.
        region: Option<String>,
        /// A profile of the shared configuration.
        profile: Option<String>,
        /// The service account, as namespace and name, whose role is assumed.
        service_account: Option<(String, String)>,
    },
    /// Google's Secret Manager; the name is `projects/x/secrets/y/versions/z`.
    Gcp { name: String },
    /// Azure Key Vault.
    Azure { vault: String, name: String },
}

impl SecretQuery {
    #[must_use]
    pub fn store(&self) -> &'static str {
        match self {
            Self::Vault { .. } => "Vault",
            Self::Aws { .. } => "AWS Secrets Manager",
            Self::Gcp { .. } => "Google Secret Manager",
            Self::Azure { .. } => "Azure Key Vault",
        }
    }
}

pub(super) struct NoVarsSources;

impl VarsSources for NoVarsSources {}
