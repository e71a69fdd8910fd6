//! The flags of every controller that deploys from sources.

use std::{path::PathBuf, sync::Arc};

use artifact::{FetchLimits, fetch::StorageToken};
use clap::Args;
use cluster::access::KubeconfigRules;
use net::TokenFile;

use crate::sources::hosts::ArtifactHosts;

/// The flags of every controller that deploys from sources.
#[derive(Debug, Clone, Args)]
pub struct ReferenceFlags {
    /// Accept insecure-skip-tls-verify in the kubeconfigs of spec.kubeConfig; otherwise such a kubeconfig is refused.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub insecure_kubeconfig_tls: bool,

    /// Hosts that artifacts may be downloaded from, each with or without a port; by default the Service source-controller in the namespace
    /// of this controller, and in flux-system.
    #[arg(long, value_delimiter = ',', value_name = "HOST")]
    pub artifact_hosts: Vec<String>,

    /// File with the token that is sent with downloads of artifacts, such as a projected ServiceAccount token; it is read for each download.
    #[arg(long, value_name = "FILE")]
    pub artifact_token_file: Option<PathBuf>,

    /// Hosts that get the token of --artifact-token-file, each with or without a port; by default the Service source-controller in the
    /// namespace of this controller, and in flux-system. Others never get it.
    #[arg(long, value_delimiter = ',', value_name = "HOST")]
    pub artifact_token_hosts: Vec<String>,

    /// Host (and port) that replaces the host of artifact URLs, for processes outside of the cluster.
    #[arg(long, env = "SOURCE_CONTROLLER_LOCALHOST", default_value = "", hide = true)]
    pub source_controller_localhost: String,

    /// Host (and port) that replaces the host of the artifact URLs of a source-watcher; default --source-controller-localhost.
    #[arg(long, env = "SOURCE_WATCHER_LOCALHOST", default_value = "", hide = true)]
    pub source_watcher_localhost: String,

    /// Maximum size of an artifact in bytes, packed and unpacked.
    #[arg(long, default_value_t = 1 << 30)]
    pub limit_artifact_bytes: u64,

    /// Maximum number of files and directories in an artifact.
    #[arg(long, default_value_t = 200_000)]
    pub limit_artifact_entries: u64,
}

impl ReferenceFlags {
    #[must_use]
    pub fn kubeconfigs(&self) -> KubeconfigRules {
        KubeconfigRules {
            insecure_tls: self.insecure_kubeconfig_tls,
        }
    }

    /// Returns the hosts that artifacts may be downloaded from, for a controller in the namespace `own`.
    pub(crate) fn hosts(&self, own: &str) -> ArtifactHosts {
        if !self.source_controller_localhost.is_empty() {
            return ArtifactHosts::any();
        }
        let hosts = ArtifactHosts::new(&self.artifact_hosts, own);
        match self.source_watcher_localhost.as_str() {
            "" => hosts,
            _ => hosts.with_replaced_watcher(),
        }
    }

    /// Returns the token of downloads, for a controller in the namespace `own`.
    pub(crate) fn token(&self, own: &str) -> Option<StorageToken> {
        let path = self.artifact_token_file.clone()?;
        let flag = "--artifact-token-file";
        // With the flag for processes outside of the cluster, each URL has its host.
        let hosts = match self.source_controller_localhost.as_str() {
            "" => ArtifactHosts::of_token(&self.artifact_token_hosts, &self.artifact_hosts, own),
            _ => ArtifactHosts::any(),
        };
        Some(StorageToken {
            file: TokenFile { path, flag },
            is_for: Arc::new(move |url| hosts.name(url)),
        })
    }

    /// Returns the limits of fetching artifacts. `tree` are the limits of reading the unpacked files.
    #[must_use]
    pub fn fetching(&self, tree: tree::Limits) -> FetchLimits {
        FetchLimits {
            download_bytes: self.limit_artifact_bytes,
            unpacked_bytes: self.limit_artifact_bytes,
            entries: self.limit_artifact_entries,
            tree,
            ..FetchLimits::default()
        }
    }
}

/// The limits of the rendering of one object.
#[derive(Debug, Clone, Args)]
pub struct RenderFlags {
    /// Maximum size of a file to render, in bytes.
    #[arg(long, default_value_t = 5 << 20)]
    pub limit_file_bytes: u64,

    /// Maximum size of the rendered output of an object, in bytes.
    #[arg(long, default_value_t = 64 << 20)]
    pub limit_rendered_bytes: u64,

    /// Maximum number of rendered objects of an object.
    #[arg(long, default_value_t = 20_000)]
    pub limit_objects: u64,

    /// Maximum nesting depth of includes, bases and components.
    #[arg(long, default_value_t = 50)]
    pub limit_include_depth: u32,

    /// Maximum nesting depth of YAML documents.
    #[arg(long, default_value_t = 100)]
    pub limit_yaml_depth: u32,

    /// Maximum size in bytes of a YAML document's expanded aliases.
    #[arg(long, default_value_t = 10 << 20)]
    pub limit_alias_bytes: u64,

    /// Maximum number of steps of a render, such as template nodes and turns of loops.
    #[arg(long, default_value_t = 500_000_000)]
    pub limit_steps: u64,
}

impl RenderFlags {
    #[must_use]
    pub fn limits(&self) -> tree::Limits {
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
}
