//! Decryption, and credentials of Helm repositories, with the Secrets of the namespace.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject},
};
use serde_json::{Value, json};
use testkit::{
    Registry,
    archive::tar_gz,
    eventually,
    registry::{Login, PASSWORD, USER},
    web::{Page, WebServer},
};

use crate::fixture::{Fixture, TIMEOUT, message_of};

const AGE: &str = include_str!("../../../secrets/fixtures/age.txt");
const PGP: &str = include_str!("../../../secrets/fixtures/ecc.asc");
const FOR_AGE: &str = include_str!("../../../secrets/fixtures/secret.yaml");
const FOR_PGP: &str = include_str!("../../../secrets/fixtures/ecc.yaml");

impl Fixture {
    pub(crate) async fn secret(&self, name: &str, values: Value) -> Result<DynamicObject> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": self.namespace },
            "stringData": values,
        });
        self.plane.apply(secret).await
    }

    /// Waits for a message of the Ready condition.
    pub(crate) async fn says(&self, name: &str, text: &str) -> Result<String> {
        eventually(&format!("a message with {text:?}"), TIMEOUT, || async move {
            let object = self.deployments().get(name).await?;
            let message = message_of(&object);
            ensure!(message.contains(text), "{message}");
            Ok(message)
        })
        .await
    }

    /// A project whose ConfigMap `a` holds a value of an encrypted file.
    pub(crate) fn encrypted(&self, file: &str) -> Vec<(String, String)> {
        let mut files = self.maps(&[("a", "{{ stringData.password }}")]);
        for (path, text) in &mut files {
            if path == "deployment.yaml" {
                text.push_str("vars:\n- file: secret.yaml\n");
            }
        }
        files.push(("secret.yaml".to_owned(), file.to_owned()));
        files
    }

    /// A project with a chart.
    fn with_chart(&self, repository: &str) -> Vec<(String, String)> {
        let mut files = self.maps(&[]);
        let chart = format!(
            "helmChart:\n  {repository}\n  chartVersion: 1.0.0\n  releaseName: shop\n  namespace: {}\n  \
             skipPrePull: true\n",
            self.namespace
        );
        files.retain(|(path, _)| path != "app/kustomization.yaml");
        files.push(("app/helm-chart.yaml".to_owned(), chart));
        files
    }
}

fn chart() -> Vec<u8> {
    tar_gz(&[
        ("shop/Chart.yaml", b"apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        (
            "shop/templates/map.yaml",
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {value: chart}\n",
        ),
    ])
}

#[tokio::test]
async fn encrypted_files_are_decrypted_with_the_current_keys_of_a_secret() -> Result<()> {
    let fixture = Fixture::new("sops", &[]).await?;
    let source = fixture.source("shop", &fixture.encrypted(FOR_AGE)).await?;
    fixture.deploy("shop", json!({ "interval": "1s" })).await?;
    fixture.says("shop", "secret.yaml").await?;

    let decryption = json!({ "decryption": { "provider": "sops", "secretRef": { "name": "keys" } } });
    fixture.edit("shop", decryption).await?;
    let name = format!("failed to get secret '{}/keys'", fixture.namespace);
    fixture.says("shop", &name).await?;
    fixture
        .secret("keys", json!({ "a.agekey": AGE, "notes.txt": "ignored" }))
        .await?;
    fixture.holds("a", "hunter2").await?;
    let object = fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(!serde_json::to_string(&object.status)?.contains("hunter2"));

    // Keys are read for each reconciliation.
    let secrets: Api<Secret> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    secrets.delete("keys", &DeleteParams::default()).await?;
    fixture.says("shop", &name).await?;
    fixture.secret("keys", json!({ "a.asc": PGP })).await?;
    fixture.says("shop", "no key opens the file").await?;
    source.offer(&fixture.encrypted(FOR_PGP)).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    fixture.secret("keys", json!({ "a.asc": "hunter2" })).await?;
    let message = fixture.says("shop", "/keys' cannot be used: a.asc: ").await?;
    ensure!(!message.contains("hunter2"), "{message}");
    Ok(())
}

#[tokio::test]
async fn charts_of_helm_repositories_need_the_credentials_of_a_secret() -> Result<()> {
    let fixture = Fixture::new("helm", &[]).await?;
    let server = WebServer::start()?;
    server.login("me", "s3cret");
    let index =
        "apiVersion: v1\nentries:\n  shop:\n  - name: shop\n    version: 1.0.0\n    urls: [shop-1.0.0.tgz]\n";
    server.page("/charts/index.yaml", Page::Content(index.into()));
    server.page("/charts/shop-1.0.0.tgz", Page::Content(chart().into()));
    let repository = format!(
        "repo: {}\n  chartName: shop\n  credentialsId: charts",
        server.url("/charts")
    );
    let source = fixture.source("shop", &fixture.with_chart(&repository)).await?;
    fixture.deploy("shop", json!({ "interval": "1s" })).await?;
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    let message = message_of(&object);
    ensure!(message.contains("401 Unauthorized"), "{message}");
    ensure!(
        message_of(&object).contains("spec.helmCredentials"),
        "{}",
        message_of(&object)
    );

    let credentials = json!({ "helmCredentials": [{ "secretRef": { "name": "charts" } }] });
    fixture.edit("shop", credentials).await?;
    fixture.says("shop", "failed to get secret").await?;
    fixture.secret("charts", json!({ "username": "me" })).await?;
    fixture
        .says("shop", "must at least contain 'credentialsId' or 'url'")
        .await?;
    let wrong = json!({ "credentialsId": "charts", "username": "me", "password": "wr0ng" });
    fixture.secret("charts", wrong).await?;
    let message = fixture
        .says("shop", "check the Secrets of spec.helmCredentials")
        .await?;
    ensure!(!message.contains("wr0ng"), "{message}");
    fixture.secret("charts", json!({ "password": "s3cret" })).await?;
    fixture.holds("a", "chart").await?;

    // A chart without an ID gets the credentials for its URL.
    let repository = repository.replace("  credentialsId: charts", "");
    source.offer(&fixture.with_chart(repository.trim_end())).await?;
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    let message = message_of(&object);
    ensure!(message.contains("401 Unauthorized"), "{message}");
    let by_url = json!({ "url": server.url("/charts"), "username": "me", "password": "s3cret" });
    fixture.secret("by-url", by_url).await?;
    let credentials = json!({ "helmCredentials": [{ "secretRef": { "name": "by-url" } }] });
    fixture.edit("shop", credentials).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    Ok(())
}

#[tokio::test]
async fn charts_of_registries_need_the_credentials_of_a_secret() -> Result<()> {
    let fixture = Fixture::new("registry", &[]).await?;
    let registry = Registry::start(Login::Basic, None).await?;
    registry.push_chart("charts/shop", "1.0.0", &chart()).await?;
    let repository = format!("repo: oci://{}/charts/shop", registry.host());
    fixture.source("shop", &fixture.with_chart(&repository)).await?;
    fixture.deploy("shop", json!({ "interval": "1s" })).await?;
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    let message = message_of(&object);
    ensure!(message.contains("401 Unauthorized"), "{message}");

    let url = format!("oci://{}/charts", registry.host());
    let login = json!({ "url": url, "username": USER, "password": PASSWORD });
    fixture.secret("charts", login).await?;
    let credentials = json!({ "helmCredentials": [{ "secretRef": { "name": "charts" } }] });
    fixture.edit("shop", credentials).await?;
    fixture.holds("a", "chart").await?;
    Ok(())
}
