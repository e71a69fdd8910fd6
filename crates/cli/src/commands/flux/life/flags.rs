//! Flags about the controllers to install.

use anyhow::{Result, ensure};
use clap::{ArgAction, Args, ValueEnum};
use install::{Admin, LogLevel, Options, Selection};
use versions::Version;

use crate::usage::{parse_bool, split_list};

#[derive(Args)]
#[command(next_help_heading = "Controllers")]
pub(super) struct ControllerFlags {
    /// Version of the controllers, the tag of their images
    #[arg(short = 'v', long, value_name = "VERSION", default_value = install::VERSION)]
    version: String,
    /// Controllers to install, comma-separated; defaults to all
    #[arg(long, value_name = "NAMES")]
    components: Vec<String>,
    /// Controllers to install besides --components, comma-separated
    #[arg(long, value_name = "NAMES")]
    components_extra: Vec<String>,
    /// Registry and path of the images
    #[arg(long, value_name = "REGISTRY", default_value = "weir")]
    registry: String,
    /// Secret in the namespace of the controllers with which images are pulled
    #[arg(long, value_name = "NAME")]
    image_pull_secret: Option<String>,
    /// Watch the objects of all namespaces, not only of the controllers' own
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true",
        default_missing_value = "true", value_parser = parse_bool)]
    watch_all_namespaces: bool,
    /// Restrict by network policies who may reach the controllers
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true",
        default_missing_value = "true", value_parser = parse_bool)]
    network_policy: bool,
    /// Log level of the controllers
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: Level,
    /// Domain of the cluster
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local")]
    cluster_domain: String,
    /// Keys of taints that the Pods of the controllers tolerate, comma-separated
    #[arg(long, value_name = "KEYS")]
    toleration_keys: Vec<String>,
    /// Objects that deploy as cluster-admin if they name no ServiceAccount
    #[arg(long, value_name = "WHO", default_value = "namespace")]
    admin: AdminFlag,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Level {
    Debug,
    Info,
    Error,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AdminFlag {
    /// None
    None,
    /// Objects in the namespace of the controllers
    Namespace,
    /// Objects in all namespaces, as with Flux: whoever may create one can do anything in the cluster
    Cluster,
}

impl ControllerFlags {
    /// Returns the selection from manifests of others, which keep their own versions and values.
    pub(super) fn selection(&self, namespace: &str) -> Result<Selection> {
        let components = [split_list(&self.components)?, split_list(&self.components_extra)?];
        Ok(Selection {
            components: components.concat(),
            network_policy: self.network_policy,
            namespace: namespace.to_owned(),
        })
    }

    pub(super) fn options(&self, namespace: &str) -> Result<Options> {
        ensure!(
            Version::parse(&self.version).is_ok(),
            "--version={} is not a version, such as {}",
            self.version,
            install::VERSION
        );
        let mut components = split_list(&self.components)?;
        if components.is_empty() {
            components = Options::default().components;
        }
        for extra in split_list(&self.components_extra)? {
            if !components.contains(&extra) {
                components.push(extra);
            }
        }
        Ok(Options {
            namespace: namespace.to_owned(),
            version: self.version.clone(),
            components,
            registry: self.registry.clone(),
            image_pull_secret: self.image_pull_secret.clone(),
            watch_all_namespaces: self.watch_all_namespaces,
            network_policy: self.network_policy,
            log_level: match self.log_level {
                Level::Debug => LogLevel::Debug,
                Level::Info => LogLevel::Info,
                Level::Error => LogLevel::Error,
            },
            cluster_domain: self.cluster_domain.clone(),
            toleration_keys: split_list(&self.toleration_keys)?,
            admin: match self.admin {
                AdminFlag::None => Admin::Nobody,
                AdminFlag::Namespace => Admin::Namespace,
                AdminFlag::Cluster => Admin::Everybody,
            },
        })
    }
}
