//! Credentials and keys from Secrets, as controllers have them.

use std::{collections::BTreeMap, fmt};

use api::Secret;
use git::{InvalidKey, InvalidKnownHosts, KnownHosts, SshKey, SshLogin};
use net::AddressPolicy;
use oci::{Access, Credentials, Identity};

use crate::{
    CredentialsIdentity, Error, ServerAddress, SourceCredentials,
    path_pattern::{PatternSearch, TooManyPatterns},
    source_cache, uses_plain_http,
};

#[derive(Clone, Default)]
pub struct CredentialEntry {
    /// Host of the URLs, with the port if they have one. For Git repositories, `*` and an empty one mean any host, but neither http nor https.
    pub host: String,
    /// Glob pattern of the paths, in which `*` matches no slash; all paths if absent.
    pub path: Option<String>,
    pub values: BTreeMap<String, Secret<Vec<u8>>>,
}

impl fmt::Debug for CredentialEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CredentialEntry({}/{})",
            self.host,
            self.path.as_deref().unwrap_or("**")
        )
    }
}

impl CredentialEntry {
    fn is_for_host(&self, server: &ServerAddress) -> bool {
        let hosts = [&server.host, &server.host_with_port];
        hosts.iter().any(|host| self.host.eq_ignore_ascii_case(host))
    }

    fn is_for_path(&self, path: &str, search: &mut PatternSearch) -> Result<bool, TooManyPatterns> {
        let pattern = self.path.as_deref().filter(|pattern| !pattern.is_empty());
        pattern.map_or(Ok(true), |pattern| {
            let pattern = pattern.trim_matches('/').as_bytes();
            search.is_match(pattern, path.as_bytes())
        })
    }

