//! `weir create secret helm` and `weir create secret tls`.

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use yaml::{Map, Value};

use crate::{
    commands::flux::steer::{
        create::{
            credentials::{CertificateFlags, Login, read_optional},
            flags::{CreateFlags, UnusedIntervalFlag},
        },
        fields::Identity,
    },
    usage::boolean_flag,
};

const HELM_EXAMPLES: &str = "Examples:
  # A login, to be encrypted with SOPS
  weir create secret helm repo-auth \\
    --namespace=my-namespace \\
    --username=my-username \\
    --password=my-password \\
    --export > repo-auth.yaml";

/// Create or update a Secret for a Helm repository
///
/// It has a user and a password, or a certificate of the client; both with the authorities of --ca-crt-file.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = HELM_EXAMPLES)]
pub(crate) struct HelmArgs {
    #[command(flatten)]
    login: Login,
    #[command(flatten)]
    certificates: CertificateFlags,
    #[command(flatten)]
    pub(super) create: CreateFlags,
    #[command(flatten)]
    _interval: UnusedIntervalFlag,
}

const TLS_EXAMPLES: &str = "Examples:
  # A certificate of a client, to be encrypted with SOPS
  weir create secret tls certs \\
    --namespace=my-namespace \\
    --tls-crt-file=./client.crt \\
    --tls-key-file=./client.key \\
    --ca-crt-file=./ca.crt \\
    --export > certs.yaml";

/// Create or update a Secret with TLS certificates
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = TLS_EXAMPLES)]
pub(crate) struct TlsArgs {
    #[command(flatten)]
    certificates: CertificateFlags,
    #[command(flatten)]
    pub(super) create: CreateFlags,
    #[command(flatten)]
    _interval: UnusedIntervalFlag,
}

impl HelmArgs {
    pub(super) fn secret(&self, identity: &Identity<'_>) -> Result<Value> {
        let secret = HelmSecret::read(&self.login, &self.certificates)?;
        secret.secret(identity)
    }
}

impl TlsArgs {
    pub(super) fn secret(&self, identity: &Identity<'_>) -> Result<Value> {
        let login = Login::default();
        HelmSecret::read(&login, &self.certificates)?.tls(identity)
    }
}

/// The credentials of a Helm repository.
pub(in crate::commands::flux::steer::create) struct HelmSecret<'a> {
    pub(in crate::commands::flux::steer::create) login: &'a Login,
    pub(in crate::commands::flux::steer::create) certificate: Option<String>,
    pub(in crate::commands::flux::steer::create) key: Option<String>,
    pub(in crate::commands::flux::steer::create) authorities: Option<String>,
}

impl<'a> HelmSecret<'a> {
    fn read(login: &'a Login, files: &CertificateFlags) -> Result<Self> {
        Ok(Self {
            login,
            certificate: read_optional(files.tls_crt_file.as_deref(), "cert file")?,
            key: read_optional(files.tls_key_file.as_deref(), "key file")?,
            authorities: read_optional(files.ca_crt_file.as_deref(), "TLS CA file")?,
        })
    }

    pub(in crate::commands::flux::steer::create) fn is_empty(&self) -> bool {
        self.login.is_empty()
            && self.certificate.is_none()
            && self.key.is_none()
            && self.authorities.is_none()
    }

    /// Returns the Secret: a certificate of the client is preferred to a login.
    pub(in crate::commands::flux::steer::create) fn secret(&self, identity: &Identity<'_>) -> Result<Value> {
        if self.certificate.is_some() || self.key.is_some() {
            return self.tls(identity);
        }
        if self.login.is_empty() {
            return match self.authorities {
                Some(_) => self.tls(identity),
                None => Ok(identity.secret("", Map::new())),
            };
        }
        ensure!(!self.login.username.is_empty(), "username is required");
        ensure!(!self.login.password.is_empty(), "password is required");
        let mut data = Map::from([
            ("username", self.login.username.as_str()),
            ("password", self.login.password.as_str()),
        ]);
        if let Some(authorities) = &self.authorities {
            data.insert("ca.crt", authorities.as_str());
        }
        Ok(identity.secret("kubernetes.io/basic-auth", data))
    }

    fn tls(&self, identity: &Identity<'_>) -> Result<Value> {
        let mut data = Map::new();
        let kind = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                check_pair(certificate, key).context("invalid TLS certificate and key pair")?;
                data.insert("tls.crt", certificate.as_str());
                data.insert("tls.key", key.as_str());
                "kubernetes.io/tls"
            }
            (Some(_), None) => anyhow::bail!("a certificate needs its key: use --tls-key-file"),
            (None, Some(_)) => anyhow::bail!("a key needs its certificate: use --tls-crt-file"),
            (None, None) => {
                ensure!(
                    self.authorities.is_some(),
                    "a certificate with its key, or certificates of authorities are required: use --tls-crt-file and --tls-key-file, or \
                     --ca-crt-file"
                );
                "Opaque"
            }
        };
        if let Some(authorities) = &self.authorities {
            data.insert("ca.crt", authorities.as_str());
        }
        Ok(identity.secret(kind, data))
    }
}

/// Checks that a certificate belongs to a key.
fn check_pair(certificate: &str, key: &str) -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<_, _>>()
        .context("the certificate is no PEM")?;
    ensure!(!chain.is_empty(), "the certificate is no PEM");
    let key =
        PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| anyhow::anyhow!("the key is no PEM"))?;
    rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(())
}
