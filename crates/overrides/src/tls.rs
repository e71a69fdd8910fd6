//! Certificates and keys of the controllers of a namespace, as in their Secret.

use std::{collections::BTreeMap, sync::Arc};

use api::Secret;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::{CA, Error, proof};

pub(crate) const NAME: &str = "source-override";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const SHARED: &str = "controllerSecret";
const SHARED_BYTES: usize = 32;

/// The content of the Secret: an authority, a certificate with its key, and a secret that controllers share.
#[derive(Debug, Clone)]
pub struct Material {
    pub ca: String,
    certificate: String,
    key: Secret<Vec<u8>>,
    pub(crate) shared: Secret<Vec<u8>>,
}

impl Material {
    /// Generates certificates and a secret. They don't expire: to rotate them, delete the Secret and restart the controllers.
    pub fn generate() -> Result<Self, Error> {
        let failed = |error: rcgen::Error| Error::Certificate(error.to_string());
        let mut ca = CertificateParams::new(Vec::new()).map_err(failed)?;
        ca.distinguished_name
            .push(DnType::CommonName, "Weir source overrides");
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let ca_key = KeyPair::generate().map_err(failed)?;
        let ca_pem = ca.self_signed(&ca_key).map_err(failed)?.pem();
        let issuer = Issuer::new(ca, ca_key);

        let names = ["localhost", NAME, "127.0.0.1", "::1"].map(str::to_owned);
        let mut server = CertificateParams::new(names.to_vec()).map_err(failed)?;
        server.distinguished_name.push(DnType::CommonName, NAME);
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(failed)?;
        Ok(Self {
            certificate: server.signed_by(&key, &issuer).map_err(failed)?.pem(),
            ca: ca_pem,
            key: Secret::new(key.serialize_pem().into_bytes()),
            shared: Secret::new(proof::random::<SHARED_BYTES>()?.to_vec()),
        })
    }

    /// Reads the values of the Secret.
    ///
    /// # Errors
    /// Fails when one is missing or unusable. The message contains no value.
    pub fn read(values: &BTreeMap<String, Vec<u8>>) -> Result<Self, Error> {
        let value = |key: &'static str| {
            let value = values.get(key).filter(|value| !value.is_empty());
            value.cloned().ok_or(Error::Material(key))
        };
        let text = |key| String::from_utf8(value(key)?).map_err(|_| Error::Material(key));
        let material = Self {
            ca: text(CA)?,
            certificate: text(CERTIFICATE)?,
            key: Secret::new(value(KEY)?),
            shared: Secret::new(value(SHARED)?),
        };
        material.acceptor()?;
        connector(&material.ca)?;
        Ok(material)
    }

    #[must_use]
    pub fn values(&self) -> [(&'static str, Secret<Vec<u8>>); 4] {
        [
            (CA, Secret::new(self.ca.clone().into_bytes())),
            (CERTIFICATE, Secret::new(self.certificate.clone().into_bytes())),
            (KEY, self.key.clone()),
            (SHARED, self.shared.clone()),
        ]
    }

    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, Error> {
        let certificates = certificates(&self.certificate).ok_or(Error::Material(CERTIFICATE))?;
        let key = PrivateKeyDer::from_pem_slice(self.key.expose()).map_err(|_| Error::Material(KEY))?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|_| Error::Material("TLS settings"))?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(|_| Error::Material(KEY))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Returns a connector to controllers with a certificate of this authority.
pub(crate) fn connector(ca: &str) -> Result<TlsConnector, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca).ok_or(Error::Material(CA))? {
        roots.add(certificate).map_err(|_| Error::Material(CA))?;
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|_| Error::Material("TLS settings"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn certificates(pem: &str) -> Option<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    found.ok().filter(|found| !found.is_empty())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
