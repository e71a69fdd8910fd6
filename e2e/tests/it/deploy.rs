//! `deploy/` on a cluster that enforces the restricted Pod Security Standard.

use std::{fs, path::Path, time::Duration};

use anyhow::{Result, ensure};
use api::kluctl::KluctlDeployment;
use e2e::cluster::{CONTROLLERS, NAMESPACE, TIMEOUT, TestCluster, ready_condition, root};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Namespace, rbac::v1::ClusterRoleBinding},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, ResourceExt as _, api::ListParams};
use serde_json::json;
use testkit::wait_for;

pub(crate) async fn install(cluster: &TestCluster, overlay: &str) -> Result<()> {
    let path = root().join("deploy/overlays").join(overlay);
    cluster
        .plane
        .kubectl(&["apply", "--server-side", "-k", &path.to_string_lossy()])
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn default_overlay_runs_under_the_restricted_standard() -> Result<()> {
    crate::init();
    let cluster = TestCluster::bare().await?;
    install(&cluster, "default").await?;
    let namespace = Api::<Namespace>::all(cluster.client.clone())
        .get(NAMESPACE)
        .await?;
    assert_eq!(
        namespace
            .labels()
            .get("pod-security.kubernetes.io/enforce")
            .map(String::as_str),
        Some("restricted")
    );
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    for &name in CONTROLLERS {
        let available = |deployment: &Deployment| {
            deployment
                .status
                .as_ref()
                .and_then(|status| status.available_replicas)
                .unwrap_or_default()
                > 0
        };
        wait_for(
            &deployments,
            name,
            "the Deployment to be available",
            Duration::from_secs(60),
            available,
        )
        .await?;
    }
    cluster.stop().await
}

async fn arguments(cluster: &TestCluster) -> Result<Vec<String>> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let kluctl = deployments.get("kluctl-controller").await?;
    let pod = kluctl.spec.and_then(|spec| spec.template.spec);
    let containers = pod.map(|pod| pod.containers).unwrap_or_default();
    let args = containers
        .into_iter()
        .flat_map(|container| container.args.unwrap_or_default());
    Ok(args.collect())
}

async fn may(cluster: &TestCluster, user: &str, question: &[&str]) -> Result<bool> {
    let user = format!("--as=system:serviceaccount:{user}");
    let command = [&["auth", "can-i"], question, &[user.as_str()]].concat();
    // `kubectl` fails where the answer is no.
    Ok(cluster
        .plane
        .kubectl(&command)
        .await
        .is_ok_and(|answer| answer.trim() == "yes"))
}

#[tokio::test(flavor = "multi_thread")]
async fn overlays_differ_in_the_rights_of_the_kluctl_controller() -> Result<()> {
    crate::init();
    let cluster = TestCluster::bare().await?;
    let controller = format!("{NAMESPACE}:kluctl-controller");
    let everything = ["*", "*", "--all-namespaces"];
    let tenancy = [
        "--no-cross-namespace-refs=true",
        "--default-service-account=default",
    ];
    install(&cluster, "default").await?;
    let args = arguments(&cluster).await?;
    assert!(
        tenancy.iter().all(|flag| args.iter().any(|arg| arg == flag)),
        "{args:?}"
    );
    assert!(!may(&cluster, &controller, &everything).await?);
    assert!(
        may(
            &cluster,
            &controller,
            &["impersonate", "serviceaccounts", "--all-namespaces"]
        )
        .await?
    );
    install(&cluster, "cluster-admin").await?;
    let args = arguments(&cluster).await?;
    assert!(
        !tenancy.iter().any(|flag| args.iter().any(|arg| arg == flag)),
        "{args:?}"
    );
    assert!(may(&cluster, &controller, &everything).await?);
    cluster.stop().await
}

/// Returns the path of `to` from the directory `from`, both absolute.
fn relative(from: &Path, to: &Path) -> String {
    let up = from.components().skip(1).map(|_| "..");
    let down = to
        .components()
        .skip(1)
        .map(|part| part.as_os_str().to_str().unwrap());
    up.chain(down).collect::<Vec<_>>().join("/")
}

