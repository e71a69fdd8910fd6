//! The commands on kluctl projects.

pub(crate) mod completion;
pub(crate) mod deploy;
pub(crate) mod diff;
pub(crate) mod list;
mod operate;
pub(crate) mod poke_images;
pub(crate) mod remove;
pub(crate) mod render;
pub(crate) mod validate;

use crate::usage::Refused;

pub(crate) use operate::Commit;

/// Flags that kluctl has and this program hasn't, and why. None is accepted and then ignored.
pub(crate) const REFUSED: Refused = &[
    (
        &["--git-cache-update-interval"],
        "repositories are not kept on the disk: their commits are fetched alone, each time",
    ),
    (
        &["--git-ssh-key-file", "--git-ssh-known-hosts-file"],
        "Git repositories are fetched over http and https; ssh is not supported yet",
    ),
    (
        &["--cpu-profile", "--gops-agent", "--gops-agent-addr"],
        "it belongs to a runtime that is not here",
    ),
];
