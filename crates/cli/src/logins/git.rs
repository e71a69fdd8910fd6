//! Who asks Git repositories.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use engine::SourceCredentials;
use git::{Auth, Remote};
use kluctl::CallbackError;
use oci::Access;

use super::{Kind, Login, Logins};

/// The largest file of credentials that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

impl Logins {
    /// The remote at an address, with what is known of it.
    pub(crate) fn remote(&self, url: &str) -> Result<Remote> {
        let mut remote = Remote::new(url)?;
        let (auth, ca) = self.of_git(url)?;
        if let Some(ca) = ca {
            remote = remote.with_ca(ca);
        }
        Ok(match auth {
            Some(auth) => remote.with_auth(auth),
            None => remote,
        })
    }

    /// What a Git repository is entered with, and the authorities that are trusted beside the system's, as PEM.
    fn of_git(&self, url: &str) -> Result<(Option<Auth>, Option<Vec<u8>>)> {
        let Some(login) = self.find(Kind::Git, url) else {
            return Ok((None, None));
        };
        let read = |file: &PathBuf| std::fs::read(file).with_context(|| format!("read {}", file.display()));
        let ca = login.ca.as_ref().map(read).transpose()?;
        let named = Remote::new(url)?;
        let is_meant = named
            .auth()
            .is_none_or(|auth| fits(&auth.username, &login.username));
        let password = login.password.clone().filter(|_| is_meant);
        let auth = password.map(|password| Auth {
            username: login.username.clone(),
            password,
        });
        Ok((auth, ca))
    }
}

impl SourceCredentials for Logins {
    fn git(&self, url: &str) -> Result<(Option<Auth>, Option<Vec<u8>>), CallbackError> {
        self.of_git(url)
            .map_err(|error| CallbackError::new(format!("{error:#}")))
    }

    fn registry(&self, url: &str) -> Result<Access, CallbackError> {
        self.access(url)
            .map_err(|error| CallbackError::new(format!("{error:#}")))
    }

    fn helm(&self, url: &str) -> Result<Access, CallbackError> {
        self.access(url)
            .map_err(|error| CallbackError::new(format!("{error:#}")))
    }
}

/// Whether a login is for the user that an address names.
fn fits(named: &str, login: &str) -> bool {
    named.is_empty() || login == "*" || named == login
}

/// Those that Git itself keeps in files.
pub(super) fn of_files() -> Result<Vec<(Kind, Login)>> {
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
        logins.extend(text.lines().filter_map(of_line).map(|login| (Kind::Git, login)));
    }
    Ok(logins)
}

/// A line such as `https://user:password@host`; what is none is skipped, as Git does.
fn of_line(line: &str) -> Option<Login> {
    let remote = Remote::new(line.trim()).ok()?;
    let auth = remote.auth().filter(|auth| !auth.password.expose().is_empty())?;
    let url = remote.url();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    Some(Login {
        // What is kept for https is not sent in the clear.
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
    fn lines_are_logins() {
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
    fn a_repository_gets_its_login() {
        let mut login = of_line("https://u:p@h").unwrap();
        login.path = Some("team/*".to_owned());
        let logins = Logins(vec![(Kind::Git, login)]);
        let user = |url: &str| {
            let remote = logins.remote(url).unwrap();
            remote.auth().map(|auth| auth.username.clone())
        };
        assert_eq!(user("https://h/team/shop").as_deref(), Some("u"));
        assert_eq!(user("https://h/other/shop"), None);
        assert_eq!(user("http://h/team/shop"), None, "it is kept for https");
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
