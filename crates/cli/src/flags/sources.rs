//! Local directories in place of repositories.

use anyhow::{Context as _, Result};
use clap::Args;
use engine::SourceOverride;

/// Local directories in place of repositories.
#[derive(Args)]
pub(crate) struct LocalSourceFlags {
    /// Use a local directory instead of a Git repository. Can be repeated
    #[arg(long, value_name = "HOST/PATH=DIR")]
    local_git_override: Vec<String>,
    /// Use local directories instead of all Git repositories below a path. Can be repeated
    #[arg(long, value_name = "HOST/PATH=DIR")]
    local_git_group_override: Vec<String>,
    /// Use a local directory instead of an OCI artifact. Can be repeated
    #[arg(long, value_name = "HOST/PATH=DIR")]
    local_oci_override: Vec<String>,
    /// Use local directories instead of all OCI artifacts below a path. Can be repeated
    #[arg(long, value_name = "HOST/PATH=DIR")]
    local_oci_group_override: Vec<String>,
}

impl LocalSourceFlags {
    /// Reads the flags. Fails if a value has no directory.
    pub(crate) fn read(&self) -> Result<Vec<SourceOverride>> {
        let lists = [
            (false, false, &self.local_git_override),
            (false, true, &self.local_git_group_override),
            (true, false, &self.local_oci_override),
            (true, true, &self.local_oci_group_override),
        ];
        let mut all = Vec::new();
        for (oci, group, texts) in lists {
            for text in texts {
                let (key, dir) = text
                    .split_once('=')
                    .with_context(|| format!("invalid override {text:?}: expected HOST/PATH=DIR"))?;
                all.push(SourceOverride {
                    oci,
                    group,
                    key: key.to_owned(),
                    dir: dir.into(),
                });
            }
        }
        Ok(all)
    }
}
