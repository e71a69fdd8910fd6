//! `weir bootstrap`: commits the manifests of an installation to a Git repository, installs it, and lets it follow the repository.

mod credentials;
mod follow;
mod git;
mod hosted;
mod hosting;
mod repository;
mod secret;
mod steps;

use std::{path::PathBuf, time::Duration};

use anyhow::Result;
use clap::{Args, Subcommand};

use super::flags::ControllerFlags;
use crate::{
    commands::flux::{FluxFlags, ssh_key::NewKeyFlags},
    deferred::Deferred,
    flags::duration,
};

/// Subcommands of `weir bootstrap`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Bootstrap with a repository of any Git server
    Git(Deferred<git::GitArgs>),
    /// Bootstrap with a repository at GitHub
    #[command(name = "github")]
    GitHub(Deferred<hosted::GitHubArgs>),
    /// Bootstrap with a repository at GitLab
    #[command(name = "gitlab")]
    GitLab(Deferred<hosted::GitLabArgs>),
    /// Bootstrap with a repository at Gitea
    Gitea(Deferred<hosted::GiteaArgs>),
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Git(args) => git::run(args),
        Command::GitHub(args) => hosted::github(args),
        Command::GitLab(args) => hosted::gitlab(args),
        Command::Gitea(args) => hosted::gitea(args),
    }
}

/// Flags of all kinds of servers.
#[derive(Args)]
struct BootstrapFlags {
    #[command(flatten)]
    sync: SyncFlags,
    #[command(flatten)]
    commit: CommitFlags,
    #[command(flatten)]
    key: KeyFlags,
    #[command(flatten)]
    controllers: ControllerFlags,
    /// Override an installation of another tool, and remove controllers that are not in --components
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

#[derive(Args)]
#[command(next_help_heading = "Repository")]
struct SyncFlags {
    /// Branch
    #[arg(long, value_name = "NAME", default_value = "main")]
    branch: String,
    /// Directory of the cluster in the repository, such as clusters/production
    #[arg(long, value_name = "DIR", default_value = "", hide_default_value = true)]
    path: String,
    /// Interval at which the repository is looked at
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    interval: Duration,
    /// Fetch submodules, too
    #[arg(long)]
    recurse_submodules: bool,
    /// Directories that the cluster fetches, comma-separated; they have to contain --path. Defaults to all
    #[arg(long, value_name = "DIRS")]
    sparse_checkout: Vec<String>,
    /// Name of the Secret with the credentials
    #[arg(long, value_name = "NAME", default_value = "flux-system")]
    secret_name: String,
}

#[derive(Args)]
#[command(next_help_heading = "Commits")]
struct CommitFlags {
    /// Name of the author
    #[arg(long, value_name = "NAME", default_value = "Flux")]
    author_name: String,
    /// Mail address of the author
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    author_email: String,
    /// Text to append to messages, such as [ci skip]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    commit_message_appendix: String,
}

#[derive(Args)]
#[command(next_help_heading = "Credentials")]
struct KeyFlags {
    /// Let the cluster use the user and password (or token), too, instead of an SSH key
    #[arg(long)]
    token_auth: bool,
    /// File with an SSH key for weir and the cluster; without it, weir uses the SSH agent, and the cluster gets a new key
    #[arg(long, value_name = "FILE")]
    private_key_file: Option<PathBuf>,
    #[command(flatten)]
    new_key: NewKeyFlags,
    /// Host, and port if it isn't 22, of the SSH server for the cluster; defaults to the host of the URL
    #[arg(long, value_name = "HOST")]
    ssh_hostname: Option<String>,
    /// File with the certificates of the authorities that sign the server's certificate
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}
