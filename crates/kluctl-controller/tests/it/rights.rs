//! Rights that are withdrawn while the controller runs, and given back: of its own account, and of accounts in whose name it deploys.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};
use testkit::{ControlPlane, eventually};

use crate::{
    fixture::{Fixture, TIMEOUT, grant, grant_in, ready_of, value_of},
    gitops::{self, Gitops},
    source::OfferedSource,
};

/// Number of orders, each by its seed. From the second one on, the rights to delete stay: only care keeps the objects then.
const SEEDS: u64 = 2;
/// The object that the controller deploys as itself.
const OWN: &str = "own";
/// The object of an account that loses its rights, which has the same name.
const TENANT: &str = "tenant";
/// The object of an account that keeps its rights, which has the same name.
const OTHER: &str = "other";

/// Deployments of one group, of projects that hold some ConfigMaps each.
trait Deployments {
    fn fixture(&self) -> &Fixture;

    /// Publishes projects, by their names, that hold these ConfigMaps.
    async fn publish(&mut self, projects: &BTreeMap<&'static str, Vec<(String, String)>>) -> Result<()>;

    /// Creates an object for each project, which deploys it in the name of this account.
    async fn create(&self, name: &str, account: Option<&str>) -> Result<()>;

    /// Returns status and message of the Ready condition.
    async fn ready(&self, name: &str) -> Result<(String, String)>;
}

/// Objects of flux.kluctl.io with the source of each.
struct OfSources {
    fixture: Fixture,
    sources: BTreeMap<&'static str, OfferedSource>,
}

/// Returns the files of a project with these ConfigMaps and a discriminator of its own.
fn files(fixture: &Fixture, name: &str, maps: &[(String, String)]) -> Vec<(String, String)> {
    let maps: Vec<(&str, &str)> = maps.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    fixture.other_maps(name, &maps)
}

impl Deployments for OfSources {
    fn fixture(&self) -> &Fixture {
        &self.fixture
    }

    async fn publish(&mut self, projects: &BTreeMap<&'static str, Vec<(String, String)>>) -> Result<()> {
        for (name, maps) in projects {
            let files = files(&self.fixture, name, maps);
            if let Some(source) = self.sources.get(name) {
                source.offer(&files).await?;
            } else {
                let source = self.fixture.source(name, &files).await?;
                self.sources.insert(name, source);
            }
        }
        Ok(())
    }

    async fn create(&self, name: &str, account: Option<&str>) -> Result<()> {
        let spec =
            json!({ "interval": "1s", "prune": true, "serviceAccountName": account.unwrap_or_default() });
        self.fixture.deploy(name, spec).await
    }

    async fn ready(&self, name: &str) -> Result<(String, String)> {
        let object = self.fixture.deployments().get(name).await?;
        let (status, _, message) = ready_of(&object).context("no condition")?;
        Ok((status, message))
    }
}

/// Objects of gitops.kluctl.io, with a directory of one repository for each.
impl Deployments for Gitops {
    fn fixture(&self) -> &Fixture {
        &self.fixture
    }

    async fn publish(&mut self, projects: &BTreeMap<&'static str, Vec<(String, String)>>) -> Result<()> {
        let mut all = Vec::new();
        for (name, maps) in projects {
            let files = files(&self.fixture, name, maps);
            all.extend(
                files
                    .into_iter()
                    .map(|(path, text)| (format!("{name}/{path}"), text)),
            );
        }
        self.push_files(&all, &[]).map(drop)
    }

    async fn create(&self, name: &str, account: Option<&str>) -> Result<()> {
        let spec = json!({
            "interval": "1s", "retryInterval": "1s", "prune": true, "serviceAccountName": account,
            "source": { "git": { "url": self.repo.url(), "path": name } },
        });
        Self::create(self, name, spec).await
    }

