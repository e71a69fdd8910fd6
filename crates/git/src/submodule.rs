//! Submodules: the entries of `.gitmodules`, and their addresses with the credentials that may go there.

use std::collections::HashMap;

use gix::bstr::{BStr, ByteSlice};
use tree::TreePath;

use crate::{Error, Node, NodeKind, Remote, Resolved, Snapshot, ssh::address};

/// File with the repositories of submodules.
const FILE: &str = ".gitmodules";
const FILE_BYTES: usize = 1 << 20;
const MOST: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submodule {
    pub path: TreePath,
    /// URL in `.gitmodules`; may be relative.
    pub url: String,
    pub commit: String,
}

impl Submodule {
    #[must_use]
    pub fn resolved(&self) -> Resolved {
        Resolved {
            name: None,
            commit: self.commit.clone(),
            want: self.commit.clone(),
        }
    }
}

impl Snapshot {
    /// Returns the submodules among the nodes of the commit. As in the original, those that `.gitmodules` doesn't name are left
    /// out.
    ///
    /// # Errors
    /// Fails when `.gitmodules` is damaged or too large, or names too many.
    pub fn submodules(&self, nodes: &[Node]) -> Result<Vec<Submodule>, Error> {
        let is_file = |node: &&Node| matches!(node.kind, NodeKind::File { .. }) && node.path.as_str() == FILE;
        let Some(file) = nodes.iter().find(is_file) else {
            return Ok(Vec::new());
        };
        let mut text = Vec::new();
        self.read(file, &mut text)?;
        let mut named = HashMap::new();
        for (path, url) in parse(&text)? {
            named.entry(path).or_insert(url);
        }
        let submodules = nodes.iter().filter(|node| node.kind == NodeKind::Submodule);
        let found = submodules.filter_map(|node| {
            let url = named.get(&node.path)?;
            Some(Submodule {
                path: node.path.clone(),
                url: url.clone(),
                commit: node.id.to_string(),
            })
        });
        Ok(found.collect())
    }
}

/// Returns paths and URLs of a `.gitmodules` file, skipping entries without one of them.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<(TreePath, String)>, Error> {
    let invalid = |why: String| Error::Submodules(why);
    if text.len() > FILE_BYTES {
        return Err(invalid(format!("{FILE} has more than {FILE_BYTES} bytes")));
    }
    let text = text
        .to_str()
        .map_err(|_| invalid(format!("{FILE} is not UTF-8")))?;
    let config = gix::config::File::try_from(text)
        .map_err(|error| invalid(format!("{FILE} can't be parsed: {error}")))?;
    let mut found = Vec::new();
    for section in config.sections_by_name("submodule").into_iter().flatten() {
        let string = |name: &str| section.value(name).and_then(|value| utf8(value.as_ref()));
        let (Some(path), Some(url)) = (string("path"), string("url")) else {
            continue;
        };
        let path = TreePath::parse(&path).map_err(|error| invalid(format!("{FILE}: {error}")))?;
        if path.is_root() || url.is_empty() {
            continue;
        }
        found.push((path, url));
        if found.len() > MOST {
            return Err(invalid(format!("{FILE} names more than {MOST} submodules")));
        }
    }
    Ok(found)
}

fn utf8(value: &BStr) -> Option<String> {
    value.to_str().ok().map(str::to_owned)
}

impl Remote {
    /// Returns the repository of a submodule. Its URL may be relative (`./` or `../`) to this one. It has this repository's
    /// proxy and CA certificates; credentials and client certificate only if it is on the same server.
    ///
    /// # Errors
    /// Fails when the URL is invalid, or climbs above the server.
    pub fn submodule(&self, url: &str) -> Result<Self, Error> {
        let absolute = match url.starts_with("./") || url.starts_with("../") {
            true => self.relative(url)?,
            false => url.to_owned(),
        };
        let mut child = Self::new(&absolute)?;
        match (self.ssh(), child.ssh()) {
            (Some((own, login)), Some((other, _))) => {
                if own.host == other.host && own.port() == other.port() {
                    let login = login.clone();
                    child = child.with_ssh(login);
                }
            }
            _ => child.inherit(self),
        }
        Ok(child)
    }

    fn relative(&self, url: &str) -> Result<String, Error> {
        let base = self
            .ssh()
            .map_or_else(|| self.url().as_str().to_owned(), |(own, _)| full_ssh_url(own));
        let (server, path) = split(&base);
        let mut parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        for part in url.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    let climbed = parts.pop().is_some_and(|part| !part.is_empty());
                    if !climbed {
                        return Err(Error::InvalidUrl {
                            url: url.to_owned(),
                            why: format!("it climbs above '{}'", self.safe_url()),
                        });
                    }
                }
                name => parts.push(name),
            }
        }
        Ok(format!("{server}{}", parts.join("/")))
    }
}

