//! Requests to the API server for small deployments, counted in its audit log, and the limits of the index that saves them.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::json;
use testkit::{Controller, Options, audit, eventually, stack, wait_gone};

use crate::fixture::{Fixture, TIMEOUT, grant, grant_in, own_plane};

/// Number of requests for the creation of a deployment of one object: its finalizer, its discriminator (which a removal after a crash needs), the
/// apply, the status and one Event.
const CREATION: usize = 5;
/// Number of requests for a new revision: the apply, the status and one Event.
const PUSH: usize = 3;

/// The files of a project with a discriminator of its own, and one ConfigMap.
fn files(fixture: &Fixture, name: &str, value: &str) -> Vec<(String, String)> {
    let mut files = fixture.maps(&[(name, value)]);
    for (path, text) in &mut files {
        if path == ".kluctl.yaml" {
            *text = text.replace("discriminator: ", &format!("discriminator: {name}-"));
        }
    }
    files
}

/// Returns the requests of passes since a mark: all but those for the lease, and the requests of watches, which make a list before they
/// begin and again from time to time, and read the kinds of the cluster after a definition changed. Lists of stored results count.
pub(crate) fn of_passes(fixture: &Fixture, mark: testkit::audit::Mark) -> Result<Vec<audit::Entry>> {
    let entries = fixture.requests_since(mark)?.into_iter();
    let counts = |entry: &audit::Entry| {
        let of_pass = ["kluctl.io%2Fdiscriminator%3D", "weir.io%2Fresult-group"];
        let is_list_of_watch =
            entry.uri.contains("limit=500") && !of_pass.iter().any(|selector| entry.uri.contains(selector));
        !entry.resource.is_empty()
            && entry.verb != "watch"
            && !matches!(entry.resource.as_str(), "leases" | "selfsubjectaccessreviews")
            && !is_list_of_watch
    };
    Ok(entries.filter(counts).collect())
}

/// Describes requests, one a line.
pub(crate) fn described(entries: &[audit::Entry]) -> String {
    let lines = entries.iter().map(|entry| {
        let user = entry.impersonated.as_deref().unwrap_or_default();
        format!("{} {} {} {user}\n", entry.verb, entry.code, entry.uri)
    });
    lines.collect()
}

/// Waits for the Event that ends a deployment, and returns the requests since the mark.
async fn all_of(fixture: &Fixture, mark: testkit::audit::Mark) -> Result<Vec<audit::Entry>> {
    eventually("the Event", TIMEOUT, || async {
        let entries = of_passes(fixture, mark)?;
        let events = entries.iter().filter(|entry| entry.resource == "events");
        ensure!(events.count() >= 1, "{}", described(&entries));
        Ok(())
    })
    .await?;
    of_passes(fixture, mark)
}

#[tokio::test]
async fn deployment_of_one_object_needs_few_requests() -> Result<()> {
    let fixture = Fixture::new("requests", &[]).await?;
    // The first deployment of the process finds out about the cluster.
    fixture.source("first", &files(&fixture, "first", "1")).await?;
    fixture.deploy("first", json!({})).await?;
    fixture.ready("first", "True", "ReconciliationSucceeded").await?;
    fixture.told("first", "Reconciliation finished in ").await?;

    let source = fixture.source("shop", &files(&fixture, "shop", "1")).await?;
    let mark = fixture.plane.audit_mark();
    fixture.deploy("shop", json!({})).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    let created = all_of(&fixture, mark).await?;
    println!("creation: {} requests\n{}", created.len(), described(&created));

    let mark = fixture.plane.audit_mark();
    let revision = source.offer(&files(&fixture, "shop", "2")).await?;
    fixture.deployed("shop", &revision).await?;
    fixture.holds("shop", "2").await?;
    let pushed = all_of(&fixture, mark).await?;
    println!("push: {} requests\n{}", pushed.len(), described(&pushed));
    ensure!(
        created.len() == CREATION,
        "creation needs {} requests:\n{}",
        created.len(),
        described(&created)
    );
    ensure!(
        pushed.len() == PUSH,
        "a push needs {} requests:\n{}",
        pushed.len(),
        described(&pushed)
    );
    Ok(())
}

