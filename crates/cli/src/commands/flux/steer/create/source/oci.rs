//! `weir create source oci`.

use anyhow::{Result, bail, ensure};
use clap::Args;
use yaml::Value;

use super::flags::{SourceFlags, VerifyFlags, ignore_paths};
use crate::{
    commands::flux::steer::fields::{Fields, Identity},
    usage::boolean_flag,
};

const EXAMPLES: &str = "Examples:
  # A public artifact
  weir create source oci podinfo \\
    --url=oci://ghcr.io/stefanprodan/manifests/podinfo \\
    --tag=6.6.2 \\
    --interval=10m

  # An artifact whose signature is verified
  weir create source oci podinfo \\
    --url=oci://ghcr.io/stefanprodan/manifests/podinfo \\
    --tag=6.6.2 \\
    --verify-provider=cosign \\
    --verify-subject='^https://github.com/stefanprodan/podinfo/.github/workflows/release.yml@refs/tags/6.6.2$' \\
    --verify-issuer='^https://token.actions.githubusercontent.com$'

  # A Helm chart
  weir create source oci valkey-cluster \\
    --url=oci://example.com/charts/valkey \\
    --tag=0.11.6 \\
    --layer-selector=application/vnd.cncf.helm.chart.content.v1.tar+gzip:copy";

/// Create or update an OCIRepository, and wait until it is pulled
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct OciArgs {
    /// Kind of the registry
    #[arg(long, value_name = "NAME", default_value = "generic", value_parser = ["generic", "aws", "azure", "gcp"])]
    provider: String,
    /// Address of the repository, as oci://HOST/PATH
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    url: String,
    /// Tag
    #[arg(long, value_name = "TAG", default_value = "", hide_default_value = true)]
    tag: String,
    /// Range of tags that are semantic versions
    #[arg(long, value_name = "RANGE", default_value = "", hide_default_value = true)]
    tag_semver: String,
    /// Digest, such as sha256:...
    #[arg(long, value_name = "DIGEST", default_value = "", hide_default_value = true)]
    digest: String,
    /// Layer of the artifact, and whether it is unpacked (extract) or taken as it is (copy)
    #[arg(
        long,
        value_name = "MEDIA_TYPE:OPERATION",
        default_value = "",
        hide_default_value = true
    )]
    layer_selector: String,
    /// Connect without TLS
    #[arg(long)]
    insecure: bool,
    /// Paths that the artifact leaves out, in the format of .gitignore. Can be repeated
    #[arg(long, value_name = "PATH,...")]
    ignore_paths: Vec<String>,
    /// Name of an existing Secret with the address and credentials of a proxy
    #[arg(long, value_name = "NAME")]
    proxy_secret_ref: Option<String>,
    /// Name of an existing image pull Secret
    #[arg(long, value_name = "NAME", help_heading = "Credentials")]
    secret_ref: Option<String>,
    /// Name of an existing ServiceAccount with image pull Secrets
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true,
        help_heading = "Credentials"
    )]
    service_account: String,
    /// Name of an existing Secret with TLS certificates
    #[arg(long, value_name = "NAME", help_heading = "Credentials")]
    cert_ref: Option<String>,
    #[command(flatten)]
    verify: VerifyFlags,
    #[command(flatten)]
    pub(super) source: SourceFlags,
}

impl OciArgs {
    pub(super) fn object(&self, namespace: &str) -> Result<Value> {
        ensure!(!self.url.is_empty(), "url is required");
        ensure!(
            [&self.tag, &self.tag_semver, &self.digest]
                .iter()
                .any(|text| !text.is_empty()),
            "--tag, --tag-semver or --digest is required"
        );
        let source = &self.source;
        let reference = Fields::default()
            .text("digest", &self.digest)
            .text("semver", &self.tag_semver)
            .text("tag", &self.tag);
        let spec = Fields::default()
            .set("provider", &*self.provider)
            .set("url", &*self.url)
            .flag("insecure", self.insecure)
            .duration("interval", source.interval.interval)
            .set("ref", reference)
            .text("ignore", &ignore_paths(&self.ignore_paths)?)
            .optional("layerSelector", layer_selector(&self.layer_selector)?)
            .optional("timeout", source.fetch_timeout())
            .text("serviceAccountName", &self.service_account)
            .reference("secretRef", self.secret_ref.as_deref())
            .reference("proxySecretRef", self.proxy_secret_ref.as_deref())
            .reference("certSecretRef", self.cert_ref.as_deref())
            .optional("verify", self.verify.fields()?);
        let identity = Identity {
            name: &source.create.name,
            namespace,
            labels: &source.create.labels()?,
        };
        Ok(identity.object(&fleet::kind::OCI_REPOSITORY, spec))
    }
}

fn layer_selector(text: &str) -> Result<Option<Fields>> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.split_once(':') {
        Some((media_type, operation @ ("extract" | "copy"))) if !media_type.is_empty() => Ok(Some(
            Fields::default()
                .set("mediaType", media_type)
                .set("operation", operation),
        )),
        Some((media_type, operation)) if !media_type.is_empty() && !operation.is_empty() => {
            bail!(
                "invalid --layer-selector {text:?}: operation must be \"extract\" or \"copy\", not {operation:?}"
            )
        }
        _ => bail!("invalid --layer-selector {text:?}: must be in the format '<media-type>:<operation>'"),
    }
}
