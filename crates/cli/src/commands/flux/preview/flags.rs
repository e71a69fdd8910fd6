//! Flags of the commands that build a Kustomization.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::{commands::flux::FluxFlags, usage::split_list};

#[derive(Args)]
pub(crate) struct BuildFlags {
    /// Name of the Kustomization
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Local directory with the content of spec.path
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// File with the Kustomization, instead of the one in the cluster
    #[arg(long, value_name = "FILE")]
    pub(super) kustomization_file: Option<PathBuf>,
    /// Leave out entries of kustomizations, in the format of .gitignore. Can be repeated
    #[arg(long, value_name = "PATTERN,...")]
    ignore_paths: Vec<String>,
    /// Refuse variables without a value and without a default
    #[arg(long)]
    pub(super) strict_substitute: bool,
    /// Build the Kustomizations among the objects, too
    #[arg(short, long)]
    pub(super) recursive: bool,
    /// Local directories of the sources of these Kustomizations. Can be repeated
    #[arg(long, value_name = "KIND/NAMESPACE/NAME=DIR,...")]
    local_sources: Vec<String>,
    /// Accepted for compatibility with flux: builds never write to the disk
    #[arg(long = "in-memory-build", hide = true)]
    _in_memory_build: bool,
    #[command(flatten)]
    pub(super) flux: FluxFlags,
}

impl BuildFlags {
    /// Returns the directory of the manifests. All paths are checked, so that they fail before anything is asked of the cluster.
    pub(super) fn dir(&self) -> Result<&Path> {
        let dir = self.path.as_deref().unwrap_or(Path::new(""));
        if !dir.is_dir() {
            bail!("invalid resource path {:?}", dir.display().to_string());
        }
        match &self.kustomization_file {
            Some(file) if !file.is_file() => {
                bail!("invalid kustomization file {:?}", file.display().to_string())
            }
            _ => Ok(dir),
        }
    }

    pub(super) fn ignored_lines(&self) -> Result<Vec<String>> {
        split_list(&self.ignore_paths)
    }

    /// Returns the directories of sources, by `KIND/NAMESPACE/NAME`.
    pub(super) fn sources(&self) -> Result<LocalSources> {
        let pairs = split_list(&self.local_sources)?.into_iter();
        let pairs = pairs.map(|pair| {
            let (source, dir) = pair
                .split_once('=')
                .with_context(|| format!("--local-sources: {pair} must be formatted as key=value"))?;
            Ok((source.trim().to_owned(), PathBuf::from(dir)))
        });
        Ok(LocalSources(pairs.collect::<Result<_>>()?))
    }
}

/// Directories of sources, by `KIND/NAMESPACE/NAME`.
#[derive(Debug, Default)]
pub(super) struct LocalSources(BTreeMap<String, PathBuf>);

impl LocalSources {
    pub(super) fn dir(&self, source: &str) -> Option<&Path> {
        self.0.get(source).map(PathBuf::as_path)
    }
}
