//! Fault 9: panics in the passes over one object. The controller is `examples/panicking_kustomizations.rs`: the controller of the product with a kind
//! that panics on demand.

#[path = "../../../deployer/tests/panicking/scenario.rs"]
mod scenario;

use anyhow::Result;
use kube::api::{Api, DynamicObject};
use scenario::{BAD, FLAGS, GOOD, Subject};
use serde_json::json;
use testkit::{Controller, wait_for};

use crate::fixture::{Fixture, TIMEOUT, map, plane};

/// The source of all objects, with a folder for each.
const SOURCE: &str = "shop";

struct Folders {
    fixture: Fixture,
    objects: Api<DynamicObject>,
}

impl Folders {
    async fn start() -> Result<Self> {
        let program = scenario::example("kustomize-controller", "panicking_kustomizations")?;
        let plane = plane().await?;
        let namespace = plane.namespace("panics").await?;
        let kubeconfig = plane.service_account_kubeconfig(&namespace, "controller").await?;
        let launch = Controller::named("kustomize-controller").program(program);
        let launch = launch.run_by(&kubeconfig);
        let fixture = Fixture::launched(plane, namespace, launch, &FLAGS).await?;
        let (objects, _) = plane.api_for(fixture.kustomization(BAD, &json!({}))).await?;
        Ok(Self { fixture, objects })
    }
}

impl Subject for Folders {
    fn controller(&self) -> &Controller {
        &self.fixture.controller
    }

    fn kind(&self) -> &'static str {
        "kustomization"
    }

    fn objects(&self) -> &Api<DynamicObject> {
        &self.objects
    }

    async fn publish(&self, value: &str) -> Result<()> {
        let names = GOOD.iter().chain([&BAD]);
        let files: Vec<_> = names
            .map(|name| (format!("{name}/map.yaml"), map(name, value)))
            .collect();
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.clone()))
            .collect();
        self.fixture.offer(SOURCE, &files).await.map(drop)
    }

    async fn create(&self, name: &str) -> Result<()> {
        let source = json!({ "kind": "GitRepository", "name": SOURCE });
        let spec = json!({ "interval": "1s", "path": name, "sourceRef": source });
        self.fixture.deploy(name, spec).await
    }

    async fn holds(&self, name: &str, value: &str) -> Result<()> {
        wait_for(&self.fixture.maps(), name, value, TIMEOUT, |map| {
            let data = map.data.as_ref();
            data.and_then(|data| data.get("value")).map(String::as_str) == Some(value)
        })
        .await
        .map(drop)
    }

    async fn has(&self, name: &str) -> Result<bool> {
        Ok(self.fixture.maps().get_opt(name).await?.is_some())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn panics_over_one_object_delay_no_other_and_end_with_their_cause() -> Result<()> {
    scenario::play(&Folders::start().await?).await
}
