//! `weir create secret notation`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use oci::notation::TrustPolicy;
use yaml::{Map, Value};

use crate::{
    commands::flux::steer::{
        create::{
            credentials::read,
            flags::{CreateFlags, UnusedIntervalFlag},
        },
        fields::Identity,
    },
    usage::{boolean_flag, split_list},
};

const EXAMPLES: &str = "Examples:
  # Certificates and a policy, to be encrypted with SOPS
  weir create secret notation my-notation-cert \\
    --namespace=my-namespace \\
    --trust-policy-file=./my-trust-policy.json \\
    --ca-cert-file=./my-cert.crt \\
    --export > my-notation-cert.yaml";

/// Create or update a Secret with trusted certificates of Notation
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct NotationArgs {
    /// File with the trust policy, as JSON
    #[arg(long, value_name = "FILE")]
    trust_policy_file: Option<PathBuf>,
    /// Certificate of an authority that signs signers, in a file *.crt or *.pem. Can be repeated
    #[arg(long, value_name = "FILE,...")]
    ca_cert_file: Vec<String>,
    #[command(flatten)]
    pub(super) create: CreateFlags,
    #[command(flatten)]
    _interval: UnusedIntervalFlag,
}

impl NotationArgs {
    pub(super) fn secret(&self, identity: &Identity<'_>) -> Result<Value> {
        let files = split_list(&self.ca_cert_file)?;
        ensure!(!files.is_empty(), "--ca-cert-file is required");
        let policy = self.trust_policy_file.as_deref();
        let policy = policy.context("--trust-policy-file is required")?;
        let text = read(policy, "trust policy file")?;
        TrustPolicy::parse(text.as_bytes()).context("invalid trust policy")?;
        let mut data = Map::new();
        for file in &files {
            let file = Path::new(file);
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            ensure!(
                name.ends_with(".crt") || name.ends_with(".pem"),
                "{name} must end with either .crt or .pem"
            );
            data.insert(&*name, read(file, "TLS CA file")?);
        }
        data.insert("trustpolicy.json", text);
        Ok(identity.secret("", data))
    }
}
