//! The flags of the notification-controller.

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use limits::CacheBounds;
use net::AddressPolicy;
use runtime::{
    CommonFlags, Context,
    accounts::{InvalidDefaultAccount, OBJECT_IDENTITIES, ServiceAccounts},
    flags::{Idle, idle},
};

use crate::{event::Comparison, senders::Sender};

const AUDIENCE: &str = "weir-events";
const WATCHED: &str = "reconcile.fluxcd.io/watch=Enabled";
const NO_WATCH: &str = "DisableConfigWatchers";
const GOOGLE_KEYS: &str = "https://www.googleapis.com/oauth2/v3/certs";
/// Feature gate of a cache that does not exist here.
const CACHE: &str = "CacheSecretsAndConfigMaps";
const GATES: [&str; 3] = [CACHE, NO_WATCH, OBJECT_IDENTITIES];

/// Turns the events of controllers into webhooks and chat messages.
#[derive(Debug, Clone, Parser)]
#[command(name = "notification-controller", version)]
pub struct Flags {
    /// The flags that every controller has.
    #[command(flatten)]
    pub common: CommonFlags,

    /// Address that events are posted to.
    #[arg(long, default_value = ":9090")]
    pub events_addr: String,

    /// Accept events with the token of a sender only. Controllers of Flux send none.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub require_event_tokens: bool,

    /// Audience that the tokens of events must have.
    #[arg(long, default_value = AUDIENCE, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub event_token_audience: String,

    /// ServiceAccounts whose tokens are accepted, each with the name of its controller (by default the name of the ServiceAccount) and
    /// the API groups of the objects that it may report (by default all). Without the flag: source-controller, kustomize-controller
    /// and kluctl-controller in the namespace of this controller, with their own groups.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAMESPACE/NAME[:CONTROLLER][=GROUP+GROUP]"
    )]
    pub event_senders: Vec<Sender>,

    /// Directory for events that were accepted and are not delivered yet; they survive a restart. By default, they don't.
    #[arg(long, value_name = "DIRECTORY")]
    pub journal_path: Option<PathBuf>,

    /// Address of the webhooks of Receivers.
    #[arg(long = "receiverAddr", default_value = ":9292")]
    pub receiver_addr: String,

    /// Duration for which a repeated event is suppressed; 0 suppresses none.
    #[arg(long, default_value = "5m", value_parser = runtime::duration::parse)]
    pub rate_limit_interval: Duration,

    /// Compare the messages of events exactly, as Flux does. By default, an event that differs from an earlier one only in durations
    /// and in counts of attempts repeats it.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub rate_limit_exact_messages: bool,

    /// Deliver to any address, also to those that the policy of addresses refuses.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub allow_internal_addresses: bool,

    /// Accepted for compatibility; paths never become labels.
    #[arg(long, default_missing_value = "true", num_args = 0..=1, require_equals = true)]
    pub export_http_path_metrics: Option<bool>,

    /// Labels of the Secrets whose changes reconcile Receivers at once.
    #[arg(long, default_value = WATCHED, value_name = "SELECTOR")]
    pub watch_configs_label_selector: String,

    /// URL of the keys that sign the tokens of Google, for Receivers of the type gcr.
    #[arg(long, default_value = GOOGLE_KEYS, value_name = "URL")]
    pub gcr_keys_url: String,

    /// Tokens of cloud identities that are kept; 0 keeps none.
    #[arg(long, default_value_t = 100)]
    pub token_cache_max_size: u32,

    /// Longest time that tokens of cloud identities are kept.
    #[arg(long, default_value = "1h", value_parser = runtime::duration::parse)]
    pub token_cache_max_duration: Duration,

    /// Accepted for compatibility; kubeconfigs never run programs.
    #[arg(long, default_missing_value = "true", num_args = 0..=1, require_equals = true)]
    pub insecure_kubeconfig_exec: Option<bool>,

    /// Accepted for compatibility; certificates are always checked.
    #[arg(long, default_missing_value = "true", num_args = 0..=1, require_equals = true)]
    pub insecure_kubeconfig_tls: Option<bool>,

    /// Feature gates, as Name=true|false.
    #[arg(long, value_delimiter = ',', value_parser = gate)]
    pub feature_gates: Vec<(String, bool)>,
}

