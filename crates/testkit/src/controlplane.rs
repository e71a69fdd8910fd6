//! A real Kubernetes control plane of five processes.

pub mod audit;
pub mod binaries;
mod clients;
mod components;
mod credentials;
mod etcd;
mod kubectl;
mod objects;
mod prebuilt;
mod shared;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use kube::Client;
use tokio::sync::OnceCell;

use crate::{
    ports::free_address,
    process::{Group, Identity, Usage, sweep},
    statuses,
    wait::WAIT_TIMEOUT,
};
use binaries::Binaries;
use clients::Clients;
pub use clients::client;
use components::Setup;
pub use credentials::CONTEXT;
use credentials::Credentials;
pub(crate) use etcd::Etcd;

const AUDIT_LOG: &str = "audit.log";
/// Holds the address of the API server, once everything is up.
const READY: &str = "ready";
const COMPONENTS: [&str; 5] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
];

#[derive(Debug, Clone, Default)]
pub struct Options {
    /// If true, the audit log also holds request bodies, except of Secrets.
    pub audit_bodies: bool,
    pub api_server_flags: Vec<String>,
    /// If true, Services of type LoadBalancer get no address, as in a cluster without a cloud.
    pub no_load_balancers: bool,
    /// Local port to which the kubelet forwards all ports of all Pods; without one, no port can be forwarded.
    pub forwarded_port: Option<u16>,
}

/// A running control plane. Unless it is shared or detached, dropping it stops it.
#[derive(Debug)]
pub struct ControlPlane {
    group: Group,
    credentials: Credentials,
    kubeconfig: PathBuf,
    server: String,
    kubectl: PathBuf,
    clients: Clients,
}

impl ControlPlane {
    /// Starts a plane of its own for the caller, in three to six seconds. Several run side by side.
    pub async fn start(options: Options) -> Result<Self> {
        let binaries = resolve().await?;
        let group = || Group::create("plane", Identity::current());
        Self::start_with(&binaries, &options, group).await
    }

    /// Starts a plane for one test, as [`ControlPlane::start`] does, that can be lent to a holder of a `&'static` plane.
    pub async fn lent(options: Options) -> Result<LentPlane> {
        Ok(LentPlane(Box::leak(Box::new(Self::start(options).await?))))
    }

    /// Starts a plane that stays when the caller ends, until it is stopped by [`ControlPlane::stop`] of a value from
    /// [`ControlPlane::open`].
    pub async fn start_detached(dir: &Path, options: Options) -> Result<Self> {
        let binaries = resolve().await?;
        Self::start_with(&binaries, &options, || Group::create_detached(dir)).await
    }

    /// The plane that all tests of a test run share: the first to ask starts it, and it ends when `cargo test` does.
    /// Tests keep apart by namespaces.
    pub async fn shared() -> Result<&'static Self> {
        shared::get().await
    }

    /// Returns the shared plane with the definitions in crds/, which the first caller in a process installs.
    pub async fn shared_with_crds() -> Result<&'static Self> {
        static INSTALLED: OnceCell<()> = OnceCell::const_new();
        let plane = Self::shared().await?;
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
        let install = || async { plane.install_crds(&crds).await.map(drop) };
        INSTALLED.get_or_try_init(install).await?;
        Ok(plane)
    }

    /// A plane that another process started in this folder.
    pub fn open(dir: &Path) -> Result<Self> {
        let server = fs::read_to_string(dir.join(READY));
        let server =
            server.with_context(|| format!("there is no running control plane in {}", dir.display()))?;
        let group = Group::open(dir);
        let running = group.running();
        for component in COMPONENTS {
            ensure!(
                running.iter().any(|(name, _)| name == component),
                "{component} of the control plane in {} has ended; it last said:\n{}",
                dir.display(),
                group.tail(component)
            );
        }
        Ok(Self::assemble(group, server, &Binaries::resolve()?))
    }

    fn assemble(group: Group, server: String, binaries: &Binaries) -> Self {
        let credentials = Credentials::open(group.dir());
        let kubeconfig = credentials.kubeconfig("admin");
        let kubectl = binaries.path("kubectl").to_owned();
        statuses::register(&server, &kubeconfig);
        Self {
            group,
            credentials,
            kubeconfig,
            server,
            kubectl,
            clients: Clients::default(),
        }
    }

    async fn start_with(
        binaries: &Binaries,
        options: &Options,
        group: impl Fn() -> Result<Group>,
    ) -> Result<Self> {
        sweep()?;
        let mut tries = 3;
        loop {
            tries -= 1;
            let group = group()?;
            match bring_up(&group, binaries, options).await {
                Ok(server) => return Ok(Self::assemble(group, server, binaries)),
                Err(error) => {
                    group.stop()?;
                    // Somebody else took a port in the moment between finding it free and listening on it.
                    if tries == 0 || !format!("{error:#}").contains("address already in use") {
                        let free = free_space(&std::env::temp_dir());
                        return Err(error.context(format!("the control plane didn't start ({free})")));
                    }
                }
            }
        }
    }

    /// The kubeconfig of the administrator.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The program `kubectl` of the version of this plane.
    #[must_use]
    pub fn kubectl_program(&self) -> &Path {
        &self.kubectl
    }

    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    pub fn ca_pem(&self) -> Result<String> {
        Ok(fs::read_to_string(self.credentials.pki("ca.pem"))?)
    }

    #[must_use]
    pub fn dir(&self) -> &Path {
        self.group.dir()
    }

    #[must_use]
    pub fn processes(&self) -> Vec<(String, Identity)> {
        self.group.running()
    }

    /// Returns the client of the administrator in the async runtime of the caller: each test has its own.
    pub async fn client(&self) -> Result<Client> {
        self.clients.get(&self.kubeconfig).await
    }

    /// The requests that the API server has answered so far, without those that its own control loops made.
    pub fn audit(&self) -> Result<Vec<audit::Entry>> {
        self.audit_since(audit::Mark::default())
    }

    /// Returns the current moment of the audit log, for [`ControlPlane::audit_since`].
    #[must_use]
    pub fn audit_mark(&self) -> audit::Mark {
        audit::Mark::now(&self.dir().join(AUDIT_LOG))
    }

    /// The requests that arrived since the mark was taken and were answered. Waits for writes that have begun, since their effect is seen before.
    pub fn audit_since(&self, mark: audit::Mark) -> Result<Vec<audit::Entry>> {
        audit::read(&self.dir().join(AUDIT_LOG), mark)
    }

    pub fn usage(&self, component: &str) -> Result<Usage> {
        let running = self.group.running();
        let found = running.iter().find(|(name, _)| name == component);
        Usage::of(found.with_context(|| format!("{component} doesn't run"))?.1.pid)
    }

    /// Returns the newest revision of its store, the resourceVersion of the last write.
    pub async fn revision(&self) -> Result<u64> {
        self.etcd()?.revision().await
    }

    /// Forgets all older revisions: a list that has begun or a watch from an older revision is answered with 410 Gone.
    pub async fn compact(&self) -> Result<u64> {
        self.etcd()?.compact().await
    }

    pub(crate) fn etcd(&self) -> Result<Etcd> {
        Etcd::of(self.dir())
    }

    /// Ends the processes and removes all state. Dropping does so too, but can't return an error.
    pub fn stop(self) -> Result<()> {
        self.group.stop()
    }
}

