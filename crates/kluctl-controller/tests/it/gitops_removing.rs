//! Removal of KluctlDeployments of gitops.kluctl.io.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ServiceAccount};
use kube::{Api, api::DeleteParams};
use serde_json::json;
use testkit::{eventually, wait_gone};

use crate::{
    fixture::{TIMEOUT, grant_in},
    gitops::Gitops,
    waiting::NEVER_READY,
};

#[tokio::test]
async fn removal_after_an_interrupted_first_deployment_deletes_what_it_applied() -> Result<()> {
    let mut shop = Gitops::with("gk-cut", &["--default-service-account=tenant"]).await?;
    let plane = shop.fixture.plane;
    let (own, other) = (shop.fixture.namespace.clone(), plane.namespace("gk-other").await?);
    // The account may list objects in two namespaces only, and nothing in the cluster.
    let tenant = (own.as_str(), "tenant");
    plane.service_account_kubeconfig(tenant.0, tenant.1).await?;
    grant_in(plane, &own, tenant).await?;
    grant_in(plane, &other, tenant).await?;
    let slow = NEVER_READY.replacen("metadata:\n", &format!("metadata:\n  namespace: {own}\n"), 1);
    let account =
        format!("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: zz\n  namespace: {other}\n");
    shop.push_files(
        &[],
        &[
            (
                ".kluctl.yaml",
                &format!("discriminator: {own}\ntargets:\n- name: test\n"),
            ),
            (
                "deployment.yaml",
                "deployments:\n- path: first\n- barrier: true\n",
            ),
            (
                "first/kustomization.yaml",
                "resources:\n- account.yaml\n- slow.yaml\n",
            ),
            ("first/account.yaml", &account),
            ("first/slow.yaml", &slow),
        ],
    )?;
    shop.create("shop", json!({ "delete": true, "context": null }))
        .await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(shop.fixture.client.clone(), &other);
    let slow: Api<Deployment> = Api::namespaced(shop.fixture.client.clone(), &own);
    eventually("the first objects", TIMEOUT, || async {
        accounts.get("zz").await?;
        slow.get("slow").await?;
        Ok(())
    })
    .await?;
    shop.fixture.controller.kill().await?;
    let status = shop.api().get("shop").await?.status.context("a status")?;
    ensure!(
        status.last_deploy_result.is_none(),
        "the deployment was not interrupted"
    );
    shop.api().delete("shop", &DeleteParams::default()).await?;
    shop.fixture.controller.restart().await?;
    wait_gone(&shop.api(), "shop", TIMEOUT).await?;
    ensure!(
        accounts.get_opt("zz").await?.is_none(),
        "the ServiceAccount is left"
    );
    ensure!(slow.get_opt("slow").await?.is_none(), "the Deployment is left");
    Ok(())
}
