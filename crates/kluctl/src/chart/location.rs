//! Paths of pre-pulled charts.

use tree::TreePath;
use url::Url;

use super::ChartSource;
use crate::Error;

pub(super) fn is_oci(url: &str) -> bool {
    url.starts_with("oci://")
}

impl ChartSource {
    /// Returns the name of the chart; `None` for a local one, whose name is in the chart alone.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let path = match self {
            Self::Local { .. } => return None,
            Self::Repo { chart, .. } => return Some(chart),
            Self::Oci { url, .. } => url,
            Self::Git { sub_dir, .. } if !sub_dir.is_empty() => sub_dir,
            Self::Git { url, .. } => {
                let path = url.trim_end_matches('/');
                path.strip_suffix(".git").unwrap_or(path)
            }
        };
        path.trim_end_matches('/').rsplit(['/', ':']).next()
    }

    /// Returns the version of the chart, or the reference in its Git repository; `None` for a local one.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        match self {
            Self::Local { .. } => None,
            Self::Repo { version, .. } | Self::Oci { version, .. } => Some(version.clone()),
            Self::Git { reference, .. } => Some(reference.to_string()),
        }
    }

    /// Returns the directory below [`super::PULLED_CHARTS`] that holds all versions of the chart; `None` for a local one.
    /// Fails if the URL or the name of the chart can't be a path.
    pub fn dir(&self) -> Result<Option<TreePath>, Error> {
        let (address, parts) = match self {
            Self::Local { .. } => return Ok(None),
            Self::Repo { url, chart, .. } => (Address::parse(url, &["http", "https"])?, chart.clone()),
            Self::Oci { url, .. } => (Address::parse(url, &["oci"])?, String::new()),
            Self::Git { url, sub_dir, .. } => (Address::git(url)?, sub_dir.to_lowercase()),
        };
        let port = address.port.map(|port| format!("_{port}")).unwrap_or_default();
        let prefix = if matches!(self, Self::Git { .. }) {
            "git_"
        } else {
            ""
        };
        let host = format!("{prefix}{}{port}_{}", address.scheme, address.host);
        below(
            below(below(TreePath::root(), &host)?, &address.path.to_lowercase())?,
            &parts,
        )
        .map(Some)
    }

    /// Returns address, name (empty in a registry) and version of a chart in a repository or a registry.
    #[must_use]
    pub fn remote(&self) -> Option<(&str, &str, &str)> {
        match self {
            Self::Repo {
                url, chart, version, ..
            } => Some((url, chart, version)),
            Self::Oci { url, version, .. } => Some((url, "", version)),
            Self::Local { .. } | Self::Git { .. } => None,
        }
    }

    #[must_use]
    pub fn credentials_id(&self) -> Option<&str> {
        match self {
            Self::Repo { credentials_id, .. } => credentials_id.as_deref(),
            Self::Oci { .. } | Self::Local { .. } | Self::Git { .. } => None,
        }
    }

    /// Returns the reason why this chart can't be pulled: registries have no credentials with an ID. A pre-pulled chart
    /// needs none.
    #[must_use]
    pub fn login_problem(&self) -> Option<&'static str> {
        match self {
            Self::Oci {
                credentials_id: Some(_),
                ..
            } => Some(
                "OCI charts can currently only be authenticated via registry login and environment variables but not via cli \
                 arguments: remove credentialsId",
            ),
            _ => None,
        }
    }

    /// Returns the directory below [`super::PULLED_CHARTS`] that holds this version of the chart; `None` for a local one.
    /// Fails if the URL, the name of the chart or the version can't be a path.
    pub fn versioned_dir(&self) -> Result<Option<TreePath>, Error> {
        match (self.dir()?, self.version()) {
            (Some(dir), Some(version)) => below(dir, &version).map(Some),
            _ => Ok(None),
        }
    }
}

/// Joins a path that must lead down.
fn below(dir: TreePath, path: &str) -> Result<TreePath, Error> {
    let mut found = dir;
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." || part.contains(['\\', '\0']) {
            return Err(Error::ChartAddress {
                address: path.to_owned(),
                problem: "it can't be the path of a pulled chart",
            });
        }
        found = found.child(part);
    }
    Ok(found)
}

/// Returns the key of the Git repository at a URL, as `git://host/path`; results are stored under it. `None` if it isn't the
/// URL of a repository on a server.
#[must_use]
pub fn repo_key(address: &str) -> Option<String> {
    let address = Address::git(address).ok()?;
    let port = address.port.map(|port| format!(":{port}")).unwrap_or_default();
    let path = address.path.trim_matches('/').to_lowercase();
    Some(format!("git://{}{port}/{path}", address.host))
}

/// The parts of an address that tell repositories apart.
struct Address {
    scheme: String,
    host: String,
    port: Option<u16>,
    path: String,
}

impl Address {
    fn parse(text: &str, schemes: &[&str]) -> Result<Self, Error> {
        let failed = |problem| Error::ChartAddress {
            address: kustomize::remote::redact_address(text),
            problem,
        };
        let url = Url::parse(text).map_err(|_| failed("it is not a valid URL"))?;
        if !schemes.contains(&url.scheme()) {
            return Err(failed("its scheme is not supported"));
        }
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| failed("it names no host"))?;
        Ok(Self {
            scheme: url.scheme().to_owned(),
            host: host.to_lowercase(),
            port: url
                .port()
                .filter(|port| default_port(url.scheme()) != Some(*port)),
            path: url.path().to_owned(),
        })
    }

    /// Parses the address of a Git repository, also as `git@host:path`.
    fn git(text: &str) -> Result<Self, Error> {
        let schemes = ["http", "https", "ssh", "git", "git+ssh"];
        let mut address = match text.split_once(':') {
            Some((host, path)) if !text.contains("://") && !host.contains('/') => {
                Self::parse(&format!("ssh://{host}/{path}"), &schemes)?
            }
            _ => Self::parse(text, &schemes)?,
        };
        let path = address.path.trim_end_matches('/');
        address.path = path.strip_suffix(".git").unwrap_or(path).to_owned();
        Ok(address)
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        "ssh" | "git" | "git+ssh" => Some(22),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::repo_key;

    #[test]
    fn repo_key_is_host_and_path() {
        for (address, expected) in [
            (
                "https://Example.com/Team/Shop.git",
                Some("git://example.com/team/shop"),
            ),
            (
                "https://u:p@example.com:443/shop/",
                Some("git://example.com/shop"),
            ),
            (
                "http://example.com:8080/shop",
                Some("git://example.com:8080/shop"),
            ),
            (
                "git@example.com:team/shop.git",
                Some("git://example.com/team/shop"),
            ),
            ("ssh://git@example.com:22/shop", Some("git://example.com/shop")),
            ("/srv/shop", None),
            ("file:///srv/shop", None),
            ("", None),
        ] {
            assert_eq!(repo_key(address).as_deref(), expected, "{address}");
        }
    }
}
