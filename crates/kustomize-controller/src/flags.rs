//! The flags of this controller alone.

mod gates;

use clap::Args;
use deployer::{ReferenceFlags, RenderFlags};
use runtime::flags::{Idle, idle};

pub use gates::{FeatureGates, InvalidGate};

/// The flags of this controller alone. Limits keep one repository from taking the process down.
#[derive(Debug, Clone, Args)]
pub struct Flags {
    /// The flags of every controller that deploys from sources.
    #[command(flatten)]
    pub references: ReferenceFlags,

    /// Accepted for compatibility: eight objects of a stage are applied at the same time.
    #[arg(long)]
    pub concurrent_ssa: Option<u16>,

    /// Accepted for compatibility: a download is tried again until a third of the time of its pass is over.
    #[arg(long)]
    pub http_retry: Option<u32>,

    /// Refuse remote bases: resources of kustomizations that are URLs.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub no_remote_bases: bool,

    /// Service account whose cloud identity decrypts where an object names none.
    #[arg(long, default_value = "")]
    pub default_decryption_service_account: String,

    /// Service account whose tokens are used for a cluster of spec.kubeConfig.configMapRef whose ConfigMap names none.
    #[arg(long, default_value = "")]
    pub default_kubeconfig_service_account: String,

    /// Name of a Secret in the namespace of this controller with age keys, for decryptions without a Secret of their own.
    #[arg(long, default_value = "")]
    pub sops_age_secret: String,

    /// Name of a ConfigMap in the namespace of this controller with the servers of Vault (address, loginPath) that service accounts of
    /// decryptions may log in to.
    #[arg(long, default_value = "")]
    pub sops_vault_configmap: String,

    /// Field manager whose fields are taken over before an apply, and removed unless a manifest has them; names that begin with it are meant,
    /// too. Can be repeated.
    #[arg(long, value_name = "MANAGER")]
    pub override_manager: Vec<String>,

    /// As --override-manager, for this exact name. Can be repeated.
    #[arg(long, value_name = "MANAGER")]
    pub override_manager_before_dry_run: Vec<String>,

    /// Kinds that are applied after definitions and classes, and before all others, as in `rbac.authorization.k8s.io/RoleBinding`.
    #[arg(long, value_delimiter = ',', value_name = "GROUP/KIND")]
    pub custom_apply_stage_kinds: Vec<String>,

    /// Accepted for compatibility: no program is ever run.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub insecure_kubeconfig_exec: bool,

    /// Labels of the ConfigMaps and Secrets whose changes reconcile the objects that refer to them at once. An empty one selects all.
    #[arg(long, default_value = "reconcile.fluxcd.io/watch=Enabled", value_name = "SELECTOR", value_parser = selector)]
    pub watch_configs_label_selector: String,

    /// Accepted for compatibility.
    #[arg(long)]
    pub token_cache_max_size: Option<u32>,

    /// Accepted for compatibility.
    #[arg(long)]
    pub token_cache_max_duration: Option<String>,

    /// Features to turn on or off, as in `ExternalArtifact=true,StrictPostBuildSubstitutions=false`.
    #[arg(long, default_value = "", value_name = "NAME=BOOL")]
    pub feature_gates: FeatureGates,

    #[command(flatten)]
    pub render: RenderFlags,
}

impl Flags {
    /// Returns the groups and kinds of the custom stage.
    #[must_use]
    pub fn custom_stage(&self) -> Vec<(String, String)> {
        let kinds = self
            .custom_apply_stage_kinds
            .iter()
            .map(|kind| kind.trim())
            .filter(|kind| !kind.is_empty());
        let split = kinds.map(|kind| kind.rsplit_once('/').unwrap_or(("", kind)));
        split
            .map(|(group, kind)| (group.to_owned(), kind.to_owned()))
            .collect()
    }

    /// Returns the selector of the ConfigMaps and Secrets to watch; `None` if none are.
    #[must_use]
    pub fn watched_configs(&self) -> Option<&str> {
        let selector = self.watch_configs_label_selector.as_str();
        self.feature_gates.config_watchers.then_some(selector)
    }