fn full_ssh_url(own: &address::SshAddress) -> String {
    let user = own
        .user
        .as_deref()
        .map(|user| format!("{user}@"))
        .unwrap_or_default();
    let host = &own.host;
    let port = own.port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("ssh://{user}{host}{port}/{}", own.path.trim_start_matches('/'))
}

fn split(url: &str) -> (&str, &str) {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let path = url.get(begin..).and_then(|rest| rest.find('/'));
    url.split_at(path.map_or(url.len(), |at| begin + at))
}

#[cfg(test)]
mod tests {
    use api::Secret;

    use super::*;
    use crate::{Auth, SshLogin};

    fn parent(url: &str) -> Remote {
        Remote::new(url).unwrap().with_auth(Auth {
            username: "me".to_owned(),
            password: Secret::new("canary".to_owned()),
        })
    }

    #[test]
    fn urls_of_submodules_are_relative_to_their_repository() {
        let of = |base: &str, url: &str| parent(base).submodule(url).map(|child| child.safe_url());
        let cases = [
            ("https://h/org/app.git", "../lib.git", "https://h/org/lib.git"),
            ("https://h/org/app.git/", "../../other/lib", "https://h/other/lib"),
            ("https://h/org/app", "./sub", "https://h/org/app/sub"),
            ("https://h/org/app", "https://g/x", "https://g/x"),
            ("ssh://git@h:22/org/app", "../lib", "ssh://h:22/org/lib"),
        ];
        for (base, url, expected) in cases {
            let found = of(base, url).unwrap();
            assert_eq!(found.replace("git@", ""), expected, "{base} {url}");
        }
        for (base, url) in [
            ("https://h/app", "../../x"),
            ("https://h/app", "/etc/passwd"),
            ("https://h/app", "file:///etc"),
            ("https://h/app", "ext::sh"),
            ("https://h/app", "https://169.254.169.254/x"),
        ] {
            assert!(
                matches!(of(base, url), Err(Error::InvalidUrl { .. })),
                "{base} {url}"
            );
        }
    }

    #[test]
    fn submodules_have_the_credentials_of_their_own_server_only() {
        let sent = |base: &str, url: &str| {
            let base = parent(base).with_token(Secret::new("token".to_owned()));
            let child = base.submodule(url).unwrap();
            (child.auth().is_some(), child.token().is_some())
        };
        assert_eq!(sent("https://h/a", "../b"), (true, true));
        assert_eq!(sent("https://h/a", "https://h/b"), (true, true));
        for url in ["https://g/b", "https://h:444/b", "http://h/b"] {
            assert_eq!(sent("https://h/a", url), (false, false), "{url}");
        }
        let own = parent("https://h/a").submodule("https://u:p@g/b").unwrap();
        assert_eq!(own.auth().unwrap().username, "u");
    }

    #[test]
    fn the_port_of_ssh_may_be_written_or_not() {
        let login = SshLogin {
            user: Some("me".to_owned()),
            ..SshLogin::default()
        };
        let has_login = |base: &str, url: &str| {
            let parent = Remote::new(base).unwrap().with_ssh(login.clone());
            let child = parent.submodule(url).unwrap();
            child.ssh().unwrap().1.user.is_some()
        };
        for (base, url) in [
            ("ssh://git@h:22/app", "git@h:lib"),
            ("ssh://git@h/app", "ssh://git@h:22/lib"),
            ("ssh://git@h:2222/app", "ssh://git@h:2222/lib"),
        ] {
            assert!(has_login(base, url), "{base} {url}");
        }
        for (base, url) in [
            ("ssh://git@h:2222/app", "git@h:lib"),
            ("ssh://git@h/app", "ssh://git@h:2222/lib"),
            ("ssh://git@h/app", "git@g:lib"),
        ] {
            assert!(!has_login(base, url), "{base} {url}");
        }
    }

    #[test]
    fn gitmodules_name_paths_and_urls() {
        let text = "[submodule \"a\"]\n\tpath = libs/a\n\turl = ../a.git\n[submodule \"b\"]\n\tpath = b\n[core]\n\teditor = x\n";
        let found = parse(text.as_bytes()).unwrap();
        assert_eq!(
            found,
            [(TreePath::parse("libs/a").unwrap(), "../a.git".to_owned())]
        );
        for bad in [
            "[submodule \"a\"]\npath = ../x\nurl = y\n",
            "[submodule \"a\npath",
            "\u{0}[",
        ] {
            assert!(
                matches!(parse(bad.as_bytes()), Err(Error::Submodules(_))),
                "{bad:?}"
            );
        }
    }
}
