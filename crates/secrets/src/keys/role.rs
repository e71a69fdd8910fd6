//! A role that is looked up when a file needs it.

use std::{fmt, pin::Pin};

use cloud::TrustedToken;

/// Failure to look up a role. The message names the lookup and contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RoleError(pub String);

/// Finds a role of AWS, and a token that it trusts.
pub trait AwsRole: fmt::Debug + Send + Sync {
    /// Returns the role and the token; `None` without a role.
    fn find(&self) -> Pin<Box<dyn Future<Output = Result<Option<TrustedToken>, RoleError>> + Send + '_>>;
}
