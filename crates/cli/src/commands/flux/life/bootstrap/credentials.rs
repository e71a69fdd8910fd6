//! The addresses of a repository, for this program and for the cluster, and the credentials of both.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use git::{Auth, KeyAlgorithm, KnownHosts, Remote, SshKey, SshKeyPair, SshLogin};
use tokio::runtime::Handle;
use url::Url;

use super::KeyFlags;
use crate::{commands::flux::ssh_key::host_key, files::read_text};

const MAX_FILE: u64 = 1 << 20;

/// The credentials of a command.
pub(super) struct Credentials {
    pub(super) url: Url,
    /// Address for the cluster.
    pub(super) sync_url: String,
    pub(super) username: String,
    pub(super) password: api::Secret<String>,
    pub(super) ca: Option<String>,
    /// The key of --private-key-file.
    pub(super) key: Option<SshKeyPair>,
    pub(super) algorithm: KeyAlgorithm,
    /// True if the password is a bearer token.
    pub(super) is_bearer: bool,
    /// True if the user named credentials for the cluster, which replace those in its Secret.
    pub(super) is_given: bool,
}

/// The login of a user.
pub(super) struct Login<'a> {
    pub(super) username: &'a str,
    pub(super) password: &'a str,
    /// True if the password is a bearer token.
    pub(super) is_bearer: bool,
    /// True if an http:// URL is allowed.
    pub(super) allow_http: bool,
}

impl Credentials {
    /// Reads the files of the flags, and checks that they fit the address.
    pub(super) fn read(url: &str, login: &Login<'_>, flags: &KeyFlags) -> Result<Self> {
        let (username, password) = (login.username, login.password);
        let mut url = parse(url)?;
        if url.scheme() == "http" {
            ensure!(
                login.allow_http,
                "the scheme of the URL is insecure: use https, or --allow-insecure-http"
            );
        }
        ensure!(
            !login.is_bearer || url.scheme() != "ssh" && !password.is_empty(),
            "--with-bearer-token needs an https:// URL, and the token in --password or $GIT_PASSWORD"
        );
        let token_auth = flags.token_auth || login.is_bearer;
        let sync_url = sync_url(&url, token_auth, flags.ssh_hostname.as_deref())?;
        let in_url = url.password().map(str::to_owned);
        let in_url_user = Some(url.username().to_owned()).filter(|user| !user.is_empty());
        let is_http = url.scheme() != "ssh";
        if is_http {
            // They can't fail: the URL has a host.
            let _ = url.set_username("");
            let _ = url.set_password(None);
        }
        let key = flags.private_key_file.as_deref();
        let key = key.map(|file| read_key(file, password)).transpose()?;
        let is_token = is_http && token_auth;
        let password = Some(password).filter(|password| !password.is_empty());
        let is_given = key.is_some() || flags.ca_file.is_some() || (is_token && password.is_some());
        Ok(Self {
            url,
            sync_url,
            username: in_url_user.unwrap_or_else(|| username.to_owned()),
            password: api::Secret::new(password.map(str::to_owned).or(in_url).unwrap_or_default()),
            ca: read_ca(flags)?,
            key,
            algorithm: flags.new_key.algorithm(),
            is_bearer: login.is_bearer,
            is_given,
        })
    }

    /// Returns the repository with the credentials of this program, and the key of an SSH server.
    pub(super) fn remote(&self, runtime: &Handle) -> Result<(Remote, Option<String>)> {
        let remote = Remote::new(self.url.as_str())?;
        if self.url.scheme() != "ssh" {
            let remote = match self.password.expose().is_empty() {
                true => remote,
                false if self.is_bearer => remote.with_token(self.password.clone()),
                false => remote.with_auth(Auth {
                    username: self.username.clone(),
                    password: self.password.clone(),
                }),
            };
            let ca = self.ca.as_ref().map(|pem| pem.clone().into_bytes());
            return Ok((ca.into_iter().fold(remote, Remote::with_ca), None));
        }
        let known = host_key(runtime, self.url.as_str())?;
        let keys = match &self.key {
            Some(pair) => {
                let password = Some(self.password.expose().as_str()).filter(|password| !password.is_empty());
                let private = pair.private.expose().as_bytes();
                vec![SshKey::parse(private, password, "the private key file")?]
            }
            None => Vec::new(),
        };
        let agent = std::env::var_os("SSH_AUTH_SOCK").filter(|_| keys.is_empty());
        let login = SshLogin {
            keys,
            agent: agent.map(Into::into),
            known_hosts: KnownHosts::parse(known.as_bytes())?,
            ..SshLogin::default()
        };
        Ok((remote.with_ssh(login), Some(known)))
    }
}

