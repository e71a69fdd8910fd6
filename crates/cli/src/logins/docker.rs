//! Registry credentials of Docker's config.json.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow};
use api::Secret;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use engine::ServerKind;

use super::Login;

/// Maximum size of the file, in bytes.
const MAX_FILE: u64 = 1 << 20;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    auths: BTreeMap<String, Auth>,
}

#[derive(Deserialize)]
struct Auth {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    identitytoken: String,
    #[serde(default)]
    registrytoken: String,
}

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

/// Reads the logins of a file.
pub(super) fn of_path(file: &Path) -> Result<Vec<(ServerKind, Login)>> {
    let shown = || file.display().to_string();
    let text = std::fs::read(file).with_context(shown)?;
    of_text(&text).with_context(shown)
}

fn of_text(text: &[u8]) -> Result<Vec<(ServerKind, Login)>> {
    // The message must not contain the file's content.
    let file: File = serde_json::from_slice(text).map_err(|error| {
        anyhow!(
            "invalid config.json: line {}, column {}",
            error.line(),
            error.column()
        )
    })?;
    let known = file.auths.iter().filter_map(|(server, auth)| login(server, auth));
    let mut logins = Vec::new();
    for login in known {
        // Docker Hub has several host names.
        let others = ["docker.io", "index.docker.io", "registry-1.docker.io"];
        let hosts = match others.contains(&login.host.as_str()) {
            true => others.map(str::to_owned).to_vec(),
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

/// Returns the login for a server; `None` if the file has no credentials for it.
fn login(server: &str, auth: &Auth) -> Option<Login> {
    let server = server.split_once("://").map_or(server, |(_, rest)| rest);
    let (host, path) = server
        .trim_end_matches('/')
        .split_once('/')
        .unwrap_or((server.trim_end_matches('/'), ""));
    let decoded = STANDARD
        .decode(auth.auth.trim())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded
        .as_deref()
        .and_then(|text| text.trim_end_matches('\0').split_once(':'));
    let (username, password) = decoded.unwrap_or((&auth.username, &auth.password));
    let secret = |text: &str| {
        Some(text)
            .filter(|text| !text.is_empty())
            .map(|text| Secret::new(text.to_owned()))
    };
    let login = Login {
        host: host.to_owned(),
        // The API version is not part of a repository.
        path: Some(path)
            .filter(|path| !matches!(*path, "" | "v1" | "v2"))
            .map(str::to_owned),
        username: username.to_owned(),
        password: secret(password),
        token: secret(&auth.registrytoken),
        identity_token: secret(&auth.identitytoken),
        ..Login::default()
    };
    let is_one = login.password.is_some() || login.token.is_some() || login.identity_token.is_some();
    (is_one && !host.is_empty()).then_some(login)
}

#[cfg(test)]
mod tests {
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
