//! Keys and known hosts of the user for Git over SSH.

use std::{
    env, fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use git::{InvalidKey, KnownHosts, Remote, SshKey, SshLogin};
use remote::ServerKind;

use super::{Login, Logins, parse_switch, ssh_config::SshConfig};

/// Keys in `~/.ssh` that are tried, in this order.
const KEYS: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];

const MAX_FILE: u64 = 4 << 20;

/// Variable that turns off the verification of host keys.
const NOT_STRICT: &str = "KLUCTL_SSH_DISABLE_STRICT_HOST_KEY_CHECKING";

/// Variable with a list of files with host keys.
const KNOWN_HOSTS: &str = "SSH_KNOWN_HOSTS";

impl Logins {
    /// Adds keys and known hosts to a repository over SSH: from flags and variables, otherwise from the SSH agent and `~/.ssh`.
    pub(super) fn over_ssh(&self, remote: Remote) -> Result<Remote> {
        let home = env::var_os("HOME").map(PathBuf::from);
        let dir = home.as_ref().map(|home| home.join(".ssh"));
        let config = match &dir {
            Some(dir) => SshConfig::of(&read(&dir.join("config"))?.unwrap_or_default(), &host_of(&remote)),
            None => SshConfig::default(),
        };
        let login = self.ssh_login(&remote);
        let mut ssh = SshLogin {
            user: config.user.clone(),
            known_hosts: known_hosts(login, dir.as_deref())?,
            ..SshLogin::default()
        };
        match login.and_then(|login| login.ssh_key.as_ref()) {
            Some(file) => ssh.keys.push(key(file, true)?.context("the key is missing")?),
            None => own_keys(&mut ssh, &config, home.as_deref())?,
        }
        let remote = remote.with_ssh_host(config.host_name.as_deref(), config.port)?;
        Ok(remote.with_ssh(ssh))
    }

    /// Returns the first login for a repository that has a key or known hosts.
    fn ssh_login(&self, remote: &Remote) -> Option<&Login> {
        let url = remote.url();
        let host = url.host_str().unwrap_or_default();
        let with_port = format!("{host}:{}", url.port().unwrap_or(22));
        let path = url.path().trim_matches('/').as_bytes();
        let user = remote.ssh_user().unwrap_or("git");
        let mut logins = self
            .entries
            .iter()
            .filter(|(kind, _)| *kind == ServerKind::Git)
            .map(|(_, login)| login)
            .filter(|login| {
                login.scheme.is_none() && (login.ssh_key.is_some() || login.known_hosts.is_some())
            });
        logins.find(|login| {
            let is_host = matches!(login.host.as_str(), "" | "*")
                || login.host.eq_ignore_ascii_case(host)
                || login.host.eq_ignore_ascii_case(&with_port);
            let is_path = login
                .path
                .as_ref()
                .is_none_or(|pattern| remote::is_path_match(pattern.as_bytes(), path));
            let is_user = matches!(login.username.as_str(), "" | "*") || login.username == user;
            is_host && is_path && is_user
        })
    }
}

fn host_of(remote: &Remote) -> String {
    let host = remote.url().host_str().unwrap_or_default();
    host.trim_matches(['[', ']']).to_owned()
}

/// Adds the SSH agent and the keys of `~/.ssh`.
fn own_keys(ssh: &mut SshLogin, config: &SshConfig, home: Option<&Path>) -> Result<()> {
    let agent = env::var_os("SSH_AUTH_SOCK").filter(|socket| !socket.is_empty());
    ssh.agent = match config.agent.as_deref() {
        Some("none") => None,
        Some(socket) if socket != "SSH_AUTH_SOCK" => Some(expand(socket, home)),
        _ => agent.map(PathBuf::from),
    };
    let named = config.identities.iter().map(|file| expand(file, home));
    let own = home
        .into_iter()
        .flat_map(|home| KEYS.map(|name| home.join(".ssh").join(name)));
    let mut files: Vec<PathBuf> = named.collect();
    if files.is_empty() {
        files.extend(own);
    }
    for file in files {
        match key(&file, false) {
            Ok(Some(key)) => ssh.keys.push(key),
            Ok(None) => {}
            Err(error) => {
                let remedy = match error.downcast_ref() {
                    Some(InvalidKey::Encrypted) => {
                        "it has a password: add it to the SSH agent with ssh-add".to_owned()
                    }
                    _ => error.root_cause().to_string(),
                };
                ssh.skipped.push(format!("{} ({remedy})", file.display()));
            }
        }
    }
    Ok(())
}

/// Expands `~` and `%d`, the home directory of the user.
fn expand(file: &str, home: Option<&Path>) -> PathBuf {
    let rest = file.strip_prefix("~/").or_else(|| file.strip_prefix("%d/"));
    match (rest, home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(file),
    }
}

/// Reads a private key; `None` if the file is missing and not required.
fn key(file: &Path, required: bool) -> Result<Option<SshKey>> {
    let content = match required {
        true => Some(fs::read(file).with_context(|| format!("read {}", file.display()))?),
        false => read(file)?,
    };
    let parse = |content: Vec<u8>| SshKey::parse(&content, None, &file.display().to_string());
    let parsed = content.map(parse).transpose();
    let remedy = match &parsed {
        Err(InvalidKey::Encrypted) => ": add it to the SSH agent with ssh-add",
        _ => "",
    };
    parsed.with_context(|| format!("{}{remedy}", file.display()))
}

/// Returns the host keys of a login, else of the files that a variable names, else of the user and the system.
fn known_hosts(login: Option<&Login>, dir: Option<&Path>) -> Result<KnownHosts> {
    if let Ok(value) = env::var(NOT_STRICT)
        && parse_switch(NOT_STRICT, &value)?
    {
        return Ok(KnownHosts::any());
    }
    let mut content = Vec::new();
    if let Some(file) = login.and_then(|login| login.known_hosts.as_ref()) {
        content = fs::read(file).with_context(|| format!("read {}", file.display()))?;
    } else if let Some(files) = env::var_os(KNOWN_HOSTS).filter(|files| !files.is_empty()) {
        for file in env::split_paths(&files) {
            content.extend(read(&file)?.unwrap_or_default());
            content.push(b'\n');
        }
    } else {
        let own = dir.map(|dir| dir.join("known_hosts"));
        let system = PathBuf::from("/etc/ssh/ssh_known_hosts");
        for file in own.into_iter().chain([system]) {
            content.extend(read(&file)?.unwrap_or_default());
            content.push(b'\n');
        }
    }
    KnownHosts::parse(&content).context("known hosts of SSH")
}

/// Reads a file of at most [`MAX_FILE`] bytes; `None` if it does not exist.
fn read(file: &Path) -> Result<Option<Vec<u8>>> {
    let Ok(open) = fs::File::open(file) else {
        return Ok(None);
    };
    let mut content = Vec::new();
    open.take(MAX_FILE)
        .read_to_end(&mut content)
        .with_context(|| format!("read {}", file.display()))?;
    Ok(Some(content))
}
