//! Credentials and certificates from the Secrets of a HelmRepository. Pure.

use api::{Fault, source::HelmRepositorySpec};
use oci::{Access, Credentials, Identity};
use runtime::secret::{BasicAuth, SecretData};

use crate::{
    certificates,
    source_kind::{SecretRole, SourceSecrets},
};

const FAILED: &str = "failed to construct Helm client's TLS config";

/// Returns credentials and certificates. Certificates of `spec.certSecretRef` take precedence over the ones in `spec.secretRef`, as in
/// early releases; credentials of Docker in the latter are for registries, and left out.
pub(super) fn access(spec: &HelmRepositorySpec, secrets: &SourceSecrets) -> Result<Access, Fault> {
    let mut access = Access {
        pass_credentials: spec.pass_credentials,
        ..Access::default()
    };
    if let Some(secret) = secrets.get(SecretRole::Credentials) {
        access.credentials = secret
            .basic_auth()?
            .map(|BasicAuth { username, password }| Credentials::Basic { username, password });
        add_old_certificates(&mut access, secret)?;
    }
    if let Some(secret) = secrets.get(SecretRole::Certificates) {
        certificates::add(&mut access, secret, FAILED)?;
    }
    Ok(access)
}

fn add_old_certificates(access: &mut Access, secret: &SecretData) -> Result<(), Fault> {
    access.ca = secret.ca().map(<[u8]>::to_vec);
    access.identity = secret.identity()?.map(|(certificate, key)| Identity {
        certificate: certificate.to_vec(),
        key,
    });
    Ok(())
}
