//! The options of a controller's start.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::{Addresses, Controller};
use crate::{
    ControlPlane,
    controlplane::CONTEXT,
    flux_controllers,
    ports::free_address,
    process::{Group, Identity},
    statuses::StatusCheck,
    wait::WAIT_TIMEOUT,
};

/// Length of the leases of [`SHORT_LEASE`].
pub const SHORT_LEASE_DURATION: Duration = Duration::from_secs(10);
/// Leader election with short leases, for tests that wait for a takeover. A leader whose renewal takes longer than the deadline ends, so it is
/// as long as a busy API server may need.
pub const SHORT_LEASE: [&str; 4] = [
    "--enable-leader-election",
    "--leader-election-lease-duration=10s",
    "--leader-election-renew-deadline=8s",
    "--leader-election-retry-period=500ms",
];

/// Builder of a controller process. [`Launch::start`] starts it.
#[derive(Debug, Clone)]
#[must_use]
pub struct Launch {
    name: String,
    program: Option<PathBuf>,
    kubeconfig: Option<PathBuf>,
    namespace: String,
    events: Option<String>,
    detached: Option<PathBuf>,
    flags: Vec<String>,
    exact: bool,
    bounded: bool,
    env: Vec<(String, String)>,
}

impl Launch {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            program: None,
            kubeconfig: None,
            namespace: "flux-system".to_owned(),
            events: None,
            detached: None,
            flags: Vec::new(),
            exact: false,
            bounded: false,
            env: Vec::new(),
        }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the path of the program; default: see [`find_program`].
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    pub fn run_by(mut self, kubeconfig: &Path) -> Self {
        self.kubeconfig = Some(kubeconfig.to_owned());
        self
    }

    /// Sets the namespace that it runs in (`RUNTIME_NAMESPACE`); default `flux-system`.
    pub fn namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    pub fn events_to(mut self, url: &str) -> Self {
        self.events = Some(url.to_owned());
        self
    }

    /// Adds a flag, such as `--concurrent=4`; it replaces a default and an earlier one of the same name.
    pub fn flag(mut self, flag: &str) -> Self {
        let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
        self.flags.retain(|earlier| name(earlier) != name(flag));
        self.flags.push(flag.to_owned());
        self
    }

    /// Elects leaders by [`SHORT_LEASE`].
    pub fn with_short_lease(self) -> Self {
        SHORT_LEASE.iter().fold(self, |launch, flag| launch.flag(flag))
    }

    /// Sets all arguments: there are no defaults besides them, and [`Launch::flag`] has no effect. If probes are off, it can't be
    /// waited for: use [`Launch::spawn`].
    pub fn exactly(mut self, args: &[&str]) -> Self {
        self.flags = args.iter().map(|arg| (*arg).to_owned()).collect();
        self.exact = true;
        self
    }

    /// Returns the kluctl-controller as kluctl's end-to-end suite runs it: with the flags of that suite alone, for one namespace and results in
    /// `<namespace>-results`. It runs in the namespace `system`, and takes local sources at the port.
    pub fn by_kluctls_suite(plane: &ControlPlane, namespace: &str, system: &str, port: u16) -> Result<Self> {
        let kubeconfig = plane.kubeconfig();
        let kubeconfig = kubeconfig.to_str().context("the path isn't UTF-8")?;
        let launch = Self::new("kluctl-controller").run_by("/does/not/exist".as_ref());
        Ok(launch.exactly(&[
            "controller",
            "run",
            "--kubeconfig",
            kubeconfig,
            "--context",
            CONTEXT,
            "--namespace",
            namespace,
            "--command-result-namespace",
            &format!("{namespace}-results"),
            "--controller-name",
            &format!("kluctl-controller-{namespace}"),
            "--controller-namespace",
            system,
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            &format!("--source-override-bind-address=localhost:{port}"),
        ]))
    }

    /// Lets [`Controller::limit_files`] bound the size of the files that it writes.
    pub fn bounded_files(mut self) -> Self {
        self.bounded = true;
        self
    }

    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.env.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Keeps its state in this folder and lets it outlive the caller.
    pub fn detached(mut self, dir: &Path) -> Self {
        self.detached = Some(dir.to_owned());
        self
    }

    /// Starts it and waits until it is ready.
    pub async fn start(self) -> Result<Controller> {
        let controller = self.spawn()?;
        controller.wait_ready(WAIT_TIMEOUT).await?;
        Ok(controller)
    }

    /// Starts it without waiting until it is ready.
    pub fn spawn(self) -> Result<Controller> {
        let program = self
            .program
            .clone()
            .map_or_else(|| find_program(&self.name), Ok)?;
        let group = match &self.detached {
            Some(dir) => Group::create_detached(dir)?,
            None => Group::create(&self.name, Identity::current())?,
        };
        let addresses = Addresses {
            metrics: free_address()?,
            health: free_address()?,
            storage: free_address()?,
            events: free_address()?,
            receiver: free_address()?,
        };
        let args = match self.exact {
            true => self.flags.clone(),
            false => self.args(&addresses, &group.dir().join("storage")),
        };
        let mut env = vec![("RUNTIME_NAMESPACE".to_owned(), self.namespace.clone())];
        let kubeconfig = self
            .kubeconfig
            .context("a controller needs a kubeconfig: call `run_by`")?;
        env.push(("KUBECONFIG".to_owned(), kubeconfig.display().to_string()));
        env.extend(self.env);
        let statuses = match self.detached.is_some() || flux_controllers::is_of_flux(&self.name) {
            true => None,
            false => StatusCheck::begin(
                &used_kubeconfig(&args, kubeconfig),
                watched(&args, &self.namespace),
            )?,
        };
        let process = Identity::current();
        let mut controller = Controller {
            name: self.name,
            program,
            args,
            bounded: self.bounded,
            env,
            addresses,
            group,
            process,
            statuses,
        };
        controller.spawn()?;
        Ok(controller)
    }

    /// The flags: the defaults that give each process ports of its own, then the caller's.
    fn args(&self, addresses: &Addresses, storage: &Path) -> Vec<String> {
        let mut args = vec![
            format!("--metrics-addr={}", addresses.metrics),
            format!("--health-addr={}", addresses.health),
        ];
        if !flux_controllers::is_of_flux(&self.name) {
            // The servers of the tests are on loopback.
            args.push("--allow-addresses=127.0.0.0/8,::1".to_owned());
        }
        match self.name.as_str() {
            "source-controller" => args.extend([
                format!("--storage-addr={}", addresses.storage),
                format!("--storage-adv-addr={}", addresses.storage),
                format!("--storage-path={}", storage.display()),
            ]),
            // The only ones that listen for events.
            name if flux_controllers::takes_events(name) => args.extend([
                format!("--events-addr={}", addresses.events),
                format!("--receiverAddr={}", addresses.receiver),
            ]),
            _ => {}
        }
        args.extend(self.events.as_ref().map(|url| format!("--events-addr={url}")));
        let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
        args.retain(|default| !self.flags.iter().any(|flag| name(flag) == name(default)));
        args.extend(self.flags.iter().cloned());
        args
    }
}

