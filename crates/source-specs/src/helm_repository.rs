//! Validation of a HelmRepository: invalid and unsupported fields are refused, by name. Pure.

use std::time::Duration;

use api::{
    Fault, GoDuration, Reason,
    source::{HelmRepositorySpec, OCIRepositorySpec},
};
use url::Url;

use crate::fields::check_interval;

const INTERVAL: Duration = Duration::from_secs(60);

/// Returns the time between two fetches of the index: default a minute, as in the original.
pub fn interval(spec: &HelmRepositorySpec) -> Duration {
    spec.interval.map_or(INTERVAL, |interval| interval.as_duration())
}

/// Refuses invalid and unsupported fields. `spec.insecure` and `spec.provider` are for registries alone, and ignored by others, as their
/// documentation says.
pub fn validate(spec: &HelmRepositorySpec) -> Result<(), Fault> {
    if let Some(other) = spec
        .kind
        .as_deref()
        .filter(|kind| !matches!(*kind, "" | "default" | "oci"))
    {
        return Err(Fault::unsupported("spec.type", &format!("'{other}'")));
    }
    supported(spec)?;
    check_interval(interval(spec))?;
    url(spec).map(drop)
}

/// Refuses fields that no type obeys.
pub fn supported(spec: &HelmRepositorySpec) -> Result<(), Fault> {
    match spec.access_from {
        Some(_) => Err(Fault::unsupported("spec.accessFrom", "access control")),
        None => Ok(()),
    }
}

/// Returns the spec of the repository of a chart in the registry that a HelmRepository of the type `oci` stands for.
#[must_use]
pub fn registry_spec(spec: &HelmRepositorySpec, chart: &str) -> OCIRepositorySpec {
    let url = format!("{}/{chart}", spec.url.expose().trim_end_matches('/'));
    OCIRepositorySpec {
        url: url.as_str().into(),
        interval: spec.interval.unwrap_or(GoDuration::from_secs(60)),
        provider: spec.provider.clone(),
        secret_ref: spec.secret_ref.clone(),
        cert_secret_ref: spec.cert_secret_ref.clone(),
        insecure: spec.insecure,
        ..OCIRepositorySpec::default()
    }
}

pub fn url(spec: &HelmRepositorySpec) -> Result<Url, Fault> {
    let invalid = |why: &str| {
        let message = format!("invalid Helm repository URL: '{}': {why}", spec.url);
        Fault::stall(Reason::URLInvalid, message)
    };
    let url = Url::parse(spec.url.expose().trim()).map_err(|error| invalid(&error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        "oci" => Err(invalid("an OCI registry needs spec.type: oci")),
        scheme => Err(invalid(&format!(
            "scheme '{scheme}' is not supported, only http and https"
        ))),
    }
}

pub fn server(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    format!("{host}:{}", url.port_or_known_default().unwrap_or_default())
}
