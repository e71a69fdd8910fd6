//! `weir create alert`, `weir create alert-provider` and `weir create receiver`.

use anyhow::{Result, ensure};
use api::notification::RECEIVER_TYPES;
use clap::Args;
use yaml::Value;

use super::flags::{CreateFlags, UnusedIntervalFlag};
use crate::{
    commands::flux::steer::{
        fields::{Fields, Identity},
        words::Named,
    },
    usage::{boolean_flag, split_list},
};

const ALERT_EXAMPLES: &str = "Examples:
  # Alerts about one Kustomization
  weir create alert flux-system \\
    --event-severity=info \\
    --event-source=Kustomization/flux-system \\
    --provider-ref=slack";

/// Create or update an Alert: which events a provider is told
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = ALERT_EXAMPLES)]
pub(crate) struct AlertArgs {
    /// Name of the Provider
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    provider_ref: String,
    /// Lowest severity: info or error
    #[arg(long, value_name = "SEVERITY", default_value = "", hide_default_value = true)]
    event_severity: String,
    /// Object that the alerts are about; the name * means all of its kind. Can be repeated
    #[arg(long, value_name = "KIND/NAME[.NAMESPACE],...")]
    event_source: Vec<String>,
    #[command(flatten)]
    pub(super) create: CreateFlags,
    #[command(flatten)]
    _interval: UnusedIntervalFlag,
}

impl AlertArgs {
    pub(super) fn object(&self, namespace: &str) -> Result<Value> {
        ensure!(!self.provider_ref.is_empty(), "provider ref is required");
        let sources = split_list(&self.event_source)?;
        ensure!(!sources.is_empty(), "at least one event source is required");
        let sources = sources.iter().map(|text| {
            let named = Named::of_namespace(text);
            ensure!(
                !named.kind.is_empty(),
                "invalid event source '{text}', must be in format <kind>/<name>"
            );
            let fields = Fields::default()
                .set("kind", named.kind)
                .set("name", named.name)
                .text("namespace", &named.namespace);
            Ok(Value::from(fields))
        });
        let spec = Fields::default()
            .reference("providerRef", Some(&self.provider_ref))
            .text("eventSeverity", &self.event_severity)
            .set("eventSources", sources.collect::<Result<Vec<_>>>()?);
        let identity = Identity {
            name: &self.create.name,
            namespace,
            labels: &self.create.labels()?,
        };
        Ok(identity.object(&fleet::kind::ALERT, spec))
    }
}

const PROVIDER_EXAMPLES: &str = "Examples:
  # A channel of Slack
  weir create alert-provider slack \\
    --type=slack \\
    --channel=general \\
    --address=https://hooks.slack.com/services/YOUR/SLACK/WEBHOOK \\
    --secret-ref=webhook-url

  # Commit statuses on GitHub
  weir create alert-provider github-podinfo \\
    --type=github \\
    --address=https://github.com/stefanprodan/podinfo \\
    --secret-ref=github-token";

/// Create or update a Provider: where alerts are sent to
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = PROVIDER_EXAMPLES)]
pub(crate) struct ProviderArgs {
    /// Type of the provider, such as slack, msteams, github or generic
    #[arg(
        long = "type",
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    type_: String,
    /// Channel of a chat
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    channel: String,
    /// Name of the bot in a chat
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    username: String,
    /// Address of the Git repository, chat or webhook
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    address: String,
    /// Name of an existing Secret with the token
    #[arg(long, value_name = "NAME")]
    secret_ref: Option<String>,
    #[command(flatten)]
    pub(super) create: CreateFlags,
    #[command(flatten)]
    _interval: UnusedIntervalFlag,
}

impl ProviderArgs {
    pub(super) fn object(&self, namespace: &str) -> Result<Value> {
        ensure!(!self.type_.is_empty(), "Provider type is required");
        let spec = Fields::default()
            .set("type", &*self.type_)
            .text("channel", &self.channel)
            .text("username", &self.username)
            .text("address", &self.address)
            .reference("secretRef", self.secret_ref.as_deref());
        let identity = Identity {
            name: &self.create.name,
            namespace,
            labels: &self.create.labels()?,
        };
        Ok(identity.object(&fleet::kind::PROVIDER, spec))
    }
}

const RECEIVER_EXAMPLES: &str = "Examples:
  # Reconcile two sources at a push to GitHub
  weir create receiver github-receiver \\
    --type=github \\
    --event=ping \\
    --event=push \\
    --secret-ref=webhook-token \\
    --resource=GitRepository/webapp \\
    --resource=HelmRepository/webapp";

/// Create or update a Receiver: a webhook that requests reconciliations
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = RECEIVER_EXAMPLES)]
pub(crate) struct ReceiverArgs {
    /// Type of the sender
    #[arg(long = "type", value_name = "NAME", value_parser = RECEIVER_TYPES)]
    type_: Option<String>,
    /// Name of an existing Secret with the token
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    secret_ref: String,
    /// Event of the sender that counts; all by default. Can be repeated
    #[arg(long, value_name = "NAME,...")]
    event: Vec<String>,
    /// Object that is reconciled. Can be repeated
    #[arg(long, value_name = "KIND/NAME,...")]
    resource: Vec<String>,
    #[command(flatten)]
    pub(super) create: CreateFlags,
    #[command(flatten)]
    _interval: UnusedIntervalFlag,
}

impl ReceiverArgs {
    pub(super) fn object(&self, namespace: &str) -> Result<Value> {
        let type_ = self.type_.as_deref();
        ensure!(type_.is_some(), "Receiver type is required");
        ensure!(!self.secret_ref.is_empty(), "secret ref is required");
        let resources = split_list(&self.resource)?;
        ensure!(!resources.is_empty(), "at least one resource is required");
        let resources = resources.iter().map(|text| {
            let named = Named::of_kind(text);
            ensure!(
                !named.kind.is_empty(),
                "invalid event source '{text}', must be in format <kind>/<name>"
            );
            let fields = Fields::default().set("kind", named.kind).set("name", named.name);
            Ok(Value::from(fields))
        });
        let events = split_list(&self.event)?;
        let spec = Fields::default()
            .optional("type", type_)
            .list("events", events.into_iter().map(Value::from).collect())
            .set("resources", resources.collect::<Result<Vec<_>>>()?)
            .reference("secretRef", Some(&self.secret_ref));
        let identity = Identity {
            name: &self.create.name,
            namespace,
            labels: &self.create.labels()?,
        };
        Ok(identity.object(&fleet::kind::RECEIVER, spec))
    }
}
