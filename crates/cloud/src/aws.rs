//! AWS: signed requests, profiles, and credentials of roles.

pub mod codecommit;
mod ecr;
mod profile;
mod sign;
mod sso;
mod sts;

pub use ecr::{Ecr, Login};
pub use profile::{Base, Chain, Profiles};
pub use sign::{presign, sign};
pub use sso::{Sso, SsoRequest};
pub use sts::{Assume, LdapIdentity, WebIdentity};

use api::Secret;
use url::Url;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    pub access_key_id: String,
    pub secret_access_key: Secret<String>,
    pub session_token: Option<Secret<String>>,
}

impl Credentials {
    /// Returns the keys of an environment, if both halves are set.
    #[must_use]
    pub fn of_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Some(Self {
            access_key_id: variable("AWS_ACCESS_KEY_ID")?,
            secret_access_key: variable("AWS_SECRET_ACCESS_KEY")?.into(),
            session_token: variable("AWS_SESSION_TOKEN").map(Secret::new),
        })
    }
}

/// Returns the endpoint of a service in a region. An untrusted region cannot lead to a host outside AWS.
pub fn endpoint(service: &str, region: &str) -> Result<Url, Error> {
    let domain = match region.starts_with("cn-") {
        true => "amazonaws.com.cn",
        false => "amazonaws.com",
    };
    let text = format!("https://{service}.{region}.{domain}/");
    let url = Url::parse(&text).ok();
    let url = url.filter(|_| is_region(region));
    url.ok_or_else(|| Error::Endpoint {
        url: api::redact(&text),
        why: "the region is none",
    })
}

/// Returns true if a URL leads to a token service of AWS, which may get tokens of workloads: `sts.eu-west-1.amazonaws.com`, or
/// its address in a private network.
#[must_use]
pub fn is_sts(url: &Url) -> bool {
    let host = url.host_str().filter(|_| url.scheme() == "https");
    let domains = [".amazonaws.com", ".amazonaws.com.cn"];
    let found = host.and_then(|host| domains.iter().find_map(|domain| host.strip_suffix(domain)));
    let Some(rest) = found else {
        return false;
    };
    let labels: Vec<&str> = rest.split('.').collect();
    match labels.as_slice() {
        ["sts"] => true,
        ["sts" | "sts-fips", region] | [_, "sts", region, "vpce"] => is_region(region),
        _ => false,
    }
}

#[must_use]
pub fn region_of_arn<'a>(arn: &'a str, service: &str) -> Option<&'a str> {
    let mut parts = arn.split(':');
    let is_known = parts.next() == Some("arn")
        && parts.next().is_some_and(|partition| partition.starts_with("aws"))
        && parts.next() == Some(service);
    let region = parts.next().filter(|_| is_known)?;
    let is_complete = parts.next().is_some() && parts.next().is_some();
    Some(region).filter(|region| is_complete && is_region(region))
}

#[must_use]
pub fn is_region(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_name_their_region() {
        for (arn, service, found) in [
            ("arn:aws:kms:eu-central-1:1:key/2", "kms", Some("eu-central-1")),
            ("arn:aws-cn:kms:cn-north-1:1:alias/a", "kms", Some("cn-north-1")),
            (
                "arn:aws:secretsmanager:eu-central-1:123456789012:secret:a-b",
                "secretsmanager",
                Some("eu-central-1"),
            ),
            ("arn:aws:s3:eu-central-1:1:key/2", "kms", None),
            ("arn:aws:kms:evil.example/:1:key/2", "kms", None),
            ("arn:aws:kms::1:key/2", "kms", None),
            ("arn:aws:kms:eu-central-1", "kms", None),
            ("a", "secretsmanager", None),
        ] {
            assert_eq!(region_of_arn(arn, service), found, "{arn}");
        }
    }

    #[test]
    fn tokens_go_to_token_services_of_aws_alone() {
        for (url, expected) in [
            ("https://sts.amazonaws.com", true),
            ("https://sts.eu-west-1.amazonaws.com/", true),
            ("https://sts-fips.us-east-1.amazonaws.com", true),
            ("https://sts.cn-north-1.amazonaws.com.cn", true),
            ("https://vpce-0a1b-x.sts.us-east-1.vpce.amazonaws.com", true),
            ("http://sts.amazonaws.com", false),
            ("https://x.execute-api.us-east-1.amazonaws.com", false),
            ("https://sts.x.execute-api.us-east-1.amazonaws.com", false),
            ("https://sts.amazonaws.com.evil.test", false),
            ("https://stsamazonaws.com", false),
            ("https://127.0.0.1", false),
        ] {
            assert_eq!(is_sts(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

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
