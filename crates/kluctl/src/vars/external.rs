//! Variables that come from elsewhere than the project: who reads them.

use std::fmt;

use bytes::Bytes;
use tree::Budget;
use yaml::Value;

/// Reads variables from the environment, the cluster, servers and stores of secrets.
///
/// What isn't implemented is refused by name.
pub trait VarsSources: Send + Sync {
    /// A variable of the environment; `None` when it isn't set.
    ///
    /// # Errors
    /// When it may not be read.
    fn environment(&self, name: &str) -> Result<Option<String>, VarsError> {
        Err(refused(&format!("the environment variable {name} is not read")))
    }

    /// The objects that a query means, in any order; none when there is no such object.
    ///
    /// # Errors
    /// When the cluster can't be asked, or serves no such kind.
    fn objects(&self, _: &ObjectQuery, _: &Budget) -> Result<Vec<Value>, VarsError> {
        Err(VarsError::Failed(
            "loading vars from cluster is disabled".to_owned(),
        ))
    }

    /// What a server answers.
    ///
    /// # Errors
    /// When it gives no answer; one that isn't good is an answer.
    fn http(&self, _: &HttpRequest, _: &Budget) -> Result<HttpAnswer, VarsError> {
        Err(refused("servers are not asked"))
    }

    /// The text of a secret in a store.
    ///
    /// # Errors
    /// When the store can't be asked, or has no such secret.
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

/// Why variables could not be read, in words for people and without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VarsError {
    /// Nothing is there, which `ignoreMissing` allows.
    #[error("{0}")]
    Missing(String),
    /// Everything else.
    #[error("{0}")]
    Failed(String),
}

/// Which objects of a cluster are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectQuery {
    /// The group and version, as `apps/v1`; without it, the kind must be the only one of that name.
    pub api_version: Option<String>,
    /// The kind.
    pub kind: String,
    /// The namespace, for kinds that have one.
    pub namespace: Option<String>,
    /// Which objects.
    pub which: ObjectSelection,
}

/// Selects objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectSelection {
    /// That with a name.
    Name(String),
    /// Those with labels.
    Labels(Vec<(String, String)>),
}

/// What a server is asked.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// `GET` and the like.
    pub method: String,
    /// The address.
    pub url: String,
    /// The headers.
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

/// What a server answered.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

/// Which secret of which store is meant.
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
    /// How the store is called.
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
