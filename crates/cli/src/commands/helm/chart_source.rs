//! Downloads charts from Helm repositories, OCI registries and URLs.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail, ensure};
use api::Secret;
use clap::Args;
use net::AddressPolicy;
use oci::{Access, Archive, ChartSource, Client, Credentials, Limits, Repository};

use remote::RemoteFetcher;

use crate::logins::{AccessFlags, Logins, identity, read};

/// Repository, version and credentials of a chart.
#[derive(Args)]
#[command(next_help_heading = "Chart repository")]
pub(crate) struct ChartSourceFlags {
    /// URL of the Helm repository
    #[arg(long, value_name = "URL")]
    repo: Option<String>,
    /// Chart version or version range; defaults to the latest version
    #[arg(long, value_name = "RANGE")]
    version: Option<String>,
    /// Use pre-release versions, too; same as --version '>0.0.0-0'. Ignored with --version
    #[arg(long)]
    devel: bool,
    /// Username for the repository or registry
    #[arg(long, value_name = "USER", requires = "password")]
    username: Option<String>,
    /// Password for the repository or registry
    #[arg(long, value_name = "PASSWORD", requires = "username")]
    password: Option<String>,
    /// Pass credentials to all hosts that the repository index refers to
    #[arg(long)]
    pass_credentials: bool,
    /// CA bundle for verifying the server
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// TLS client certificate
    #[arg(long, value_name = "FILE")]
    cert_file: Option<PathBuf>,
    /// Private key of the TLS client certificate
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Skip verification of the server's TLS certificate
    #[arg(long)]
    insecure_skip_tls_verify: bool,
    /// Use plain HTTP for the registry
    #[arg(long)]
    plain_http: bool,
    /// Registry credentials file; defaults to Docker's config.json
    #[arg(long, value_name = "FILE")]
    registry_config: Option<PathBuf>,
}

#[derive(Debug, PartialEq, Eq)]
enum ChartLocation<'a> {
    Repository(&'a str),
    Registry,
    Url,
}

impl ChartSourceFlags {
    /// Returns the first of these flags that is set.
    pub(super) fn first_used(&self) -> Option<&'static str> {
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

    pub(super) fn pull(&self, name: &str, fetcher: &RemoteFetcher) -> Result<Archive> {
        let location = locate(name, self.repo.as_deref().filter(|repo| !repo.is_empty()))?;
        let client = Client::new(
            self.access(name, &location)?,
            Limits::default(),
            AddressPolicy::command_line(),
        )?;
        let range = self.range();
        let archive = match location {
            ChartLocation::Url => {
                let at = Repository::new(&client, name)?;
                fetcher.wait(at.archive())
            }
            ChartLocation::Registry => {
                let source = ChartSource::new(&client, name, "")?;
                fetcher.wait(source.pull(range))
            }
            ChartLocation::Repository(url) => {
                let source = ChartSource::new(&client, url, name)?;
                fetcher.wait(source.pull(range))
            }
        };
        let archive = archive.map_err(|why| anyhow!(why))?;
        let address = self.repo.as_deref().unwrap_or(name);
        archive.map_err(|error| anyhow!(AccessFlags::Chart.explain_oci(address, &error)))
    }

    fn range(&self) -> &str {
        match self.version.as_deref() {
            None | Some("") if self.devel => ">0.0.0-0",
            version => version.unwrap_or_default(),
        }
    }

    /// Returns credentials and TLS settings. Docker's credentials are used for registries only, and only without --username.
    fn access(&self, name: &str, location: &ChartLocation<'_>) -> Result<Access> {
        ensure!(
            *location == ChartLocation::Registry || !self.plain_http,
            "--plain-http applies to OCI registries only: use an http:// URL instead"
        );
        let given = self.username.clone().zip(self.password.clone());
        let known = match (location, &given) {
            (ChartLocation::Registry, None) => {
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

/// Determines the location of a chart from its name and `--repo`.
fn locate<'a>(name: &'a str, repo: Option<&'a str>) -> Result<ChartLocation<'a>> {
    let redacted = api::redact(name);
    match (name.split_once("://"), repo) {
        (None, Some(repo)) if repo.starts_with("oci://") => {
            bail!(
                "--repo must be the URL of a Helm repository: use oci://HOST/PATH/{redacted} as chart for an OCI registry"
            )
        }
        (None, Some(repo)) => Ok(ChartLocation::Repository(repo)),
        (Some(_), Some(_)) => {
            bail!("{redacted:?} is a URL and can't be combined with --repo")
        }
        (Some(("oci", _)), None) => Ok(ChartLocation::Registry),
        (Some(("http" | "https", _)), None) => Ok(ChartLocation::Url),
        (Some((scheme, _)), None) => {
            bail!("{redacted:?}: unsupported URL scheme {scheme}: use http, https or oci")
        }
        (None, None) if name.contains('/') => bail!(
            "chart {redacted:?} not found: there is no such local path, and repositories of 'helm repo add' are not read; use \
             --repo with the URL of the repository"
        ),
        (None, None) => bail!(
            "chart {redacted:?} not found: there is no such local path; use --repo for a chart in a Helm repository"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_location_depends_on_name_and_repo() {
        for (name, repo, expected) in [
            (
                "shop",
                Some("https://h/stable"),
                Ok(ChartLocation::Repository("https://h/stable")),
            ),
            ("oci://h/shop", None, Ok(ChartLocation::Registry)),
            ("https://h/shop.tgz", None, Ok(ChartLocation::Url)),
            ("shop", None, Err("use --repo for a chart")),
            ("stable/shop", None, Err("'helm repo add'")),
            ("shop", Some("oci://h/x"), Err("oci://HOST/PATH/shop")),
            ("oci://h/shop", Some("https://h"), Err("combined with --repo")),
            (
                "ftp://u:s3cret@h/shop.tgz",
                None,
                Err("unsupported URL scheme ftp"),
            ),
        ] {
            match (locate(name, repo), expected) {
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
