//! The flags of this controller alone.

use clap::Args;
use engine::{EnvironmentVariables, ExternalAccess};
use references::ReferenceFlags;
use runtime::{
    Context,
    flags::{Idle, idle},
};

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

    /// Bytes of one file that is rendered.
    #[arg(long, default_value_t = 5 << 20)]
    pub limit_file_bytes: u64,

    /// Bytes that one project renders to.
    #[arg(long, default_value_t = 64 << 20)]
    pub limit_rendered_bytes: u64,

    /// Objects that one project renders to.
    #[arg(long, default_value_t = 20_000)]
    pub limit_objects: u64,

    /// Nesting of includes.
    #[arg(long, default_value_t = 50)]
    pub limit_include_depth: u32,

    /// Nesting of YAML documents.
    #[arg(long, default_value_t = 100)]
    pub limit_yaml_depth: u32,

    /// Bytes that aliases of a YAML document expand to.
    #[arg(long, default_value_t = 10 << 20)]
    pub limit_alias_bytes: u64,

    /// Steps of templates and loops while one project is rendered.
    #[arg(long, default_value_t = 500_000_000)]
    pub limit_steps: u64,

    /// What the names of environment variables begin with that projects may read; without it they may read none.
    #[arg(long, value_name = "PREFIX")]
    pub allow_env: Vec<String>,
}

impl Flags {
    /// The limits of rendering.
    #[must_use]
    pub fn rendering(&self) -> tree::Limits {
        tree::Limits {
            steps: self.limit_steps,
            bytes: self.limit_rendered_bytes,
            yaml_depth: self.limit_yaml_depth,
            alias_bytes: self.limit_alias_bytes,
            include_depth: self.limit_include_depth,
            file_bytes: self.limit_file_bytes,
            objects: self.limit_objects,
        }
    }

    /// What projects may take from elsewhere than from their files and their cluster.
    #[must_use]
    pub fn external(&self, ctx: &Context) -> ExternalAccess {
        ExternalAccess {
            environment: EnvironmentVariables::from_process().only(&self.allow_env),
            addresses: ctx.addresses().clone(),
            vars_addresses: ctx.vars_addresses(),
            ..ExternalAccess::default()
        }
    }

    /// The given flags that have no effect.
    #[must_use]
    pub fn idle(&self) -> Vec<Idle> {
        idle([(
            "--http-retry",
            self.http_retry.is_some(),
            "a download is tried again until a third of the time of its pass is over",
        )])
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
        "dry-run",
        "insecure-kubeconfig-tls",
        "source-controller-localhost",
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
    ];
    /// Flags without one, each with a value that is not its default.
    const IDLE: &[(&str, &str)] = &[("http-retry", "3")];

    #[test]
    fn each_flag_has_an_effect_or_is_said_to_have_none() {
        let said = |cli: &Cli| [cli.common.idle(), cli.own.idle()].concat();
        let (obeyed, idle) = ([OBEYED_BY_ALL, OBEYED].concat(), [IDLE_IN_ALL, IDLE].concat());
        assert_eq!(differences(&obeyed, &idle, said), [] as [&str; 0]);
    }

    #[test]
    fn the_arguments_of_existing_manifests_parse() {
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
    fn the_limits_are_those_of_the_library() {
        let cli = Cli::try_parse_from(["kluctl-controller"]).expect("defaults");
        assert_eq!(
            format!("{:?}", cli.own.rendering()),
            format!("{:?}", tree::Limits::default())
        );
        assert_eq!(
            format!("{:?}", cli.own.references.fetching(cli.own.rendering())),
            format!("{:?}", artifact::FetchLimits::default())
        );
    }
}
