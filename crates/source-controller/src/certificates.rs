//! Certificates from the Secret of `spec.certSecretRef`. Pure.

use api::{Fault, Reason};
use oci::{Access, Identity};
use runtime::secret::SecretData;

/// Adds the CA bundle (`ca.crt`) and the client certificate (`tls.crt`, `tls.key`) of a Secret to an access. Messages of faults start with
/// `failed`. Fails when the Secret has neither, or only half of a client certificate.
pub(crate) fn add(access: &mut Access, secret: &SecretData, failed: &str) -> Result<(), Fault> {
    let invalid = || {
        let name = secret.name();
        let message =
            format!("{failed}: secret '{name}' must contain either 'ca.crt' or both 'tls.crt' and 'tls.key'");
        Fault::retry(Reason::AuthenticationFailed, message)
    };
    access.ca = secret.ca().map(<[u8]>::to_vec);
    let identity = secret.identity().map_err(|_| invalid())?;
    access.identity = identity.map(|(certificate, key)| Identity {
        certificate: certificate.to_vec(),
        key,
    });
    match access.ca.is_none() && access.identity.is_none() {
        true => Err(invalid()),
        false => Ok(()),
    }
}
