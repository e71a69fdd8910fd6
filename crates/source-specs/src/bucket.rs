//! Validation of a Bucket: invalid and unsupported fields are refused, by name. Pure.

use api::{
    Fault, Reason,
    source::{BucketSpec, BucketSts},
};
use url::Url;

use crate::fields::{check_interval, given};

/// Maximum length of a name; names of Google with dots are the longest.
const MAX_NAME: usize = 222;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    Generic,
    Aws,
    Gcp,
    Azure,
}

impl Provider {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Aws => "aws",
            Self::Gcp => "gcp",
            Self::Azure => "azure",
        }
    }
}

pub fn provider(spec: &BucketSpec) -> Result<Provider, Fault> {
    match spec.provider.as_deref().unwrap_or("generic") {
        "" | "generic" => Ok(Provider::Generic),
        "aws" => Ok(Provider::Aws),
        "gcp" => Ok(Provider::Gcp),
        "azure" => Ok(Provider::Azure),
        other => Err(Fault::unsupported("spec.provider", &format!("'{other}'"))),
    }
}

pub fn validate(spec: &BucketSpec) -> Result<(), Fault> {
    let provider = provider(spec)?;
    let account = given(&spec.service_account_name);
    // The schema refuses it, too, but objects may be older than the schema.
    if let Some(name) = account.filter(|_| provider == Provider::Generic || spec.secret_ref.is_some()) {
        let value = format!("'{name}' with spec.secretRef or the provider 'generic'");
        return Err(Fault::unsupported("spec.serviceAccountName", &value));
    }
    if spec.access_from.is_some() {
        return Err(Fault::unsupported("spec.accessFrom", "access control"));
    }
    let invalid = |message: String| Err(Fault::stall(Reason::InvalidSpec, message));
    if !is_name(&spec.bucket_name) {
        return invalid(
            "spec.bucketName: it is empty, too long, or has other characters than letters, digits, '-', '_', '.', '$' and ':'".to_owned(),
        );
    }
    check_interval(spec.interval.as_duration())?;
    if let Some(sts) = &spec.sts {
        token_service(provider, sts)?;
    }
    Ok(())
}

pub fn token_service(provider: Provider, sts: &BucketSts) -> Result<Url, Fault> {
    let fits = matches!(
        (provider, sts.provider.as_str()),
        (Provider::Aws, "aws") | (Provider::Generic, "ldap")
    );
    if !fits {
        let message = format!(
            "STS provider '{}' is not supported for '{}' bucket provider",
            sts.provider,
            provider.name()
        );
        return Err(Fault::stall(Reason::InvalidSTSConfiguration, message));
    }
    let endpoint = api::redact(&sts.endpoint);
    let invalid = |why: &str| {
        let message = format!("failed to parse STS endpoint '{endpoint}': {why}");
        Fault::stall(Reason::URLInvalid, message)
    };
    let url = Url::parse(&sts.endpoint).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("write it as http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("it must not have credentials"));
    }
    if provider == Provider::Aws && !cloud::aws::is_sts(&url) {
        return Err(invalid(
            "the identity of the controller is proved to token services of AWS only, as in https://sts.eu-west-1.amazonaws.com",
        ));
    }
    Ok(url)
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.$:".contains(c);
    let is_dots = name.chars().all(|c| c == '.');
    !is_dots && name.len() <= MAX_NAME && name.chars().all(plain)
}
