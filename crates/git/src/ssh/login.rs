//! Keys and known hosts of a user.

use std::path::PathBuf;

use super::{key::SshKey, known_hosts::KnownHosts};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SshLogin {
    /// User on servers if the address names none; default `git`.
    pub user: Option<String>,
    pub keys: Vec<SshKey>,
    /// Socket of an SSH agent, whose keys are tried first.
    pub agent: Option<PathBuf>,
    pub known_hosts: KnownHosts,
    /// Keys that were left out, with the reason, for the message if no other key is accepted.
    pub skipped: Vec<String>,
}
