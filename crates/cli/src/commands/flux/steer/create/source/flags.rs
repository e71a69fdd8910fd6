//! Flags that sources share.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::GoDuration;
use clap::Args;
use yaml::{Map, Value};

use crate::{
    commands::flux::steer::{
        create::flags::{CreateFlags, IntervalFlag, NO_HEADING},
        fields::Fields,
    },
    usage::split_list,
};

/// Flags of all sources.
#[derive(Args)]
pub(super) struct SourceFlags {
    #[command(flatten)]
    pub(super) interval: IntervalFlag,
    /// Timeout of the source-controller for each fetch
    #[arg(long, value_name = "DURATION", help_heading = NO_HEADING)]
    fetch_timeout: Option<GoDuration>,
    #[command(flatten)]
    pub(super) create: CreateFlags,
}

impl SourceFlags {
    pub(super) fn fetch_timeout(&self) -> Option<String> {
        let timeout = self.fetch_timeout?;
        (timeout.as_duration() > Duration::ZERO).then(|| timeout.to_string())
    }
}

/// Verification of signatures.
#[derive(Args)]
#[command(next_help_heading = "Verification")]
pub(super) struct VerifyFlags {
    /// Verify signatures of this kind
    #[arg(long, value_name = "NAME", value_parser = ["cosign", "notation"])]
    verify_provider: Option<String>,
    /// Name of an existing Secret with trusted keys
    #[arg(long, value_name = "NAME")]
    verify_secret_ref: Option<String>,
    /// Regular expression of the OIDC issuer of keyless signatures
    #[arg(long, value_name = "REGEX", default_value = "", hide_default_value = true)]
    verify_issuer: String,
    /// Regular expression of the OIDC subject of keyless signatures
    #[arg(long, value_name = "REGEX", default_value = "", hide_default_value = true)]
    verify_subject: String,
}

impl VerifyFlags {
    pub(super) fn fields(&self) -> Result<Option<Fields>> {
        let has_identity = !self.verify_issuer.is_empty() || !self.verify_subject.is_empty();
        let Some(provider) = &self.verify_provider else {
            ensure!(
                self.verify_secret_ref.is_none(),
                "a verification provider must be specified when a secret is specified"
            );
            ensure!(
                !has_identity,
                "a verification provider must be specified when OIDC issuer/subject is specified"
            );
            return Ok(None);
        };
        let identity = Map::from([
            ("issuer", self.verify_issuer.as_str()),
            ("subject", self.verify_subject.as_str()),
        ]);
        let identities = has_identity.then(|| Value::Map(identity));
        let fields = Fields::default()
            .set("provider", &**provider)
            .reference("secretRef", self.verify_secret_ref.as_deref())
            .list("matchOIDCIdentity", identities.into_iter().collect());
        Ok(Some(fields))
    }
}

/// Returns the patterns of `--ignore-paths` as lines.
pub(super) fn ignore_paths(flags: &[String]) -> Result<String> {
    Ok(split_list(flags)?.join("\n"))
}