/// Waits until some passes in a row make no request.
pub(crate) async fn without_requests(fixture: &Fixture) -> Result<()> {
    eventually("passes without requests", TIMEOUT, || async {
        let mark = fixture.plane.audit_mark();
        fixture.more_passes(3.0).await?;
        let entries = of_passes(fixture, mark)?;
        ensure!(entries.is_empty(), "{}", described(&entries));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn pass_without_changes_needs_no_request() -> Result<()> {
    let fixture = Fixture::new("requests-idle", &[]).await?;
    let source = fixture.source("shop", &files(&fixture, "shop", "1")).await?;
    fixture.deploy("shop", json!({ "interval": "1s" })).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    without_requests(&fixture).await?;

    // Whatever changes is seen all the same.
    let maps = fixture.config_maps();
    let drift = json!({ "data": { "value": "by hand" } });
    let params = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    maps.patch("shop", &params, &Patch::Merge(drift)).await?;
    fixture.holds("shop", "1").await?;
    without_requests(&fixture).await?;
    let unlabelled = json!({ "metadata": { "labels": { "kluctl.io/discriminator": null } } });
    maps.patch("shop", &params, &Patch::Merge(unlabelled)).await?;
    eventually("the label to come back", TIMEOUT, || async {
        let labels = maps.get("shop").await?.metadata.labels.unwrap_or_default();
        ensure!(labels.contains_key("kluctl.io/discriminator"), "{labels:?}");
        Ok(())
    })
    .await?;
    without_requests(&fixture).await?;
    maps.delete("shop", &DeleteParams::default()).await?;
    fixture.holds("shop", "1").await?;
    without_requests(&fixture).await?;
    let revision = source.offer(&files(&fixture, "shop", "2")).await?;
    fixture.deployed("shop", &revision).await?;
    fixture.holds("shop", "2").await?;
    without_requests(&fixture).await?;

    // A change of its metadata starts no pass, but the next one looks at the object. It is too large to be used as the watch shows it.
    let mark = fixture.plane.audit_mark();
    let large = "x".repeat(80_000);
    fixture.annotate("shop", "example.com/note", &large).await?;
    eventually("a read of the object", TIMEOUT, || async {
        let entries = of_passes(&fixture, mark)?;
        let mut reads = entries
            .iter()
            .map(|entry| entry.reads("kluctldeployments", "shop"));
        ensure!(reads.any(|reads| reads), "{}", described(&entries));
        Ok(())
    })
    .await?;
    without_requests(&fixture).await
}

#[tokio::test]
async fn rules_of_admission_are_cached_until_one_changes() -> Result<()> {
    let fixture = Fixture::new("rules", &["--default-service-account=tenant"]).await?;
    fixture.account("tenant").await?;
    let source = fixture
        .running("shop", &[("a", "0"), ("same", "1")], json!({}))
        .await?;
    let mark = fixture.plane.audit_mark();
    let all = |mark| -> Result<Vec<audit::Entry>> {
        let mut entries = fixture.requests_since(mark)?;
        entries.retain(|entry| entry.group == "admissionregistration.k8s.io");
        Ok(entries)
    };
    // Returns the number of lists that the next revision needs to know who would see an apply of unchanged objects.
    let mut number = 0;
    let mut push = async || -> Result<usize> {
        number += 1;
        let mark = fixture.plane.audit_mark();
        let value = number.to_string();
        let revision = source
            .offer(&fixture.maps(&[("a", &value), ("same", "1")]))
            .await?;
        fixture.deployed("shop", &revision).await?;
        let entries = all(mark)?.into_iter();
        Ok(entries.filter(|entry| entry.impersonated.is_some()).count())
    };
    push().await?;
    eventually("the watches", TIMEOUT, || async {
        let mut watches = all(mark)?;
        watches.retain(|entry| entry.verb == "watch" && entry.impersonated.is_none());
        ensure!(watches.len() >= 3, "{}", described(&watches));
        Ok(())
    })
    .await?;
    let start = Instant::now();
    push().await?;
    assert_eq!(push().await?, 0);

    let rule = json!({ "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["things"] });
    let name = format!("{}-rules", fixture.namespace);
    fixture
        .plane
        .apply(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": { "name": name },
            "spec": {
                "matchConstraints": { "resourceRules": [rule] },
                "validations": [{ "expression": "true" }],
            },
        }))
        .await?;
    while push().await? == 0 {}
    // Without the watches they would be read again after 30 seconds.
    let took = start.elapsed();
    ensure!(
        took < Duration::from_secs(25),
        "the change was not seen for {took:?}"
    );
    assert_eq!(push().await?, 0);
    Ok(())
}

/// A Role with the discriminator of a project, as `weir deploy` of another revision would have left it.
pub(crate) async fn left_by_hand(
    fixture: &Fixture,
    name: &str,
    discriminator: &str,
) -> Result<Api<DynamicObject>> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": name, "namespace": fixture.namespace, "labels": { "kluctl.io/discriminator": discriminator } },
    });
    let (api, _) = fixture.plane.api_for(role.clone()).await?;
    let params = PatchParams::apply("kluctl");
    api.patch(name, &params, &Patch::Apply(role)).await?;
    Ok(api)
}

#[tokio::test]
async fn orphans_of_kinds_that_were_never_deployed_are_found() -> Result<()> {
    let fixture = Fixture::new("by-hand", &[]).await?;
    let discriminator = format!("shop-{}-test", fixture.namespace);
    let roles = left_by_hand(&fixture, "before", &discriminator).await?;
    let foreign = left_by_hand(&fixture, "foreign", "another").await?;
    let source = fixture.source("shop", &files(&fixture, "shop", "1")).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    wait_gone(&roles, "before", TIMEOUT).await?;

    // Nothing says that a deployment sees an object that somebody left a moment ago, but the next ones do.
    left_by_hand(&fixture, "later", &discriminator).await?;
    let mut value = 1;
    eventually("the Role to be pruned", TIMEOUT, || {
        value += 1;
        let files = files(&fixture, "shop", &value.to_string());
        let (fixture, source, roles) = (&fixture, &source, &roles);
        async move {
            let revision = source.offer(&files).await?;
            fixture.deployed("shop", &revision).await?;
            ensure!(roles.get_opt("later").await?.is_none(), "it is still there");
            Ok(())
        }
    })
    .await?;
    ensure!(
        foreign.get_opt("foreign").await?.is_some(),
        "another deployment's was deleted"
    );
    Ok(())
}

