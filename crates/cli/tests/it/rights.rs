//! Commands of users who may only work in one namespace.

use std::{path::PathBuf, process::Output};

use anyhow::Result;
use tempfile::TempDir;
use testkit::ControlPlane;

use crate::{
    commands::{stderr, weir},
    program::files,
};

/// A namespace with a service account that may do everything with ConfigMaps in it, and more by test.
struct Tenant {
    plane: &'static ControlPlane,
    namespace: String,
    kubeconfig: PathBuf,
    dir: TempDir,
}

impl Tenant {
    /// Creates the namespace and a project; `NAMESPACE` in the files stands for the namespace.
    async fn new(name: &str, project: &[(&str, &str)]) -> Result<Self> {
        let plane = ControlPlane::shared().await?;
        let namespace = plane.namespace(name).await?;
        let account = ["create", "serviceaccount", "tenant", "-n", &namespace];
        plane.kubectl(&account).await?;
        let project: Vec<(&str, String)> = project
            .iter()
            .map(|(path, text)| (*path, text.replace("NAMESPACE", &namespace)))
            .collect();
        let project: Vec<(&str, &str)> = project
            .iter()
            .map(|(path, text)| (*path, text.as_str()))
            .collect();
        let tenant = Self {
            plane,
            kubeconfig: plane.service_account_kubeconfig(&namespace, "tenant").await?,
            dir: files(&project),
            namespace,
        };
        tenant.allow("maps", "configmaps").await?;
        Ok(tenant)
    }

    async fn allow(&self, name: &str, resource: &str) -> Result<()> {
        let namespace = &self.namespace;
        let resource = format!("--resource={resource}");
        let role = ["create", "role", name, "-n", namespace, "--verb=*", &resource];
        self.plane.kubectl(&role).await?;
        let (role, account) = (
            format!("--role={name}"),
            format!("--serviceaccount={namespace}:tenant"),
        );
        let binding = ["create", "rolebinding", name, "-n", namespace, &role, &account];
        self.plane.kubectl(&binding).await?;
        Ok(())
    }

    /// Runs a command as the service account, with text output.
    fn run(&self, words: &str) -> Result<Output> {
        let words = format!("{words} --yes --write-command-result=false");
        let mut command = weir(self.dir.path(), &words);
        Ok(command.env("KUBECONFIG", &self.kubeconfig).output()?)
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: NAMESPACE}\n";

#[tokio::test(flavor = "multi_thread")]
async fn orphans_are_searched_by_namespace_without_rights_on_the_cluster() -> Result<()> {
    let tenant = Tenant::new(
        "tenant-orphans",
        &[
            (".kluctl.yaml", "discriminator: NAMESPACE\n"),
            (
                "deployment.yaml",
                "deployments: [{path: one}, {path: two, when: args.two | default(true)}]",
            ),
            ("one/m.yaml", MAP),
            ("two/m.yaml", &MAP.replace("name: m", "name: orphan")),
        ],
    )
    .await?;
    let deployed = tenant.run("deploy")?;
    assert!(
        deployed.status.success(),
        "{}{}",
        stdout(&deployed),
        stderr(&deployed)
    );
    let pruned = tenant.run("prune -a two=false")?;
    let text = stdout(&pruned);
    assert!(
        text.contains(
            "listing objects by discriminator on global level failed due to permission errors, so Kluctl reverted to \
             listing on namespace level"
        ),
        "{text}{}",
        stderr(&pruned)
    );
    let deleted = format!("Deleted objects:\n  {}/ConfigMap/orphan", tenant.namespace);
    assert!(text.contains(&deleted), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn right_to_list_namespaces_suffices_for_the_cluster_id() -> Result<()> {
    let project = [
        (".kluctl.yaml", "discriminator: NAMESPACE\n"),
        ("deployment.yaml", "deployments: [{path: app}]"),
        ("app/m.yaml", MAP),
    ];
    let tenant = Tenant::new("tenant-id", &project).await?;
    let (plane, namespace) = (tenant.plane, &tenant.namespace);
    let refused = tenant.run("deploy -o json")?;
    let messages = stderr(&refused);
    assert!(
        messages.contains(
            "failed to determine cluster ID due to missing get/list permissions for the kube-system namespace"
        ),
        "{messages}"
    );

    let role = [
        "create",
        "clusterrole",
        namespace,
        "--verb=list",
        "--resource=namespaces",
    ];
    plane.kubectl(&role).await?;
    let (role, account) = (
        format!("--clusterrole={namespace}"),
        format!("--serviceaccount={namespace}:tenant"),
    );
    let binding = ["create", "clusterrolebinding", namespace, &role, &account];
    plane.kubectl(&binding).await?;
    let deployed = tenant.run("deploy -o json")?;
    let messages = stderr(&deployed);
    assert!(!messages.contains("failed to determine"), "{messages}");
    let result: serde_json::Value = serde_json::from_slice(&deployed.stdout)?;
    let uid = [
        "get",
        "namespace",
        "kube-system",
        "-o",
        "jsonpath={.metadata.uid}",
    ];
    assert_eq!(result["clusterInfo"]["clusterId"], plane.kubectl(&uid).await?);
    Ok(())
}

/// A kind with a status, whose definition takes the place of the namespace in its group.
const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tabs.NAMESPACE.example.com}
spec:
  group: NAMESPACE.example.com
  scope: Namespaced
  names: {plural: tabs, singular: tab, kind: Tab}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties: {status: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

#[tokio::test(flavor = "multi_thread")]
async fn custom_resource_whose_status_may_not_be_read_is_deployed_with_a_warning() -> Result<()> {
    let wait = "annotations: {kluctl.io/wait-readiness: 'true'}";
    let tab = format!(
        "apiVersion: NAMESPACE.example.com/v1\nkind: Tab\nmetadata: {{name: t, namespace: NAMESPACE, {wait}}}\n"
    );
    let map = MAP.replace("name: m", &format!("name: m, {wait}"));
    let project = [
        (".kluctl.yaml", "discriminator: NAMESPACE\n"),
        ("deployment.yaml", "deployments: [{path: app}]"),
        ("app/tab.yaml", tab.as_str()),
        ("app/map.yaml", map.as_str()),
    ];
    let tenant = Tenant::new("tenant-status", &project).await?;
    let (plane, namespace) = (tenant.plane, &tenant.namespace);
    plane
        .apply_yaml(&DEFINITION.replace("NAMESPACE", namespace))
        .await?;
    let definition = format!("crd/tabs.{namespace}.example.com");
    let wait = [
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        &definition,
    ];
    plane.kubectl(&wait).await?;
    let tabs = format!("tabs.{namespace}.example.com");
    tenant.allow("tabs", &tabs).await?;

    let deployed = tenant.run("deploy")?;
    let text = stdout(&deployed);
    assert!(deployed.status.success(), "{text}{}", stderr(&deployed));
    let warning = "/Tab/t: unable to determine if a status is expected";
    assert!(text.contains(&format!("\n  {namespace}{warning}")), "{text}");
    // Known kinds need no rights.
    assert!(!text.contains("ConfigMap/m: unable"), "{text}");

    tenant.allow("status", &format!("{tabs}/status")).await?;
    plane.kubectl(&["delete", "-n", namespace, &tabs, "t"]).await?;
    let waiting = tenant.run("deploy --readiness-timeout 1s")?;
    let text = stdout(&waiting);
    assert!(!text.contains("unable to determine"), "{text}");
    assert!(text.contains("no status available yet"), "{text}");
    Ok(())
}
