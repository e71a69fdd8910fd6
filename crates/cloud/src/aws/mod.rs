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
use url::Url;

use crate::Error;

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

impl Credentials {
    /// The keys that the variables of an environment hold, if both halves are there.
    #[must_use]
    pub fn of_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Some(Self {
            access_key_id: variable("AWS_ACCESS_KEY_ID")?,
            secret_access_key: variable("AWS_SECRET_ACCESS_KEY")?.into(),
            session_token: variable("AWS_SESSION_TOKEN").map(Secret::new),
        })
    }
}

/// Where a service answers for a region. Who writes a project or a file may choose the region, but never another host.
///
/// # Errors
/// When the region is no part of a name.
pub fn endpoint(service: &str, region: &str) -> Result<Url, Error> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let domain = match region.starts_with("cn-") {
        true => "amazonaws.com.cn",
        false => "amazonaws.com",
    };
    let text = format!("https://{service}.{region}.{domain}/");
    let url = Url::parse(&text).ok();
    let url = url.filter(|_| !region.is_empty() && region.chars().all(plain));
    url.ok_or_else(|| Error::Address {
        url: api::redact(&text),
        why: "the region is none",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_leads_to_no_other_host() {
        let url = endpoint("sts", "eu-west-1").unwrap();
        assert_eq!(url.as_str(), "https://sts.eu-west-1.amazonaws.com/");
        let url = endpoint("kms", "cn-north-1").unwrap();
        assert_eq!(url.as_str(), "https://kms.cn-north-1.amazonaws.com.cn/");
        for region in [
            "",
            "evil.example/",
            "evil.example#",
            "x@evil.example:443/",
            "a.b",
            "EU-WEST-1",
            "a b",
        ] {
            let error = endpoint("secretsmanager", region).unwrap_err();
            assert!(
                error.to_string().ends_with("the region is none"),
                "{region}: {error}"
            );
        }
    }
}
