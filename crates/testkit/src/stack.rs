//! The controllers of this project, installed and running as their own service accounts.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::json;

use crate::{ControlPlane, Controller, controller::Launch, progress::say, wait::wait_for};

pub const NAMESPACE: &str = "flux-system";
/// The ServiceAccount of that namespace that deployments of the platform name: it is cluster-admin.
pub const DEPLOYER: &str = "deployer";
/// All controllers, in the order of their start: the others post their events to the first.
pub const CONTROLLERS: &[&str] = include!(concat!(env!("OUT_DIR"), "/controllers.rs"));

/// Timeout of an installation that a test waits for.
const INSTALLATION: Duration = Duration::from_secs(300);
/// Flags of Deployments about volumes and Services of Pods: processes on this machine have their own.
const OF_PODS: [&str; 7] = [
    "--artifact-token-file",
    "--artifact-token-hosts",
    "--events-addr",
    "--events-token-file",
    "--journal-path",
    "--storage-adv-addr",
    "--storage-path",
];

#[derive(Debug)]
pub struct Stack {
    controllers: Vec<Controller>,
}

impl Stack {
    /// Installs crds/ and the rights in deploy/overlays/dev, and starts the controllers as their service accounts.
    /// `adapt` may change how each one is started.
    pub async fn start(plane: &ControlPlane, adapt: impl Fn(Launch) -> Launch) -> Result<Self> {
        install(plane).await?;
        Self::start_installed(plane, adapt).await
    }

    /// Starts the controllers on a control plane with CRDs and rights.
    pub async fn start_installed(plane: &ControlPlane, adapt: impl Fn(Launch) -> Launch) -> Result<Self> {
        let (first, others) = CONTROLLERS.split_first().context("there are no controllers")?;
        let receiver = adapt(launch(plane, first).await?).start().await?;
        let events = receiver.events_url();
        let start = async |name: &&str| adapt(launch(plane, name).await?.events_to(&events)).start().await;
        let mut controllers = try_join_all(others.iter().map(start)).await?;
        controllers.insert(0, receiver);
        Ok(Self { controllers })
    }

    /// Waits until the cluster has the Deployments of all controllers, and starts these with the rights and flags that the Deployments give them,
    /// as a kubelet does.
    pub async fn start_deployed(plane: &ControlPlane, adapt: impl Fn(Launch) -> Launch) -> Result<Self> {
        let deployments: Api<Deployment> = Api::namespaced(plane.client().await?, NAMESPACE);
        let mut flags = BTreeMap::new();
        for &name in CONTROLLERS {
            let deployment = wait_for(&deployments, name, "the Deployment", INSTALLATION, |_| true).await?;
            flags.insert(name, deployed_flags(&deployment));
        }
        Self::start_installed(plane, |launch| {
            let own = flags.get(launch.name()).into_iter().flatten();
            adapt(own.fold(launch, |launch, flag| launch.flag(flag)))
        })
        .await
    }

    #[must_use]
    pub fn controllers(&self) -> &[Controller] {
        &self.controllers
    }

    /// Ends the controllers gracefully, the receiver of events last.
    pub async fn terminate(self) -> Result<()> {
        for controller in self.controllers.iter().rev() {
            controller.terminate().await?;
        }
        Ok(())
    }
}

/// Returns the flags of a Deployment that also hold outside of a Pod.
fn deployed_flags(deployment: &Deployment) -> Vec<String> {
    let pod = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    let containers = pod.map(|pod| pod.containers.as_slice()).unwrap_or_default();
    let flags = containers
        .iter()
        .filter_map(|container| container.args.as_ref())
        .flatten();
    flags
        .filter(|flag| !OF_PODS.contains(&flag.split('=').next().unwrap_or_default()))
        .map(|flag| flag.replace("$(RUNTIME_NAMESPACE)", NAMESPACE))
        .collect()
}

/// Audience of the tokens that controllers send with their events.
pub const EVENTS_AUDIENCE: &str = "weir-events";

/// Returns the builder of a controller that runs as its own service account, with the flags of the default overlay: objects deploy
/// as a service account, no reference leaves its namespace, and events have tokens.
pub async fn launch(plane: &ControlPlane, name: &str) -> Result<Launch> {
    let kubeconfig = plane.service_account_kubeconfig(NAMESPACE, name).await?;
    let launch = Controller::named(name)
        .run_by(&kubeconfig)
        .namespace(NAMESPACE)
        .flag("--enable-leader-election");
    let launch = match name {
        "notification-controller" => {
            return Ok(launch
                .flag("--no-cross-namespace-refs=true")
                .flag("--require-event-tokens"));
        }
        "kluctl-controller" | "kustomize-controller" => launch
            .flag("--no-cross-namespace-refs=true")
            .flag("--default-service-account=default"),
        _ => launch,
    };
    let token = plane
        .service_account_token_file(NAMESPACE, name, EVENTS_AUDIENCE)
        .await?;
    Ok(launch.flag(&format!("--events-token-file={}", token.display())))
}

/// Installs crds/ and the rights in deploy/overlays/dev, as far as they are there.
pub async fn install(plane: &ControlPlane) -> Result<()> {
    plane.namespace_named(NAMESPACE).await?;
    let crds = repository().join("crds");
    if crds.is_dir() {
        plane.install_crds(&crds).await?;
    }
    let overlay = repository().join("deploy/overlays/dev");
    if overlay.is_dir() {
        let overlay = overlay.to_str().context("the path of deploy/ isn't UTF-8")?;
        plane
            .kubectl(&["apply", "--server-side", "--force-conflicts", "-k", overlay])
            .await?;
    } else {
        say(format_args!(
            "{} isn't there: the controllers get no rights",
            overlay.display()
        ));
    }
    deployer(plane).await
}

/// Makes the service account that deployments name, with the rights that an operator would give the platform's own.
async fn deployer(plane: &ControlPlane) -> Result<()> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEPLOYER, "namespace": NAMESPACE},
    });
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{NAMESPACE}-{DEPLOYER}")},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": DEPLOYER, "namespace": NAMESPACE}],
    });
    for object in [account, binding] {
        plane.apply(object).await?;
    }
    Ok(())
}

#[must_use]
pub fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}
