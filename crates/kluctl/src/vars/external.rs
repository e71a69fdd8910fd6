//! Variables that come from elsewhere than the project: who reads them.

use std::fmt;

use bytes::Bytes;
use tree::Budget;
use yaml::Value;

/// Reads variables from the environment, the cluster, servers and stores of secrets.
///
/// Methods that are not implemented refuse their kind of source by name.
pub trait VarsSources: Send + Sync {
    /// A variable of the environment; `None` when it isn't set.
    ///
    /// # Errors
    /// Fails when the variable may not be read.
    fn environment(&self, name: &str) -> Result<Option<String>, VarsError> {
        Err(refused(&format!("the environment variable {name} is not read")))
    }

    /// The objects that a query means, in any order; none when there is no such object.
    ///
    /// # Errors
    /// Fails when the API server can't be reached, or doesn't serve the kind.
    fn objects(&self, _: &ObjectQuery, _: &Budget) -> Result<Vec<Value>, VarsError> {
        Err(VarsError::Failed(
            "loading vars from cluster is disabled".to_owned(),
        ))
    }

    /// Sends a request to an HTTP server and returns its response, whatever its status.
    ///
    /// # Errors
    /// Fails when there is no response.
    fn http(&self, _: &HttpRequest, _: &Budget) -> Result<HttpAnswer, VarsError> {
        Err(refused("servers are not asked"))
    }

    /// The text of a secret in a store.
    ///
    /// # Errors
    /// Fails when the store can't be reached, or the secret is missing.
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

/// Errors of reading variables. Their messages hold no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VarsError {
    /// The value is missing, which `ignoreMissing` allows.
    #[error("{0}")]
    Missing(String),
    /// Any other failure.
    #[error("{0}")]
    Failed(String),
}

/// A query for objects of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectQuery {
    /// The group and version, as `apps/v1`; without it, the kind must be the only one of that name.
    pub api_version: Option<String>,
    /// Kind of the objects.
    pub kind: String,
    /// The namespace, for kinds that have one.
    pub namespace: Option<String>,
    /// Selection by name or labels.
    pub which: ObjectSelection,
}

/// Selects objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectSelection {
    /// The object with this name.
    Name(String),
    /// The objects with these labels.
    Labels(Vec<(String, String)>),
}

/// A request to an HTTP server.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// `GET` and the like.
    pub method: String,
    /// URL of the request.
    pub url: String,
    /// Names and values of the headers.
    pub headers: Vec<(String, String)>,
    /// The body, if there is one.
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

/// A response of an HTTP server.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    /// Status code of the response.
    pub status: u16,
    /// Body of the response.
    pub body: Bytes,
}

/// A secret of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretQuery {
    /// Vault of HashiCorp: the `data` of what is at a path, in JSON.
    Vault {
        /// The address of the server.
        address: String,
        /// The path of the secret.
        path: String,
    },
    /// The Secrets Manager of AWS.
    Aws {
        /// The name, or the ARN.
        name: String,
        /// The region; that of the ARN when it is absent.
        region: Option<String>,
        /// The profile of the shared configuration.
        profile: Option<String>,
        /// The service account, as namespace and name, whose role is assumed.
        service_account: Option<(String, String)>,
    },
    /// The Secret Manager of Google.
    Gcp {
        /// The version, as `projects/x/secrets/y/versions/z`.
        name: String,
    },
    /// The Key Vault of Azure.
    Azure {
        /// The address of the vault.
        vault: String,
        /// The name of the secret.
        name: String,
    },
}

impl SecretQuery {
    /// Returns the name of the store, for messages.
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

/// Reads nothing.
pub(super) struct NoVarsSources;

impl VarsSources for NoVarsSources {}
