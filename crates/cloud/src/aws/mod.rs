//! AWS: signed requests, profiles, and credentials of roles.

mod profile;
mod sign;
mod sso;
mod sts;

pub use profile::{Base, Chain, Profiles};
pub use sign::{Request, sign};
pub use sso::{Sso, SsoRequest};
pub use sts::{Assume, WebIdentity};

use api::Secret;

/// What requests are signed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The public half.
    pub access_key_id: String,
    /// The secret half.
    pub secret_access_key: Secret<String>,
    /// What credentials of a role have besides.
    pub session_token: Option<Secret<String>>,
}

/// What the names of services end with in a region.
#[must_use]
pub fn domain(region: &str) -> &'static str {
    if region.starts_with("cn-") {
        "amazonaws.com.cn"
    } else {
        "amazonaws.com"
    }
}
