//! Trusted certificates of signers.

use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use x509_parser::{certificate::X509Certificate, prelude::FromDer as _};

use super::certificate::Certificate;

const MAX_CERTIFICATES: usize = 100;
const SEQUENCE: u8 = 0x30;

/// Trusted certificates. As in Flux, each trust store of a policy has all of them.
#[derive(Debug, Clone, Default)]
pub struct TrustStore {
    certificates: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTrustStore {
    #[error("it must have certificates in PEM format (-----BEGIN CERTIFICATE-----) or in DER format")]
    Malformed,
    #[error("more than {MAX_CERTIFICATES} certificates are trusted")]
    TooMany,
}

impl TrustStore {
    /// Adds the certificates of a file in PEM or DER format.
    ///
    /// # Errors
    /// Fails when it has none, one can't be read, or there are more than 100.
    pub fn add(&mut self, file: &[u8]) -> Result<(), InvalidTrustStore> {
        let ders = match file.first() {
            Some(&SEQUENCE) => {
                let (mut ders, mut rest) = (Vec::new(), file);
                while !rest.is_empty() {
                    let parsed = X509Certificate::from_der(rest);
                    let (after, certificate) = parsed.map_err(|_| InvalidTrustStore::Malformed)?;
                    ders.push(certificate.as_raw().to_vec());
                    rest = after;
                }
                ders
            }
            _ => {
                let all = CertificateDer::pem_slice_iter(file);
                let all = all.map(|found| found.map(|der| der.to_vec()));
                let all: Result<Vec<_>, _> = all.collect();
                all.map_err(|_| InvalidTrustStore::Malformed)?
            }
        };
        if ders.is_empty() || !ders.iter().all(|der| Certificate::parse(der).is_some()) {
            return Err(InvalidTrustStore::Malformed);
        }
        if self.certificates.len() + ders.len() > MAX_CERTIFICATES {
            return Err(InvalidTrustStore::TooMany);
        }
        self.certificates.extend(ders);
        Ok(())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    pub(super) fn has(&self, certificate: &Certificate<'_>) -> bool {
        self.certificates.iter().any(|der| der == certificate.der)
    }
}
