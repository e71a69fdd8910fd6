//! TLS for protocols other than HTTP.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    client::WebPkiServerVerifier,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use rustls_platform_verifier::Verifier;
use tokio::{io, net::TcpStream};
use tokio_rustls::{TlsConnector, client::TlsStream};
use url::Host;

use crate::{Error, Roots, Tls, innermost};

impl Tls {
    /// Encrypts a connection, and verifies the server's certificate for a host.
    ///
    /// # Errors
    /// Fails when a certificate of the settings is invalid; the inner result is the handshake's.
    pub async fn connect(
        &self,
        host: &Host<impl AsRef<str>>,
        stream: TcpStream,
    ) -> Result<io::Result<TlsStream<TcpStream>>, Error> {
        let config = self.rustls()?;
        let name = match host {
            Host::Domain(name) => ServerName::try_from(name.as_ref().to_owned()),
            Host::Ipv4(address) => Ok(ServerName::from(std::net::IpAddr::from(*address))),
            Host::Ipv6(address) => Ok(ServerName::from(std::net::IpAddr::from(*address))),
        };
        let Ok(name) = name else {
            return Ok(Err(io::Error::other("the host is no name of a server")));
        };
        Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await)
    }

    fn rustls(&self) -> Result<ClientConfig, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let failed = |error: &rustls::Error| Error::InvalidTls(innermost(error));
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?;
        let system = |more| Verifier::new_with_extra_roots(more, Arc::clone(&provider));
        let builder = match &self.roots {
            Roots::Only(pem) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(pem)? {
                    let added = roots.add(certificate);
                    added.map_err(|error| Error::InvalidCa(innermost(&error)))?;
                }
                let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
                let verifier = verifier.map_err(|error| Error::InvalidCa(innermost(&error)))?;
                builder.with_webpki_verifier(verifier)
            }
            roots => {
                let more = match roots {
                    Roots::SystemAnd(pem) => certificates(pem)?,
                    _ => Vec::new(),
                };
                let verifier = system(more).map_err(|error| failed(&error))?;
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(verifier))
            }
        };
        let Some(pem) = &self.identity else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = certificates(pem.expose()).map_err(|_| Error::InvalidIdentity)?;
        let key = PrivateKeyDer::from_pem_slice(pem.expose()).map_err(|_| Error::InvalidIdentity)?;
        builder
            .with_client_auth_cert(chain, key)
            .map_err(|_| Error::InvalidIdentity)
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|_| Error::InvalidCa("it is not PEM".to_owned()))?;
    if found.is_empty() {
        return Err(Error::InvalidCa("no certificate found".to_owned()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use api::Secret;
    use testkit::Authority;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    async fn shaken(tls: &Tls, authority: &Authority) -> Result<bool, Error> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(authority.server_config().unwrap());
        let served = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            acceptor.accept(stream).await.is_ok()
        });
        let stream = TcpStream::connect(address).await.unwrap();
        let host = Host::parse("127.0.0.1").unwrap();
        let shaken = tls.connect(&host, stream).await?.is_ok();
        served.await.unwrap();
        Ok(shaken)
    }

    #[tokio::test]
    async fn handshake_trusts_the_given_authority_alone() {
        let (authority, other) = (
            Authority::new(&["127.0.0.1"]).unwrap(),
            Authority::new(&["127.0.0.1"]).unwrap(),
        );
        let only = |authority: &Authority| Tls {
            roots: Roots::Only(authority.ca_pem.clone().into_bytes()),
            ..Tls::default()
        };
        let added = Tls::with_ca(Some(authority.ca_pem.as_bytes()));
        for (tls, expected) in [
            (only(&authority), true),
            (only(&other), false),
            (added, true),
            (Tls::with_ca(Some(other.ca_pem.as_bytes())), false),
        ] {
            assert_eq!(shaken(&tls, &authority).await.unwrap(), expected);
        }
        let broken = Tls {
            identity: Some(Secret::new(b"s3cret".to_vec())),
            ..only(&authority)
        };
        let error = broken.rustls().unwrap_err();
        assert!(matches!(error, Error::InvalidIdentity));
        assert!(Tls::with_ca(Some(b"s3cret")).rustls().is_err());
    }
}
