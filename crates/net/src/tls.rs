//! TLS settings of a client.

use std::fmt;

use api::Secret;
use reqwest::{Certificate, ClientBuilder, Identity};

use crate::{Error, innermost};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Roots {
    #[default]
    System,
    SystemAnd(Vec<u8>),
    Only(Vec<u8>),
}

#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tls {
    pub roots: Roots,
    /// Client certificate, its intermediates, and its private key, in one PEM string.
    pub identity: Option<Secret<Vec<u8>>>,
    pub insecure_skip_verify: bool,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("identity", &self.identity.is_some())
            .field("insecure_skip_verify", &self.insecure_skip_verify)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// Trusts a PEM bundle of authorities beside the system's.
    #[must_use]
    pub fn with_ca(pem: Option<&[u8]>) -> Self {
        Self {
            roots: pem.map_or(Roots::System, |pem| Roots::SystemAnd(pem.to_vec())),
            ..Self::default()
        }
    }

    /// Builds a client. A system without CA certificates can still use the bundle, and plain http.
    pub(crate) fn build(&self, builder: impl Fn() -> ClientBuilder) -> Result<reqwest::Client, Error> {
        let identity = match &self.identity {
            // The parser's message may repeat a piece of the key.
            Some(pem) => Some(Identity::from_pem(pem.expose()).map_err(|_| Error::InvalidIdentity)?),
            None => None,
        };
        let builder = || {
            let builder = builder().tls_danger_accept_invalid_certs(self.insecure_skip_verify);
            match &identity {
                Some(identity) => builder.identity(identity.clone()),
                None => builder,
            }
        };
        let built = match &self.roots {
            Roots::Only(pem) => builder().tls_certs_only(bundle(pem)?).build(),
            roots => {
                let extra = match roots {
                    Roots::SystemAnd(pem) => bundle(pem)?,
                    _ => Vec::new(),
                };
                let merged = builder().tls_certs_merge(extra.clone()).build();
                merged.or_else(|_| builder().tls_certs_only(extra).build())
            }
        };
        built.map_err(|error| match (&self.roots, &self.identity) {
            (_, Some(_)) => Error::InvalidIdentity,
            (Roots::System, None) => Error::InvalidTls(innermost(&error)),
            _ => Error::InvalidCa(innermost(&error)),
        })
    }
}

fn bundle(pem: &[u8]) -> Result<Vec<Certificate>, Error> {
    let found = Certificate::from_pem_bundle(pem).map_err(|error| Error::InvalidCa(innermost(&error)))?;
    if found.is_empty() {
        return Err(Error::InvalidCa("no certificate found".to_owned()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AddressPolicy, ClientOptions};

    fn pem(label: &str, body: &str) -> String {
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    #[test]
    fn invalid_certificates_are_refused_without_repeating_them() {
        let roots = |pem: String| Tls {
            roots: Roots::Only(pem.into_bytes()),
            ..Tls::default()
        };
        let identity = |pem: String| Tls {
            identity: Some(Secret::new(pem.into_bytes())),
            ..Tls::default()
        };
        for tls in [
            Tls::with_ca(Some(b"s3cret")),
            roots("s3cret".to_owned()),
            roots(String::new()),
            roots(pem("CERTIFICATE", "s3cret!")),
            roots(pem("CERTIFICATE", "AAAA")),
            identity("s3cret".to_owned()),
            identity(pem("CERTIFICATE", "AAAA")),
            identity(pem("CERTIFICATE", "AAAA") + &pem("PRIVATE KEY", "AAAA")),
        ] {
            let options = ClientOptions {
                tls: tls.clone(),
                ..ClientOptions::new(AddressPolicy::command_line())
            };
            let error = options.build().unwrap_err();
            assert!(
                matches!(error, Error::InvalidCa(_) | Error::InvalidIdentity),
                "{error:?}"
            );
            assert!(
                !format!("{error} {error:?} {tls:?}").contains("s3cret"),
                "{error}"
            );
        }
    }
}
