//! `weir create kustomization`.

use anyhow::{Result, bail, ensure};
use api::GoDuration;
use clap::Args;
use yaml::Value;

use super::flags::{CreateFlags, IntervalFlag, depends_on};
use crate::{
    commands::flux::steer::{
        fields::{Fields, Identity},
        words::Named,
    },
    usage::{boolean_flag, split_list},
};

const SOURCES: [&str; 3] = ["OCIRepository", "GitRepository", "Bucket"];
const CHECKED: [&str; 4] = ["HelmRelease", "Deployment", "DaemonSet", "StatefulSet"];

const EXAMPLES: &str = "Examples:
  # A directory of a GitRepository, whose objects are waited for
  weir create kustomization kyverno \\
    --source=GitRepository/kyverno \\
    --path=./config/release \\
    --prune=true \\
    --interval=60m \\
    --wait=true \\
    --health-check-timeout=3m

  # Another one that is applied after it
  weir create kustomization kyverno-policies \\
    --depends-on=kyverno \\
    --source=GitRepository/kyverno-policies \\
    --path=./policies/flux \\
    --prune=true \\
    --interval=5m

  # A source in another namespace
  weir create kustomization podinfo \\
    --namespace=default \\
    --source=GitRepository/podinfo.flux-system \\
    --path=./kustomize \\
    --prune=true";

/// Create or update a Kustomization, and wait until it is applied
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct KustomizationArgs {
    #[command(flatten)]
    interval: IntervalFlag,
    /// Source of the manifests: an OCIRepository, GitRepository (the default) or Bucket
    #[arg(
        long,
        value_name = "[KIND/]NAME[.NAMESPACE]",
        default_value = "",
        hide_default_value = true
    )]
    source: String,
    /// Directory in the source
    #[arg(long, value_name = "PATH", default_value = "./")]
    path: String,
    /// Delete objects that are no longer in the source
    #[arg(long)]
    prune: bool,
    /// Wait until all applied objects are ready
    #[arg(long)]
    wait: bool,
    /// Wait until a HelmRelease, Deployment, DaemonSet or StatefulSet is ready. Can be repeated
    #[arg(long, value_name = "KIND/NAME.NAMESPACE,...")]
    health_check: Vec<String>,
    /// Timeout of --wait and --health-check
    #[arg(long, value_name = "DURATION", default_value = "2m")]
    health_check_timeout: GoDuration,
    /// Kustomization that must be ready before. Can be repeated
    #[arg(long, value_name = "[NAMESPACE/]NAME,...")]
    depends_on: Vec<String>,
    /// ServiceAccount whose rights the controller uses
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    service_account: String,
    /// Decrypt files of this kind
    #[arg(long, value_name = "NAME", value_parser = ["sops"])]
    decryption_provider: Option<String>,
    /// Name of an existing Secret with the keys for decryption
    #[arg(long, value_name = "NAME")]
    decryption_secret: Option<String>,
    /// Namespace that all objects get
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    target_namespace: String,
    /// Name of an existing Secret with the kubeconfig of another cluster
    #[arg(long, value_name = "NAME")]
    kubeconfig_secret_ref: Option<String>,
    /// Interval of attempts after a failure
    #[arg(long, value_name = "DURATION")]
    retry_interval: Option<GoDuration>,
    /// Accepted for compatibility with flux, which doesn't use it any more
    #[arg(long = "validation", hide = true)]
    _validation: Option<String>,
    #[command(flatten)]
    pub(super) create: CreateFlags,
}

impl KustomizationArgs {
    pub(super) fn object(&self, namespace: &str) -> Result<Value> {
        ensure!(!self.source.is_empty(), "source is required");
        let source = source(&self.source)?;
        let checks = match self.wait {
            true => Vec::new(),
            false => health_checks(&self.health_check)?,
        };
        let waits = self.wait || !checks.is_empty();
        let retry = self.retry_interval.filter(|retry| *retry != GoDuration::ZERO);
        let mut spec = Fields::default()
            .duration("interval", self.interval.interval)
            .set("path", path(&self.path))
            .set("prune", self.prune)
            .set("sourceRef", source)
            .text("targetNamespace", &self.target_namespace)
            .list("dependsOn", depends_on(&self.depends_on)?)
            .map(
                "kubeConfig",
                Fields::default().reference("secretRef", self.kubeconfig_secret_ref.as_deref()),
            )
            .list("healthChecks", checks)
            .flag("wait", self.wait)
            .text("serviceAccountName", &self.service_account)
            .optional("retryInterval", retry.map(|retry| retry.to_string()));
        if waits {
            spec = spec.duration("timeout", self.health_check_timeout);
        }
        if let Some(provider) = &self.decryption_provider {
            let decryption = Fields::default()
                .set("provider", &**provider)
                .reference("secretRef", self.decryption_secret.as_deref());
            spec = spec.set("decryption", decryption);
        }
        let identity = Identity {
            name: &self.create.name,
            namespace,
            labels: &self.create.labels()?,
        };
        Ok(identity.object(&fleet::kind::KUSTOMIZATION, spec))
    }
}

fn source(text: &str) -> Result<Fields> {
    let mut named = Named::of_namespace(text);
    ensure!(
        !named.name.is_empty(),
        "no name given for source of kind '{}'",
        named.kind
    );
    if named.kind.is_empty() {
        ensure!(
            !SOURCES.contains(&&*named.name),
            "no kind specified for source '{}'",
            named.name
        );
        "GitRepository".clone_into(&mut named.kind);
    }
    let named = named.one_of("source", &SOURCES)?;
    Ok(Fields::default()
        .set("kind", named.kind)
        .set("name", named.name)
        .text("namespace", &named.namespace))
}

/// Returns a path below the root of the source: `..` leads nowhere else.
fn path(text: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in text.trim().split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("./{}", parts.join("/"))
}

fn health_checks(flags: &[String]) -> Result<Vec<Value>> {
    let checks = split_list(flags)?;
    checks.iter().map(|check| health_check(check)).collect()
}

fn health_check(text: &str) -> Result<Value> {
    const FORMAT: &str = "must be in the format 'kind/name.namespace'";
    let Some((kind, object)) = text.split_once('/').filter(|(_, object)| !object.contains('/')) else {
        bail!("invalid health check '{text}' {FORMAT}");
    };
    ensure!(
        CHECKED.contains(&kind),
        "invalid health check kind '{kind}' can be HelmRelease, Deployment, DaemonSet or StatefulSet"
    );
    let Some((name, namespace)) = object.split_once('.').filter(|(_, rest)| !rest.contains('.')) else {
        bail!("invalid health check '{text}' {FORMAT}");
    };
    let version = (kind == "HelmRelease").then(|| {
        let kind = &fleet::kind::HELM_RELEASE;
        format!(
            "{}/{}",
            kind.group,
            kind.versions.first().copied().unwrap_or_default()
        )
    });
    let fields = Fields::default()
        .optional("apiVersion", version)
        .set("kind", kind)
        .set("name", name)
        .set("namespace", namespace);
    Ok(fields.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_source() {
        for (text, expected) in [
            ("./", "./"),
            ("", "./"),
            (" ./a/./b/ ", "./a/b"),
            ("/a", "./a"),
            ("a/../../b", "./b"),
        ] {
            assert_eq!(path(text), expected, "{text}");
        }
    }
}
