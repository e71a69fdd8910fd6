//! Charts on other machines: of Helm repositories, of registries, or by their URLs.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail, ensure};
use api::Secret;
use clap::Args;
use oci::{Access, Archive, Client, Credentials, Limits, Repository, Source};

use crate::{
    fetch::Fetcher,
    logins::{Logins, identity, read},
};

/// Where a chart is that is not on this machine, and who asks for it.
#[derive(Args)]
#[command(next_help_heading = "Charts on other machines")]
pub(crate) struct RemoteArgs {
    /// The address of the Helm repository that has the chart
    #[arg(long, value_name = "URL")]
    repo: Option<String>,
    /// The version of the chart, or a range of them; the newest without it
    #[arg(long, value_name = "RANGE")]
    version: Option<String>,
    /// Take pre-releases, too, as --version '>0.0.0-0' does; not with --version
    #[arg(long)]
    devel: bool,
    /// The user of the repository or the registry
    #[arg(long, value_name = "USER", requires = "password")]
    username: Option<String>,
    /// The password of that user
    #[arg(long, value_name = "PASSWORD", requires = "username")]
    password: Option<String>,
    /// Send them to the hosts that the index names, too
    #[arg(long)]
    pass_credentials: bool,
    /// A file with the certificates that the server is known by
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// A file with the certificate that the server is shown
    #[arg(long, value_name = "FILE")]
    cert_file: Option<PathBuf>,
    /// A file with the key of that certificate
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Trust the server whatever certificate it shows
    #[arg(long)]
    insecure_skip_tls_verify: bool,
    /// Speak http to the registry
    #[arg(long)]
    plain_http: bool,
    /// A file with the logins of registries [default: that of Docker]
    #[arg(long, value_name = "FILE")]
    registry_config: Option<PathBuf>,
}

/// What the name of a chart says about its place.
#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    Repository(&'a str),
    Registry,
    Url,
}

impl RemoteArgs {
    /// The first flag that is given, if there is one.
    pub(super) fn first_given(&self) -> Option<&'static str> {
        let flags = [
            ("--repo", self.repo.is_some()),
            ("--version", self.version.is_some()),
            ("--devel", self.devel),
            ("--username", self.username.is_some()),
            ("--pass-credentials", self.pass_credentials),
            ("--ca-file", self.ca_file.is_some()),
            ("--cert-file", self.cert_file.is_some()),
            ("--key-file", self.key_file.is_some()),
            ("--insecure-skip-tls-verify", self.insecure_skip_tls_verify),
            ("--plain-http", self.plain_http),
            ("--registry-config", self.registry_config.is_some()),
        ];
        flags.iter().find(|(_, given)| *given).map(|(flag, _)| *flag)
    }

    /// Gets the chart that is called so.
    pub(super) fn pull(&self, name: &str, fetcher: &Fetcher) -> Result<Archive> {
        let place = place(name, self.repo.as_deref().filter(|repo| !repo.is_empty()))?;
        let client = Client::new(self.access(name, &place)?, Limits::default())?;
        let range = self.range();
        let archive = match place {
            Place::Url => {
                let at = Repository::new(&client, name)?;
                fetcher.wait(at.archive())
            }
            Place::Registry => {
                let source = Source::new(&client, name, "")?;
                fetcher.wait(source.pull(range))
            }
            Place::Repository(url) => {
                let source = Source::new(&client, url, name)?;
                fetcher.wait(source.pull(range))
            }
        };
        Ok(archive.map_err(|why| anyhow!(why))??)
    }

    fn range(&self) -> &str {
        match self.version.as_deref() {
            None | Some("") if self.devel => ">0.0.0-0",
            version => version.unwrap_or_default(),
        }
    }

    /// Who asks, and whom they trust. Logins of other programs count for registries alone, and without a user.
    fn access(&self, name: &str, place: &Place<'_>) -> Result<Access> {
        ensure!(
            *place == Place::Registry || !self.plain_http,
            "--plain-http is for registries: write http:// in the address"
        );
        let given = self.username.clone().zip(self.password.clone());
        let known = match (place, &given) {
            (Place::Registry, None) => {
                Logins::of_registries(self.registry_config.as_deref())?.access(name)?
            }
            _ => Access::default(),
        };
        let given = given.map(|(username, password)| Credentials::Basic {
            username,
            password: Secret::new(password),
        });
        let file = |file: &Option<PathBuf>| file.clone().filter(|file| file != Path::new(""));
        Ok(Access {
            credentials: given.or(known.credentials),
            pass_credentials: self.pass_credentials,
            ca: read(file(&self.ca_file).as_deref())?,
            identity: identity(file(&self.cert_file).as_deref(), file(&self.key_file).as_deref())?,
            insecure_skip_verify: self.insecure_skip_tls_verify,
            plain_http: self.plain_http,
        })
    }
}

/// Where a chart is that is not on this machine.
fn place<'a>(name: &'a str, repo: Option<&'a str>) -> Result<Place<'a>> {
    let shown = api::redact(name);
    match (name.split_once("://"), repo) {
        (None, Some(repo)) if repo.starts_with("oci://") => {
            bail!(
                "--repo is the address of a Helm repository: a chart of a registry is called oci://HOST/PATH/{shown}"
            )
        }
        (None, Some(repo)) => Ok(Place::Repository(repo)),
        (Some(_), Some(_)) => {
            bail!("{shown:?} is a whole address: leave --repo out")
        }
        (Some(("oci", _)), None) => Ok(Place::Registry),
        (Some(("http" | "https", _)), None) => Ok(Place::Url),
        (Some((scheme, _)), None) => bail!("{shown:?}: {scheme} is not spoken, only http, https and oci"),
        (None, None) if name.contains('/') => bail!(
            "there is no directory and no archive {shown:?}, and what 'helm repo add' keeps is not read: --repo is the \
             address of a repository"
        ),
        (None, None) => bail!(
            "there is no directory and no archive {shown:?}: --repo is the address of a repository that has the chart"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_where_the_chart_is() {
        for (name, repo, expected) in [
            (
                "shop",
                Some("https://h/stable"),
                Ok(Place::Repository("https://h/stable")),
            ),
            ("oci://h/shop", None, Ok(Place::Registry)),
            ("https://h/shop.tgz", None, Ok(Place::Url)),
            ("shop", None, Err("--repo is the address")),
            ("stable/shop", None, Err("'helm repo add'")),
            ("shop", Some("oci://h/x"), Err("oci://HOST/PATH/shop")),
            ("oci://h/shop", Some("https://h"), Err("leave --repo out")),
            ("ftp://u:s3cret@h/shop.tgz", None, Err("ftp is not spoken")),
        ] {
            match (place(name, repo), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{name}"),
                (Err(error), Err(expected)) => {
                    let said = error.to_string();
                    assert!(
                        said.contains(expected) && !said.contains("s3cret"),
                        "{name}: {said}"
                    );
                }
                (found, expected) => panic!("{name}: {found:?} is not {expected:?}"),
            }
        }
    }
}
