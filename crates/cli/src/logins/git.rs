//! Git credentials.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use git::{Auth, Remote};
use net::Need;
use oci::Access;
use remote::{ServerKind, SourceCredentials};

use super::{Login, Logins};

const MAX_FILE: u64 = 1 << 20;

impl Logins {
    /// Returns the credentials and the CA bundle (PEM) for a repository; the CAs are trusted in addition to the system's.
    fn of_git(&self, url: &str) -> Result<(Option<Auth>, Option<Vec<u8>>)> {
        let Some(login) = self.find(ServerKind::Git, url) else {
            return Ok((None, None));
        };
        let read = |file: &PathBuf| std::fs::read(file).with_context(|| format!("read {}", file.display()));
        let ca = login.ca.as_ref().map(read).transpose()?;
        let named = Remote::new(url)?;
        let is_meant = named
            .auth()
            .is_none_or(|auth| is_for_user(&auth.username, &login.username));
        let password = login.password.clone().filter(|_| is_meant);
        let auth = password.map(|password| Auth {
            username: login.username.clone(),
            password,
        });
        Ok((auth, ca))
    }
}

impl SourceCredentials for Logins {
    fn git(&self, url: &str) -> Result<(Option<Auth>, Option<Vec<u8>>), remote::Error> {
        self.of_git(url).map_err(|error| unreadable(&error))
    }

    fn ssh(&self, remote: Remote) -> Result<Remote, remote::Error> {
        self.over_ssh(remote).map_err(|error| unreadable(&error))
    }

    fn registry(&self, url: &str) -> Result<Access, remote::Error> {
        self.access(url).map_err(|error| unreadable(&error))
    }

    fn helm(&self, url: &str, credentials_id: Option<&str>) -> Result<Access, remote::Error> {
        self.helm_access(url, credentials_id)
            .map_err(|error| unreadable(&error))
    }

    fn remedy(&self, server: ServerKind, need: Need) -> Option<String> {
        self.flags.remedy(server, need).map(str::to_owned)
    }
}

fn unreadable(error: &anyhow::Error) -> remote::Error {
    remote::Error::Credentials(format!("{error:#}"))
}

/// Returns true if a login applies to the username of a URL.
fn is_for_user(named: &str, login: &str) -> bool {
    named.is_empty() || login == "*" || named == login
}

/// Reads Git's credentials files (`~/.git-credentials` and the one in `$XDG_CONFIG_HOME`).
pub(super) fn of_files() -> Result<Vec<(ServerKind, Login)>> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let mut logins = Vec::new();
    for file in [home, config]
        .into_iter()
        .flatten()
        .map(|dir| dir.join(".git-credentials"))
    {
        let Ok(metadata) = file.metadata() else { continue };
        if metadata.len() > MAX_FILE {
            continue;
        }
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        logins.extend(
            text.lines()
                .filter_map(of_line)
                .map(|login| (ServerKind::Git, login)),
        );
    }
    Ok(logins)
}

/// Parses a line such as `https://user:password@host`; other lines are ignored, as Git does.
fn of_line(line: &str) -> Option<Login> {
    let remote = Remote::new(line.trim()).ok()?;
    let auth = remote.auth().filter(|auth| !auth.password.expose().is_empty())?;
    let url = remote.url();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    Some(Login {
        // Credentials for https must not be sent over http.
        scheme: Some(url.scheme().to_owned()),
        host: format!("{}{port}", url.host_str()?),
        username: auth.username.clone(),
        password: Some(auth.password.clone()),
        ..Login::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_credentials_files_are_parsed() {
        let login = of_line("https://us%40er:p%2Fw@h:8443/any").unwrap();
        assert_eq!(
            (login.host.as_str(), login.username.as_str()),
            ("h:8443", "us@er")
        );
        assert_eq!(login.password.unwrap().expose(), "p/w");
        for line in ["", "# x", "ssh://u:p@h", "https://h", "https://u@h"] {
            assert!(of_line(line).is_none(), "{line}");
        }
    }

    #[test]
    fn login_applies_to_matching_repositories() {
        let mut login = of_line("https://u:p@h").unwrap();
        login.path = Some("team/*".to_owned());
        let servers = Logins::of(vec![(ServerKind::Git, login)]).servers();
        let user = |url: &str| {
            let remote = servers.git_remote(url).unwrap();
            remote.auth().map(|auth| auth.username.clone())
        };
        assert_eq!(user("https://h/team/shop").as_deref(), Some("u"));
        assert_eq!(user("https://h/other/shop"), None);
        assert_eq!(user("http://h/team/shop"), None, "the login is for https");
        assert_eq!(
            user("https://evil.test\\@h/team/shop"),
            None,
            "the host is evil.test"
        );
        assert_eq!(
            user("https://x@h/team/shop").as_deref(),
            Some("x"),
            "the address names another user"
        );
    }
}