/// Returns the kubeconfig that a flag names, or else the given one.
fn used_kubeconfig(args: &[String], given: PathBuf) -> PathBuf {
    let mut args = args.iter();
    match args.any(|arg| arg == "--kubeconfig") {
        true => args.next().map_or(given, PathBuf::from),
        false => given,
    }
}

/// Returns the namespace if the controller watches that alone.
fn watched<'a>(args: &[String], namespace: &'a str) -> Option<&'a str> {
    let alone = args.iter().any(|arg| arg == "--watch-all-namespaces=false");
    alone.then_some(namespace)
}

/// Finds a program of this workspace: in the folder that `WEIR_BIN_DIR` names, or where cargo puts the programs of the
/// profile that the caller was built with.
pub fn find_program(name: &str) -> Result<PathBuf> {
    let given = std::env::var_os("WEIR_BIN_DIR")
        .filter(|dir| !dir.is_empty())
        .map(PathBuf::from);
    let dir = match given {
        Some(dir) => dir,
        None => {
            let own = std::env::current_exe()?;
            // Test binaries are a folder further down, in deps/.
            let dir = own.parent().context("this program has no folder")?;
            if dir.ends_with("deps") {
                dir.parent().unwrap_or(dir)
            } else {
                dir
            }
            .to_owned()
        }
    };
    let path = dir.join(name);
    ensure!(
        path.exists(),
        "{} isn't built: run `cargo build -p {name}`, or set WEIR_BIN_DIR to the folder that holds it",
        path.display()
    );
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Addresses {
        let address = ([127, 0, 0, 1], 1).into();
        Addresses {
            metrics: address,
            health: address,
            storage: address,
            events: address,
            receiver: address,
        }
    }

    #[test]
    fn flags_replace_defaults_of_the_same_name() {
        let launch = Launch::new("source-controller")
            .flag("--storage-addr=:2")
            .events_to("http://events/");
        let args = launch.args(&addresses(), Path::new("/s"));
        assert!(
            args.contains(&"--storage-adv-addr=127.0.0.1:1".to_owned()),
            "{args:?}"
        );
        assert!(
            args.contains(&"--events-addr=http://events/".to_owned()),
            "{args:?}"
        );
        assert_eq!(
            args.iter()
                .filter(|arg| arg.starts_with("--storage-addr="))
                .count(),
            1,
            "{args:?}"
        );
    }

    #[test]
    fn find_program_error_names_the_build_command() {
        let error = find_program("no-such-controller")
            .expect_err("isn't there")
            .to_string();
        assert!(error.contains("cargo build -p no-such-controller"), "{error}");
    }
}
