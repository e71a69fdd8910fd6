//! `weir create secret oci`, `weir create secret proxy` and `weir create secret githubapp`.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Args;
use yaml::{Map, Value};

use crate::{
    commands::flux::steer::{
        create::{
            credentials::{Login, read},
            flags::{CreateFlags, UnusedIntervalFlag},
        },
        fields::{Fields, Identity},
    },
    usage::boolean_flag,
};

const OCI_EXAMPLES: &str = "Examples:
  # A login to a registry, to be encrypted with SOPS
  weir create secret oci podinfo-auth \\
    --url=ghcr.io \\
    --username=username \\
    --password=password \\
    --export > repo-auth.yaml";

/// Create or update an image pull Secret
///
/// OCIRepositories, HelmRepositories and Pods take it for logins to a registry.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = OCI_EXAMPLES)]
pub(crate) struct OciArgs {
    /// Registry, or a repository in it, such as ghcr.io/stefanprodan/charts
    #[arg(
        long,
        value_name = "HOST[/PATH]",
        default_value = "",
        hide_default_value = true
    )]
    url: String,
    #[command(flatten)]
    login: Login,
    #[command(flatten)]
    pub(super) create: CreateFlags,
    #[command(flatten)]
    _interval: UnusedIntervalFlag,
}

impl OciArgs {
    pub(super) fn secret(&self, identity: &Identity<'_>) -> Result<Value> {
        ensure!(!self.url.is_empty(), "--url is required");
        ensure!(!self.login.username.is_empty(), "--username is required");
        ensure!(!self.login.password.is_empty(), "--password is required");
        ensure!(
            !self.url.contains("://") && !self.url.contains(char::is_whitespace),
            "error parsing url: '{}': expected HOST[/PATH] without a scheme",
            self.url
        );
        let text = |text: &str| yaml::print::json_html(&Value::from(text));
        let (username, password) = (&self.login.username, &self.login.password);
        let auth = STANDARD.encode(format!("{username}:{password}"));
        let entry = format!(
            "      \"username\": {},\n      \"password\": {},\n      \"auth\": {}\n",
            text(username),
            text(password),
            text(&auth)
        );
        let config = format!(
            "{{\n  \"auths\": {{\n    {}: {{\n{entry}    }}\n  }}\n}}",
            text(&self.url)
        );
        let data = Map::from([(".dockerconfigjson", config)]);
        Ok(identity.secret("kubernetes.io/dockerconfigjson", data))
    }
}

const PROXY_EXAMPLES: &str = "Examples:
  # A proxy with a login, to be encrypted with SOPS
  weir create secret proxy my-proxy \\
    --namespace=my-namespace \\
    --address=https://my-proxy.com \\
    --username=my-username \\
    --password=my-password \\
    --export > proxy.yaml";

/// Create or update a Secret for a proxy
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = PROXY_EXAMPLES)]
pub(crate) struct ProxyArgs {
    /// Address of the proxy
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    address: String,
    #[command(flatten)]
    login: Login,
    #[command(flatten)]
    pub(super) create: CreateFlags,
    #[command(flatten)]
    _interval: UnusedIntervalFlag,
}

impl ProxyArgs {
    pub(super) fn secret(&self, identity: &Identity<'_>) -> Result<Value> {
        ensure!(!self.address.is_empty(), "address is required");
        let data = Fields::default()
            .set("address", &*self.address)
            .text("username", &self.login.username)
            .text("password", &self.login.password);
        Ok(identity.secret("Opaque", data))
    }
}

const GITHUB_APP_EXAMPLES: &str = "Examples:
  # An app, to be encrypted with SOPS
  weir create secret githubapp podinfo-auth \\
    --app-id=1 \\
    --app-installation-id=2 \\
    --app-private-key=./private-key-file.pem \\
    --export > githubapp-auth.yaml";

/// Create or update a Secret for a GitHub App
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = GITHUB_APP_EXAMPLES)]
pub(crate) struct GithubAppArgs {
    /// ID of the app
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    app_id: String,
    /// User or organization with the installation of the app
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    app_installation_owner: String,
    /// ID of the installation
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    app_installation_id: String,
    /// File with the private key of the app
    #[arg(long, value_name = "FILE")]
    app_private_key: Option<PathBuf>,
    /// Address of the API, for GitHub Enterprise
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    app_base_url: String,
    #[command(flatten)]
    pub(super) create: CreateFlags,
    #[command(flatten)]
    _interval: UnusedIntervalFlag,
}

impl GithubAppArgs {
    pub(super) fn secret(&self, identity: &Identity<'_>) -> Result<Value> {
        let key = self.app_private_key.as_deref();
        let key = read(key.context("--app-private-key is required")?, "private key file")?;
        ensure!(!self.app_id.is_empty(), "githubAppID is required: use --app-id");
        ensure!(
            !key.is_empty(),
            "githubAppPrivateKey is required: the file is empty"
        );
        ensure!(
            self.app_installation_owner.is_empty() != self.app_installation_id.is_empty(),
            "exactly one of githubAppInstallationOwner or githubAppInstallationID must be provided: use --app-installation-owner or \
             --app-installation-id"
        );
        let data = Fields::default()
            .set("githubAppID", &*self.app_id)
            .set("githubAppPrivateKey", key)
            .text("githubAppInstallationOwner", &self.app_installation_owner)
            .text("githubAppInstallationID", &self.app_installation_id)
            .text("githubAppBaseURL", &self.app_base_url);
        Ok(identity.secret("Opaque", data))
    }
}
