//! Registry credentials of Docker's config.json.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use oci::{Credentials, docker::HUB};
use remote::ServerKind;

use super::Login;

const MAX_FILE: u64 = 1 << 20;

/// Reads the logins of `config.json` in `$DOCKER_CONFIG` or `~/.docker`. Credential helpers are not run.
pub(super) fn of_file() -> Result<Vec<(ServerKind, Login)>> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let dir = variable("DOCKER_CONFIG").or_else(|| variable("HOME").map(|home| home.join(".docker")));
    let Some(file) = dir.map(|dir| dir.join("config.json")) else {
        return Ok(Vec::new());
    };
    match file.metadata() {
        Ok(metadata) if metadata.len() <= MAX_FILE => of_path(&file),
        _ => Ok(Vec::new()),
    }
}

pub(super) fn of_path(file: &Path) -> Result<Vec<(ServerKind, Login)>> {
    let display = || file.display().to_string();
    let text = std::fs::read(file).with_context(display)?;
    of_text(&text).with_context(display)
}

fn of_text(text: &[u8]) -> Result<Vec<(ServerKind, Login)>> {
    let known = oci::docker::logins(text)?.into_iter().map(login);
    let mut logins = Vec::new();
    for login in known {
        let hosts = match HUB.contains(&login.host.as_str()) {
            true => HUB.map(str::to_owned).to_vec(),
            false => vec![login.host.clone()],
        };
        for host in hosts {
            let below = login.path.as_ref().map(|path| format!("{path}/**"));
            for path in [Some(login.path.clone()), below.map(Some)].into_iter().flatten() {
                let (host, login) = (host.clone(), login.clone());
                logins.push((ServerKind::Registry, Login { host, path, ..login }));
            }
        }
    }
    // Longer paths are more specific.
    logins.sort_by_key(|(_, login)| std::cmp::Reverse(login.path.as_ref().map(String::len)));
    Ok(logins)
}

/// Returns a login of the file as one of the command line.
fn login(found: oci::docker::Login) -> Login {
    let (mut password, mut token, mut identity_token) = (None, None, None);
    let mut username = String::new();
    match found.credentials {
        Credentials::Basic {
            username: name,
            password: secret,
        } => (username, password) = (name, Some(secret)),
        Credentials::Bearer(secret) => token = Some(secret),
        Credentials::Identity(secret) => identity_token = Some(secret),
    }
    Login {
        host: found.host,
        path: found.path,
        username,
        password,
        token,
        identity_token,
        ..Login::default()
    }
}

#[cfg(test)]
mod tests {
    use api::Secret;

    use super::*;
    use crate::logins::Logins;

    #[test]
    fn docker_logins_are_used() {
        let text = r#"{"auths": {
            "https://index.docker.io/v1/": {"auth": "bWU6czNjcmV0"},
            "h:5000": {"username": "u", "password": "s3cret"},
            "h:5000/team": {"auth": "dGVhbTpzM2NyZXQ="},
            "h:5000/team/inner": {"username": "inner", "password": "s3cret"},
            "id.example.com": {"auth": "MDAwOg==", "identitytoken": "s3cretidentity"},
            "kept.example.com": {}
        }, "credsStore": "desktop", "HttpHeaders": {"x": "y"}}"#;
        let logins = Logins::of(of_text(text.as_bytes()).unwrap());
        let who = |url: &str| {
            logins
                .find(ServerKind::Registry, url)
                .map(|login| login.username.as_str())
        };
        for (url, expected) in [
            ("oci://docker.io/library/a", Some("me")),
            ("oci://registry-1.docker.io/a", Some("me")),
            ("oci://h:5000/other/a", Some("u")),
            ("oci://h:5000/team", Some("team")),
            ("oci://h:5000/team/a", Some("team")),
            ("oci://h:5000/team/inner/a", Some("inner")),
            ("oci://h:5000/teams/a", Some("u")),
            ("oci://h/team/a", None),
            ("oci://kept.example.com/a", None),
        ] {
            assert_eq!(who(url), expected, "{url}");
        }
        let access = logins.access("oci://id.example.com/a").unwrap();
        let expected = oci::Credentials::Identity(Secret::new("s3cretidentity".to_owned()));
        assert_eq!(access.credentials, Some(expected));
        for text in ["", "x", r#"{"auths": {"h": "s3cret"}}"#] {
            let error = of_text(text.as_bytes()).unwrap_err().to_string();
            assert!(
                error.starts_with("invalid config.json") && !error.contains("s3cret"),
                "{error}"
            );
        }
        assert!(of_text(b"{}").unwrap().is_empty());
    }
}
