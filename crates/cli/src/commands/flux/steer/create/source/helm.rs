//! `weir create source helm`.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::Args;
use yaml::Value;

use super::flags::SourceFlags;
use crate::{
    commands::flux::steer::{
        create::{
            credentials::{Login, read_optional},
            secret::HelmSecret,
        },
        fields::{Fields, Identity},
    },
    usage::boolean_flag,
};

const EXAMPLES: &str = "Examples:
  # A public repository
  weir create source helm podinfo \\
    --url=https://stefanprodan.github.io/podinfo \\
    --interval=10m

  # A repository with a login
  weir create source helm podinfo \\
    --url=https://stefanprodan.github.io/podinfo \\
    --username=username \\
    --password=password

  # A repository in an OCI registry
  weir create source helm podinfo \\
    --url=oci://ghcr.io/stefanprodan/charts/podinfo \\
    --secret-ref=docker-config";

/// Create or update a HelmRepository, and wait until its index is fetched
///
/// Without --secret-ref, credentials of the flags are stored in the Secret helm-NAME.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct HelmArgs {
    /// Address of the repository: http, https or oci
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    url: String,
    /// Kind of the OCI registry, for logins by the identity of the controller
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    oci_provider: String,
    /// Send the credentials to all hosts that the index names
    #[arg(long, help_heading = "Credentials")]
    pub(super) pass_credentials: bool,
    /// Name of an existing Secret with certificates, a login, or logins of registries
    #[arg(long, value_name = "NAME", help_heading = "Credentials")]
    secret_ref: Option<String>,
    #[command(flatten)]
    login: Login,
    /// Certificate of the client
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    cert_file: Option<PathBuf>,
    /// Key of the client's certificate
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    key_file: Option<PathBuf>,
    /// File with the certificates of the authorities that sign the server's certificate
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    ca_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) source: SourceFlags,
}

impl HelmArgs {
    pub(super) fn is_oci(&self) -> bool {
        self.url.starts_with("oci://")
    }

    pub(super) fn object(&self, namespace: &str) -> Result<Value> {
        ensure!(!self.url.is_empty(), "url is required");
        match self.url.split_once("://") {
            Some(("http" | "https" | "oci", host)) => {
                ensure!(!host.is_empty() && !host.starts_with('/'), "url host is required");
            }
            Some((scheme, _)) => bail!("url scheme '{scheme}' not supported, can be: http, https and oci"),
            None => bail!("url scheme '' not supported, can be: http, https and oci"),
        }
        let source = &self.source;
        let mut spec = Fields::default()
            .set("url", &*self.url)
            .duration("interval", source.interval.interval)
            .optional("timeout", source.fetch_timeout());
        if self.is_oci() {
            spec = spec.set("type", "oci").text("provider", &self.oci_provider);
        }
        if self.secret_ref.is_some() {
            spec = spec
                .reference("secretRef", self.secret_ref.as_deref())
                .flag("passCredentials", self.pass_credentials);
        }
        let identity = Identity {
            name: &source.create.name,
            namespace,
            labels: &source.create.labels()?,
        };
        Ok(identity.object(&fleet::kind::HELM_REPOSITORY, spec))
    }

    /// Returns the Secret with the credentials; `None` if there are none, or another Secret has them.
    pub(super) fn secret(&self, namespace: &str) -> Result<Option<Value>> {
        let name = format!("helm-{}", self.source.create.name);
        let pair = Some(()).filter(|()| self.cert_file.is_some() && self.key_file.is_some());
        let credentials = HelmSecret {
            login: &self.login,
            certificate: pair.and(read_optional(self.cert_file.as_deref(), "cert file")?),
            key: pair.and(read_optional(self.key_file.as_deref(), "key file")?),
            authorities: read_optional(self.ca_file.as_deref(), "TLS CA file")?,
        };
        if self.secret_ref.is_some() || credentials.is_empty() {
            return Ok(None);
        }
        let identity = Identity {
            name: &name,
            namespace,
            labels: &yaml::Map::new(),
        };
        credentials.secret(&identity).map(Some)
    }
}
