//! Flags of the tokens that those who download artifacts need.

use std::{collections::BTreeSet, str::FromStr};

use anyhow::ensure;
use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};
use runtime::tokens::TokenUsers;

/// The ServiceAccounts of the own namespace that may download by default.
const CONSUMERS: [&str; 3] = ["kluctl-controller", "kustomize-controller", "helm-controller"];

/// The treatment of downloads without the token of a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArtifactTokens {
    /// Tokens are ignored.
    Off,
    /// All downloads are served; those without an accepted token are counted and logged.
    Audit,
    /// Only downloads with an accepted token are served.
    Enforced,
}

/// Flags of the tokens that those who download artifacts need.
#[derive(Debug, Clone, Args)]
pub struct ConsumerFlags {
    /// Check the tokens of those who download artifacts. With audit, downloads without the token of a consumer are served, counted and
    /// logged; with enforced, they are refused. Controllers of Flux send none.
    #[arg(long, value_enum, default_value_t = ArtifactTokens::Audit)]
    pub artifact_tokens: ArtifactTokens,

    /// The same as --artifact-tokens=enforced.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub require_artifact_tokens: bool,

    /// Audience that the tokens of consumers must have.
    #[arg(long, default_value = "weir-artifacts", value_parser = NonEmptyStringValueParser::new())]
    pub artifact_token_audience: String,

    /// ServiceAccounts whose tokens are accepted; by default kluctl-controller, kustomize-controller and helm-controller in the namespace
    /// of this controller.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE/NAME")]
    pub artifact_consumers: Vec<Consumer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    namespace: String,
    name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a consumer is a ServiceAccount, given as namespace/name")]
pub struct InvalidConsumer;

impl FromStr for Consumer {
    type Err = InvalidConsumer;

    fn from_str(text: &str) -> Result<Self, InvalidConsumer> {
        let fits = |part: &str| {
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
            !part.is_empty() && part.bytes().all(plain)
        };
        match text.split_once('/') {
            Some((namespace, name)) if fits(namespace) && fits(name) => Ok(Self {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }),
            _ => Err(InvalidConsumer),
        }
    }
}

impl ConsumerFlags {
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        self.require_artifact_tokens || matches!(self.artifact_tokens, ArtifactTokens::Enforced)
    }

    pub(crate) const fn is_off(&self) -> bool {
        !self.require_artifact_tokens && matches!(self.artifact_tokens, ArtifactTokens::Off)
    }

    /// Returns the users who may download, for a controller in the namespace `own`; `None` if nobody asks for tokens, or an audit knows no
    /// consumers. Fails if tokens are required, and neither consumers nor the own namespace are known.
    pub(crate) fn users(&self, own: &str) -> anyhow::Result<Option<TokenUsers>> {
        let is_known = !self.artifact_consumers.is_empty() || !own.is_empty();
        if self.is_off() || !is_known && !self.is_enforced() {
            return Ok(None);
        }
        let flag = match self.require_artifact_tokens {
            true => "--require-artifact-tokens",
            false => "--artifact-tokens=enforced",
        };
        ensure!(
            is_known,
            "{flag} needs --artifact-consumers, or the namespace in the variable RUNTIME_NAMESPACE"
        );
        let user = |namespace: &str, name: &str| format!("system:serviceaccount:{namespace}:{name}");
        let users: BTreeSet<String> = match self.artifact_consumers.as_slice() {
            [] => CONSUMERS.iter().map(|name| user(own, name)).collect(),
            given => given
                .iter()
                .map(|given| user(&given.namespace, &given.name))
                .collect(),
        };
        Ok(Some(TokenUsers {
            audience: self.artifact_token_audience.clone(),
            accepts: Box::new(move |user| users.contains(user)),
            flag: "--artifact-consumers",
        }))
    }
}