#[derive(Debug, thiserror::Error)]
enum FeatureGateError {
    #[error("{0:?} is not of the form Name=true")]
    Syntax(String),
    #[error("unknown feature gate {0:?}; known are {known}", known = GATES.join(", "))]
    Unknown(String),
    #[error("{0:?}: the value must be true or false")]
    NotBoolean(String),
}

fn gate(text: &str) -> Result<(String, bool), FeatureGateError> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| FeatureGateError::Syntax(text.to_owned()))?;
    if !GATES.contains(&name) {
        return Err(FeatureGateError::Unknown(name.to_owned()));
    }
    let value = value
        .parse()
        .map_err(|_| FeatureGateError::NotBoolean(text.to_owned()))?;
    Ok((name.to_owned(), value))
}

impl Flags {
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.events_addr.is_empty(),
            "--events-addr must not be empty: events are all that it serves"
        );
        anyhow::ensure!(
            !self.require_event_tokens
                || !self.event_senders.is_empty()
                || !self.common.runtime_namespace.is_empty(),
            "--require-event-tokens needs --event-senders, or the namespace in the variable RUNTIME_NAMESPACE"
        );
        Ok(())
    }

    pub(crate) fn comparison(&self) -> Comparison {
        match self.rate_limit_exact_messages {
            true => Comparison::Exact,
            false => Comparison::Lasting,
        }
    }

    /// Returns true unless a feature gate turns the watch of Secrets off.
    pub(crate) fn watches_secrets(&self) -> bool {
        !self.is_gate_open(NO_WATCH)
    }

    /// Returns true if a feature gate is open; the last of its values counts.
    fn is_gate_open(&self, gate: &str) -> bool {
        let mut gates = self.feature_gates.iter().rev();
        gates.find(|(name, _)| name == gate).is_some_and(|(_, on)| *on)
    }

    pub(crate) fn delivery_addresses(&self, ctx: &Context) -> AddressPolicy {
        match self.allow_internal_addresses {
            true => AddressPolicy::unrestricted(),
            false => ctx.addresses().clone(),
        }
    }

    /// Returns the service accounts whose cloud identities Providers use.
    /// Fails when the default service account is set while the feature gate is closed, and when it has an invalid name.
    pub(crate) fn service_accounts(&self) -> Result<ServiceAccounts, InvalidDefaultAccount> {
        ServiceAccounts::new(
            self.is_gate_open(OBJECT_IDENTITIES),
            &self.common.default_service_account,
        )
    }

    pub(crate) fn token_bounds(&self) -> CacheBounds {
        CacheBounds {
            max_entries: usize::try_from(self.token_cache_max_size).unwrap_or(usize::MAX),
            max_age: self.token_cache_max_duration,
        }
    }

    pub(crate) fn config_selector(&self) -> &str {
        &self.watch_configs_label_selector
    }

    pub(crate) fn idle(&self) -> Vec<Idle> {
        idle([
            (
                "--export-http-path-metrics",
                self.export_http_path_metrics == Some(true),
                "paths never become labels",
            ),
            (
                "--insecure-kubeconfig-exec",
                self.insecure_kubeconfig_exec == Some(true),
                "no program is ever run",
            ),
            (
                "--insecure-kubeconfig-tls",
                self.insecure_kubeconfig_tls == Some(true),
                "certificates are checked",
            ),
            (
                "--requeue-dependency",
                self.common.sets_requeue_dependency(),
                "an event or a Provider waits for no other object",
            ),
            (
                "--event-senders",
                !self.event_senders.is_empty() && !self.require_event_tokens,
                "without --require-event-tokens all senders are accepted",
            ),
            (
                "--event-token-audience",
                self.event_token_audience != AUDIENCE && !self.require_event_tokens,
                "without --require-event-tokens no token is read",
            ),
            (
                "--feature-gates",
                self.is_gate_open(CACHE),
                "Secrets are read when they are needed, not from a cache",
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use runtime::flags::{IDLE_IN_ALL, OBEYED_BY_ALL, differences};

    use super::*;

    fn flags(args: &[&str]) -> Result<Flags, clap::Error> {
        Flags::try_parse_from([&["notification-controller"], args].concat())
    }

    /// Flags with an effect, besides those that have one in every controller.
    const OBEYED: &[&str] = &[
        "no-cross-namespace-refs",
        "events-addr",
        "rate-limit-interval",
        "rate-limit-exact-messages",
        "allow-internal-addresses",
        "require-event-tokens",
        "journal-path",
        "receiverAddr",
        "watch-configs-label-selector",
        "gcr-keys-url",
        "default-service-account",
        "token-cache-max-size",
        "token-cache-max-duration",
    ];
    /// Flags without one, each with a value that is not its default.
    const IDLE: &[(&str, &str)] = &[
        ("event-senders", "a/b"),
        ("event-token-audience", "x"),
        ("requeue-dependency", "1s"),
        ("export-http-path-metrics", "true"),
        ("insecure-kubeconfig-exec", "true"),
        ("insecure-kubeconfig-tls", "true"),
        ("feature-gates", "CacheSecretsAndConfigMaps=true"),
    ];

    #[test]
    fn each_flag_has_an_effect_or_is_said_to_have_none() {
        let said = |flags: &Flags| [flags.common.idle(), flags.idle()].concat();
        let (obeyed, idle) = ([OBEYED_BY_ALL, OBEYED].concat(), [IDLE_IN_ALL, IDLE].concat());
        assert_eq!(differences(&obeyed, &idle, said), [] as [&str; 0]);
    }

    #[test]
    fn every_upstream_flag_parses() {
        let flags = flags(&[
            "--watch-all-namespaces=true",
            "--log-level=info",
            "--log-encoding=json",
            "--enable-leader-election",
            "--events-addr=:9091",
            "--receiverAddr=:9292",
            "--rate-limit-interval=10m",
            "--export-http-path-metrics",
            "--watch-configs-label-selector=a=b",
            "--no-cross-namespace-refs=true",
            "--token-cache-max-size=0",
            "--token-cache-max-duration=1h",
            "--default-service-account=x",
            "--feature-gates=CacheSecretsAndConfigMaps=false,ObjectLevelWorkloadIdentity=true",
            "--insecure-kubeconfig-exec=false",
            "--insecure-kubeconfig-tls=false",
            "--kube-api-qps=50",
            "--kube-api-burst=300",
            "--concurrent=4",
            "--min-retry-delay=1s",
            "--max-retry-delay=1m",
        ])
        .unwrap();
        assert_eq!(
            (flags.events_addr.as_str(), flags.rate_limit_interval),
            (":9091", Duration::from_secs(600))
        );
        assert_eq!(flags.feature_gates.len(), 2);
    }

    #[test]
    fn a_default_service_account_needs_the_feature_gate() {
        let accounts = |args: &[&str]| flags(args).unwrap().service_accounts();
        let account = "--default-service-account=tenant";
        assert_eq!(accounts(&[account]), Err(InvalidDefaultAccount::Gate));
        let open = accounts(&[account, "--feature-gates=ObjectLevelWorkloadIdentity=true"]).unwrap();
        assert_eq!((open.of_objects, open.default.as_deref()), (true, Some("tenant")));
    }

    #[test]
    fn tokens_need_senders() {
        let checked = |args: &[&str]| flags(args).unwrap().check();
        let needs = "--require-event-tokens";
        assert!(checked(&[needs, "--runtime-namespace="]).is_err());
        assert!(checked(&[needs, "--runtime-namespace=flux-system"]).is_ok());
        assert!(checked(&[needs, "--runtime-namespace=", "--event-senders=a/b,c/d"]).is_ok());
        assert!(flags(&["--event-senders=a"]).is_err() && flags(&["--event-token-audience="]).is_err());
    }

    #[test]
    fn unknown_flags_and_gates_are_refused() {
        for args in [
            "--receiver-addr=:1",
            "--feature-gates=Nonsense=true",
            "--feature-gates=CacheSecretsAndConfigMaps",
        ] {
            assert!(flags(&[args]).is_err(), "{args}");
        }
    }
}
