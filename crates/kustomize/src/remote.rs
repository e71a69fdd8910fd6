//! Addresses of repositories in entries of `resources` and `components`. Nothing is fetched here.

#[cfg(test)]
mod tests;

/// Default timeout of fetching a repository.
const TIMEOUT_SECONDS: u64 = 27;

/// A repository, and a directory in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repository {
    /// The address that is cloned.
    pub url: String,
    /// Empty for the whole repository.
    pub path: String,
    /// Branch, tag or commit; `None` for the default branch.
    pub reference: Option<String>,
    /// Default true.
    pub submodules: bool,
    /// Default 27.
    pub timeout_seconds: u64,
}

/// The reason why an entry is not an address of a repository. Most entries are paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRepository {
    #[error("uri looks like abs path")]
    Absolute,
    /// The scheme is unknown, and there is neither a user nor GitHub's host.
    #[error("failed to parse scheme")]
    Scheme,
    #[error("failed to parse host segment")]
    Host,
    /// Too short for a repository.
    #[error("failed to parse repo path segment")]
    Path,
    /// The directory is outside of the repository.
    #[error("url path exits repo")]
    Exits,
}

impl Repository {
    /// Returns the address as it is recorded on objects: without users, which may be tokens.
    pub(crate) fn clone_spec(&self) -> String {
        // With ssh, the user is a part of the address.
        if self.url.starts_with("http") {
            redact_address(&self.url)
        } else {
            self.url.clone()
        }
    }
}

pub fn parse(entry: &str) -> Result<Repository, NoRepository> {
    if entry.starts_with('/') {
        return Err(NoRepository::Absolute);
    }
    let (address, query) = entry.split_once('?').unwrap_or((entry, ""));
    let (host, path) = host(address)?;
    let (repository, directory) = split_path(path, host.starts_with(FILE))?;
    if exits(directory) {
        return Err(NoRepository::Exits);
    }
    let query = Query::parse(query);
    Ok(Repository {
        url: host + repository,
        path: directory.strip_prefix('/').unwrap_or(directory).to_owned(),
        reference: query.first("ref").or(query.first("version")).map(str::to_owned),
        submodules: query.first("submodules").and_then(parse_bool).unwrap_or(true),
        timeout_seconds: query
            .first("timeout")
            .and_then(seconds)
            .unwrap_or(TIMEOUT_SECONDS),
    })
}

/// Removes the secret parts of an entry: user and query.
#[must_use]
pub fn redact_address(entry: &str) -> String {
    let entry = entry.split_once('?').map_or(entry, |(address, _)| address);
    let (scheme, rest) = match entry.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), entry),
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match host.rsplit_once('@') {
        // The common user is not a secret.
        Some(("git" | "git::git", _)) | None => redact_message(&format!("{scheme}{host}{path}")),
        Some((_, host)) => redact_message(&format!("{scheme}{host}{path}")),
    }
}