    async fn ready(&self, name: &str) -> Result<(String, String)> {
        let status = self.api().get(name).await?.status.context("no status")?;
        let message = gitops::ready_of(&status).1.to_owned();
        let mut ready = status.conditions.iter().filter(|found| found.type_ == "Ready");
        let ready = ready.next().context("no condition")?.status.to_string();
        Ok((ready, format!("{message} {}", json!(status.last_deploy_result))))
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// Gives accounts these rights in the cluster.
async fn allow(fixture: &Fixture, name: &str, rules: Value, accounts: &[&str]) -> Result<()> {
    let name = format!("{}-{name}", fixture.namespace);
    let role = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": name }, "rules": rules,
    });
    let subject =
        |account: &&str| json!({ "kind": "ServiceAccount", "name": account, "namespace": fixture.namespace });
    let subjects: Vec<Value> = accounts.iter().map(subject).collect();
    let binding = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": name },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": name }, "subjects": subjects,
    });
    fixture.plane.apply(role).await?;
    fixture.plane.apply(binding).await.map(drop)
}

/// Lets the controller use its own kinds, Secrets and other identities, as its ClusterRole does, beside the rights to deploy as itself.
async fn keep_own_kinds(fixture: &Fixture) -> Result<()> {
    let own = json!(["flux.kluctl.io", "gitops.kluctl.io", "source.toolkit.fluxcd.io"]);
    let core = json!(["events", "secrets", "serviceaccounts", "users", "groups"]);
    let rules = json!([
        { "apiGroups": own, "resources": ["*"], "verbs": ["*"] },
        { "apiGroups": [""], "resources": core, "verbs": ["*"] },
    ]);
    allow(fixture, "own-kinds", rules, &["controller"]).await
}

/// Lets both accounts read and delete everything, but change nothing.
async fn keep_deletion(fixture: &Fixture) -> Result<()> {
    let verbs = ["get", "list", "watch", "delete", "deletecollection"];
    let rules = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": verbs }]);
    allow(fixture, "deletion", rules, &["controller", TENANT]).await
}

/// Removes the binding of the controller's or the tenant's rights to deploy.
async fn withdraw(plane: &ControlPlane, namespace: &str, victim: &str) -> Result<()> {
    let kind = if victim == OWN {
        "ClusterRoleBinding"
    } else {
        "RoleBinding"
    };
    let any = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": { "name": "any", "namespace": namespace },
    });
    let name = if victim == OWN {
        format!("{namespace}-controller")
    } else {
        TENANT.to_owned()
    };
    let bindings = plane.api_for(any).await?.0;
    bindings.delete(&name, &DeleteParams::default()).await?;
    Ok(())
}

/// Restores the binding that [`withdraw`] removed.
async fn give_back(plane: &ControlPlane, namespace: &str, victim: &str) -> Result<()> {
    if victim == OWN {
        return grant(plane, namespace, "controller", namespace).await;
    }
    grant_in(plane, namespace, (namespace, TENANT)).await.map(drop)
}

/// Returns the account that deploys this object.
fn account_of(namespace: &str, victim: &str) -> String {
    let account = if victim == OWN { "controller" } else { victim };
    format!("system:serviceaccount:{namespace}:{account}")
}

/// Waits until the API server, which learns of bindings late, refuses writes of this account.
async fn refused(fixture: &Fixture, account: &str) -> Result<()> {
    let reviews: Api<SubjectAccessReview> = Api::all(fixture.client.clone());
    let review: SubjectAccessReview = serde_json::from_value(json!({ "spec": {
        "user": account, "resourceAttributes": { "namespace": fixture.namespace, "verb": "patch", "resource": "configmaps" },
    } }))?;
    eventually("the rights to end", TIMEOUT, || async {
        let answer = reviews.create(&PostParams::default(), &review).await?;
        ensure!(!answer.status.context("an answer")?.allowed);
        Ok(())
    })
    .await
}

/// The projects of a round: one ConfigMap whose value changes, and one that the next round doesn't have.
fn projects(round: usize) -> BTreeMap<&'static str, Vec<(String, String)>> {
    let value = round.to_string();
    let maps = |name: &str| {
        vec![
            (format!("{name}-a"), value.clone()),
            (format!("{name}-{round}"), value.clone()),
        ]
    };
    [OWN, TENANT, OTHER].map(|name| (name, maps(name))).into()
}