/// A plane that ends when this value is dropped, although references to it live longer: each holds about 400 MB of memory,
/// which a run of tests has better uses for.
#[derive(Debug)]
pub struct LentPlane(&'static ControlPlane);

impl LentPlane {
    #[must_use]
    pub fn get(&self) -> &'static ControlPlane {
        self.0
    }
}

impl Drop for LentPlane {
    fn drop(&mut self) {
        if let Err(error) = self.0.group.stop() {
            crate::progress::say(format_args!("can't end a control plane: {error:#}"));
        }
    }
}

/// Describes the space that is left where the planes keep their state: the usual reason of a start that fails on a machine where
/// others succeeded.
fn free_space(dir: &Path) -> String {
    rustix::fs::statvfs(dir).map_or_else(
        |error| format!("the space of {} is unknown: {error}", dir.display()),
        |stat| {
            let mib = stat.f_bavail.saturating_mul(stat.f_frsize) >> 20;
            format!("{mib} MiB are free in {}", dir.display())
        },
    )
}

async fn resolve() -> Result<Binaries> {
    tokio::task::spawn_blocking(Binaries::resolve).await?
}

/// Starts the five processes, each as soon as the ones that it needs are there, and returns the URL of the API server.
async fn bring_up(group: &Group, binaries: &Binaries, options: &Options) -> Result<String> {
    let dir = group.dir();
    let (etcd, etcd_peer, api) = (free_address()?, free_address()?, free_address()?);
    let server = format!("https://{api}");
    let credentials = Credentials::create(dir, &server)?;
    let level = if options.audit_bodies {
        "Request"
    } else {
        "Metadata"
    };
    let policy = include_str!("controlplane/assets/audit-policy.yaml").replace("AUDIT_LEVEL", level);
    fs::write(dir.join("audit-policy.yaml"), policy)?;
    let stage = match options.no_load_balancers {
        true => "",
        false => include_str!("controlplane/assets/load-balancer-stage.yaml"),
    };
    fs::write(dir.join("load-balancer-stage.yaml"), stage)?;
    let kubelet = match options.forwarded_port {
        Some(port) => Some((free_address()?, port)),
        None => None,
    };
    if let Some((_, port)) = kubelet {
        let forwards =
            include_str!("controlplane/assets/port-forward.yaml").replace("PORT", &port.to_string());
        fs::write(dir.join(components::FORWARDS), forwards)?;
    }
    fs::write(dir.join(etcd::ADDRESS), etcd.to_string())?;

    let setup = Setup {
        binaries,
        credentials: &credentials,
        dir,
        etcd,
        etcd_peer,
        api,
    };
    group.spawn("etcd", &mut setup.etcd())?;
    listening(group, etcd).await?;
    group.spawn(
        "kube-apiserver",
        setup
            .api_server()
            .args(kubelet.map(|_| "--kubelet-preferred-address-types=InternalIP"))
            .args(&options.api_server_flags),
    )?;
    let client = client(&credentials.kubeconfig("admin")).await?;
    answering(group, &client).await?;
    group.spawn("kube-controller-manager", &mut setup.controller_manager())?;
    group.spawn("kube-scheduler", &mut setup.scheduler())?;
    group.spawn("kwok", &mut setup.kwok(kubelet.map(|(address, _)| address)))?;
    let furnished = objects::furnish(&client).await;
    if let Err(error) = furnished {
        bail!("{error:#}\n{}", group.any_exited().unwrap_or_default());
    }
    fs::write(dir.join(READY), &server)?;
    Ok(server)
}

async fn listening(group: &Group, address: SocketAddr) -> Result<()> {
    group
        .eventually("etcd", WAIT_TIMEOUT, || async move {
            Ok(tokio::net::TcpStream::connect(address).await.map(|_| ())?)
        })
        .await
}

async fn answering(group: &Group, client: &Client) -> Result<()> {
    group
        .eventually("the API server", WAIT_TIMEOUT, || async {
            let request = http::Request::get("/readyz").body(Vec::new())?;
            client.request_text(request).await?;
            Ok(())
        })
        .await
}