async fn install_with(cluster: &TestCluster, component: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (overlay, deploy) = (dir.path().canonicalize()?, root().canonicalize()?.join("deploy"));
    let kustomization = json!({
        "resources": [relative(&overlay, &deploy.join("overlays/default"))],
        "components": [relative(&overlay, &deploy.join("components").join(component))],
    });
    fs::write(overlay.join("kustomization.yaml"), kustomization.to_string())?;
    let path = overlay.to_string_lossy();
    let apply = ["apply", "--server-side", "-k", &path];
    cluster.plane.kubectl(&apply).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn component_of_current_versions_serves_no_older_one() -> Result<()> {
    crate::init();
    let cluster = TestCluster::bare().await?;
    install_with(&cluster, "current-versions").await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let ours = |definition: &CustomResourceDefinition| {
        ["toolkit.fluxcd.io", "kluctl.io"]
            .iter()
            .any(|group| definition.spec.group.ends_with(group))
    };
    let definitions = definitions
        .list(&ListParams::default())
        .await?
        .items
        .into_iter()
        .filter(ours);
    let served: Vec<(String, usize)> = definitions
        .map(|definition| {
            let served = definition
                .spec
                .versions
                .iter()
                .filter(|version| version.served)
                .count();
            (definition.name_any(), served)
        })
        .collect();
    assert!(
        served.len() > 10 && served.iter().all(|(_, served)| *served == 1),
        "{served:?}"
    );
    cluster.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn component_of_the_shared_store_lets_two_replicas_serve() -> Result<()> {
    crate::init();
    let cluster = TestCluster::bare().await?;
    install_with(&cluster, "shared-store").await?;
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let spec = deployments.get("source-controller").await?.spec.unwrap();
    let strategy = spec.strategy.and_then(|strategy| strategy.type_);
    assert_eq!(
        (spec.replicas, strategy.as_deref()),
        (Some(2), Some("RollingUpdate"))
    );
    let pod = spec.template.spec.unwrap();
    let secrets = pod.containers.into_iter().flat_map(|container| {
        let sources = container.env_from.unwrap_or_default().into_iter();
        sources.filter_map(|source| source.secret_ref)
    });
    let secrets: Vec<_> = secrets.map(|secret| secret.name).collect();
    assert_eq!(secrets, ["source-controller-shared-store"]);
    cluster.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn component_of_artifact_tokens_gives_the_consumer_one() -> Result<()> {
    crate::init();
    let cluster = TestCluster::bare().await?;
    install_with(&cluster, "artifact-tokens").await?;
    let args = arguments(&cluster).await?;
    let directory = "/var/run/secrets/weir-artifacts";
    assert!(
        args.contains(&format!("--artifact-token-file={directory}/token")),
        "{args:?}"
    );
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let kluctl = deployments.get("kluctl-controller").await?;
    let pod = kluctl.spec.and_then(|spec| spec.template.spec).unwrap();
    let mounts = pod
        .containers
        .iter()
        .flat_map(|container| container.volume_mounts.iter().flatten());
    let mount = mounts
        .into_iter()
        .find(|mount| mount.mount_path == directory)
        .unwrap();
    let volume = pod
        .volumes
        .iter()
        .flatten()
        .find(|volume| volume.name == mount.name);
    let sources = volume
        .and_then(|volume| volume.projected.clone()?.sources)
        .unwrap_or_default();
    let audiences = sources
        .iter()
        .filter_map(|source| source.service_account_token.as_ref()?.audience.as_deref());
    assert_eq!(audiences.collect::<Vec<_>>(), ["weir-artifacts"]);
    let reviews = ["create", "tokenreviews.authentication.k8s.io"];
    for (account, expected) in [("source-controller", true), ("kluctl-controller", false)] {
        let account = format!("{NAMESPACE}:{account}");
        assert_eq!(may(&cluster, &account, &reviews).await?, expected, "{account}");
    }
    cluster.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn editors_of_a_namespace_write_no_status() -> Result<()> {
    crate::init();
    let cluster = TestCluster::bare().await?;
    let namespace = cluster.plane.namespace("tenant").await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "editor", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "editor", "namespace": namespace}],
    });
    cluster.plane.apply(binding).await?;
    let editor = format!("{namespace}:editor");
    for kind in [
        "gitrepositories.source.toolkit.fluxcd.io",
        "kluctldeployments.flux.kluctl.io",
        "alerts.notification.toolkit.fluxcd.io",
    ] {
        testkit::eventually("the aggregated role", TIMEOUT, || async {
            ensure!(
                may(&cluster, &editor, &["patch", kind, "-n", &namespace]).await?,
                "{kind}"
            );
            Ok(())
        })
        .await?;
        let status = ["patch", kind, "--subresource=status", "-n", &namespace];
        assert!(!may(&cluster, &editor, &status).await?, "{kind}");
    }
    cluster.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_deploys_with_the_rights_of_his_namespace() -> Result<()> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    for name in ["source-controller", "kluctl-controller"] {
        cluster.start(name, &[]).await?;
    }
    let namespace = cluster.plane.namespace("tenant").await?;
    let repo = cluster.git.repo("project")?;
    let theft = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: tenant-admin}\n\
                 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n";
    repo.commit(
        "first",
        &[
            (
                ".kluctl.yaml",
                "discriminator: tenant\ntargets:\n  - name: only\n    context: default\n",
            ),
            ("deployment.yaml", "deployments:\n  - path: app\n"),
            ("app/theft.yaml", theft),
        ],
    )?;
    let metadata = json!({"name": "app", "namespace": namespace});
    let source = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": metadata,
        "spec": {"interval": "1h", "url": repo.url(), "ref": {"branch": "main"}},
    });
    let deployment = json!({
        "apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment", "metadata": metadata,
        "spec": {"interval": "1h", "target": "only", "sourceRef": {"kind": "GitRepository", "name": "app"}},
    });
    for object in [source, deployment] {
        cluster.plane.apply(object).await?;
    }
    let deployments: Api<KluctlDeployment> = Api::namespaced(cluster.client.clone(), &namespace);
    let user = format!("system:serviceaccount:{namespace}:default");
    let refused = |object: &KluctlDeployment| {
        ready_condition(object).is_some_and(|ready| {
            ready.is_false() && ready.message.contains("forbidden") && ready.message.contains(&user)
        })
    };
    wait_for(&deployments, "app", "to be refused", TIMEOUT, refused).await?;
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client.clone());
    assert!(bindings.get_opt("tenant-admin").await?.is_none());
    cluster.stop().await
}
