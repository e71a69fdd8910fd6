//! Runs a control plane and the controllers in the background.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::{
    ControlPlane, Controller, Options, Stack,
    process::{Group, end_strays},
    progress::say,
    stack::{self, CONTROLLERS},
};

use crate::print;

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
        Ok(None)
    } else {
        start_controllers(dir, &plane).await.map(Some)
    };
    let stack = match started {
        Ok(stack) => stack,
        Err(error) => {
            // A half-built plane would block the next try.
            clean(dir)?;
            return Err(error);
        }
    };
    fs::copy(plane.kubeconfig(), dir.join("kubeconfig"))?;
    let processes = processes(dir)
        .into_iter()
        .map(|(name, pid)| json!({"name": name, "pid": pid}));
    let controllers = stack.iter().flat_map(Stack::controllers).map(describe);
    let state = json!({
        "server": plane.server(),
        "processes": processes.collect::<Vec<_>>(),
        "controllers": controllers.collect::<Vec<_>>(),
    });
    fs::write(dir.join("state.json"), serde_json::to_string_pretty(&state)?)?;
    status(dir)?;
    say(format_args!(
        "\nexport KUBECONFIG={}\nIn {}, deployments may name the ServiceAccount {}, which is cluster-admin.\n`make down` stops it",
        dir.join("kubeconfig").display(),
        stack::NAMESPACE,
        stack::DEPLOYER,
    ));
    Ok(())
}

async fn start_controllers(dir: &Path, plane: &ControlPlane) -> Result<Stack> {
    say("installing crds/ and the rights in deploy/, and starting the controllers");
    Stack::start(plane, |launch| {
        let state = dir.join(launch.name());
        launch.detached(&state)
    })
    .await
}

fn describe(controller: &Controller) -> serde_json::Value {
    let addresses = controller.addresses();
    json!({
        "name": controller.name(),
        "metrics": format!("http://{}/metrics", addresses.metrics),
        "health": format!("http://{}/readyz", addresses.health),
        "log": controller.log_file(),
    })
}

/// Stops everything that `up` started in this folder, and nothing else.
pub(crate) fn down(dir: &Path) -> Result<()> {
    let count = processes(dir).len();
    clean(dir)?;
    say(format_args!("stopped {count} processes"));
    Ok(())
}

fn clean(dir: &Path) -> Result<()> {
    for &name in CONTROLLERS.iter().rev().chain([&PLANE]) {
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

pub(crate) fn kubeconfig(dir: &Path) -> Result<PathBuf> {
    let path = dir.join("kubeconfig");
    ensure!(
        path.exists() && !processes(dir).is_empty(),
        "nothing runs: start it with `make up`"
    );
    Ok(path)
}

fn processes(dir: &Path) -> Vec<(String, u32)> {
    let groups = [PLANE].into_iter().chain(CONTROLLERS.iter().copied());
    groups
        .flat_map(|group| Group::open(&dir.join(group)).running())
        .map(|(name, identity)| (name, identity.pid))
        .collect()
}
