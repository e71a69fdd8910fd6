//! Teams that get access to the repository.

use std::fmt;

use anyhow::{Result, bail, ensure};

use super::Service;

/// Access of a team, in the words of GitHub. The numbers are GitLab's.
const ACCESS: [(&str, u64); 5] = [
    ("pull", 10),
    ("triage", 20),
    ("push", 30),
    ("maintain", 40),
    ("admin", 50),
];
const DEFAULT: &str = "maintain";

/// A team, and its access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Team {
    pub(super) name: String,
    pub(super) access: &'static str,
    pub(super) level: u64,
}

impl Team {
    /// Parses `NAME` or `NAME:ACCESS`. The default access is `maintain`; teams of Gitea have their own.
    pub(in super::super) fn parse(service: Service, text: &str) -> Result<Self> {
        let (name, access) = match text.split_once(':') {
            Some((name, access)) => (name, Some(access)),
            None => (text, None),
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_name = |name: &str| !name.is_empty() && name.chars().all(is_word);
        ensure!(
            name.split('/').all(is_name) && (service == Service::GitLab || is_name(name)),
            "--team '{text}' is not the name of a team"
        );
        ensure!(
            service != Service::Gitea || access.is_none(),
            "--team '{text}': at Gitea, the access is set in the team"
        );
        let wanted = access.unwrap_or(DEFAULT);
        let Some((access, level)) = ACCESS.iter().find(|(word, _)| *word == wanted) else {
            let words = ACCESS.map(|(word, _)| word).join(", ");
            bail!("--team '{text}': the access '{wanted}' is none of {words}");
        };
        Ok(Self {
            name: name.to_owned(),
            access,
            level: *level,
        })
    }
}

impl fmt::Display for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the team '{}'", self.name)
    }
}
