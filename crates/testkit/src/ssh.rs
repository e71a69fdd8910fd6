//! A real OpenSSH server for the repositories of a [`GitServer`], an SSH agent, and keys.

use std::{
    fs,
    io::Read as _,
    net::{SocketAddr, TcpStream},
    os::unix::{fs::PermissionsExt as _, net::UnixStream, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::{
    GitServer, Repo,
    debian::{find, packages, run},
    ports::free_address,
    process::{Group, Identity},
    wait::WAIT_TIMEOUT,
};

/// User and group that the server runs as if the tests are run by root: sshd of root needs an installation.
const UNPRIVILEGED: u32 = 54_321;

/// The system's own server.
const INSTALLED: &str = "/usr/sbin/sshd";

const HOST_KEYS: [&str; 3] = ["ed25519", "ecdsa", "rsa"];

#[derive(Debug, Clone)]
pub struct SshKeyPair {
    /// Private key, in the format that the arguments chose.
    pub private: String,
    pub public: String,
}

impl SshKeyPair {
    /// Makes a key with the arguments of `ssh-keygen`, such as `-t rsa -b 3072 -m PEM`, and a password, which may be empty.
    pub fn generate(args: &str, password: &str) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("key");
        let mut keygen = Command::new("ssh-keygen");
        keygen
            .args(["-q", "-C", "testkit", "-N", password])
            .args(args.split(' '));
        run(keygen.arg("-f").arg(&file))?;
        Ok(Self {
            private: fs::read_to_string(&file)?,
            public: fs::read_to_string(file.with_extension("pub"))?,
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub struct SshOptions<'a> {
    /// True if the server lets clients choose the version of Git's protocol.
    pub accepts_protocol: bool,
    pub config: &'a str,
}

impl Default for SshOptions<'_> {
    fn default() -> Self {
        Self {
            accepts_protocol: true,
            config: "",
        }
    }
}

#[derive(Debug)]
pub struct SshServer {
    address: SocketAddr,
    user: String,
    dir: TempDir,
    group: Group,
}

impl SshServer {
    /// Finds the server in the cache, or fetches its packages.
    pub fn resolve() -> Result<PathBuf> {
        packages("openssh", &["openssh-server", "libwrap0", "libnss-wrapper"])
            .context("the tests of Git over SSH need the packages of Debian, or sshd in /usr/sbin")
    }

    /// Fetches the packages unless the system's own server can be used.
    pub fn prepare() -> Result<()> {
        if rustix::process::getuid().is_root() || !Path::new(INSTALLED).exists() {
            Self::resolve()?;
        }
        Ok(())
    }

    /// Starts a server for the repositories of a Git server, which accepts these public keys, and waits until it answers.
    pub fn start(git: &GitServer, keys: &[&SshKeyPair]) -> Result<Self> {
        Self::start_with(git, keys, SshOptions::default())
    }

    pub fn start_with(git: &GitServer, keys: &[&SshKeyPair], options: SshOptions<'_>) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("weir-ssh-").tempdir()?;
        readable(dir.path())?;
        readable(git.root())?;
        let address = free_address()?;
        let path = |name: &str| dir.path().join(name);
        for kind in HOST_KEYS {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-N", "", "-t", kind, "-f"]).arg(path(kind));
            run(&mut keygen)?;
        }
        let root = rustix::process::getuid().is_root();
        if root {
            // sshd accepts open files of others.
            for kind in HOST_KEYS {
                fs::set_permissions(path(kind), fs::Permissions::from_mode(0o644))?;
            }
        }
        let authorized: String = keys.iter().map(|key| key.public.as_str()).collect();
        fs::write(path("authorized_keys"), authorized)?;
        fs::write(path("sshd_config"), config(dir.path(), address, options))?;
        let (mut command, user) = command(dir.path(), root)?;
        command.args(["-D", "-e", "-f"]).arg(path("sshd_config"));
        let group = Group::create("sshd", Identity::current())?;
        group.spawn("sshd", &mut command)?;
        let this = Self {
            address,
            user,
            dir,
            group,
        };
        this.ready()?;
        Ok(this)
    }

    fn ready(&self) -> Result<()> {
        let begin = Instant::now();
        loop {
            let mut greeting = [0; 4];
            if let Ok(mut stream) = TcpStream::connect(self.address)
                && stream.read_exact(&mut greeting).is_ok()
                && &greeting == b"SSH-"
            {
                return Ok(());
            }
            ensure!(
                self.group.exited("sshd").is_none(),
                "sshd has ended: {}",
                self.log()
            );
            ensure!(
                begin.elapsed() < WAIT_TIMEOUT,
                "sshd does not answer: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[must_use]
    pub fn url(&self, repo: &Repo) -> String {
        format!("ssh://{}@{}{}", self.user, self.address, repo.path().display())
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns the `known_hosts` line of a kind of host key: ed25519, ecdsa or rsa.
    pub fn known_host(&self, kind: &str) -> Result<String> {
        let file = self.dir.path().join(format!("{kind}.pub"));
        let public = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let key: Vec<&str> = public.split(' ').take(2).collect();
        let (ip, port) = (self.address.ip(), self.address.port());
        Ok(format!("[{ip}]:{port} {}\n", key.join(" ")))
    }

    pub fn known_hosts(&self) -> Result<String> {
        HOST_KEYS.iter().map(|kind| self.known_host(kind)).collect()
    }

    #[must_use]
    pub fn logins(&self) -> usize {
        self.group
            .output("sshd")
            .matches("Accepted publickey for ")
            .count()
    }

    #[must_use]
    pub fn log(&self) -> String {
        self.group.tail("sshd")
    }
}

fn readable(dir: &Path) -> Result<()> {
    Ok(fs::set_permissions(dir, fs::Permissions::from_mode(0o755))?)
}

fn config(dir: &Path, address: SocketAddr, options: SshOptions<'_>) -> String {
    let dir = dir.display();
    let (ip, port) = (address.ip(), address.port());
    let accept = if options.accepts_protocol {
        "AcceptEnv GIT_PROTOCOL"
    } else {
        ""
    };
    let keys: String = HOST_KEYS
        .iter()
        .map(|kind| format!("HostKey {dir}/{kind}\n"))
        .collect();
    format!(
        "ListenAddress {ip}\nPort {port}\n{keys}PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nAuthorizedKeysFile {dir}/authorized_keys\nLogLevel VERBOSE\n{accept}\n\
         SetEnv GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=*\n{}\n",
        options.config
    )
}

/// Returns the command of the server, and the user that it lets in: the one that it runs as.
fn command(dir: &Path, root: bool) -> Result<(Command, String)> {
    let installed = Path::new(INSTALLED);
    if !root && installed.exists() {
        let user = run(Command::new("id").arg("-un"))?;
        return Ok((Command::new(installed), user.trim().to_owned()));
    }
    let files = SshServer::resolve()?;
    let copy = |name: &str| -> Result<PathBuf> {
        // The cache may be where only this user may look.
        let to = dir.join(name);
        fs::copy(find(&files, name)?, &to)?;
        Ok(to)
    };
    let mut command = Command::new(copy("sshd")?);
    copy("libwrap.so.0")?;
    command.env("LD_LIBRARY_PATH", dir);
    if !root {
        let user = run(Command::new("id").arg("-un"))?;
        return Ok((command, user.trim().to_owned()));
    }
    let (passwd, group) = (dir.join("passwd"), dir.join("group"));
    let home = dir.display();
    fs::write(
        &passwd,
        format!("git:x:{UNPRIVILEGED}:{UNPRIVILEGED}::{home}:/bin/sh\n"),
    )?;
    fs::write(&group, format!("git:x:{UNPRIVILEGED}:\n"))?;
    command
        .env("LD_PRELOAD", copy("libnss_wrapper.so")?)
        .env("NSS_WRAPPER_PASSWD", passwd)
        .env("NSS_WRAPPER_GROUP", group)
        .uid(UNPRIVILEGED)
        .gid(UNPRIVILEGED);
    Ok((command, "git".to_owned()))
}

#[derive(Debug)]
pub struct SshAgent {
    socket: PathBuf,
    _group: Group,
}

impl SshAgent {
    /// Starts an agent with these keys, which have no password.
    pub fn start(keys: &[&SshKeyPair]) -> Result<Self> {
        let group = Group::create("ssh-agent", Identity::current())?;
        let socket = group.dir().join("agent");
        let mut agent = Command::new("ssh-agent");
        group.spawn("ssh-agent", agent.arg("-D").arg("-a").arg(&socket))?;
        let begin = Instant::now();
        // The socket is there before the agent listens.
        while UnixStream::connect(&socket).is_err() {
            ensure!(
                begin.elapsed() < WAIT_TIMEOUT,
                "ssh-agent: {}",
                group.tail("ssh-agent")
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        for (at, key) in keys.iter().enumerate() {
            let file = group.dir().join(format!("key-{at}"));
            fs::write(&file, &key.private)?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
            run(Command::new("ssh-add")
                .arg("-q")
                .arg(&file)
                .env("SSH_AUTH_SOCK", &socket))?;
            fs::remove_file(&file)?;
        }
        Ok(Self {
            socket,
            _group: group,
        })
    }

    /// Returns the path of the agent's socket, the value of `SSH_AUTH_SOCK`.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}
