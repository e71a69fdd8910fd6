//! Building Kustomizations from local directories.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use cluster::Cluster;
use tokio_util::sync::CancellationToken;
use tree::{Budget, TreePath};
use yaml::Value;

use super::{
    flags::{BuildFlags, LocalSources},
    manifest_builder::{Built, ManifestBuilder, ignore_rules},
    subject::{self, Subject},
};
use crate::{
    commands::kustomize::{self, BuildDirectory},
    output::error_chain,
};

/// The inputs that all builds of a command share.
pub(super) struct Builder<'a> {
    pub(super) manifests: ManifestBuilder,
    pub(super) flags: &'a BuildFlags,
    pub(super) namespace: String,
    pub(super) sources: LocalSources,
    /// If set, a Kustomization that is in the file alone is a new one.
    pub(super) accepts_new: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        flags: &'a BuildFlags,
        namespace: String,
        cluster: Option<Cluster>,
        cancel: CancellationToken,
    ) -> Result<Self> {
        Ok(Self {
            manifests: ManifestBuilder {
                cluster,
                ignored_lines: flags.ignored_lines()?,
                strict: flags.strict_substitute,
                timeout: flags.flux.timeout,
                cancel,
            },
            flags,
            namespace,
            sources: flags.sources()?,
            accepts_new: false,
        })
    }

    /// Returns the cluster with Kustomizations and variables; `None` in a dry run.
    fn cluster(&self) -> Option<&Cluster> {
        self.manifests.cluster.as_ref()
    }

    /// Returns the Kustomization that the command names.
    ///
    /// # Errors
    /// If it does not exist or can't be read.
    pub(super) async fn subject(&self) -> Result<Subject> {
        let found = self.find().await;
        found.map_err(|error| anyhow!("failed to get kustomization object: {}", error_chain(&error)))
    }

    async fn find(&self) -> Result<Subject> {
        let name = &self.flags.name;
        let live = match self.cluster() {
            Some(cluster) => subject::live(cluster, &self.namespace, name).await?,
            None => None,
        };
        let missing = || format!("kustomizations.kustomize.toolkit.fluxcd.io \"{name}\" not found");
        let Some(file) = &self.flags.kustomization_file else {
            return Subject::of(&live.with_context(missing)?, &self.namespace);
        };
        if live.is_none() && self.cluster().is_some() && !self.accepts_new {
            return Err(anyhow!(missing()));
        }
        let local = subject::from_file(file, &self.namespace, name)?;
        let inventory = match &live {
            Some(live) => Subject::of(live, &self.namespace)?.inventory,
            None => Vec::new(),
        };
        Ok(Subject {
            inventory,
            ..Subject::of(&local, &self.namespace)?
        })
    }

    /// Returns a Kustomization that was built as an object, with the inventory of its live one.
    ///
    /// # Errors
    /// If it can't be read.
    pub(super) async fn child(&self, object: &Value, parent: &Subject) -> Result<Subject> {
        let child = Subject::of(object, &parent.namespace)?;
        match self.cluster() {
            Some(cluster) => child.with_live_inventory(cluster).await,
            None => Ok(child),
        }
    }

    /// Returns the directory of a Kustomization in its local source.
    ///
    /// # Errors
    /// If no local source is given for it.
    pub(super) fn dir(&self, subject: &Subject) -> Result<PathBuf> {
        let source = subject.source();
        let dir = self.sources.dir(&source).with_context(|| {
            format!(
                "cannot get local path for {source} of kustomization {}: add it to --local-sources",
                subject.name
            )
        })?;
        let path = TreePath::confined(subject.spec.path.as_deref().unwrap_or_default());
        Ok(dir.join(path.as_str()))
    }

    /// Builds a Kustomization from a directory. Encrypted values are masked.
    ///
    /// # Errors
    /// If the build fails, or variables can't be read.
    pub(super) async fn build(&self, subject: &Subject, dir: &Path) -> Result<Built> {
        let budget = Budget::new(kustomize::limits());
        let directory = BuildDirectory::local(dir, &budget)?;
        let rules = ignore_rules(directory.tree.as_ref(), &directory.dir, &budget)?;
        self.manifests.build(subject, &directory, rules).await
    }
}
