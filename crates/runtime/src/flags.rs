//! The flags of every controller, with the environment variables that upstream reads for them.
//!
//! Flags of a single kind are in its controller. A flag that is accepted for the sake of existing manifests but has no effect is logged
//! when it is set.

pub mod bytes;
mod without_effect;

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use net::{AddressPolicy, ClusterServices, Exception};

use crate::duration;

pub use without_effect::{IDLE_IN_ALL, Idle, OBEYED_BY_ALL, differences, idle, report_idle};

const REQUEUE_DEPENDENCY: Duration = Duration::from_secs(30);

/// Level of detail of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// Details for finding a mistake.
    Debug,
    /// Messages of interest to operators.
    Info,
    /// Failures only.
    Error,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogEncoding {
    /// A JSON object a line.
    Json,
    /// Lines for people to read.
    Console,
}

/// The requests that may lead to private networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrivateAddresses {
    /// None.
    None,
    /// Requests to Git servers, registries, providers and clusters, but none of `http` variables.
    Sources,
    /// All.
    All,
}

/// The flags that every controller has.
#[derive(Debug, Clone, Args)]
pub struct CommonFlags {
    /// Address of the metrics endpoint; 0 turns it off.
    #[arg(long, env = "METRICS_ADDR", default_value = ":8080")]
    pub metrics_addr: String,

    /// Export all buckets of the durations of each object, not only their sum and count.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub metrics_per_object: bool,

    /// Address of the health endpoint; 0 turns it off.
    #[arg(long, default_value = ":9440")]
    pub health_addr: String,

    /// Number of objects of a kind that are reconciled at the same time; each controller has its default.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub concurrent: Option<u16>,

    /// Watch all namespaces; otherwise only the one in RUNTIME_NAMESPACE.
    #[arg(long, default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub watch_all_namespaces: bool,

    /// Watch only objects with these labels.
    #[arg(long, default_value = "")]
    pub watch_label_selector: String,

    /// Namespace that the controller runs in.
    #[arg(long, env = "RUNTIME_NAMESPACE", default_value = "", hide = true)]
    pub runtime_namespace: String,

    /// Make sure that only one replica is active.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub enable_leader_election: bool,

    /// Time that a lease is valid after its last renewal.
    #[arg(long, default_value = "35s", value_parser = duration::parse)]
    pub leader_election_lease_duration: Duration,

    /// Time that the leader tries to renew before it gives up.
    #[arg(long, default_value = "30s", value_parser = duration::parse)]
    pub leader_election_renew_deadline: Duration,

    /// Delay between two attempts to acquire or renew.
    #[arg(long, default_value = "5s", value_parser = duration::parse)]
    pub leader_election_retry_period: Duration,

    /// Give the lease back at a clean end, so that the next leader need not wait.
    #[arg(long, default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub leader_election_release_on_cancel: bool,

    /// Level of detail of the log.
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    pub log_level: LogLevel,

    /// The form of the log.
    #[arg(long, value_enum, default_value_t = LogEncoding::Json)]
    pub log_encoding: LogEncoding,

    /// Accepted for compatibility; the API server's own priority and fairness governs.
    #[arg(long)]
    pub kube_api_qps: Option<f32>,

    /// Accepted for compatibility; the API server's own priority and fairness governs.
    #[arg(long)]
    pub kube_api_burst: Option<u32>,

    /// First delay after a failure.
    #[arg(long, default_value = "750ms", value_parser = duration::parse)]
    pub min_retry_delay: Duration,

    /// Longest delay after repeated failures.
    #[arg(long, default_value = "15m", value_parser = duration::parse)]
    pub max_retry_delay: Duration,

    /// Longest time that a pass over an object may take, whatever timeout the object asks for.
    #[arg(long, default_value = "1h", value_parser = duration::parse)]
    pub max_timeout: Duration,

    /// Directory of the file that notes which objects are worked on: it must outlive a restart of the container. By default the directory
    /// of temporary files.
    #[arg(long, value_name = "DIR")]
    pub crash_marks_path: Option<PathBuf>,

    /// Bytes of memory that the work for all namespaces may hold together, as in 512Mi. By default half of the memory limit of the container,
    /// or 512Mi without one.
    #[arg(long, value_name = "BYTES", value_parser = crate::memory::size)]
    pub work_memory_max_size: Option<u64>,

    /// Percentage by which intervals are spread.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub interval_jitter_percentage: u8,

    /// Delay before a dependency is checked again.
    #[arg(long, default_value = "30s", value_parser = duration::parse)]
    pub requeue_dependency: Duration,

    /// Service account that is used where an object names none: impersonated, or for its cloud identity.
    #[arg(long, default_value = "")]
    pub default_service_account: String,

    /// Refuse references to objects of other namespaces.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub no_cross_namespace_refs: bool,

