//! Certificate authorities of our own, for servers that tests talk to by TLS.

use std::sync::Arc;

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};

#[derive(Debug)]
pub struct Authority {
    pub ca_pem: String,
    pub server_pem: String,
    pub server_key_pem: String,
    server_der: Vec<u8>,
    key_der: Vec<u8>,
    clients: Option<Clients>,
}

/// The authority of clients that a server asks for, and a certificate of one.
#[derive(Debug)]
struct Clients {
    ca_pem: String,
    certificate_pem: String,
    key_pem: String,
}

impl Authority {
    /// Makes an authority and a server certificate for these host names and addresses.
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
        server.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let signed = server.signed_by(&key, &issuer)?;
        Ok(Self {
            ca_pem,
            server_pem: signed.pem(),
            server_key_pem: key.serialize_pem(),
            server_der: signed.der().to_vec(),
            key_der: key.serialize_der(),
            clients: None,
        })
    }

    /// Lets the server take only clients with a certificate that another authority signed.
    #[must_use]
    pub fn asking_for(self, clients: &Self) -> Self {
        let clients = Some(Clients {
            ca_pem: clients.ca_pem.clone(),
            certificate_pem: clients.server_pem.clone(),
            key_pem: clients.server_key_pem.clone(),
        });
        Self { clients, ..self }
    }

    /// Returns the authority of the clients that the server takes; `None` if it takes all.
    #[must_use]
    pub fn clients_ca(&self) -> Option<&str> {
        self.clients.as_ref().map(|clients| clients.ca_pem.as_str())
    }

    pub fn client_config(&self) -> Result<rustls::ClientConfig> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.ca_pem.as_bytes())?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        Ok(match &self.clients {
            None => builder.with_no_client_auth(),
            Some(clients) => builder.with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(
                    clients.certificate_pem.as_bytes(),
                )?],
                PrivateKeyDer::from_pem_slice(clients.key_pem.as_bytes())?,
            )?,
        })
    }

    pub fn server_config(&self) -> Result<Arc<rustls::ServerConfig>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key_der.clone()));
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut roots = rustls::RootCertStore::empty();
                roots.add(CertificateDer::from_pem_slice(clients.ca_pem.as_bytes())?)?;
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(vec![self.server_der.clone().into()], key)?;
        Ok(Arc::new(config))
    }
}

/// A new pair of private and public key (ECDSA P-256), each as PEM.
pub fn key_pair() -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}
