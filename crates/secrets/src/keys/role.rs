//! A role that is looked up when a file needs it.

use std::{fmt, pin::Pin};

use cloud::TrustedToken;

/// Error of looking up a role. The message names what was asked and holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RoleError(pub String);

/// Finds a role of AWS, and a token that the role trusts.
pub trait AwsRole: fmt::Debug + Send + Sync {
    /// Returns the role and the token; `None` if there is no role.
    fn find(&self) -> Pin<Box<dyn Future<Output = Result<Option<TrustedToken>, RoleError>> + Send + '_>>;
}
