//! `weir create source bucket`.

use anyhow::{Result, ensure};
use clap::Args;
use yaml::Value;

use super::flags::{SourceFlags, ignore_paths};
use crate::{
    commands::flux::steer::fields::{Fields, Identity},
    usage::boolean_flag,
};

const EXAMPLES: &str = "Examples:
  # A bucket of a server of one's own, with keys
  weir create source bucket podinfo \\
    --bucket-name=podinfo \\
    --endpoint=minio.minio.svc.cluster.local:9000 \\
    --insecure=true \\
    --access-key=myaccesskey \\
    --secret-key=mysecretkey \\
    --interval=10m

  # A bucket of Amazon S3, with the role of the controller
  weir create source bucket podinfo \\
    --bucket-name=podinfo \\
    --provider=aws \\
    --endpoint=s3.amazonaws.com \\
    --region=us-east-1 \\
    --interval=10m";

/// Create or update a Bucket, and wait until it is downloaded
///
/// Without --secret-ref, --access-key and --secret-key are stored in the Secret bucket-NAME.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct BucketArgs {
    /// Kind of the storage
    #[arg(long, value_name = "NAME", default_value = "generic", value_parser = ["generic", "aws", "azure", "gcp"])]
    provider: String,
    /// Name of the bucket
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    bucket_name: String,
    /// Address of the storage, as HOST[:PORT]
    #[arg(long, value_name = "HOST", default_value = "", hide_default_value = true)]
    endpoint: String,
    /// Region
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    region: String,
    /// Connect without TLS
    #[arg(long)]
    insecure: bool,
    /// Paths that the artifact leaves out, in the format of .gitignore. Can be repeated
    #[arg(long, value_name = "PATH,...")]
    ignore_paths: Vec<String>,
    /// Name of an existing Secret with the address and credentials of a proxy
    #[arg(long, value_name = "NAME")]
    proxy_secret_ref: Option<String>,
    /// Name of an existing Secret with credentials
    #[arg(long, value_name = "NAME", help_heading = "Credentials")]
    pub(super) secret_ref: Option<String>,
    /// Access key
    #[arg(
        long,
        value_name = "KEY",
        default_value = "",
        hide_default_value = true,
        help_heading = "Credentials"
    )]
    access_key: String,
    /// Secret key
    #[arg(
        long,
        value_name = "KEY",
        default_value = "",
        hide_default_value = true,
        help_heading = "Credentials"
    )]
    secret_key: String,
    #[command(flatten)]
    pub(super) source: SourceFlags,
}

impl BucketArgs {
    pub(super) fn object(&self, namespace: &str) -> Result<Value> {
        ensure!(!self.bucket_name.is_empty(), "bucket-name is required");
        ensure!(!self.endpoint.is_empty(), "endpoint is required");
        let source = &self.source;
        let spec = Fields::default()
            .set("bucketName", &*self.bucket_name)
            .set("provider", &*self.provider)
            .flag("insecure", self.insecure)
            .set("endpoint", &*self.endpoint)
            .text("region", &self.region)
            .duration("interval", source.interval.interval)
            .text("ignore", &ignore_paths(&self.ignore_paths)?)
            .optional("timeout", source.fetch_timeout())
            .reference("secretRef", self.secret_ref.as_deref())
            .reference("proxySecretRef", self.proxy_secret_ref.as_deref());
        let identity = Identity {
            name: &source.create.name,
            namespace,
            labels: &source.create.labels()?,
        };
        Ok(identity.object(&fleet::kind::BUCKET, spec))
    }

    /// Returns the Secret with the keys; `None` if there are none, or another Secret has them.
    pub(super) fn secret(&self, namespace: &str) -> Result<Option<Value>> {
        let has_keys = !self.access_key.is_empty() && !self.secret_key.is_empty();
        if self.secret_ref.is_some() || !has_keys {
            return Ok(None);
        }
        let identity = Identity {
            name: &format!("bucket-{}", self.source.create.name),
            namespace,
            labels: &self.source.create.labels()?,
        };
        let data = Fields::default()
            .set("accesskey", &*self.access_key)
            .set("secretkey", &*self.secret_key);
        Ok(Some(identity.secret("", data)))
    }
}