    #[must_use]
    pub fn idle(&self) -> Vec<Idle> {
        let mut all = idle([
            (
                "--concurrent-ssa",
                self.concurrent_ssa.is_some(),
                "eight objects of a stage are applied at the same time",
            ),
            (
                "--http-retry",
                self.http_retry.is_some(),
                "a download is tried again until a third of the time of its pass is over",
            ),
            (
                "--insecure-kubeconfig-exec",
                self.insecure_kubeconfig_exec,
                "no program is ever run",
            ),
            (
                "--token-cache-max-size",
                self.token_cache_max_size.is_some(),
                "tokens are kept as long as they are valid",
            ),
            (
                "--token-cache-max-duration",
                self.token_cache_max_duration.is_some(),
                "tokens are kept as long as they are valid",
            ),
        ]);
        all.extend(self.feature_gates.idle());
        all
    }
}

/// Reads a flag that selects objects by their labels.
fn selector(text: &str) -> Result<String, kustomize::InvalidSelector> {
    kustomize::LabelSelector::parse(text).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use runtime::flags::{IDLE_IN_ALL, OBEYED_BY_ALL, differences};

    use crate::Cli;

    /// Flags with an effect, besides those that have one in every controller.
    const OBEYED: &[&str] = &[
        "no-cross-namespace-refs",
        "requeue-dependency",
        "default-service-account",
        "events-addr",
        "events-token-file",
        "insecure-kubeconfig-tls",
        "artifact-hosts",
        "artifact-token-file",
        "artifact-token-hosts",
        "source-controller-localhost",
        "source-watcher-localhost",
        "limit-artifact-bytes",
        "limit-artifact-entries",
        "no-remote-bases",
        "default-decryption-service-account",
        "default-kubeconfig-service-account",
        "sops-age-secret",
        "sops-vault-configmap",
        "override-manager",
        "override-manager-before-dry-run",
        "custom-apply-stage-kinds",
        "watch-configs-label-selector",
        "limit-file-bytes",
        "limit-rendered-bytes",
        "limit-objects",
        "limit-include-depth",
        "limit-yaml-depth",
        "limit-alias-bytes",
        "limit-steps",
    ];
    /// Flags without one, each with a value that is not its default.
    const IDLE: &[(&str, &str)] = &[
        ("concurrent-ssa", "8"),
        ("http-retry", "3"),
        ("insecure-kubeconfig-exec", "true"),
        ("token-cache-max-size", "7"),
        ("token-cache-max-duration", "1h"),
        ("feature-gates", "CacheSecretsAndConfigMaps=true"),
    ];

    #[test]
    fn flags_without_effect_are_reported() {
        let said = |cli: &Cli| [cli.common.idle(), cli.own.idle()].concat();
        let (obeyed, idle) = ([OBEYED_BY_ALL, OBEYED].concat(), [IDLE_IN_ALL, IDLE].concat());
        assert_eq!(differences(&obeyed, &idle, said), [] as [&str; 0]);
    }

    #[test]
    fn arguments_of_the_originals_tests_parse() {
        let cli = Cli::try_parse_from([
            "kustomize-controller",
            "--concurrent=4",
            "--concurrent-ssa=4",
            "--requeue-dependency=2s",
            "--http-retry=0",
            "--override-manager=node-fetch",
            "--sops-age-secret=sops-age-secret",
            "--metrics-addr=0",
            "--health-addr=127.0.0.1:9440",
            "--log-level=debug",
            "--feature-gates=ExternalArtifact=true,StrictPostBuildSubstitutions=false",
            "--no-cross-namespace-refs",
            "--watch-configs-label-selector=owner!=helm",
            "--default-service-account=default",
            "--custom-apply-stage-kinds=rbac.authorization.k8s.io/RoleBinding,/ConfigMap",
        ])
        .expect("they parse");
        assert!(cli.own.feature_gates.external_artifact && !cli.own.feature_gates.strict_substitutions);
        assert_eq!(
            cli.own.custom_stage(),
            [
                ("rbac.authorization.k8s.io".to_owned(), "RoleBinding".to_owned()),
                (String::new(), "ConfigMap".to_owned()),
            ]
        );
        assert_eq!(cli.own.watched_configs(), Some("owner!=helm"));
        let invalid = ["kustomize-controller", "--watch-configs-label-selector=a=b=c"];
        assert!(Cli::try_parse_from(invalid).is_err());
    }

    #[test]
    fn default_limits_are_those_of_the_library() {
        let cli = Cli::try_parse_from(["kustomize-controller"]).expect("defaults");
        assert_eq!(
            format!("{:?}", cli.own.render.limits()),
            format!("{:?}", tree::Limits::default())
        );
    }
}
