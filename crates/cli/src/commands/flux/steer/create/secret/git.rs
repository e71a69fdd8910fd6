//! `weir create secret git`.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use git::SshKeyPair;
use tokio::runtime::Runtime;
use yaml::{Map, Value};

use crate::{
    commands::flux::{
        ssh_key::{NewKeyFlags, host_key},
        steer::{
            create::{
                credentials::{Login, read, read_optional},
                flags::{CreateFlags, UnusedIntervalFlag},
                store::{document, store_secret},
            },
            fields::Identity,
        },
    },
    output,
    usage::boolean_flag,
};

const EXAMPLES: &str = "Examples:
  # A new SSH key of a given kind. The public key is printed: add it to the repository as a deploy key
  weir create secret git podinfo-auth \\
    --url=ssh://git@github.com/stefanprodan/podinfo \\
    --ssh-key-algorithm=ecdsa \\
    --ssh-ecdsa-curve=p521

  # An existing SSH key
  weir create secret git podinfo-auth \\
    --url=ssh://git@github.com/stefanprodan/podinfo \\
    --private-key-file=./private.key

  # A user and a password or token
  weir create secret git podinfo-auth \\
    --url=https://github.com/stefanprodan/podinfo \\
    --username=username \\
    --password=password

  # A file, to be encrypted with SOPS. The deploy key is in stringData.\"identity.pub\"
  weir create secret git podinfo-auth \\
    --url=ssh://git@github.com/stefanprodan/podinfo \\
    --export > podinfo-auth.yaml";

/// Create or update a Secret for a Git server
///
/// For ssh:// URLs, it has a key (a new one without --private-key-file) and the host key, which the server is asked for: compare it
/// with the one that the owner of the server publishes. For http:// and https:// URLs, it has a user and a password, or a token.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct GitArgs {
    /// Address of the repository, such as ssh://git@host/org/repository
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    url: String,
    #[command(flatten)]
    login: Login,
    /// Token for http:// and https:// URLs
    #[arg(
        long,
        value_name = "TOKEN",
        default_value = "",
        hide_default_value = true,
        help_heading = "Credentials"
    )]
    bearer_token: String,
    /// File with the certificates of the authorities that sign the server's certificate
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    ca_crt_file: Option<PathBuf>,
    #[command(flatten)]
    key: GitKeyFlags,
    #[command(flatten)]
    create: CreateFlags,
    #[command(flatten)]
    _interval: UnusedIntervalFlag,
}

/// An SSH key.
#[derive(Args)]
#[command(next_help_heading = "SSH key")]
pub(in crate::commands::flux::steer::create) struct GitKeyFlags {
    #[command(flatten)]
    new_key: NewKeyFlags,
    /// File with an existing key; --password opens it if it is encrypted
    #[arg(long, value_name = "FILE")]
    private_key_file: Option<PathBuf>,
}

impl GitKeyFlags {
    /// Reads or generates the key.
    fn pair(&self, password: &str) -> Result<SshKeyPair> {
        match &self.private_key_file {
            Some(file) => {
                let content = read(file, "private key file")?;
                let pair = SshKeyPair::parse(&content, Some(password));
                pair.with_context(|| format!("private key file {}", file.display()))
            }
            None => Ok(SshKeyPair::generate(self.new_key.algorithm())?),
        }
    }
}

/// The credentials of a Git server.
pub(in crate::commands::flux::steer::create) struct GitSecret<'a> {
    pub(in crate::commands::flux::steer::create) url: &'a str,
    pub(in crate::commands::flux::steer::create) login: &'a Login,
    pub(in crate::commands::flux::steer::create) key: &'a GitKeyFlags,
    pub(in crate::commands::flux::steer::create) bearer_token: &'a str,
    pub(in crate::commands::flux::steer::create) authorities: Option<String>,
}

/// Returns the scheme of a repository's address.
pub(in crate::commands::flux::steer::create) fn scheme(url: &str) -> Result<&str> {
    ensure!(!url.is_empty(), "url is required");
    let Some((scheme, rest)) = url.split_once("://") else {
        bail!("git URL parse failed: it has no scheme; for an SSH address, write ssh://USER@HOST/PATH");
    };
    ensure!(
        matches!(scheme, "ssh" | "http" | "https"),
        "git URL scheme '{scheme}' not supported, can be: ssh, http and https"
    );
    ensure!(
        !rest.is_empty() && !rest.starts_with('/'),
        "git URL parse failed: it has no host"
    );
    Ok(scheme)
}

impl GitSecret<'_> {
    /// Returns the content of the Secret. For SSH, it asks the server for its host key.
    pub(in crate::commands::flux::steer::create) fn data(&self) -> Result<Map> {
        if scheme(self.url)? != "ssh" {
            ensure!(
                self.login.is_complete() || !self.bearer_token.is_empty(),
                "for Git over HTTP/S the username and password, or a bearer token is required"
            );
            ensure!(
                !self.login.is_complete() || self.bearer_token.is_empty(),
                "user credentials and bearer token cannot be used together"
            );
        }
        Ok(self.optional()?.unwrap_or_default())
    }

    /// Returns the content of the Secret; `None` if there are no credentials.
    pub(in crate::commands::flux::steer::create) fn optional(&self) -> Result<Option<Map>> {
        let password = self.login.password.as_str();
        let mut data = Map::new();
        if scheme(self.url)? == "ssh" {
            let pair = self.key.pair(password)?;
            data.insert("identity", pair.private.expose().as_str());
            data.insert("identity.pub", pair.public);
            let runtime = Runtime::new().context("start the async runtime")?;
            data.insert("known_hosts", host_key(runtime.handle(), self.url)?);
            if !password.is_empty() {
                data.insert("password", password);
            }
            return Ok(Some(data));
        }
        if self.login.is_complete() {
            data.insert("username", self.login.username.as_str());
            data.insert("password", password);
        }
        if !self.bearer_token.is_empty() {
            data.insert("bearerToken", self.bearer_token);
        }
        if let Some(authorities) = &self.authorities {
            data.insert("ca.crt", authorities.as_str());
        }
        Ok(Some(data).filter(|data| !data.is_empty()))
    }
}

pub(super) fn run(args: &GitArgs) -> Result<()> {
    let create = &args.create;
    let (namespace, labels) = (create.namespace()?, create.labels()?);
    let is_ssh = scheme(&args.url)? == "ssh";
    let credentials = GitSecret {
        url: &args.url,
        login: &args.login,
        key: &args.key,
        bearer_token: &args.bearer_token,
        authorities: match is_ssh {
            true => None,
            false => read_optional(args.ca_crt_file.as_deref(), "TLS CA file")?,
        },
    };
    let identity = Identity {
        name: &create.name,
        namespace: &namespace,
        labels: &labels,
    };
    let secret = identity.secret("", credentials.data()?);
    if create.export {
        return output::print(&document(&secret));
    }
    let flux = create.open()?;
    let public = secret
        .pointer(&["stringData", "identity.pub"])
        .and_then(Value::as_str);
    if let Some(key) = public {
        flux.generated(&format!("deploy key: {key}"));
    }
    store_secret(&flux, "git secret", &secret)
}
