//! The reason why a request is refused.

use std::fmt;

use super::{jwt::TokenError, keys::KeysError};

/// A reason for the log. It contains no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused(String);

impl Refused {
    pub(super) fn new(why: String) -> Self {
        Self(why)
    }

    pub(super) fn said(why: &str) -> Self {
        Self(why.to_owned())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<TokenError> for Refused {
    fn from(error: TokenError) -> Self {
        Self(error.to_string())
    }
}

impl From<KeysError> for Refused {
    fn from(error: KeysError) -> Self {
        Self(error.to_string())
    }
}
