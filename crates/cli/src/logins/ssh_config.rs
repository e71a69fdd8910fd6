//! The settings of `~/.ssh/config` that Git over SSH uses. Pure.

/// Settings for one host. As in OpenSSH, the first value of a setting is used, but all identities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SshConfig {
    /// `HostName`: name or address to connect to.
    pub(super) host_name: Option<String>,
    /// `Port`: the port to connect to.
    pub(super) port: Option<u16>,
    /// `User`: user on the server, unless the URL names one.
    pub(super) user: Option<String>,
    /// `IdentityFile`: files of private keys, as written.
    pub(super) identities: Vec<String>,
    /// `IdentityAgent`: socket of the SSH agent, as written.
    pub(super) agent: Option<String>,
}

impl SshConfig {
    /// Reads the settings for a host. Other settings, `Match` blocks and `Include` are left out.
    pub(super) fn of(content: &[u8], host: &str) -> Self {
        let mut found = Self::default();
        let mut applies = true;
        for line in String::from_utf8_lossy(content).lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, value) = line
                .split_once(|c: char| c.is_whitespace() || c == '=')
                .unwrap_or((line, ""));
            let value = value.trim_start_matches(|c: char| c.is_whitespace() || c == '=');
            let value = value.trim_matches('"');
            match name.to_ascii_lowercase().as_str() {
                "host" => applies = is_meant(value, host),
                "match" => applies = value.eq_ignore_ascii_case("all"),
                name if applies => found.set(name, value, host),
                _ => {}
            }
        }
        found
    }

    fn set(&mut self, name: &str, value: &str, host: &str) {
        let text = || Some(value.to_owned());
        match name {
            "hostname" if self.host_name.is_none() => self.host_name = Some(value.replace("%h", host)),
            "port" if self.port.is_none() => self.port = value.parse().ok(),
            "user" if self.user.is_none() => self.user = text(),
            "identityfile" => self.identities.push(value.to_owned()),
            "identityagent" if self.agent.is_none() => self.agent = text(),
            _ => {}
        }
    }
}

/// Returns true if one of the patterns matches a host, and no negated one does.
fn is_meant(patterns: &str, host: &str) -> bool {
    let mut found = false;
    for pattern in patterns.split_ascii_whitespace() {
        let pattern = pattern.trim_matches('"');
        match pattern.strip_prefix('!') {
            Some(pattern) if is_match(pattern.as_bytes(), host.as_bytes()) => return false,
            Some(_) => {}
            None => found = found || is_match(pattern.as_bytes(), host.as_bytes()),
        }
    }
    found
}

fn is_match(pattern: &[u8], host: &[u8]) -> bool {
    match pattern {
        [] => host.is_empty(),
        [b'*', rest @ ..] => {
            (0..=host.len()).any(|at| host.get(at..).is_some_and(|tail| is_match(rest, tail)))
        }
        [first, rest @ ..] => match host {
            [byte, tail @ ..] if *first == b'?' || first.eq_ignore_ascii_case(byte) => is_match(rest, tail),
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_value_for_a_host_counts_and_all_identities() {
        let text = b"# mine\nUser nobody\nHost git g?t !get\n  HostName %h.example.com\n  Port=2222\n  User git\n\
                     \tIdentityFile ~/.ssh/work\nHost get\n  Port 1\nMatch user x\n Port 3\nHost *\n  Port 4\n\
                     IdentityFile \"%d/other key\"\n IdentityAgent none\n";
        let found = SshConfig::of(text, "git");
        let expected = SshConfig {
            host_name: Some("git.example.com".to_owned()),
            port: Some(2222),
            user: Some("nobody".to_owned()),
            identities: vec!["~/.ssh/work".to_owned(), "%d/other key".to_owned()],
            agent: Some("none".to_owned()),
        };
        assert_eq!(found, expected);
        let get = SshConfig::of(text, "get");
        assert_eq!((get.host_name, get.port), (None, Some(1)));
        assert_eq!(SshConfig::of(text, "other").port, Some(4));
        assert_eq!(SshConfig::of(b"Port x\nHost\n=\n\xff", "h"), SshConfig::default());
    }
}