fn parse(url: &str) -> Result<Url> {
    let Ok(parsed) = Url::parse(url) else {
        bail!("the URL can't be parsed: write ssh://USER@HOST/PATH or https://HOST/PATH");
    };
    ensure!(
        matches!(parsed.scheme(), "ssh" | "http" | "https"),
        "git URL scheme '{}' not supported, can be: ssh, http and https",
        parsed.scheme()
    );
    ensure!(
        parsed.host_str().is_some_and(|host| !host.is_empty()),
        "the URL has no host"
    );
    Ok(parsed)
}

/// Returns the address for the cluster: the one of the command if the cluster has the token, otherwise one over SSH.
fn sync_url(url: &Url, token_auth: bool, ssh_hostname: Option<&str>) -> Result<String> {
    let is_ssh = url.scheme() == "ssh";
    let port = |own: bool| match url.port() {
        Some(port) if own => format!(":{port}"),
        _ => String::new(),
    };
    let host = url.host_str().unwrap_or_default();
    let path = url.path();
    if token_auth {
        ensure!(
            !is_ssh,
            "--token-auth needs an https:// URL: the cluster uses the token with it"
        );
        return Ok(format!("{}://{host}{}{path}", url.scheme(), port(true)));
    }
    let server = match ssh_hostname {
        Some(server) => server.to_owned(),
        // Its SSH server has another port.
        None => format!("{host}{}", port(is_ssh)),
    };
    let user = match url.username() {
        user if is_ssh && !user.is_empty() => user,
        _ => "git",
    };
    Ok(format!("ssh://{user}@{server}{path}"))
}

fn read_key(file: &Path, password: &str) -> Result<SshKeyPair> {
    let content = read(file, "private key")?;
    let password = Some(password).filter(|password| !password.is_empty());
    let pair = SshKeyPair::parse(&content, password);
    pair.with_context(|| format!("private key file {}", file.display()))
}

pub(super) fn read_ca(flags: &KeyFlags) -> Result<Option<String>> {
    let file = flags.ca_file.as_deref();
    file.map(|file| read(file, "certificates")).transpose()
}

fn read(file: &Path, what: &str) -> Result<String> {
    read_text(file, MAX_FILE).with_context(|| format!("read {what} from {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_uses_ssh_unless_it_has_the_token() {
        for (url, token, hostname, expected) in [
            ("https://u:p@h:8443/o/r.git", true, None, "https://h:8443/o/r.git"),
            ("https://u:p@h:8443/o/r.git", false, None, "ssh://git@h/o/r.git"),
            ("https://h/r", false, Some("ssh.h:443"), "ssh://git@ssh.h:443/r"),
            ("ssh://me@h:2222/r", false, None, "ssh://me@h:2222/r"),
            ("ssh://h/r", false, None, "ssh://git@h/r"),
            ("http://h:3000/r", true, None, "http://h:3000/r"),
        ] {
            let found = sync_url(&parse(url).unwrap(), token, hostname).unwrap();
            assert_eq!(found, expected, "{url}");
        }
        assert!(sync_url(&parse("ssh://h/r").unwrap(), true, None).is_err());
    }

    #[test]
    fn addresses_without_a_scheme_are_refused() {
        for url in ["git@host:org/repo", "/srv/repo", "file:///srv/repo", "ssh:///r"] {
            assert!(parse(url).is_err(), "{url}");
        }
        let error = parse("git@host:s3cret/repo").unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }
}
