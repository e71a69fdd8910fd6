//! Clusters of clouds that a ConfigMap names. The clouds are played by the test; their clusters are the test's own API server, which takes tokens of
//! ServiceAccounts.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use testkit::{Controller, WebServer, wait_for, web::Page};

use crate::fixture::{Fixture, TIMEOUT, condition, grant, map, plane};

const SUBSCRIPTION: &str = "01234567-89ab-cdef-0123-456789abcdef";
/// The ServiceAccount that the tokens of the clouds are of.
const REMOTE: &str = "remote";

fn aks() -> String {
    format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/shop"
    )
}

/// The annotations of accounts with identities of the clouds.
fn identities() -> Value {
    json!({
        "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/r",
        "azure.workload.identity/client-id": "app",
        "azure.workload.identity/tenant-id": "tenant",
        "gcp.auth.fluxcd.io/workload-identity-provider":
            "projects/1/locations/global/workloadIdentityPools/p/providers/k",
    })
}

/// A controller whose environment leads to a server that plays all clouds.
struct Clouds {
    fixture: Fixture,
    server: WebServer,
}

impl Clouds {
    async fn start() -> Result<Self> {
        let (plane, server) = (plane().await?, WebServer::start()?);
        let namespace = plane.namespace("clouds").await?;
        let azure = Self::environment_of_azure(&plane.dir().join(format!("{namespace}.json")), &server)?;
        let kubeconfig = plane.service_account_kubeconfig(&namespace, "controller").await?;
        let launch = Controller::named("kustomize-controller").run_by(&kubeconfig);
        let endpoints = [
            "AWS_ENDPOINT_URL",
            "AZURE_AUTHORITY_HOST",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STS",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER",
        ];
        let at = server.url("/");
        let launch = endpoints
            .into_iter()
            .fold(launch, |launch, name| launch.env(name, &at));
        let launch = launch.env("AZURE_ENVIRONMENT_FILEPATH", &azure.display().to_string());
        let fixture = Fixture::launched(plane, namespace, launch, &[]).await?;
        let clouds = Self { fixture, server };
        clouds.answer().await?;
        Ok(clouds)
    }

    fn environment_of_azure(file: &Path, server: &WebServer) -> Result<PathBuf> {
        let endpoints = json!({
            "resourceManagerEndpoint": server.url("/"), "tokenAudience": "https://management.test/",
        });
        std::fs::write(file, endpoints.to_string())?;
        Ok(file.to_owned())
    }

    /// Lets the server answer as the clouds do.
    async fn answer(&self) -> Result<()> {
        let Fixture { plane, namespace, .. } = &self.fixture;
        let audience = "https://kubernetes.default.svc";
        let token = plane.service_account_token(namespace, REMOTE, audience).await?;
        grant(plane, namespace, REMOTE).await?;
        let (server, authority) = (plane.server(), BASE64_STANDARD.encode(plane.ca_pem()?));
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "shop",
            "contexts": [{ "name": "shop", "context": { "cluster": "shop", "user": "someone" } }],
            "clusters": [{ "name": "shop", "cluster": { "server": server, "certificate-authority-data": authority } }],
            "users": [{ "name": "someone", "user": { "exec": { "command": "kubelogin" } } }],
        });
        let kubeconfig = BASE64_STANDARD.encode(kubeconfig.to_string());
        let access = json!({ "access_token": token, "expires_in": 3600 });
        let page = |path: &str, answer: &Value| {
            self.server.page(path, Page::Content(answer.to_string().into()));
        };
        page("/v1/token", &access);
        page(
            "/v1/projects/p/locations/l/clusters/shop",
            &json!({
                "endpoint": server.trim_start_matches("https://"),
                "masterAuth": { "clusterCaCertificate": authority },
            }),
        );
        page("/tenant/oauth2/v2.0/token", &access);
        page(&aks(), &json!({ "properties": { "aadProfile": {} } }));
        page(
            &format!("{}/listClusterUserCredential", aks()),
            &json!({ "kubeconfigs": [{ "name": "clusterUser", "value": kubeconfig }] }),
        );
        page(
            "/clusters/shop",
            &json!({ "cluster": { "endpoint": server, "certificateAuthority": { "data": authority } } }),
        );
        let role = "<Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s3cret</SecretAccessKey>\
                    <SessionToken>t</SessionToken></Credentials>";
        self.server.page("/", Page::Content(role.into()));
        Ok(())
    }

    /// Applies a Kustomization for a cluster of a cloud, and returns the revision of its source.
    async fn deploy(&self, provider: &str, cluster: &str) -> Result<String> {
        let Fixture { plane, namespace, .. } = &self.fixture;
        let named = |kind: &str| json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": provider, "namespace": namespace } });
        let mut account = named("ServiceAccount");
        account["metadata"]["annotations"] = identities();
        plane.apply(account).await?;
        let mut described = named("ConfigMap");
        described["data"] =
            json!({ "provider": provider, "cluster": cluster, "serviceAccountName": provider });
        plane.apply(described).await?;
        let revision = self
            .fixture
            .offer(provider, &[("a.yaml", map(&format!("of-{provider}"), "1"))])
            .await?;
        let by_map = json!({ "kubeConfig": { "configMapRef": { "name": provider } } });
        self.fixture.deploy(provider, by_map).await?;
        Ok(revision)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_clouds_are_looked_up_and_deployed_to_with_their_tokens() -> Result<()> {
    let clouds = Clouds::start().await?;
    let fixture = &clouds.fixture;
    let mark = fixture.plane.audit_mark();
    for (provider, cluster) in [("gcp", "projects/p/locations/l/clusters/shop"), ("azure", &aks())] {
        let revision = clouds.deploy(provider, cluster).await?;
        fixture.applied(provider, &revision).await?;
    }
    let writers: Vec<_> = fixture
        .plane
        .audit_since(mark)?
        .into_iter()
        .filter(|entry| entry.is_write() && entry.resource == "configmaps" && entry.name.starts_with("of-"))
        .map(|entry| entry.user)
        .collect();
    let remote = format!("system:serviceaccount:{}:{REMOTE}", fixture.namespace);
    ensure!(
        writers.len() >= 2 && writers.iter().all(|user| *user == remote),
        "{writers:?}"
    );

    // Only an API server of EKS takes its tokens.
    clouds
        .deploy("aws", "arn:aws:eks:eu-west-1:1:cluster/shop")
        .await?;
    let failed = wait_for(&fixture.objects(), "aws", "a refusal", TIMEOUT, |object| {
        condition(object, "Ready")["status"] == "False"
    })
    .await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    ensure!(message.contains("Unauthorized"), "{message}");
    let asked = clouds.server.asked();
    let looked_up = asked.iter().find(|asked| asked.path == "/clusters/shop");
    let signature = looked_up.and_then(|asked| asked.authorization.clone());
    ensure!(
        signature.is_some_and(|signature| signature.contains("/eu-west-1/eks/aws4_request")),
        "{asked:?}"
    );

    // A name of another form is refused with the form, and no secret of a cloud is told.
    clouds.deploy("gcp", "shop").await?;
    let failed = fixture.ready("gcp", "False", "ReconciliationFailed").await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    ensure!(
        message.contains("it is not projects/PROJECT/locations/LOCATION/clusters/NAME"),
        "{message}"
    );
    ensure!(
        !fixture.controller.log().contains("s3cret"),
        "a secret is in the log"
    );
    Ok(())
}
