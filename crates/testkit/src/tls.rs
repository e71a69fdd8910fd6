//! Certificate authorities of our own, for servers that tests talk to by TLS.

use std::sync::Arc;

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate authority and one server certificate that it signed.
#[derive(Debug)]
pub struct Authority {
    /// The certificate of the authority, as clients trust it.
    pub ca_pem: String,
    /// The certificate of the server.
    pub server_pem: String,
    /// The key of the server.
    pub server_key_pem: String,
    server_der: Vec<u8>,
    key_der: Vec<u8>,
}

impl Authority {
    /// Makes an authority and a server certificate for these host names and addresses.
    ///
    /// # Errors
    /// When a name can't stand in a certificate.
    pub fn new(names: &[&str]) -> Result<Self> {
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.distinguished_name
            .push(DnType::CommonName, "testkit authority");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_key = KeyPair::generate()?;
        let ca_pem = ca.self_signed(&ca_key)?.pem();
        let issuer = Issuer::new(ca, ca_key);

        let mut server =
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
        server
            .distinguished_name
            .push(DnType::CommonName, "testkit server");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let signed = server.signed_by(&key, &issuer)?;
        Ok(Self {
            ca_pem,
            server_pem: signed.pem(),
            server_key_pem: key.serialize_pem(),
            server_der: signed.der().to_vec(),
            key_der: key.serialize_der(),
        })
    }

    /// The server's side of TLS.
    ///
    /// # Errors
    /// When the key doesn't fit the certificate.
    pub fn server_config(&self) -> Result<Arc<rustls::ServerConfig>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key_der.clone()));
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![self.server_der.clone().into()], key)?;
        Ok(Arc::new(config))
    }
}

/// A new pair of private and public key (ECDSA P-256), each as PEM.
///
/// # Errors
/// When the system has no randomness.
pub fn key_pair() -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}
