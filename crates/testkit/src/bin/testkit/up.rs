//! A control plane and the controllers in the background, for people.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use testkit::{
    ControlPlane, Controller, Options,
    process::{Group, end_strays},
    progress::say,
};

use crate::print;

const NAMESPACE: &str = "flux-system";
/// notification-controller comes first: the others post their events to it.
const CONTROLLERS: [&str; 3] = [
    "notification-controller",
    "source-controller",
    "kluctl-controller",
];
/// The folder of one process group below the folder of `up`.
const PLANE: &str = "control-plane";

/// Starts the control plane and, unless `bare`, the controllers as their own service accounts.
pub(crate) async fn up(dir: &Path, bare: bool) -> Result<()> {
    let running = processes(dir);
    ensure!(
        running.is_empty(),
        "{} runs already ({} processes): stop it with `make down`",
        dir.display(),
        running.len()
    );
    clean(dir)?;
    say("starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok");
    let plane = ControlPlane::start_detached(&dir.join(PLANE), Options::default()).await?;
    let started = if bare {
        Ok(Vec::new())
    } else {
        furnish(dir, &plane).await
    };
    let controllers = match started {
        Ok(controllers) => controllers,
        Err(error) => {
            // Half of it would only be in the way of the next try.
            clean(dir)?;
            return Err(error);
        }
    };
    fs::copy(plane.kubeconfig(), dir.join("kubeconfig"))?;
    let processes = processes(dir)
        .into_iter()
        .map(|(name, pid)| serde_json::json!({"name": name, "pid": pid}));
    let addresses = controllers.iter().map(|controller| {
        let addresses = controller.addresses();
        let shown = serde_json::json!({
            "name": controller.name(),
            "metrics": addresses.metrics.to_string(),
            "health": addresses.health.to_string(),
            "log": controller.log_file(),
        });
        shown
    });
    let state = serde_json::json!({
        "server": plane.server(),
        "processes": processes.collect::<Vec<_>>(),
        "controllers": addresses.collect::<Vec<_>>(),
    });
    fs::write(dir.join("state.json"), serde_json::to_string_pretty(&state)?)?;
    status(dir)?;
    say(format_args!(
        "\nexport KUBECONFIG={}\n`make down` stops it",
        dir.join("kubeconfig").display()
    ));
    Ok(())
}

/// Installs the CRDs and the rights, and starts the controllers.
async fn furnish(dir: &Path, plane: &ControlPlane) -> Result<Vec<Controller>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    plane.namespace_named(NAMESPACE).await?;
    if root.join("crds").is_dir() {
        say("installing crds/");
        plane.install_crds(&root.join("crds")).await?;
    }
    install_rights(plane, &root).await?;
    let mut controllers: Vec<Controller> = Vec::new();
    for name in CONTROLLERS {
        say(format_args!("starting {name}"));
        let kubeconfig = plane.service_account_kubeconfig(NAMESPACE, name).await?;
        let launch = Controller::named(name)
            .run_by(&kubeconfig)
            .namespace(NAMESPACE)
            .detached(&dir.join(name));
        let launch = match controllers.first() {
            Some(notification) => launch.events_to(&notification.events_url()),
            None => launch,
        };
        controllers.push(launch.start().await?);
    }
    Ok(controllers)
}

/// Applies service accounts, roles and bindings of deploy/: everything there but what would run in the cluster.
async fn install_rights(plane: &ControlPlane, root: &Path) -> Result<()> {
    let overlay = root.join("deploy/overlays/dev");
    if !overlay.is_dir() {
        return Ok(());
    }
    say("applying deploy/overlays/dev");
    let overlay = overlay.to_str().context("the path of deploy/ isn't UTF-8")?;
    plane
        .kubectl(&["apply", "--server-side", "--force-conflicts", "-k", overlay])
        .await
        .map(|_| ())
}

/// Stops everything that `up` started in this folder, and nothing else.
pub(crate) fn down(dir: &Path) -> Result<()> {
    let count = processes(dir).len();
    clean(dir)?;
    say(format_args!("stopped {count} processes"));
    Ok(())
}

fn clean(dir: &Path) -> Result<()> {
    for name in CONTROLLERS.iter().rev().chain([&PLANE]) {
        let group = dir.join(name);
        if group.exists() {
            end_strays(&group)?;
            Group::open(&group).stop()?;
        }
    }
    for file in ["kubeconfig", "state.json"] {
        if dir.join(file).exists() {
            fs::remove_file(dir.join(file))?;
        }
    }
    Ok(())
}

/// Prints the processes and where to find what.
pub(crate) fn status(dir: &Path) -> Result<()> {
    let running = processes(dir);
    if running.is_empty() {
        return print("nothing runs; start it with `make up`");
    }
    for (name, pid) in running {
        let log =
            [name.as_str(), PLANE].map(|group| dir.join(group).join("logs").join(format!("{name}.log")));
        let log = log
            .iter()
            .find(|path| path.exists())
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        print(&format!("{name:<26} {pid:>8}  {log}"))?;
    }
    Ok(())
}

/// The path of the kubeconfig, if something runs.
pub(crate) fn kubeconfig(dir: &Path) -> Result<PathBuf> {
    let path = dir.join("kubeconfig");
    ensure!(
        path.exists() && !processes(dir).is_empty(),
        "nothing runs: start it with `make up`"
    );
    Ok(path)
}

fn processes(dir: &Path) -> Vec<(String, u32)> {
    let groups = [PLANE].into_iter().chain(CONTROLLERS);
    groups
        .flat_map(|group| Group::open(&dir.join(group)).running())
        .map(|(name, identity)| (name, identity.pid))
        .collect()
}
