//! Panics in the passes over one object. The controller is `examples/panicking.rs`: the controller of the product with kinds that panic on demand.

#[path = "../../../deployer/tests/panicking/scenario.rs"]
mod scenario;

use anyhow::Result;
use kube::api::{Api, DynamicObject};
use scenario::{BAD, FLAGS, GOOD, Subject};
use serde_json::json;
use testkit::Controller;

use crate::{
    fixture::{Fixture, for_kind, grant, plane},
    gitops::Gitops,
    source::OfferedSource,
};

/// A controller with a project for each object of one kind, all in one repository.
struct Projects {
    shop: Gitops,
    /// The source of the projects; none for the kind that fetches them by itself.
    source: Option<OfferedSource>,
    objects: Api<DynamicObject>,
}

impl Projects {
    async fn start(prefix: &str, is_flux: bool) -> Result<Self> {
        let plane = plane().await?;
        let namespace = plane.namespace(prefix).await?;
        let kubeconfig = plane.service_account_kubeconfig(&namespace, "controller").await?;
        grant(plane, &namespace, "controller", &namespace).await?;
        let mut launch = Controller::named("kluctl-controller")
            .program(scenario::example("kluctl-controller", "panicking")?)
            .run_by(&kubeconfig)
            .namespace(&namespace)
            .flag("--watch-all-namespaces=false")
            .flag(&format!("--command-result-namespace={prefix}-results"));
        for flag in FLAGS {
            launch = launch.flag(flag);
        }
        let controller = launch.start().await?;
        let fixture = Fixture::of(plane, &namespace, namespace.clone(), controller).await?;
        let source = match is_flux {
            true => Some(fixture.source("shop", &[]).await?),
            false => None,
        };
        let version = match is_flux {
            true => "flux.kluctl.io/v1alpha1",
            false => "gitops.kluctl.io/v1beta1",
        };
        let object = json!({
            "apiVersion": version, "kind": "KluctlDeployment",
            "metadata": { "name": BAD, "namespace": namespace },
        });
        let (objects, _) = plane.api_for(object).await?;
        let shop = Gitops::of(fixture)?;
        Ok(Self {
            shop,
            source,
            objects,
        })
    }

    fn fixture(&self) -> &Fixture {
        &self.shop.fixture
    }
}

impl Subject for Projects {
    fn controller(&self) -> &Controller {
        &self.fixture().controller
    }

    fn kind(&self) -> &'static str {
        match self.source {
            Some(_) => "kluctldeployment",
            None => "kluctldeployment-gitops",
        }
    }

    fn objects(&self) -> &Api<DynamicObject> {
        &self.objects
    }

    async fn publish(&self, value: &str) -> Result<()> {
        let mut all = Vec::new();
        for name in GOOD.iter().chain([&BAD]) {
            let files = self.fixture().other_maps(name, &[(name, value)]);
            all.extend(
                files
                    .into_iter()
                    .map(|(path, text)| (format!("{name}/{path}"), text)),
            );
        }
        match &self.source {
            Some(source) => source.offer(&all).await.map(drop),
            None => self.shop.push_files(&all, &[]).map(drop),
        }
    }

    async fn create(&self, name: &str) -> Result<()> {
        let spec = json!({ "interval": "1s", "retryInterval": "1s", "prune": true, "delete": true });
        match &self.source {
            Some(_) => {
                let deployment = self.fixture().deployment(name, "shop").spec(for_kind());
                let deployment = deployment.spec(spec).spec(json!({ "path": name }));
                self.fixture().plane.apply(deployment).await?;
                Ok(())
            }
            None => {
                let mut spec = spec;
                spec["source"] = json!({ "git": { "url": self.shop.repo.url(), "path": name } });
                self.shop.create(name, spec).await
            }
        }
    }

    async fn holds(&self, name: &str, value: &str) -> Result<()> {
        self.fixture().holds(name, value).await.map(drop)
    }

    async fn has(&self, name: &str) -> Result<bool> {
        self.fixture().has(name).await
    }
}

#[tokio::test]
async fn panics_over_one_flux_deployment_delay_no_other_and_end_with_their_cause() -> Result<()> {
    scenario::play(&Projects::start("panics-flux", true).await?).await
}

#[tokio::test]
async fn panics_over_one_gitops_deployment_delay_no_other_and_end_with_their_cause() -> Result<()> {
    scenario::play(&Projects::start("panics-gitops", false).await?).await
}
