//! `weir bootstrap git`.

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::{
    BootstrapFlags,
    credentials::{Credentials, Login},
    steps::{self, Bootstrap},
};
use crate::{output, usage::boolean_flag};

/// Bootstrap with a repository of any Git server
///
/// Commits the manifests of the controllers to a branch of the repository, installs them in the cluster, and lets them follow the
/// repository: from then on, a commit changes the installation. The command is safe to repeat, and upgrades an installation. The SSH server is
/// asked for its host key: compare the printed key with the one that its owner publishes.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct GitArgs {
    /// Address of the repository: ssh://USER@HOST/PATH or https://HOST/PATH
    #[arg(long, value_name = "URL", help_heading = "Repository")]
    url: String,
    /// User of an https:// URL
    #[arg(
        short,
        long,
        value_name = "NAME",
        default_value = "git",
        help_heading = "Credentials"
    )]
    username: String,
    /// Password or token, or the password of the SSH key; defaults to $GIT_PASSWORD
    #[arg(short, long, value_name = "PASSWORD", help_heading = "Credentials")]
    password: Option<String>,
    /// Send the password as a bearer token, and let the cluster do so, too
    #[arg(long, help_heading = "Credentials")]
    with_bearer_token: bool,
    /// Allow an http:// URL, which sends the password in the clear
    #[arg(long, help_heading = "Credentials")]
    allow_insecure_http: bool,
    /// Don't ask whether the deploy key was added to the repository
    #[arg(short, long)]
    silent: bool,
    /// Print a file of the repository instead, for other programs that commit it; neither server nor cluster is asked
    #[arg(long, value_name = "FILE")]
    export: Option<ExportedFile>,
    #[command(flatten)]
    bootstrap: BootstrapFlags,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ExportedFile {
    /// The controllers: gotk-components.yaml
    Components,
    /// The source and the Kustomization: gotk-sync.yaml
    Sync,
    /// The list of both: kustomization.yaml
    Kustomization,
}

const EXAMPLES: &str = "\
Examples:
  # With the key of the SSH agent; the cluster gets a deploy key of its own
  weir bootstrap git --url=ssh://git@git.example.com/platform/fleet.git --path=clusters/production

  # With a key in a file, for both
  weir bootstrap git --url=ssh://git@git.example.com/platform/fleet.git --path=clusters/production \\
    --private-key-file=./id_ed25519 --silent

  # With a token, for both
  GIT_PASSWORD=... weir bootstrap git --url=https://git.example.com/platform/fleet.git --path=clusters/production \\
    --username=bot --token-auth

  # The manifests alone, for Terraform
  weir bootstrap git --url=ssh://git@git.example.com/platform/fleet.git --path=clusters/production --export=sync";

pub(super) fn run(args: &GitArgs) -> Result<()> {
    let variable = std::env::var("GIT_PASSWORD").ok();
    let password = args.password.clone().or(variable).unwrap_or_default();
    let login = Login {
        username: &args.username,
        password: &password,
        is_bearer: args.with_bearer_token,
        allow_http: args.allow_insecure_http,
    };
    let credentials = Credentials::read(&args.url, &login, &args.bootstrap.key)?;
    match args.export {
        Some(file) => output::print(&export(&args.bootstrap, &credentials, file)?),
        None => Bootstrap::open(&args.bootstrap, credentials, args.silent)?.run(),
    }
}

fn export(flags: &BootstrapFlags, credentials: &Credentials, file: ExportedFile) -> Result<String> {
    let namespace = flags.flux.namespace()?;
    Ok(match file {
        ExportedFile::Components => install::install(&flags.controllers.options(&namespace)?)?,
        ExportedFile::Sync => install::sync(&steps::sync(flags, credentials, &namespace)?)?,
        ExportedFile::Kustomization => install::kustomization(),
    })
}
