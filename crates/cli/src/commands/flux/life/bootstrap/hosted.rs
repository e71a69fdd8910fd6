//! `weir bootstrap github`, `gitlab` and `gitea`.

use anyhow::{Context as _, Result, ensure};
use api::Secret;
use clap::{ArgAction, Args};

use super::{
    BootstrapFlags,
    credentials::{Credentials, Login, read_ca},
    hosting::{HostedRepository, Hosting, Service, Team, Visibility},
    steps::Bootstrap,
};
use crate::usage::{boolean_flag, parse_bool, split_list};

/// Flags of all hosting services.
#[derive(Args)]
struct HostedFlags {
    /// User, organization or group that owns the repository
    #[arg(long, value_name = "NAME", help_heading = "Repository")]
    owner: String,
    /// Name of the repository, which is created if it doesn't exist
    #[arg(long, value_name = "NAME", help_heading = "Repository")]
    repository: String,
    /// The owner is a user
    #[arg(long, help_heading = "Repository")]
    personal: bool,
    /// Make a new repository private
    #[arg(long, value_name = "BOOL", help_heading = "Repository", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value = "true", default_missing_value = "true", value_parser = parse_bool)]
    private: bool,
    /// Teams that get access to the repository, comma-separated: NAME or NAME:ACCESS, with pull, triage, push, maintain (the default) or admin
    #[arg(long, value_name = "TEAMS", help_heading = "Repository")]
    team: Vec<String>,
    /// Let the deploy key write to the repository
    #[arg(long, help_heading = "Credentials")]
    read_write_key: bool,
    #[command(flatten)]
    bootstrap: BootstrapFlags,
}

/// Bootstrap with a repository at GitHub
///
/// Creates the repository and its deploy key, if they don't exist, by the token in $GITHUB_TOKEN, and does the same as `weir bootstrap git`.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES_OF_GITHUB)]
pub(crate) struct GitHubArgs {
    /// Host of the service
    #[arg(
        long,
        value_name = "HOST",
        default_value = "github.com",
        help_heading = "Repository"
    )]
    hostname: String,
    #[command(flatten)]
    hosted: HostedFlags,
}

const EXAMPLES_OF_GITHUB: &str = "\
Examples:
  # A private repository of an organization, with a deploy key
  GITHUB_TOKEN=... weir bootstrap github --owner=my-org --repository=fleet --path=clusters/production

  # A repository of a user, with the token for the cluster, too
  GITHUB_TOKEN=... weir bootstrap github --owner=me --personal --repository=fleet --path=clusters/test --token-auth";

/// Bootstrap with a repository at GitLab
///
/// Creates the repository and its deploy key, if they don't exist, by the token in $GITLAB_TOKEN, and does the same as `weir bootstrap git`.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES_OF_GITLAB)]
pub(crate) struct GitLabArgs {
    /// Host of the service
    #[arg(
        long,
        value_name = "HOST",
        default_value = "gitlab.com",
        help_heading = "Repository"
    )]
    hostname: String,
    /// Visibility of a new repository, in the place of --private
    #[arg(long, value_name = "WHO", help_heading = "Repository")]
    visibility: Option<Visibility>,
    #[command(flatten)]
    hosted: HostedFlags,
}

const EXAMPLES_OF_GITLAB: &str = "\
Examples:
  # A repository of a group, with a deploy key
  GITLAB_TOKEN=... weir bootstrap gitlab --owner=my-group/sub-group --repository=fleet --path=clusters/production

  # A server of your own
  GITLAB_TOKEN=... weir bootstrap gitlab --hostname=git.example.com --owner=my-group --repository=fleet --path=clusters/test";

/// Bootstrap with a repository at Gitea
///
/// Creates the repository and its deploy key, if they don't exist, by the token in $GITEA_TOKEN, and does the same as `weir bootstrap git`.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES_OF_GITEA)]
pub(crate) struct GiteaArgs {
    /// Host of the service
    #[arg(
        long,
        value_name = "HOST",
        default_value = "gitea.com",
        help_heading = "Repository"
    )]
    hostname: String,
    #[command(flatten)]
    hosted: HostedFlags,
}

const EXAMPLES_OF_GITEA: &str = "\
Examples:
  # A server of your own
  GITEA_TOKEN=... weir bootstrap gitea --hostname=git.example.com --owner=my-org --repository=fleet --path=clusters/production";

pub(super) fn github(args: &GitHubArgs) -> Result<()> {
    run(
        Service::GitHub,
        &args.hostname,
        args.hosted.visibility(),
        &args.hosted,
    )
}

pub(super) fn gitlab(args: &GitLabArgs) -> Result<()> {
    let visibility = args.visibility.unwrap_or_else(|| args.hosted.visibility());
    run(Service::GitLab, &args.hostname, visibility, &args.hosted)
}

pub(super) fn gitea(args: &GiteaArgs) -> Result<()> {
    run(
        Service::Gitea,
        &args.hostname,
        args.hosted.visibility(),
        &args.hosted,
    )
}

impl HostedFlags {
    const fn visibility(&self) -> Visibility {
        match self.private {
            true => Visibility::Private,
            false => Visibility::Public,
        }
    }
}

fn run(service: Service, host: &str, visibility: Visibility, flags: &HostedFlags) -> Result<()> {
    let token = std::env::var(service.variable())
        .ok()
        .filter(|token| !token.is_empty());
    let token = token.with_context(|| format!("set ${} to a token of the service", service.variable()))?;
    let repository = HostedRepository {
        service,
        host: host.to_owned(),
        owner: flags.owner.clone(),
        name: flags.repository.clone(),
        personal: flags.personal,
        visibility,
        branch: flags.bootstrap.sync.branch.clone(),
    };
    repository.check()?;
    let url = repository.url();
    let teams = split_list(&flags.team)?.into_iter();
    let teams = teams
        .map(|team| Team::parse(service, &team))
        .collect::<Result<Vec<_>>>()?;
    ensure!(
        teams.is_empty() || !flags.personal,
        "--team is for repositories of organizations and groups, not --personal"
    );
    let login = Login {
        username: "git",
        password: &token,
        is_bearer: false,
        allow_http: false,
    };
    let credentials = Credentials::read(&url, &login, &flags.bootstrap.key)?;
    let ca = read_ca(&flags.bootstrap.key)?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let hosting = Hosting::new(repository, Secret::new(token), ca.as_deref())?;
    let silent = true;
    Bootstrap::open(&flags.bootstrap, credentials, silent)?
        .at(hosting, !flags.read_write_key, teams)
        .run()
}
