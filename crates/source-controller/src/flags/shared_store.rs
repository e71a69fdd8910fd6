//! Flags of the shared store.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use bucket::s3;
use clap::Args;
use net::Tls;

use crate::shared_store::Settings;

/// Flags of the bucket that holds all artifacts, if there is one. Access keys come from the environment, as for other tools of AWS.
#[derive(Debug, Clone, Args)]
pub struct SharedStoreFlags {
    /// Bucket of an S3-compatible service that holds all artifacts, so that each replica serves them and a lost volume costs nothing; the
    /// directory of the artifacts is a cache then. Access keys come from the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY,
    /// or the identity of the Pod at AWS.
    #[arg(long, env = "SHARED_STORE_BUCKET", default_value = "")]
    pub shared_store_bucket: String,

    /// Host (and port) of the service with the bucket of artifacts.
    #[arg(long, env = "SHARED_STORE_ENDPOINT", default_value = "s3.amazonaws.com")]
    pub shared_store_endpoint: String,

    /// Region of the bucket of artifacts; default the endpoint's, or the one that the service names.
    #[arg(long, env = "SHARED_STORE_REGION", default_value = "")]
    pub shared_store_region: String,

    /// Beginning of the names of all objects in the bucket, as in clusters/test/. Each installation needs its own.
    #[arg(long, env = "SHARED_STORE_PREFIX", default_value = "")]
    pub shared_store_prefix: String,

    /// Speaks HTTP without TLS with the service.
    #[arg(long, env = "SHARED_STORE_INSECURE")]
    pub shared_store_insecure: bool,

    /// File with the certificates, in PEM format, of the authorities that the service's certificate may be of; default the system's.
    #[arg(long, env = "SHARED_STORE_CA_FILE")]
    pub shared_store_ca_file: Option<PathBuf>,
}

impl SharedStoreFlags {
    /// Returns the settings of the shared store; `None` without a bucket. Fails when the endpoint or the prefix is invalid, the file with
    /// the authorities can't be read, or other flags are given without a bucket.
    pub(crate) fn settings(&self) -> anyhow::Result<Option<Settings>> {
        if self.shared_store_bucket.is_empty() {
            let is_given = self.shared_store_insecure
                || self.shared_store_ca_file.is_some()
                || !self.shared_store_prefix.is_empty()
                || !self.shared_store_region.is_empty();
            if is_given {
                bail!("the flags of the shared store have no effect without --shared-store-bucket");
            }
            return Ok(None);
        }
        let login = s3::Login::Own { sts: None };
        let location = s3::Location::new(&self.shared_store_endpoint, login, self.shared_store_insecure)
            .context("--shared-store-endpoint")?;
        let prefix = self.shared_store_prefix.as_str();
        let is_odd = prefix.starts_with('/') || prefix.split('/').any(|part| matches!(part, "." | ".."));
        if is_odd {
            bail!("--shared-store-prefix={prefix}: it begins with '/', or has '.' or '..' between slashes");
        }
        let ca = match &self.shared_store_ca_file {
            Some(path) => {
                let read = std::fs::read(path);
                Some(read.with_context(|| format!("--shared-store-ca-file={}", path.display()))?)
            }
            None => None,
        };
        Ok(Some(Settings {
            bucket: self.shared_store_bucket.clone(),
            location: location.with_region(&self.shared_store_region),
            tls: Tls::with_ca(ca.as_deref()),
            prefix: prefix.to_owned(),
        }))
    }
}
