//! The facts that all files of a release share.

use anyhow::{Result, ensure};

/// A release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Registry and path of the images, without the name of the program.
    pub registry: String,
    /// URL of the repository with the source.
    pub source: Option<String>,
    /// Commit of the source.
    pub revision: Option<String>,
    /// Level of compression of programs and images, from 0 to 9.
    pub compression: u32,
    /// The time of everything in the release, in seconds since 1970.
    pub time: u64,
}

impl Release {
    /// Checks the level of compression, and the source, which becomes a part of programs in other languages.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(
            self.compression <= 9,
            "the level of compression {} is not between 0 and 9",
            self.compression
        );
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._~:/@%+".contains(c);
        if let Some(source) = &self.source {
            let rest = source.strip_prefix("https://");
            ensure!(
                rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_part)),
                "the source {source:?} is not an https URL without query"
            );
        }
        Ok(())
    }

    /// Returns the version as names of files have it, such as `0.1.0`.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.tag().trim_start_matches('v')
    }

    /// Returns the version as tags of images and of Git have it, such as `v0.1.0`.
    #[must_use]
    pub fn tag(&self) -> &'static str {
        install::VERSION
    }
}
