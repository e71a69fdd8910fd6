//! `weir create secret`: Secrets in the forms that the controllers read.

mod git;
mod helm;
mod notation;
mod other;
mod receiver;

use anyhow::Result;
use clap::Subcommand;

use super::store::{export, write_secret};
use crate::deferred::Deferred;

pub(super) use git::{GitKeyFlags, GitSecret, scheme};
pub(super) use helm::HelmSecret;

/// Subcommands of `weir create secret`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create or update a Secret for a Git server
    Git(Deferred<git::GitArgs>),
    /// Create or update a Secret for a GitHub App
    Githubapp(Deferred<other::GithubAppArgs>),
    /// Create or update a Secret for a Helm repository
    Helm(Deferred<helm::HelmArgs>),
    /// Create or update a Secret with trusted certificates of Notation
    Notation(Deferred<notation::NotationArgs>),
    /// Create or update an image pull Secret
    Oci(Deferred<other::OciArgs>),
    /// Create or update a Secret for a proxy
    Proxy(Deferred<other::ProxyArgs>),
    /// Create or update a Secret for a Receiver
    Receiver(Deferred<receiver::ReceiverArgs>),
    /// Create or update a Secret with TLS certificates
    Tls(Deferred<helm::TlsArgs>),
}

pub(super) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Git(args) => git::run(args),
        Command::Githubapp(args) => {
            write_secret(&args.create, "githubapp secret", |identity| args.secret(identity))
        }
        Command::Helm(args) => write_secret(&args.create, "helm secret", |identity| args.secret(identity)),
        Command::Notation(args) => write_secret(&args.create, "notation configuration secret", |identity| {
            args.secret(identity)
        }),
        Command::Oci(args) => write_secret(&args.create, "oci secret", |identity| args.secret(identity)),
        Command::Proxy(args) => write_secret(&args.create, "proxy secret", |identity| args.secret(identity)),
        Command::Receiver(args) => {
            write_secret(&args.create, "receiver secret", |identity| args.secret(identity))
        }
        Command::Tls(args) => tls(args),
    }
}

fn tls(args: &helm::TlsArgs) -> Result<()> {
    match args.create.export {
        // The original prints no empty line after this Secret alone.
        true => export(&args.create.build(|identity| args.secret(identity))?),
        false => write_secret(&args.create, "tls secret", |identity| args.secret(identity)),
    }
}
