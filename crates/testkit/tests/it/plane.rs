//! The control plane: its features, that several stand side by side, and that nothing of it is left over.

use std::time::{Duration, Instant};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{PersistentVolumeClaim, Service},
};
use kube::Api;
use testkit::{ControlPlane, Options, eventually, wait_for};

const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

const WORKLOAD: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"#;

#[tokio::test]
async fn deployments_load_balancers_and_claims_become_ready() {
    let plane = ControlPlane::shared().await.expect("starts");
    let namespace = plane.namespace("workload").await.expect("is made");
    let args = ["apply", "--server-side", "--namespace", &namespace, "-f", "-"];
    plane.kubectl_with(&args, WORKLOAD).await.expect("is applied");
    let client = plane.client().await.expect("connects");
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let services: Api<Service> = Api::namespaced(client.clone(), &namespace);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, &namespace);
    wait_for(
        &deployments,
        "web",
        "3 available replicas",
        TIMEOUT,
        |deployment| {
            deployment
                .status
                .as_ref()
                .and_then(|status| status.available_replicas)
                == Some(3)
        },
    )
    .await
    .expect("becomes available");
    wait_for(&services, "web", "an address", TIMEOUT, |service| {
        let balancer = service
            .status
            .as_ref()
            .and_then(|status| status.load_balancer.as_ref());
        let ingress = balancer
            .and_then(|balancer| balancer.ingress.as_deref())
            .unwrap_or_default();
        ingress
            .iter()
            .any(|ingress| ingress.ip.as_deref() == Some("203.0.113.10"))
    })
    .await
    .expect("gets an address");
    wait_for(&claims, "data", "a volume", TIMEOUT, |claim| {
        claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
    })
    .await
    .expect("is bound");
    let wrote = plane
        .audit()
        .expect("is read")
        .into_iter()
        .filter(|entry| entry.namespace == namespace && entry.is_write());
    let wrote: Vec<_> = wrote
        .map(|entry| (entry.user, entry.verb, entry.resource))
        .collect();
    assert!(
        wrote.contains(&("admin".to_owned(), "patch".to_owned(), "deployments".to_owned())),
        "{wrote:?}"
    );
}

#[tokio::test]
async fn wait_for_shows_the_last_state_on_timeout() {
    let plane = ControlPlane::shared().await.expect("starts");
    let namespace = plane.namespace("vain").await.expect("is made");
    plane
        .apply(serde_json::json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "quiet", "namespace": namespace},
            "spec": {"ports": [{"port": 4711}]},
        }))
        .await
        .expect("is applied");
    let services: Api<Service> = Api::namespaced(plane.client().await.expect("connects"), &namespace);
    let error = wait_for(&services, "quiet", "a miracle", Duration::from_secs(1), |_| false).await;
    let message = error.expect_err("no miracle happens").to_string();
    assert!(
        message.contains("a miracle") && message.contains("4711"),
        "{message}"
    );
}

#[tokio::test]
async fn service_account_has_its_granted_rights_only() {
    let plane = ControlPlane::shared().await.expect("starts");
    let namespace = plane.namespace("account").await.expect("is made");
    let kubeconfig = plane
        .service_account_kubeconfig(&namespace, "reader")
        .await
        .expect("gets a token");
    let client = testkit::controlplane::client(&kubeconfig)
        .await
        .expect("connects");
    let services: Api<Service> = Api::namespaced(client, &namespace);
    let error = services
        .list(&kube::api::ListParams::default())
        .await
        .expect_err("may not");
    assert!(
        matches!(&error, kube::Error::Api(status) if status.code == 403),
        "{error}"
    );
    let user = format!("system:serviceaccount:{namespace}:reader");
    eventually("the audit log to show the denial", TIMEOUT, || async {
        let entries = plane.audit()?;
        anyhow::ensure!(
            entries
                .iter()
                .any(|entry| entry.user == user && entry.is_denied()),
            "no denial of {user}"
        );
        Ok(())
    })
    .await
    .expect("is logged");
}

#[tokio::test]
async fn two_planes_run_side_by_side_and_leave_nothing() {
    let begin = Instant::now();
    let first = ControlPlane::start(Options::default()).await.expect("starts");
    let took = begin.elapsed();
    let second = ControlPlane::start(Options {
        audit_bodies: true,
        ..Options::default()
    })
    .await
    .expect("starts");
    eprintln!("a plane started in {took:?}");
    first.namespace_named("only-here").await.expect("is made");
    let seen = second
        .kubectl(&["get", "namespaces", "-o", "name"])
        .await
        .expect("lists");
    assert!(!seen.contains("only-here"), "{seen}");
    second.namespace_named("with-body").await.expect("is made");
    let created = second
        .audit()
        .expect("is read")
        .into_iter()
        .find(|entry| entry.name == "with-body" && entry.is_write());
    assert!(created.is_some_and(|entry| entry.request.is_some()));
    let (dir, processes) = (first.dir().to_owned(), first.processes());
    assert_eq!(processes.len(), 5);
    first.stop().expect("stops");
    assert!(!dir.exists() && processes.iter().all(|(_, process)| !process.is_alive()));
}

#[test]
fn plane_of_a_killed_owner_is_removed() {
    let program = env!("CARGO_BIN_EXE_testkit");
    let mut owner = std::process::Command::new(program)
        .arg("hold")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    let out = std::io::BufReader::new(owner.stdout.take().expect("is piped"));
    let dir = std::io::BufRead::lines(out)
        .next()
        .expect("says where")
        .expect("is text");
    let processes = testkit::process::Group::open(std::path::Path::new(&dir)).running();
    assert_eq!(processes.len(), 5, "{processes:?}");
    owner.kill().expect("is killed");
    owner.wait().expect("is reaped");
    testkit::process::sweep().expect("sweeps");
    for (name, process) in processes {
        assert!(process.wait_gone(TIMEOUT), "{name} is left over");
    }
    assert!(!std::path::Path::new(&dir).exists());
}