/// Removes users and passwords from the addresses in a message.
pub(crate) fn redact_message(message: &str) -> String {
    let ends_before = |c: char| c.is_whitespace() || matches!(c, '/' | '\'' | '"' | '`' | '(');
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('@') {
        let user = before.rsplit(ends_before).next().unwrap_or_default();
        let without_user = before.strip_suffix(user).unwrap_or(before);
        // An address that became a path has one slash instead of two.
        let is_address = without_user.strip_suffix("//").or(without_user.strip_suffix('/'));
        out.push_str(without_user);
        if user == "git" || !is_address.is_some_and(|scheme| scheme.ends_with(':')) {
            out.push_str(user);
            out.push('@');
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

const FILE: &str = "file://";
const HTTPS: &str = "https://";
const SSH: &str = "ssh://";

/// Splits scheme, user and host of an address, in Git's form, from the rest. All forms of GitHub become equal.
fn host(address: &str) -> Result<(String, &str), NoRepository> {
    let address = without_prefix(address, "git::").unwrap_or(address);
    let schemes = [SSH, HTTPS, "http://", FILE];
    let (scheme, rest) = schemes
        .iter()
        .find_map(|scheme| Some((*scheme, without_prefix(address, scheme)?)))
        .unwrap_or(("", address));
    let (user, rest) = user(rest);
    let is_github = ["github.com/", "github.com:"]
        .iter()
        .any(|host| without_prefix(rest, host).is_some());
    let is_scp = scheme.is_empty() && (!user.is_empty() || is_github);
    if scheme.is_empty() && !is_scp {
        return Err(NoRepository::Scheme);
    }
    if scheme == FILE {
        // The part that looks like a user belongs to the path.
        let path = without_prefix(address, FILE).unwrap_or_default();
        return Ok((FILE.to_owned(), path));
    }
    let end = separator(rest, is_scp).map_or(rest.len(), |at| at + 1);
    let (host, path) = rest.split_at(end);
    match (is_github, scheme == SSH || !user.is_empty()) {
        (true, true) => Ok((format!("{user}github.com:"), path)),
        (true, false) => Ok((format!("{HTTPS}github.com/"), path)),
        (false, _) if host.is_empty() => Err(NoRepository::Host),
        (false, _) => Ok((format!("{scheme}{user}{host}"), path)),
    }
}

/// Splits a user with its `@` from the rest. Users with passwords stay a part of the host.
fn user(rest: &str) -> (&str, &str) {
    let end = rest.find('@').unwrap_or_default();
    let (name, _) = rest.split_at(end);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if is_name {
        rest.split_at(end + 1)
    } else {
        ("", rest)
    }
}

/// Returns the end of the host: a slash, or in the form of scp a colon before it.
fn separator(rest: &str, is_scp: bool) -> Option<usize> {
    let slash = rest.find('/');
    let colon = rest.find(':').filter(|_| is_scp);
    match (slash, colon) {
        (None, colon) => colon,
        (Some(slash), Some(colon)) if colon > 0 && colon < slash => Some(colon),
        (slash, _) => slash,
    }
}

/// Splits the paths of the repository and of the directory in it: at `_git/`, at `//` or at `.git`, or else by the number of
/// segments.
fn split_path(path: &str, is_file: bool) -> Result<(&str, &str), NoRepository> {
    let end_of = |marker: &str| path.find(marker).map(|at| at + marker.len());
    let next_slash = |from: usize| {
        let rest = path.get(from..).unwrap_or_default();
        rest.find('/').map_or(path.len(), |at| from + at)
    };
    let (repository, directory) = if let Some(end) = end_of("_git/") {
        let (repository, directory) = path.split_at(next_slash(end));
        (repository, directory.strip_prefix('/').unwrap_or(directory))
    } else if let Some((repository, directory)) = path.split_once("//") {
        (repository, directory)
    } else if let Some(end) = end_of(".git") {
        path.split_at(end)
    } else if is_file {
        (path, "")
    } else {
        let first = path.find('/').ok_or(NoRepository::Path)?;
        let (repository, directory) = path.split_at(next_slash(first + 1));
        (repository, directory.strip_prefix('/').unwrap_or(directory))
    };
    if repository.is_empty() {
        return Err(NoRepository::Path);
    }
    Ok((repository, directory))
}

/// Returns true if a directory is outside of its repository.
fn exits(directory: &str) -> bool {
    let directory = directory.strip_prefix('/').unwrap_or(directory);
    let mut depth = 0_usize;
    for segment in directory.split('/') {
        match segment {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(above) => depth = above,
                // There is nothing above a root.
                None => return !directory.starts_with('/'),
            },
            _ => depth += 1,
        }
    }
    false
}

fn without_prefix<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// The parameters of a query; empty if one of them is malformed.
struct Query(Vec<(String, String)>);

impl Query {
    fn parse(query: &str) -> Self {
        let pair = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape(key)?, unescape(value)?))
        };
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(pair);
        Self(pairs.collect::<Option<_>>().unwrap_or_default())
    }

    /// Returns the first value of a parameter, if it isn't empty.
    fn first(&self, key: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(name, _)| name == key)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }
}

fn unescape(text: &str) -> Option<String> {
    if text.contains(';') {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Parses a boolean as Go does.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Parses seconds, as a number or a duration of Go's (`1m30s`), rounded up.
fn seconds(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Ok(seconds) = text.parse() {
        return Some(seconds).filter(|seconds| *seconds > 0);
    }
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = rest.split_at(end);
        let end = unit
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(unit.len());
        let (unit, after) = unit.split_at(end);
        total += number.parse::<f64>().ok()? * unit_seconds(unit)?;
        rest = after;
    }
    // Beyond the range of Go's durations.
    (total > 0.0 && total < 9.2e9).then(|| whole(total))
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the callers' number is positive and small"
)]
fn whole(seconds: f64) -> u64 {
    seconds.ceil() as u64
}
