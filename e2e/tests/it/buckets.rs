//! A KluctlDeployment whose source is a bucket of a real S3-compatible server.

use anyhow::{Result, ensure};
use e2e::cluster::{NAMESPACE, TIMEOUT, TestCluster};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::json;
use testkit::{
    S3Server, eventually,
    s3::{ACCESS_KEY, SECRET_KEY},
};

async fn publish(server: &S3Server, value: &str) -> Result<()> {
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: from-bucket, namespace: {NAMESPACE}}}\ndata: {{value: '{value}'}}\n"
    );
    let files = [
        (
            "shop/.kluctl.yaml",
            "discriminator: bucket\ntargets:\n  - name: only\n    context: default\n",
        ),
        ("shop/deployment.yaml", "deployments:\n  - path: app\n"),
        ("shop/app/map.yaml", &map),
        ("other/deployment.yaml", "not: [a, project\n"),
    ];
    server.put("projects", &files).await
}

#[tokio::test(flavor = "multi_thread")]
async fn kluctl_deployment_follows_a_bucket() -> Result<()> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    let server = S3Server::start().await?;
    publish(&server, "1").await?;
    for name in ["source-controller", "kluctl-controller"] {
        cluster.start(name, &[]).await?;
    }
    let keys = json!({"accesskey": ACCESS_KEY, "secretkey": SECRET_KEY});
    cluster.apply_secret("bucket-keys", keys).await?;
    let bucket = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "Bucket",
        "metadata": {"name": "projects", "namespace": NAMESPACE},
        "spec": {
            "interval": "1s", "bucketName": "projects", "endpoint": server.endpoint(), "insecure": true,
            "prefix": "shop/", "secretRef": {"name": "bucket-keys"},
        },
    });
    cluster.plane.apply(bucket).await?;
    // Its interval is an hour: only new artifacts wake it.
    let spec = json!({
        "interval": "1h", "path": "shop", "target": "only", "sourceRef": {"kind": "Bucket", "name": "projects"},
    });
    cluster.apply_deployment("shop", "projects", spec).await?;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    for value in ["1", "2"] {
        publish(&server, value).await?;
        let found = eventually("the content of the bucket to be deployed", TIMEOUT, || async {
            let map = maps.get("from-bucket").await?;
            let found = map.data.and_then(|data| data.get("value").cloned());
            ensure!(found.as_deref() == Some(value), "{found:?}");
            Ok(())
        });
        found.await?;
    }
    cluster.stop().await
}
