//! Registry credentials of Docker's config.json, the format of pull secrets.

use std::collections::BTreeMap;

use api::Secret;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use crate::{Credentials, Reference};

/// Host names of Docker Hub: credentials for one are used for all.
pub const HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub host: String,
    /// Path of the repositories that the credentials are for; `None` for all.
    pub path: Option<String>,
    pub credentials: Credentials,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid config.json: line {line}, column {column}")]
pub struct InvalidConfig {
    line: usize,
    column: usize,
}

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

/// Parses config.json. Servers without credentials, as with credential helpers, are left out.
pub fn logins(text: &[u8]) -> Result<Vec<Login>, InvalidConfig> {
    let file: File = serde_json::from_slice(text).map_err(|error| InvalidConfig {
        line: error.line(),
        column: error.column(),
    })?;
    let all = file.auths.iter().filter_map(|(server, auth)| login(server, auth));
    Ok(all.collect())
}

/// Returns the credentials with the longest path that contains the repository.
#[must_use]
pub fn find(logins: &[Login], repository: &Reference) -> Option<Credentials> {
    let is_hub = |host: &str| HUB.contains(&host);
    let host = repository.host();
    let fits = |login: &&Login| {
        let of_host = login.host.eq_ignore_ascii_case(host) || (is_hub(&login.host) && is_hub(host));
        of_host
            && login.path.as_ref().is_none_or(|path| {
                let rest = repository.repository().strip_prefix(path.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
    };
    let found = logins.iter().filter(fits);
    let longest = found.max_by_key(|login| login.path.as_ref().map(String::len));
    longest.map(|login| login.credentials.clone())
}

fn login(server: &str, auth: &Auth) -> Option<Login> {
    let server = server.split_once("://").map_or(server, |(_, rest)| rest);
    let (host, path) = server
        .trim_end_matches('/')
        .split_once('/')
        .unwrap_or((server.trim_end_matches('/'), ""));
    let secret = |text: &str| {
        Some(text)
            .filter(|text| !text.is_empty())
            .map(|text| Secret::new(text.to_owned()))
    };
    let decoded = STANDARD
        .decode(auth.auth.trim())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded
        .as_deref()
        .and_then(|text| text.trim_end_matches('\0').split_once(':'));
    let (username, password) = decoded.unwrap_or((&auth.username, &auth.password));
    let basic = secret(password).map(|password| Credentials::Basic {
        username: username.to_owned(),
        password,
    });
    let bearer = secret(&auth.registrytoken).map(Credentials::Bearer);
    let identity = secret(&auth.identitytoken).map(Credentials::Identity);
    let credentials = bearer.or(identity).or(basic)?;
    (!host.is_empty()).then(|| Login {
        host: host.to_owned(),
        // The API version is not part of a repository.
        path: Some(path)
            .filter(|path| !matches!(*path, "" | "v1" | "v2"))
            .map(str::to_owned),
        credentials,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_specific_credentials_of_a_host_are_used() {
        let text = br#"{"auths": {
            "https://index.docker.io/v1/": {"auth": "bWU6czNjcmV0"},
            "h:5000": {"username": "u", "password": "s3cret"},
            "h:5000/team": {"auth": "dGVhbTpzM2NyZXQ="},
            "id.example.com": {"auth": "MDAwOg==", "identitytoken": "s3cretidentity"},
            "kept.example.com": {}
        }, "credsStore": "desktop"}"#;
        let known = logins(text).unwrap();
        for (url, expected) in [
            ("oci://docker.io/library/a", Some("me")),
            ("oci://h:5000/other/a", Some("u")),
            ("oci://h:5000/team", Some("team")),
            ("oci://h:5000/team/a", Some("team")),
            ("oci://h:5000/teams/a", Some("u")),
            ("oci://h/team/a", None),
            ("oci://kept.example.com/a", None),
            ("oci://id.example.com/a", Some("identity")),
        ] {
            let found = find(&known, &Reference::parse(url).unwrap());
            let user = found.map(|found| match found {
                Credentials::Basic { username, .. } => username,
                Credentials::Identity(_) => "identity".to_owned(),
                Credentials::Bearer(_) => "bearer".to_owned(),
            });
            assert_eq!(user.as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn invalid_config_is_not_shown() {
        for text in ["", "x", r#"{"auths": {"h": "s3cret"}}"#] {
            let error = logins(text.as_bytes()).unwrap_err().to_string();
            assert!(
                error.starts_with("invalid config.json") && !error.contains("s3cret"),
                "{error}"
            );
        }
        assert_eq!(logins(b"{}").unwrap(), []);
    }
}
