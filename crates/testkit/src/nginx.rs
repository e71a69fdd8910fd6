//! A real nginx that serves a folder, for comparisons with our own server of files.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result};

use crate::{
    debian::packages,
    ports::free_address,
    process::{Group, Identity, Usage},
    wait::WAIT_TIMEOUT,
};

/// The system's own server.
const INSTALLED: &str = "/usr/sbin/nginx";

/// A running nginx with as many workers as there are processors; dropping it ends it.
#[derive(Debug)]
pub struct Nginx {
    address: SocketAddr,
    master: Identity,
    _group: Group,
}

impl Nginx {
    /// Finds the installed server or the one in the cache, or fetches its Debian package into the cache.
    pub fn resolve() -> Result<PathBuf> {
        let installed = Path::new(INSTALLED);
        if installed.exists() {
            return Ok(installed.to_owned());
        }
        Ok(packages("nginx", &["nginx"])?.join("usr/sbin/nginx"))
    }

    /// Starts a server for the files of a folder, and waits until it answers.
    pub async fn start(root: &Path) -> Result<Self> {
        let program = tokio::task::spawn_blocking(Self::resolve).await??;
        let group = Group::create("nginx", Identity::current())?;
        let address = free_address()?;
        let file = group.write("nginx.conf", &config(group.dir(), address, root))?;
        let mut command = Command::new(program);
        command.args(["-c", &file, "-e", "stderr", "-p"]).arg(group.dir());
        let master = group.spawn("nginx", &mut command)?;
        group
            .eventually("nginx to answer", WAIT_TIMEOUT, || async move {
                tokio::net::TcpStream::connect(address).await?;
                Ok(())
            })
            .await?;
        Ok(Self {
            address,
            master,
            _group: group,
        })
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the processor time so far of the process and its workers.
    pub fn cpu(&self) -> Result<Duration> {
        let pid = self.master.pid;
        let children = format!("/proc/{pid}/task/{pid}/children");
        let children = fs::read_to_string(&children).with_context(|| format!("can't read {children}"))?;
        let mut cpu = Usage::of(pid)?.cpu;
        for child in children.split_ascii_whitespace() {
            cpu += Usage::of(child.parse()?)?.cpu;
        }
        Ok(cpu)
    }
}

/// Returns the configuration: the defaults of the Debian package, without its log of requests. Connections are never closed by count.
fn config(dir: &Path, address: SocketAddr, root: &Path) -> String {
    let (dir, root) = (dir.display(), root.display());
    // Workers of root would change to a user that can't read the files.
    let user = if rustix::process::getuid().is_root() {
        "user root root;"
    } else {
        ""
    };
    let temp: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {dir}/tmp/{name}; "))
        .concat();
    format!(
        "{user}\ndaemon off;\npid {dir}/nginx.pid;\nworker_processes auto;\nevents {{ worker_connections 768; }}\n\
         http {{ access_log off; sendfile on; tcp_nopush on; types_hash_max_size 2048; keepalive_requests 100000000; {temp}\n\
         server {{ listen {address}; root {root}; }} }}\n"
    )
}