    /// Hosts, IP addresses and networks that users may name although they are refused by default: loopback, link-local, metadata
    /// services, the API server, and services in the namespace of the controllers.
    #[arg(long, value_delimiter = ',', value_name = "HOST|CIDR")]
    pub allow_addresses: Vec<Exception>,

    /// Requests that may lead to private networks.
    #[arg(long, value_enum, default_value_t = PrivateAddresses::Sources)]
    pub private_addresses: PrivateAddresses,

    /// The proxies of `HTTP_PROXY` and `HTTPS_PROXY` refuse internal addresses themselves. Otherwise names are sent to a proxy with verified
    /// TLS only, because it resolves them again.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub proxies_check_addresses: bool,

    /// The kubeconfig of the controller, for controllers with flags for it.
    #[arg(skip)]
    pub connection: Connection,

    /// The only namespace to watch, with rights in this namespace, for controllers with a flag for it.
    #[arg(skip)]
    pub only_namespace: Option<String>,
}

const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1"];

/// The kubeconfig of a controller. Default: `$KUBECONFIG`, then `~/.kube/config`, then the service account of the Pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connection {
    /// File to read instead.
    pub kubeconfig: Option<PathBuf>,
    /// Context to use instead of the current one of the file.
    pub context: Option<String>,
}

/// The flags of the controllers that post events to the notification-controller (which itself listens there).
#[derive(Debug, Clone, Default, Args)]
pub struct EventsFlags {
    /// URL that events are posted to; empty posts none.
    #[arg(long, env = "EVENTS_ADDR", default_value = "")]
    pub events_addr: String,

    /// File with the token that events are posted with, such as a projected ServiceAccount token. It is read for each post, because
    /// such tokens are renewed.
    #[arg(long, value_name = "FILE")]
    pub events_token_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FlagsError {
    /// A leader would lose its lease before it gives up renewing it.
    #[error("--leader-election-renew-deadline must be shorter than --leader-election-lease-duration")]
    RenewDeadline,
    /// A leader would not try to renew its lease in time, or all the time.
    #[error(
        "--leader-election-retry-period must be positive and shorter than --leader-election-renew-deadline"
    )]
    RetryPeriod,
    #[error("--min-retry-delay must be positive and at most --max-retry-delay")]
    RetryDelay,
    #[error("--watch-all-namespaces=false needs the namespace in the variable RUNTIME_NAMESPACE")]
    Namespace,
}

impl CommonFlags {
    pub fn check(&self) -> Result<(), FlagsError> {
        if self.leader_election_renew_deadline >= self.leader_election_lease_duration {
            return Err(FlagsError::RenewDeadline);
        }
        if self.leader_election_retry_period >= self.leader_election_renew_deadline
            || self.leader_election_retry_period.is_zero()
        {
            return Err(FlagsError::RetryPeriod);
        }
        if self.min_retry_delay.is_zero() || self.min_retry_delay > self.max_retry_delay {
            return Err(FlagsError::RetryDelay);
        }
        if !self.watch_all_namespaces && self.runtime_namespace.is_empty() {
            return Err(FlagsError::Namespace);
        }
        Ok(())
    }

    /// Returns the policy of addresses for servers that users name, without `http` variables. Loopback addresses are allowed outside of a
    /// Pod with a kubeconfig of the command line: then they are on the machine of the user who started the process.
    #[must_use]
    pub fn address_policy(&self, services: ClusterServices) -> AddressPolicy {
        let is_local = self.connection.kubeconfig.is_some() && services.api_server.is_empty();
        let local = LOOPBACK
            .iter()
            .filter(|_| is_local)
            .filter_map(|text| text.parse().ok());
        let allowed: Vec<Exception> = self.allow_addresses.iter().cloned().chain(local).collect();
        let policy = AddressPolicy::controller(services).allowing(allowed);
        let policy = match self.proxies_check_addresses {
            true => policy.trusting_proxies(),
            false => policy,
        };
        match self.private_addresses {
            PrivateAddresses::None => policy.refusing_private(),
            PrivateAddresses::Sources | PrivateAddresses::All => policy,
        }
    }

    #[must_use]
    pub fn watch_namespace(&self) -> Option<&str> {
        let own = (!self.watch_all_namespaces).then_some(self.runtime_namespace.as_str());
        self.only_namespace.as_deref().or(own)
    }

    /// Returns the namespace of sources, or `None` for all: with rights in one namespace only, there is no other.
    #[must_use]
    pub fn watch_sources_namespace(&self) -> Option<&str> {
        let confined = self.no_cross_namespace_refs || self.only_namespace.is_some();
        self.watch_namespace().filter(|_| confined)
    }

    #[must_use]
    pub fn idle(&self) -> Vec<Idle> {
        const WHY: &str = "the API server's priority and fairness governs";
        idle([
            ("--kube-api-qps", self.kube_api_qps.is_some(), WHY),
            ("--kube-api-burst", self.kube_api_burst.is_some(), WHY),
        ])
    }

