//! The flags of this controller alone, and the names that the original has for flags.

mod original;
mod parse;

use clap::Args;
use deployer::{ReferenceFlags, RenderFlags};
use engine::{EnvironmentVariables, ExternalAccess};
use remote::ServerAccess;
use runtime::{
    Context,
    flags::{Idle, idle},
};

pub use original::{OriginalFlags, ResultFlags};
pub use parse::{ALIASES, parse};

/// The flags of this controller alone. Limits keep one repository from taking the process down.
#[derive(Debug, Clone, Args)]
pub struct Flags {
    /// Write nothing to any target cluster: every change is a server-side dry run.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub dry_run: bool,

    /// Accepted for compatibility: a download is tried again until a third of the time of its pass is over.
    #[arg(long)]
    pub http_retry: Option<u32>,

    /// The flags of every controller that deploys from sources.
    #[command(flatten)]
    pub references: ReferenceFlags,

    /// The results of commands that are stored in the cluster.
    #[command(flatten)]
    pub results: ResultFlags,

    /// The other flags of the original.
    #[command(flatten)]
    pub original: OriginalFlags,

    #[command(flatten)]
    pub render: RenderFlags,

    /// Prefix of environment variables that projects may read; can be repeated. Without it they may read none.
    #[arg(long, value_name = "PREFIX")]
    pub allow_env: Vec<String>,

    /// Hosts whose Git repositories get the credentials of the GitRepository when a project includes them, each with or without a port.
    /// Repositories with its scheme, host and port always get them.
    #[arg(long, value_delimiter = ',', value_name = "HOST")]
    pub git_credentials_hosts: Vec<String>,
}

impl Flags {
    /// Returns the access of projects to anything but their files and their cluster.
    #[must_use]
    pub fn external(&self, ctx: &Context) -> ExternalAccess {
        ExternalAccess {
            environment: EnvironmentVariables::from_process().only(&self.allow_env),
            servers: ServerAccess {
                addresses: ctx.addresses().clone(),
                ..ServerAccess::default()
            },
            vars_addresses: ctx.vars_addresses(),
            ..ExternalAccess::default()
        }
    }

    #[must_use]
    pub fn idle(&self) -> Vec<Idle> {
        let mut all = idle([(
            "--http-retry",
            self.http_retry.is_some(),
            "a download is tried again until a third of the time of its pass is over",
        )]);
        all.extend(self.original.idle());
        all
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use runtime::flags::{IDLE_IN_ALL, OBEYED_BY_ALL, differences};

    use crate::Cli;

    /// Flags with an effect, besides those that have one in every controller.
    const OBEYED: &[&str] = &[
        "no-cross-namespace-refs",
        "requeue-dependency",
        "default-service-account",
        "events-addr",
        "events-token-file",
        "dry-run",
        "insecure-kubeconfig-tls",
        "artifact-hosts",
        "artifact-token-file",
        "artifact-token-hosts",
        "source-controller-localhost",
        "source-watcher-localhost",
        "limit-artifact-bytes",
        "limit-artifact-entries",
        "limit-file-bytes",
        "limit-rendered-bytes",
        "limit-objects",
        "limit-include-depth",
        "limit-yaml-depth",
        "limit-alias-bytes",
        "limit-steps",
        "allow-env",
        "git-credentials-hosts",
        "kubeconfig",
        "context",
        "namespace",
        "controller-name",
        "source-override-bind-address",
        "command-result-namespace",
        "write-command-result",
        "force-write-command-result",
        "keep-command-results-count",
        "keep-validate-results-count",
        "debug",
    ];
    /// Flags without one, each with a value that is not its default.
    const IDLE: &[(&str, &str)] = &[
        ("http-retry", "3"),
        ("no-update-check", "true"),
        ("use-system-python", "true"),
        ("gops-agent", "true"),
        ("gops-agent-addr", ":1"),
        ("cpu-profile", "cpu"),
    ];

    #[test]
    fn flags_without_effect_are_reported() {
        let said = |cli: &Cli| [cli.common.idle(), cli.own.idle()].concat();
        let (obeyed, idle) = ([OBEYED_BY_ALL, OBEYED].concat(), [IDLE_IN_ALL, IDLE].concat());
        assert_eq!(differences(&obeyed, &idle, said), [] as [&str; 0]);
    }

    #[test]
    fn arguments_of_existing_manifests_parse() {
        let cli = Cli::try_parse_from([
            "kluctl-controller",
            "--events-addr=http://notification-controller.flux-system.svc.cluster.local./",
            "--watch-all-namespaces",
            "--log-level=info",
            "--log-encoding=json",
            "--enable-leader-election",
            "--http-retry=9",
            "--dry-run",
            "--default-service-account=default",
            "--no-cross-namespace-refs=true",
            "--concurrent=4",
            "--requeue-dependency=30s",
        ])
        .expect("they parse");
        assert!(cli.own.dry_run && cli.common.no_cross_namespace_refs);
        assert!(Cli::try_parse_from(["kluctl-controller", "--no-such-flag"]).is_err());
    }

    #[test]
    fn default_limits_are_those_of_the_library() {
        let cli = Cli::try_parse_from(["kluctl-controller"]).expect("defaults");
        assert_eq!(
            format!("{:?}", cli.own.render.limits()),
            format!("{:?}", tree::Limits::default())
        );
        assert_eq!(
            format!("{:?}", cli.own.references.fetching(cli.own.render.limits())),
            format!("{:?}", artifact::FetchLimits::default())
        );
    }
}