    fn text(&self, key: &str) -> Option<String> {
        let text = str::from_utf8(self.bytes(key)?).ok()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn secret(&self, key: &str) -> Option<Secret<String>> {
        self.text(key).map(Secret::new)
    }

    fn bytes(&self, key: &str) -> Option<&[u8]> {
        let bytes = self.values.get(key)?.expose().as_slice();
        (!bytes.is_empty()).then_some(bytes)
    }

    fn either(&self, keys: [&str; 2]) -> Option<Vec<u8>> {
        keys.iter().find_map(|key| self.bytes(key)).map(<[u8]>::to_vec)
    }

    /// Returns true for the words that Go's `strconv.ParseBool` reads as true.
    fn is_set(&self, keys: &[&str]) -> bool {
        let is_true = |text: String| matches!(text.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True");
        keys.iter().any(|key| self.text(key).is_some_and(is_true))
    }

    fn access(&self) -> Result<Access, Error> {
        let credentials = match (
            self.secret("token"),
            self.secret("identityToken"),
            self.secret("password"),
        ) {
            (Some(token), ..) => Some(Credentials::Bearer(token)),
            (None, Some(token), _) => Some(Credentials::Identity(token)),
            (None, None, Some(password)) => Some(Credentials::Basic {
                username: self.text("username").unwrap_or_default(),
                password,
            }),
            (None, None, None) => None,
        };
        let identity = match (self.either(["cert", "certFile"]), self.either(["key", "keyFile"])) {
            (Some(certificate), Some(key)) => Some(Identity {
                certificate,
                key: Secret::new(key),
            }),
            (None, None) => None,
            _ => {
                return Err(Error::Credentials(format!(
                    "the Secret with credentials for {} must have both certFile and keyFile, or none",
                    self.host
                )));
            }
        };
        Ok(Access {
            credentials,
            pass_credentials: self.is_set(&["passCredentialsAll"]),
            ca: self.either(["ca", "caFile"]),
            identity,
            insecure_skip_verify: self.is_set(&["insecureSkipTlsVerify", "insecure"]),
            plain_http: self.is_set(&["plainHttp", "plain_http"]),
        })
    }
}

/// Credentials of Secrets. In each list, the first match is used.
#[derive(Debug, Clone, Default)]
pub struct SecretCredentials {
    pub git: Vec<CredentialEntry>,
    /// Credentials of OCI registries; the path is the repository's.
    pub oci: Vec<CredentialEntry>,
    pub helm: Vec<CredentialEntry>,
    /// Policy of addresses under which registries on loopback addresses that don't use TLS are accessed by plain HTTP; none are if absent.
    pub loopback: Option<AddressPolicy>,
}

impl SourceCredentials for SecretCredentials {
    fn git(&self, url: &str) -> Result<(Option<git::Auth>, Option<Vec<u8>>), Error> {
        let Some(server) = ServerAddress::parse(url) else {
            return Ok((None, None));
        };
        let user = url::Url::parse(url).ok().map(|url| url.username().to_owned());
        let user = user.filter(|user| !user.is_empty());
        let login_of = |entry: &CredentialEntry| {
            let username = entry.text("username").unwrap_or_default();
            let is_user = user
                .as_ref()
                .is_none_or(|user| username == "*" || *user == username);
            let password = entry.secret("password").filter(|_| is_user);
            let ca = entry.bytes("caFile").map(<[u8]>::to_vec);
            if password.is_none() && ca.is_none() {
                return None;
            }
            let username = match user.clone() {
                Some(user) if username == "*" => user,
                _ => username,
            };
            Some((password.map(|password| git::Auth { username, password }), ca))
        };
        // A token for any host would be sent to whatever host a project names, in plain text by http.
        let found = first_match(&self.git, &server, |entry| entry.is_for_host(&server), login_of)?;
        Ok(found.unwrap_or_default())
    }

    fn identity(&self) -> Option<CredentialsIdentity> {
        let mut hashes = Vec::new();
        for (list, entries) in [("git", &self.git), ("oci", &self.oci)] {
            for entry in entries {
                let path = entry.path.as_deref();
                let mut parts: Vec<&[u8]> = vec![list.as_bytes(), entry.host.as_bytes()];
                parts.push(if path.is_some() { b"path" } else { b"" });
                parts.push(path.unwrap_or_default().as_bytes());
                for (key, value) in &entry.values {
                    parts.extend([key.as_bytes(), value.expose().as_slice()]);
                }
                hashes.push(source_cache::hash(&parts));
            }
        }
        let hashes: Vec<&[u8]> = hashes.iter().map(<[u8; 32]>::as_slice).collect();
        Some(source_cache::hash(&hashes))
    }

    fn ssh(&self, remote: git::Remote) -> Result<git::Remote, Error> {
        let Some(server) = ServerAddress::parse(remote.url().as_str()) else {
            return Ok(remote);
        };
        let user = remote.ssh_user().unwrap_or("git").to_owned();
        let is_meant = |entry: &CredentialEntry| {
            let username = entry.text("username");
            let is_user = username.is_none_or(|username| username == "*" || username == user);
            // A key is proven to a server, but never given to it.
            let is_host = entry.is_for_host(&server) || matches!(entry.host.as_str(), "" | "*");
            is_host && is_user && entry.bytes("identity").is_some()
        };
        let found = first_match(&self.git, &server, is_meant, Some)?;
        match found {
            Some(entry) => ssh_login(|key| entry.bytes(key))
                .map(|login| remote.with_ssh(login))
                .map_err(|error| Error::Credentials(format!("credentials for {}: {error}", server.host))),
            None => Ok(remote),
        }
    }

    fn registry(&self, url: &str) -> Result<Access, Error> {
        let access = access_of(&self.oci, url)?;
        let has_tls = access.ca.is_some() || access.identity.is_some() || access.insecure_skip_verify;
        let (Some(policy), Some(server)) = (&self.loopback, ServerAddress::parse(url)) else {
            return Ok(access);
        };
        let plain_http = access.plain_http || !has_tls && uses_plain_http(&server.host, policy);
        Ok(Access { plain_http, ..access })
    }

    fn helm(&self, url: &str, _credentials_id: Option<&str>) -> Result<Access, Error> {
        access_of(&self.helm, url)
    }
}

/// Returns the key and the known hosts in the values of a Secret: `identity`, which `password` opens, and `known_hosts`.
pub(crate) fn ssh_login<'a>(entry: impl Fn(&str) -> Option<&'a [u8]>) -> Result<SshLogin, SshError> {
    let password = entry("password").and_then(|password| str::from_utf8(password).ok());
    let key = entry("identity").map(|identity| SshKey::parse(identity, password, "identity of the Secret"));
    Ok(SshLogin {
        keys: key.transpose()?.into_iter().collect(),
        known_hosts: KnownHosts::parse(entry("known_hosts").unwrap_or_default())?,
        ..SshLogin::default()
    })
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SshError {
    #[error("identity: {0}")]
    Key(#[from] InvalidKey),
    #[error("known_hosts: {0}")]
    KnownHosts(#[from] InvalidKnownHosts),
}

fn access_of(entries: &[CredentialEntry], url: &str) -> Result<Access, Error> {
    let Some(server) = ServerAddress::parse(url) else {
        return Ok(Access::default());
    };
    let found = first_match(entries, &server, |entry| entry.is_for_host(&server), Some)?;
    found.map_or_else(|| Ok(Access::default()), CredentialEntry::access)
}

/// Returns the result of `find` for the first entry that is meant, whose path matches, and that has one.
fn first_match<'a, T>(
    entries: &'a [CredentialEntry],
    server: &ServerAddress,
    is_meant: impl Fn(&CredentialEntry) -> bool,
    find: impl Fn(&'a CredentialEntry) -> Option<T>,
) -> Result<Option<T>, Error> {
    let mut search = PatternSearch::default();
    for entry in entries.iter().filter(|entry| is_meant(entry)) {
        let is_match = entry.is_for_path(&server.path, &mut search);
        let is_match = is_match
            .map_err(|error| Error::Credentials(format!("credentials for {}: {error}", server.host)))?;
        if let Some(found) = is_match.then(|| find(entry)).flatten() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_unlimited_length_are_refused_by_the_name_of_the_host() {
        let path = format!("{}x", "**".repeat(400_000));
        let values = [("password", "s3cret"), ("identity", "key"), ("known_hosts", "")];
        for host in ["h.io", "*"] {
            let entries = vec![entry(host, Some(&path), &values); 4];
            let credentials = SecretCredentials {
                git: entries.clone(),
                oci: entries.clone(),
                helm: entries,
                ..SecretCredentials::default()
            };
            let url = format!("https://h.io/{}", "a/".repeat(100));
            let ssh = git::Remote::new(&format!("ssh://git@h.io/{}", "a/".repeat(100))).unwrap();
            let mut errors = vec![credentials.ssh(ssh).map(drop)];
            if host != "*" {
                errors.push(credentials.git(&url).map(drop));
                errors.push(
                    credentials
                        .registry(&format!("oci://h.io/{}a", "a/".repeat(100)))
                        .map(drop),
                );
                errors.push(credentials.helm(&url, None).map(drop));
            }
            for error in errors {
                let error = error.unwrap_err().to_string();
                assert!(
                    error.starts_with("credentials for h.io: the patterns of paths are too long"),
                    "{error}"
                );
                assert!(!error.contains("s3cret"), "{error}");
            }
        }
    }

    fn entry(host: &str, path: Option<&str>, values: &[(&str, &str)]) -> CredentialEntry {
        let value = |(key, value): &(&str, &str)| ((*key).to_owned(), Secret::new(value.as_bytes().to_vec()));
        CredentialEntry {
            host: host.to_owned(),
            path: path.map(str::to_owned),
            values: values.iter().map(value).collect(),
        }
    }

    #[test]
    fn ssh_keys_match_by_host_path_and_user() {
        let key = |user| [("username", user), ("identity", "canary"), ("known_hosts", "")];
        let credentials = SecretCredentials {
            git: vec![
                entry("h.io", Some("org/*"), &key("git")),
                entry("any.io", None, &[("username", "*"), ("password", "p")]),
                entry("*", Some("open/*"), &key("*")),
            ],
            ..SecretCredentials::default()
        };
        // A key in use is read, and this one cannot be.
        for (url, used) in [
            ("ssh://git@h.io/org/shop", true),
            ("ssh://h.io/org/shop", true),
            ("git@h.io:org/shop", true),
            ("ssh://other@h.io/org/shop", false),
            ("ssh://git@h.io/org/deeper/shop", false),
            ("ssh://git@h.io:2222/org/shop", false),
            ("ssh://git@any.io/shop", false),
            ("ssh://me@other.io/open/shop", true),
        ] {
            let found = credentials.ssh(git::Remote::new(url).unwrap());
            assert_eq!(found.is_err(), used, "{url}");
            let error = found.map(drop).map_err(|error| error.to_string());
            assert!(!format!("{error:?}").contains("canary"), "{error:?}");
        }
    }

    #[test]
    fn git_credentials_match_by_host_path_and_user() {
        let login = |user, password| [("username", user), ("password", password)];
        let credentials = SecretCredentials {
            git: vec![
                entry("*", None, &login("any", "leaked")),
                entry("", None, &login("any", "leaked")),
                entry("h.io", Some("org/*"), &[("username", "ssh"), ("identity", "key")]),
                entry("h.io", Some("org/*"), &login("one", "1")),
                entry("h.io:8443", None, &login("*", "2")),
                entry("h.io", Some("*"), &login("three", "3")),
            ],
            ..SecretCredentials::default()
        };
        for (url, expected) in [
            ("https://h.io/org/shop", Some(("one", "1"))),
            ("https://H.IO:443/org/shop", Some(("one", "1"))),
            ("https://one@h.io/org/shop", Some(("one", "1"))),
            ("https://other@h.io/org/shop", None),
            ("https://h.io/org/deeper/shop", None),
            ("https://h.io/shop", Some(("three", "3"))),
            ("https://me@h.io:8443/org/deeper/shop", Some(("me", "2"))),
            ("https://other.io/org/shop", None),
            ("http://other.io/shop", None),
            ("not a url", None),
        ] {
            let (auth, ca) = credentials.git(url).unwrap();
            let found = auth
                .as_ref()
                .map(|auth| (auth.username.as_str(), auth.password.expose().as_str()));
            assert_eq!((found, ca), (expected, None), "{url}");
        }
        assert!(!format!("{credentials:?}").contains("leaked"));
    }

    #[test]
    fn registries_match_by_repository_and_have_tls_settings() {
        let credentials = SecretCredentials {
            oci: vec![
                entry(
                    "r.io:5000",
                    Some("org/*"),
                    &[("username", "a"), ("password", "b"), ("plain_http", "true")],
                ),
                entry(
                    "r.io:5000",
                    None,
                    &[("token", "t"), ("insecureSkipTlsVerify", "maybe"), ("ca", "pem")],
                ),
                entry("r.io", None, &[("cert", "x")]),
            ],
            ..SecretCredentials::default()
        };
        let access = credentials.registry("oci://r.io:5000/org/shop").unwrap();
        assert!(access.plain_http && matches!(access.credentials, Some(Credentials::Basic { .. })));
        let access = credentials.registry("oci://r.io:5000/org/deeper/shop").unwrap();
        assert!(!access.insecure_skip_verify && access.ca.is_some());
        assert!(matches!(access.credentials, Some(Credentials::Bearer(_))));
        assert!(
            credentials
                .registry("oci://r.io/shop")
                .unwrap_err()
                .to_string()
                .contains("keyFile")
        );
        assert!(
            credentials
                .registry("oci://x.io/shop")
                .unwrap()
                .credentials
                .is_none()
        );
    }
}
