//! `weir create source git`.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::Args;
use yaml::Value;

use super::flags::{SourceFlags, ignore_paths};
use crate::{
    commands::flux::steer::{
        create::{
            credentials::Login,
            secret::{GitKeyFlags, scheme},
        },
        fields::{Fields, Identity},
    },
    usage::{boolean_flag, split_list},
};

const EXAMPLES: &str = "Examples:
  # A public Git repository
  weir create source git podinfo \\
    --url=https://github.com/stefanprodan/podinfo \\
    --branch=master

  # A range of tags
  weir create source git podinfo \\
    --url=https://github.com/stefanprodan/podinfo \\
    --tag-semver='>=3.2.0 <3.3.0'

  # A private repository over SSH: a deploy key is generated, and stored in a Secret
  weir create source git podinfo \\
    --url=ssh://git@github.com/stefanprodan/podinfo \\
    --branch=master \\
    --ssh-key-algorithm=ed25519

  # An existing Secret, such as one of weir create secret git
  weir create source git podinfo \\
    --url=https://github.com/stefanprodan/podinfo \\
    --branch=master \\
    --secret-ref=podinfo-auth \\
    --export";

/// Create or update a GitRepository, and wait until it is fetched
///
/// Without --secret-ref, credentials of the flags are stored in a Secret of the same name: for ssh:// URLs a key and the host key of the
/// server, for http:// and https:// URLs a user and a password.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct GitArgs {
    /// Address of the repository, such as ssh://git@host/org/repository
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    pub(super) url: String,
    /// Branch
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    branch: String,
    /// Tag
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    tag: String,
    /// Range of tags that are semantic versions
    #[arg(long, value_name = "RANGE", default_value = "", hide_default_value = true)]
    tag_semver: String,
    /// Name of a reference, such as refs/pull/420/head
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    ref_name: String,
    /// Commit; with --branch, one of this branch
    #[arg(long, value_name = "SHA", default_value = "", hide_default_value = true)]
    commit: String,
    /// Kind of the Git server
    #[arg(long, value_name = "NAME", value_parser = ["generic", "github", "aws", "azure"])]
    provider: Option<String>,
    /// Include the submodules
    #[arg(long)]
    recurse_submodules: bool,
    /// Paths that the artifact leaves out, in the format of .gitignore. Can be repeated
    #[arg(long, value_name = "PATH,...")]
    ignore_paths: Vec<String>,
    /// Directories that are fetched; all by default. Can be repeated
    #[arg(long, value_name = "DIR,...")]
    sparse_checkout_paths: Vec<String>,
    /// Name of an existing Secret with the address and credentials of a proxy
    #[arg(long, value_name = "NAME")]
    proxy_secret_ref: Option<String>,
    /// Name of an existing Secret with an SSH key, a login, or a GitHub App
    #[arg(long, value_name = "NAME", help_heading = "Credentials")]
    pub(super) secret_ref: Option<String>,
    #[command(flatten)]
    pub(super) login: Login,
    #[command(flatten)]
    pub(super) key: GitKeyFlags,
    /// File with the certificates of the authorities that sign the server's certificate
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    pub(super) ca_file: Option<PathBuf>,
    /// Take for granted that the deploy key is known to the server
    #[arg(short, long, help_heading = "Credentials")]
    pub(super) silent: bool,
    #[command(flatten)]
    pub(super) source: SourceFlags,
}

impl GitArgs {
    pub(super) fn object(&self, namespace: &str) -> Result<Value> {
        let scheme = scheme(&self.url)?;
        ensure!(
            self.ca_file.is_none() || scheme != "ssh",
            "specifying a CA file is not supported for Git over SSH"
        );
        let source = &self.source;
        let spec = Fields::default()
            .set("url", &*self.url)
            .duration("interval", source.interval.interval)
            .set("ref", self.reference()?)
            .flag("recurseSubmodules", self.recurse_submodules)
            .text("ignore", &ignore_paths(&self.ignore_paths)?)
            .list(
                "sparseCheckout",
                split_list(&self.sparse_checkout_paths)?
                    .into_iter()
                    .map(Value::from)
                    .collect(),
            )
            .optional("timeout", source.fetch_timeout())
            .reference("secretRef", self.secret_ref.as_deref())
            .reference("proxySecretRef", self.proxy_secret_ref.as_deref())
            .optional("provider", self.provider.as_deref());
        let identity = Identity {
            name: &source.create.name,
            namespace,
            labels: &source.create.labels()?,
        };
        Ok(identity.object(&fleet::kind::GIT_REPOSITORY, spec))
    }

    fn reference(&self) -> Result<Fields> {
        let fields = Fields::default();
        Ok(match self {
            Self { commit, .. } if !commit.is_empty() => {
                fields.set("commit", &**commit).text("branch", &self.branch)
            }
            Self { ref_name, .. } if !ref_name.is_empty() => fields.set("name", &**ref_name),
            Self { tag_semver, .. } if !tag_semver.is_empty() => fields.set("semver", &**tag_semver),
            Self { tag, .. } if !tag.is_empty() => fields.set("tag", &**tag),
            Self { branch, .. } if !branch.is_empty() => fields.set("branch", &**branch),
            _ => bail!(
                "a Git ref is required, use one of the following: --branch, --tag, --commit, --ref-name or --tag-semver"
            ),
        })
    }
}