#[tokio::test]
async fn tenant_learns_nothing_from_the_index() -> Result<()> {
    let flags = ["--watch-all-namespaces=true", "--default-service-account=tenant"];
    let fixture = Fixture::alone("hints", &flags).await?;
    let tenant = (fixture.namespace.as_str(), "tenant");
    fixture
        .plane
        .service_account_kubeconfig(tenant.0, tenant.1)
        .await?;
    grant_in(fixture.plane, &fixture.namespace, tenant).await?;
    // Another team's object has the discriminator that this one writes into its project.
    let other = fixture.plane.namespace("victim").await?;
    let discriminator = format!("shop-{}-test", fixture.namespace);
    let victim = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": "secret-plan", "namespace": other, "labels": { "kluctl.io/discriminator": discriminator } },
    });
    let (roles, _) = fixture.plane.api_for(victim.clone()).await?;
    let params = PatchParams::apply("kluctl");
    roles.patch("secret-plan", &params, &Patch::Apply(victim)).await?;

    fixture.source("shop", &files(&fixture, "shop", "1")).await?;
    fixture.deploy("shop", json!({})).await?;
    let object = fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    let status = serde_json::to_string(&object.status)?;
    ensure!(
        !["secret-plan", "Role", "permission", other.as_str()]
            .iter()
            .any(|word| status.contains(word)),
        "{status}"
    );
    ensure!(roles.get_opt("secret-plan").await?.is_some(), "it was deleted");
    Ok(())
}

/// Starts a controller without the right to watch every kind, and so without an index, which deploys as an account that may do anything.
async fn without_index(prefix: &str) -> Result<Fixture> {
    let own = own_plane(Options::default()).await?;
    let plane = own.get();
    stack::install(plane).await?;
    let namespace = plane.namespace(prefix).await?;
    let kubeconfig = plane.service_account_kubeconfig(&namespace, "controller").await?;
    for role in ["crd-controller-kluctl-flux-system", "source-consumer-flux-system"] {
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
            "metadata": { "name": format!("{namespace}-{role}") },
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": role },
            "subjects": [{ "kind": "ServiceAccount", "name": "controller", "namespace": namespace }],
        });
        plane.apply(binding).await?;
    }
    plane.service_account_kubeconfig(&namespace, "deployer").await?;
    grant(plane, &namespace, "deployer", &namespace).await?;
    let controller = Controller::named("kluctl-controller")
        .run_by(&kubeconfig)
        .namespace(&namespace)
        .flag("--default-service-account=deployer")
        .flag("--interval-jitter-percentage=0");
    let controller = controller.start().await?;
    let fixture = Fixture::of(plane, &namespace.clone(), namespace, controller).await?;
    Ok(Fixture {
        _own: Some(own),
        ..fixture
    })
}

#[tokio::test]
async fn requested_pass_without_changes_lists_no_kinds() -> Result<()> {
    let fixture = without_index("requested").await?;
    fixture.source("shop", &files(&fixture, "shop", "1")).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    fixture.told("shop", "Reconciliation finished in ").await?;
    let mark = fixture.plane.audit_mark();
    fixture.reconcile("shop").await?;
    let entries = of_passes(&fixture, mark)?;
    let lists = entries.iter().filter(|entry| entry.verb == "list");
    ensure!(lists.count() == 0, "kinds were listed:\n{}", described(&entries));
    Ok(())
}

#[tokio::test]
async fn restart_without_changes_writes_nothing() -> Result<()> {
    let fixture = Fixture::new("requests-restart", &[]).await?;
    for name in ["shop", "other"] {
        fixture.source(name, &files(&fixture, name, "1")).await?;
        fixture.deploy(name, json!({ "validate": true })).await?;
        fixture.ready(name, "True", "ReconciliationSucceeded").await?;
        fixture.told(name, "Reconciliation finished in ").await?;
    }
    fixture.controller.terminate().await?;
    let mark = fixture.plane.audit_mark();
    let restarted = Fixture::within(fixture.plane, &fixture.namespace, &[]).await?;
    eventually("a pass over each object", TIMEOUT, || async {
        let passes = restarted.passes().await?;
        ensure!(passes >= 2.0, "{passes} passes");
        Ok(())
    })
    .await?;
    let mut entries = of_passes(&restarted, mark)?;
    entries.retain(|entry| entry.is_write() && !entry.uri.contains("dryRun=All"));
    ensure!(
        entries.is_empty(),
        "something was written:\n{}",
        described(&entries)
    );
    Ok(())
}