    /// Returns true if the delay for dependencies is not the default, for controllers without dependencies.
    #[must_use]
    pub fn sets_requeue_dependency(&self) -> bool {
        self.requeue_dependency != REQUEUE_DEPENDENCY
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        common: CommonFlags,
    }

    fn flags(args: &[&str]) -> Result<CommonFlags, clap::Error> {
        Cli::try_parse_from([&["controller"], args].concat()).map(|cli| cli.common)
    }

    #[test]
    fn defaults_are_upstreams() {
        let flags = flags(&[]).unwrap();
        assert_eq!(flags.health_addr, ":9440");
        assert_eq!(flags.leader_election_lease_duration, Duration::from_secs(35));
        assert_eq!(flags.min_retry_delay, Duration::from_millis(750));
        assert_eq!(flags.max_retry_delay, Duration::from_secs(900));
        assert!(!flags.sets_requeue_dependency() && flags.idle().is_empty());
        assert!(
            flags.watch_all_namespaces
                && !flags.enable_leader_election
                && flags.leader_election_release_on_cancel
        );
        assert_eq!(flags.check(), Ok(()));
        assert_eq!(flags.watch_namespace(), None);
    }

    #[test]
    fn the_arguments_of_upstream_manifests_parse() {
        let flags = flags(&[
            "--watch-all-namespaces",
            "--log-level=debug",
            "--log-encoding=console",
            "--enable-leader-election",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            "--concurrent=10",
            "--requeue-dependency=5s",
            "--no-cross-namespace-refs=true",
            "--leader-election-release-on-cancel=false",
        ])
        .unwrap();
        assert!(flags.enable_leader_election && flags.no_cross_namespace_refs);
        let idle: Vec<_> = flags.idle().into_iter().map(|(flag, _)| flag).collect();
        assert_eq!(idle, ["--kube-api-qps", "--kube-api-burst"]);
        assert!(flags.sets_requeue_dependency());
        assert!(!flags.leader_election_release_on_cancel);
        assert_eq!(flags.concurrent, Some(10));
    }

    #[test]
    fn address_flags_make_the_policy() {
        let refused = |args: &[&str], url: &str| {
            let policy = flags(args).unwrap().address_policy(ClusterServices::default());
            policy.check_url(&url.parse().unwrap()).is_err()
        };
        for url in [
            "http://127.0.0.1/",
            "http://169.254.169.254/",
            "https://kubernetes.default.svc/",
        ] {
            assert!(refused(&[], url), "{url}");
        }
        let allow = [
            "--allow-addresses=127.0.0.0/8,::1",
            "--allow-addresses=git.flux-system.svc",
        ];
        assert!(!refused(&allow, "http://127.0.0.1/") && !refused(&allow, "http://[::1]/"));
        assert!(!refused(&[], "http://10.0.0.1/"));
        assert!(refused(&["--private-addresses=none"], "http://10.0.0.1/"));
        let services = ClusterServices::default();
        let policy = |args: &[&str]| flags(args).unwrap().address_policy(services.clone());
        let trusting = policy(&["--proxies-check-addresses"]);
        assert_eq!(trusting, policy(&[]).trusting_proxies());
        assert_ne!(trusting, policy(&[]));
    }

    #[test]
    fn loopback_is_allowed_outside_of_a_pod_with_a_kubeconfig_of_the_command_line() {
        let allowed = |kubeconfig: Option<&str>, variables: &[(&str, &str)], url: &str| {
            let mut flags = flags(&[]).unwrap();
            flags.connection.kubeconfig = kubeconfig.map(PathBuf::from);
            let variables = variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let services = ClusterServices::from_variables(variables, "flux-system");
            flags
                .address_policy(services)
                .check_url(&url.parse().unwrap())
                .is_ok()
        };
        let pod = [("KUBERNETES_SERVICE_HOST", "10.96.0.1")];
        for url in ["http://127.0.0.1:1/", "http://[::1]:1/"] {
            assert!(allowed(Some("file"), &[], url));
            assert!(
                !allowed(Some("file"), &pod, url) && !allowed(None, &[], url),
                "{url}"
            );
        }
        assert!(!allowed(Some("file"), &[], "http://169.254.169.254/"));
    }

    #[test]
    fn bad_values_and_unknown_flags_are_refused() {
        for args in [
            &["--nonsense"][..],
            &["--concurrent=0"],
            &["--interval-jitter-percentage=101"],
            &["--log-level=loud"],
            &["--allow-addresses=10.0.0.0/33"],
            &["--private-addresses=some"],
            &["--min-retry-delay=5"],
        ] {
            assert!(flags(args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn contradictory_flags_are_refused() {
        for args in [
            &["--leader-election-renew-deadline=40s"][..],
            &["--leader-election-retry-period=30s"],
            &["--min-retry-delay=1h"],
            &["--watch-all-namespaces=false", "--runtime-namespace="],
        ] {
            assert!(flags(args).unwrap().check().is_err(), "{args:?}");
        }
    }
}
