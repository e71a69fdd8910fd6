//! Addresses of repositories over SSH.

use url::{Host, Url};

pub(crate) const FETCH: &str = "git-upload-pack";
pub(crate) const PUSH: &str = "git-receive-pack";

const DEFAULT_PORT: u16 = 22;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SshAddress {
    pub(crate) user: Option<String>,
    pub(crate) host: Host<String>,
    pub(crate) port: Option<u16>,
    /// Absolute, or relative to the user's home directory.
    pub(crate) path: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidAddress {
    #[error("it has no host")]
    NoHost,
    #[error("the host is invalid")]
    Host,
    #[error("neither the user nor the host may begin with '-'")]
    Dash,
    #[error("the user has characters that are not allowed")]
    User,
    #[error("remove the password: SSH uses keys")]
    Password,
    #[error("remove what follows '?' or '#'")]
    Query,
    #[error("it has no path")]
    NoPath,
    #[error("the path may neither begin with '-' nor have control characters")]
    Path,
    #[error("{0}")]
    Url(#[from] url::ParseError),
}

/// Returns true for `ssh://` URLs and scp-like addresses `[user@]host:path`.
pub(crate) fn is_ssh(text: &str) -> bool {
    match text.split_once("://") {
        Some((scheme, _)) => ["ssh", "git+ssh", "ssh+git"]
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known)),
        None => split_scp(text).is_some(),
    }
}

pub(crate) fn parse(text: &str) -> Result<SshAddress, InvalidAddress> {
    let address = match split_scp(text).filter(|_| !text.contains("://")) {
        Some((server, path)) => of_scp(server, path)?,
        None => of_url(text)?,
    };
    check(address)
}

/// Splits `[user@]host:path`. Other colons don't count: those behind a slash, within brackets, and `::`, which names a remote
/// helper of Git.
fn split_scp(text: &str) -> Option<(&str, &str)> {
    let before_slash = text.split('/').next().unwrap_or_default();
    let host_at = before_slash.rfind('@').map_or(0, |at| at + 1);
    let host = before_slash.get(host_at..)?;
    let colon = match host.starts_with('[') {
        true => host.find("]:")? + 1,
        false => host.find(':')?,
    };
    let (server, path) = text.split_at_checked(host_at + colon)?;
    let path = path.strip_prefix(':')?;
    (!path.starts_with(':') && server.len() > host_at).then_some((server, path))
}

fn of_scp(server: &str, path: &str) -> Result<SshAddress, InvalidAddress> {
    let (user, host) = match server.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, server),
    };
    if user.is_some_and(|user| user.contains(':')) {
        return Err(InvalidAddress::Password);
    }
    // As in `[host]:path` and `[host:2222]:path`.
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let (host, port) = match inner.and_then(|inner| inner.rsplit_once(':')) {
        Some((host, port)) if !host.contains(':') => {
            (host, Some(port.parse().map_err(|_| InvalidAddress::Host)?))
        }
        _ => (host, None),
    };
    Ok(SshAddress {
        user: user.map(str::to_owned),
        host: parse_host(host)?,
        port,
        path: path.to_owned(),
    })
}

fn of_url(text: &str) -> Result<SshAddress, InvalidAddress> {
    let url = Url::parse(text)?;
    if url.password().is_some() {
        return Err(InvalidAddress::Password);
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(InvalidAddress::Query);
    }
    let user = percent_decode(url.username());
    let path = percent_decode(url.path());
    // As in Git: `/~user/x` is below the home directory of a user.
    let path = match path.strip_prefix("/~") {
        Some(rest) => format!("~{rest}"),
        None => path,
    };
    Ok(SshAddress {
        user: Some(user).filter(|user| !user.is_empty()),
        host: parse_host(url.host_str().ok_or(InvalidAddress::NoHost)?)?,
        port: url.port(),
        path,
    })
}

/// Parses a host as in http URLs, which normalizes IP addresses.
pub(crate) fn parse_host(host: &str) -> Result<Host<String>, InvalidAddress> {
    if host.is_empty() {
        return Err(InvalidAddress::NoHost);
    }
    if host.starts_with('-') {
        return Err(InvalidAddress::Dash);
    }
    Host::parse(host).map_err(|_| InvalidAddress::Host)
}