/// Waits until the objects have deployed and pruned as this round demands.
async fn deployed(shop: &impl Deployments, names: &[&str], round: usize) -> Result<()> {
    let fixture = shop.fixture();
    for name in names {
        fixture
            .holds(&format!("{name}-a"), &round.to_string())
            .await
            .context(format!("{name} in round {round}"))?;
        eventually(&format!("{name} to be ready"), TIMEOUT, || async {
            let (status, message) = shop.ready(name).await?;
            ensure!(status == "True", "{status} {message}");
            ensure!(fixture.has(&format!("{name}-{round}")).await?);
            ensure!(round == 0 || !fixture.has(&format!("{name}-{}", round - 1)).await?);
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Withdraws the rights of an account in the round after `before`: its object names them, nothing of it is deleted, and it heals with them.
async fn withdrawn(shop: &mut impl Deployments, victim: &'static str, before: usize) -> Result<()> {
    let (plane, namespace) = (shop.fixture().plane, shop.fixture().namespace.clone());
    let (account, round) = (account_of(&namespace, victim), before + 1);
    withdraw(plane, &namespace, victim).await?;
    refused(shop.fixture(), &account).await?;
    shop.publish(&projects(round)).await?;
    eventually("the refusal to be told", TIMEOUT, || async {
        let (status, message) = shop.ready(victim).await?;
        let told = [account.as_str(), "forbidden", "configmaps"];
        let told = told.iter().all(|text| message.contains(text));
        ensure!(status == "False" && told, "{status} {message}");
        Ok(())
    })
    .await?;
    // The others go on.
    let mut others = vec![OWN, TENANT, OTHER];
    others.retain(|name| *name != victim);
    deployed(shop, &others, round).await?;
    shop.fixture().more_passes(6.0).await?;
    for name in ["a".to_owned(), before.to_string()] {
        let map = shop
            .fixture()
            .config_maps()
            .get(&format!("{victim}-{name}"))
            .await?;
        ensure!(value_of(&map) == Some(before.to_string().as_str()), "{map:?}");
    }

    give_back(plane, &namespace, victim).await?;
    deployed(shop, &[OWN, TENANT, OTHER], round).await
}

/// Withdraws the rights of the controller and of the tenant, in the order of each seed.
async fn withdrawn_rights_are_named(shop: &mut impl Deployments) -> Result<()> {
    let (plane, namespace) = (shop.fixture().plane, shop.fixture().namespace.clone());
    keep_own_kinds(shop.fixture()).await?;
    shop.fixture().account(OTHER).await?;
    plane.service_account_kubeconfig(&namespace, TENANT).await?;
    give_back(plane, &namespace, TENANT).await?;
    let mut round = 0;
    shop.publish(&projects(round)).await?;
    for (name, account) in [(OWN, None), (TENANT, Some(TENANT)), (OTHER, Some(OTHER))] {
        shop.create(name, account).await?;
    }
    deployed(shop, &[OWN, TENANT, OTHER], round).await?;

    for seed in 0..SEEDS {
        let mut victims = [OWN, TENANT];
        fastrand::Rng::with_seed(seed).shuffle(&mut victims);
        if seed > 0 {
            keep_deletion(shop.fixture()).await?;
        }
        for victim in victims {
            let shown = format!("seed {seed}: {victim} of {victims:?}");
            withdrawn(shop, victim, round).await.context(shown)?;
            round += 1;
        }
    }
    ensure!(shop.fixture().controller.is_running());
    Ok(())
}

#[tokio::test]
async fn withdrawn_rights_are_named_prune_nothing_and_heal_with_sources_of_flux() -> Result<()> {
    let fixture = Fixture::new("rights", &[]).await?;
    let sources = BTreeMap::new();
    withdrawn_rights_are_named(&mut OfSources { fixture, sources }).await
}

#[tokio::test]
async fn withdrawn_rights_are_named_prune_nothing_and_heal_with_own_sources() -> Result<()> {
    withdrawn_rights_are_named(&mut Gitops::new("g-rights").await?).await
}