fn check(address: SshAddress) -> Result<SshAddress, InvalidAddress> {
    let user = address.user.as_deref().unwrap_or_default();
    if user.starts_with('-') {
        return Err(InvalidAddress::Dash);
    }
    if user.chars().any(char::is_control) {
        return Err(InvalidAddress::User);
    }
    if address.path.trim_matches('/').is_empty() {
        return Err(InvalidAddress::NoPath);
    }
    if address.path.starts_with('-') || address.path.chars().any(char::is_control) {
        return Err(InvalidAddress::Path);
    }
    Ok(address)
}

impl SshAddress {
    pub(crate) fn port(&self) -> u16 {
        self.port.unwrap_or(DEFAULT_PORT)
    }

    /// Returns the command that runs a program of Git, [`FETCH`] or [`PUSH`], with the repository.
    pub(crate) fn command(&self, program: &str) -> String {
        let quoted = self.path.replace('\'', r"'\''").replace('!', r"'\!'");
        format!("{program} '{quoted}'")
    }

    pub(crate) fn safe_url(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let slash = if self.path.starts_with('/') { "" } else { "/" };
        format!("ssh://{}{port}{slash}{}", self.host, self.path)
    }
}

pub(crate) fn percent_decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = (first == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String, u16, String) {
        assert!(is_ssh(text), "{text}");
        let address = parse(text).unwrap();
        (
            address.user.clone().unwrap_or_default(),
            address.host.to_string(),
            address.port(),
            address.path,
        )
    }

    #[test]
    fn urls_and_scp_forms_have_the_same_parts_as_in_git() {
        for (text, user, host, port, path) in [
            ("ssh://git@h/o/r.git", "git", "h", 22, "/o/r.git"),
            ("ssh://h:2222/r", "", "h", 2222, "/r"),
            ("SSH://H.Example/r", "", "h.example", 22, "/r"),
            ("git+ssh://u%40d@h/a%20b", "u@d", "h", 22, "/a b"),
            ("ssh://git@h/~me/r", "git", "h", 22, "~me/r"),
            ("ssh://git@[::1]:22/r", "git", "[::1]", 22, "/r"),
            ("ssh://git@0x7f.1/r", "git", "127.0.0.1", 22, "/r"),
            ("git@h:o/r.git", "git", "h", 22, "o/r.git"),
            ("h:/srv/r", "", "h", 22, "/srv/r"),
            ("git@[::1]:r", "git", "[::1]", 22, "r"),
            ("git@[h:2222]:r", "git", "h", 2222, "r"),
            ("git@h:a:b/c@d", "git", "h", 22, "a:b/c@d"),
        ] {
            let expected = (user.to_owned(), host.to_owned(), port, path.to_owned());
            assert_eq!(parts(text), expected, "{text}");
        }
    }

    #[test]
    fn other_addresses_are_no_ssh() {
        for text in [
            "https://h/r",
            "file:///r",
            "/srv/r",
            "./a:b",
            "ext::sh -c id",
            ":r",
            "git@:r",
            "r",
            "",
        ] {
            assert!(!is_ssh(text), "{text}");
        }
    }

    #[test]
    fn dangerous_addresses_are_refused() {
        for text in [
            "ssh://-oProxyCommand=id/r",
            "ssh://-l@h/r",
            "-oProxyCommand=id:r",
            "-x@h:r",
            "ssh://u:canary@h/r",
            "u:canary@h:r",
            "ssh://h/r?canary",
            "ssh://h/",
            "ssh://h",
            "ssh:///r",
            "h:",
            "h:-x",
            "ssh://h/a%00b",
            "ssh://h/a%0ab",
            "git@h:a\nb",
            "ssh://u%0a@h/r",
            "ssh://a b/r",
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn command_quotes_the_path() {
        let address = parse("git@h:a'; id; '!b").unwrap();
        assert_eq!(address.command(FETCH), r"git-upload-pack 'a'\''; id; '\'''\!'b'");
    }
}
