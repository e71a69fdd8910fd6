//! Faults of the API server and of those who write beside the controller. After each, the objects are as without it.

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{
    ControlPlane, Controller, Options, Outcome, audit, controller::SHORT_LEASE, eventually,
    proxy::ApiRequest, wait_for,
};
use tokio::sync::OnceCell;

use crate::fixture::{Fixture, TIMEOUT, condition, grant, ids, map, status};

/// Seeds of the orders in which faults come.
const SEEDS: u64 = 2;

fn maps(values: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let files = ["a.yaml", "b.yaml", "c.yaml"];
    let objects = values.iter().map(|(name, value)| map(name, value));
    files.into_iter().zip(objects).collect()
}

impl Fixture {
    async fn more_passes(&self, count: f64) -> Result<()> {
        let passes = || async {
            let metrics = self.controller.metrics().await?;
            let lines = metrics
                .lines()
                .filter(|line| line.starts_with("controller_runtime_reconcile_total"));
            let numbers = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            anyhow::Ok(numbers.sum::<f64>())
        };
        let before = passes().await?;
        eventually("passes", TIMEOUT, || async {
            let made = passes().await? - before;
            ensure!(made >= count, "{made} so far");
            Ok(())
        })
        .await
    }

    /// Returns the writes of the controller to ConfigMaps since a mark, without those that only try.
    fn changes_since(&self, mark: audit::Mark) -> Result<Vec<String>> {
        let entries = self.plane.audit_since(mark)?.into_iter();
        let changes = entries.filter(|entry| {
            entry.user == self.user
                && entry.is_write()
                && entry.resource == "configmaps"
                && !entry.uri.contains("dryRun")
        });
        Ok(changes
            .map(|entry| format!("{} {}", entry.verb, entry.uri))
            .collect())
    }

    /// Returns an access to Kustomizations that doesn't decode them.
    async fn untyped(&self) -> Result<Api<DynamicObject>> {
        let object = self.kustomization("any", &json!({}));
        Ok(self.plane.api_for(object).await?.0)
    }

    async fn value(&self, name: &str) -> Result<Option<String>> {
        let map = self.maps().get_opt(name).await?;
        Ok(map.and_then(|map| map.data?.remove("value")))
    }
}

/// Fault 3: the controller reads an older state than the one that it has applied.
#[tokio::test(flavor = "multi_thread")]
async fn reads_of_an_older_revision_apply_and_prune_nothing() -> Result<()> {
    let (fixture, proxy) = Fixture::by_proxy("stale", &["--interval-jitter-percentage=0"]).await?;
    let first = fixture.offer("shop", &maps(&[("a", "1"), ("b", "1")])).await?;
    fixture.deploy("shop", json!({ "interval": "1s" })).await?;
    fixture.applied("shop", &first).await?;
    let older = fixture.plane.revision().await?;
    let second = fixture.offer("shop", &maps(&[("a", "2"), ("c", "1")])).await?;
    fixture.applied("shop", &second).await?;
    for old in ["sources", "everything"] {
        let mark = fixture.plane.audit_mark();
        proxy.freeze(older, move |request| {
            old == "everything" || request.path.contains("/gitrepositories")
        });
        fixture.more_passes(3.0).await?;
        assert_eq!(fixture.changes_since(mark)?, [""; 0], "{old} was old");
        proxy.thaw();
        let next = fixture.offer("shop", &maps(&[("a", old), ("c", "1")])).await?;
        fixture.applied("shop", &next).await?;
        assert_eq!(fixture.value("a").await?.as_deref(), Some(old));
        assert!(fixture.value("c").await?.is_some() && fixture.value("b").await?.is_none());
    }
    Ok(())
}

/// Fault 5: the status of a pass meets errors, and the pass is not repeated for it.
#[tokio::test(flavor = "multi_thread")]
async fn status_that_meets_faults_is_written_late_and_the_apply_not_repeated() -> Result<()> {
    let (fixture, proxy) = Fixture::by_proxy("statuses", &[]).await?;
    let is_status = |request: &ApiRequest| request.method == "PATCH" && request.path.ends_with("/status");
    for seed in 0..SEEDS {
        let name = format!("seed-{seed}");
        let mut outcomes = vec![
            Outcome::Status(409, None),
            Outcome::Status(429, Some(1)),
            Outcome::Status(500, None),
            Outcome::Status(504, None),
            Outcome::Cut,
            Outcome::CutAnswer,
            Outcome::Hang,
        ];
        fastrand::Rng::with_seed(seed).shuffle(&mut outcomes);
        let (count, before, order) = (
            outcomes.len(),
            proxy.requests().len(),
            format!("seed {seed}: {outcomes:?}"),
        );
        let revision = fixture.offer(&name, &[("a.yaml", map(&name, "1"))]).await?;
        proxy.outcomes(is_status, outcomes);
        fixture.deploy(&name, json!({ "interval": "1h" })).await?;
        eventually(
            "the status to be written after all faults",
            2 * TIMEOUT,
            || async {
                let requests = proxy.requests().split_off(before);
                let written = requests.iter().filter(|request| is_status(request)).count();
                ensure!(written > count, "{order}: {written} attempts");
                Ok(())
            },
        )
        .await?;
        fixture.applied(&name, &revision).await?;
        let path = format!("/configmaps/{name}");
        let requests = proxy.requests().split_off(before);
        let applied = requests
            .iter()
            .filter(|request| request.is_write() && request.path.ends_with(&path) && !request.is_dry_run());
        assert_eq!(applied.count(), 1, "{order}");
    }
    Ok(())
}

/// Fault 2: events that a watch never delivers are made up for without a restart, since everything is listed again every two minutes.
#[tokio::test(flavor = "multi_thread")]
async fn changes_missed_by_a_watch_are_applied_without_a_restart() -> Result<()> {
    let (fixture, proxy) = Fixture::by_proxy("deaf", &[]).await?;
    let first = fixture.offer("shop", &maps(&[("a", "1"), ("b", "1")])).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &first).await?;
    proxy.swallow_events(true);
    let second = fixture.offer("shop", &maps(&[("a", "2")])).await?;
    fixture.edit("shop", json!({ "interval": "9m" })).await?;
    let late = fixture.offer("late", &maps(&[("c", "1")])).await?;
    fixture.deploy("late", json!({})).await?;
    for (name, revision) in [("shop", &second), ("late", &late)] {
        wait_for(&fixture.objects(), name, revision, 4 * TIMEOUT, |object| {
            status(object).last_applied_revision.as_deref() == Some(revision)
        })
        .await?;
    }
    ensure!(proxy.swallowed() > 0, "no event was swallowed");
    proxy.swallow_events(false);
    assert_eq!(fixture.value("a").await?.as_deref(), Some("2"));
    assert!(fixture.value("b").await?.is_none());
    Ok(())
}

/// Fault 6: a leader that was stopped beyond its lease writes nothing any more.
#[tokio::test(flavor = "multi_thread")]
async fn stopped_leader_applies_nothing_after_its_lease() -> Result<()> {
    let fixture = Fixture::new("lease", &SHORT_LEASE).await?;
    let leads = |entry: &Value| entry["msg"] == "this process leads";
    fixture.controller.wait_log("to lead", TIMEOUT, leads).await?;
    let (plane, namespace) = (fixture.plane, &fixture.namespace);
    let kubeconfig = plane.service_account_kubeconfig(namespace, "successor").await?;
    grant(plane, namespace, "successor").await?;
    let first = fixture.offer("shop", &maps(&[("a", "1"), ("b", "1")])).await?;
    fixture.deploy("shop", json!({ "interval": "1s" })).await?;
    fixture.applied("shop", &first).await?;
    let successor = Controller::named("kustomize-controller")
        .run_by(&kubeconfig)
        .namespace(namespace)
        .flag("--watch-all-namespaces=false")
        .with_short_lease()
        .start()
        .await?;
    fixture.controller.pause()?;
    successor.wait_log("to lead", TIMEOUT, leads).await?;
    let second = fixture.offer("shop", &maps(&[("a", "2")])).await?;
    fixture.applied("shop", &second).await?;
    let mark = plane.audit_mark();
    fixture.controller.resume()?;
    ensure!(
        !fixture.controller.exit().await?.success(),
        "it ended as if it led"
    );
    let third = fixture.offer("shop", &maps(&[("a", "3")])).await?;
    fixture.applied("shop", &third).await?;
    let mut late = plane.audit_since(mark)?;
    late.retain(|entry| entry.user == fixture.user && entry.is_write() && entry.resource != "leases");
    assert_eq!(late, []);
    Ok(())
}

/// A control plane whose schema takes any string as an interval.
async fn loose_plane() -> Result<&'static ControlPlane> {
    static LOOSE: OnceCell<ControlPlane> = OnceCell::const_new();
    LOOSE
        .get_or_try_init(|| async {
            let plane = ControlPlane::start(Options::default()).await?;
            plane
                .apply(serde_json::to_value(api::crd::git_repository())?)
                .await?;
            let mut kind = serde_json::to_value(api::crd::kustomization())?;
            let versions = kind.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
            for version in versions.context("versions")? {
                let interval = "/schema/openAPIV3Schema/properties/spec/properties/interval";
                let interval = version.pointer_mut(interval).context("a field of the schema")?;
                *interval = json!({ "type": "string" });
            }
            plane.apply(kind).await?;
            Ok(plane)
        })
        .await
}

/// Fault 8: an object that can't be decoded, among others that keep their pace.
#[tokio::test(flavor = "multi_thread")]
async fn undecodable_object_delays_none_of_49_others() -> Result<()> {
    let plane = loose_plane().await?;
    let namespace = plane.namespace("poison").await?;
    let kubeconfig = plane.service_account_kubeconfig(&namespace, "controller").await?;
    let fixture = Fixture::started(plane, namespace, &kubeconfig, &[]).await?;
    fixture.offer("shop", &maps(&[("a", "1")])).await?;
    let named = |name: &str, spec: &Value| {
        let mut object = fixture.kustomization("shop", spec);
        object["metadata"]["name"] = name.into();
        object
    };
    let poison = named("poison", &json!({ "interval": "99999999999999h" }));
    eventually("the object to be accepted", TIMEOUT, || async {
        fixture.plane.apply(poison.clone()).await.map(drop)
    })
    .await?;
    let poison = wait_for(
        &fixture.untyped().await?,
        "poison",
        "InvalidSpec",
        TIMEOUT,
        |object| testkit::ready(object)["reason"] == "InvalidSpec",
    )
    .await?;
    ensure!(testkit::ready(&poison)["status"] == "False");
    let names: Vec<String> = (0..49).map(|number| format!("shop-{number:02}")).collect();
    for name in &names {
        let spec = json!({ "namePrefix": format!("{name}-") });
        fixture.plane.apply(named(name, &spec)).await?;
    }
    let revision = fixture.offer("shop", &maps(&[("a", "2")])).await?;
    for name in &names {
        fixture.applied(name, &revision).await?;
    }
    Ok(())
}

/// Fault 11: objects are deleted while their pass waits, and while their namespace terminates.
#[tokio::test(flavor = "multi_thread")]
async fn deletion_ends_waits_and_leaves_nothing() -> Result<()> {
    let fixture = Fixture::new("deleted", &[]).await?;
    fixture
        .offer("shop", &[("a.yaml", map("a", "1")), ("b.yaml", never("b"))])
        .await?;
    fixture
        .deploy("shop", json!({ "wait": true, "timeout": "1h" }))
        .await?;
    wait_for(&fixture.objects(), "shop", "the wait", TIMEOUT, |object| {
        condition(object, "Healthy")["status"] == "Unknown" && ids(object).len() == 2
    })
    .await?;
    fixture.remove("shop").await?;
    assert_eq!(fixture.value("a").await?, None);

    let other = fixture.plane.namespace("terminating").await?;
    let mut held: Value = serde_json::from_str(&map("held", "1"))?;
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    let first = fixture.offer("late", &[("a.yaml", held.to_string())]).await?;
    let spec = json!({ "targetNamespace": other, "interval": "1s" });
    fixture.deploy("late", spec).await?;
    fixture.applied("late", &first).await?;
    let delete = ["delete", "namespace", &other, "--wait=false"];
    fixture.plane.kubectl(&delete).await?;
    let files = [("a.yaml", held.to_string()), ("b.yaml", map("more", "1"))];
    fixture.offer("late", &files).await?;
    let failed = fixture.ready("late", "False", "ReconciliationFailed").await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    ensure!(message.contains("being terminated"), "{message}");
    fixture.remove("late").await?;
    let release = json!([{"op": "remove", "path": "/metadata/finalizers"}]).to_string();
    let args = [
        "patch",
        "configmap",
        "held",
        "-n",
        &other,
        "--type=json",
        "-p",
        &release,
    ];
    fixture.plane.kubectl(&args).await?;
    Ok(())
}

/// Returns a Deployment that is never ready: no Pod of it can start.
fn never(name: &str) -> String {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "nodeSelector": { "example.com/missing": "true" },
                    "containers": [{ "name": "c", "image": "c" }],
                },
            },
        },
    })
    .to_string()
}

/// Fault 12: several revisions during a wait: the newest is applied, and the object doesn't hang.
#[tokio::test(flavor = "multi_thread")]
async fn newest_of_several_revisions_ends_a_wait() -> Result<()> {
    let fixture = Fixture::new("several", &[]).await?;
    fixture.offer("shop", &[("a.yaml", never("a"))]).await?;
    fixture
        .deploy("shop", json!({ "wait": true, "timeout": "1h" }))
        .await?;
    wait_for(&fixture.objects(), "shop", "the wait", TIMEOUT, |object| {
        condition(object, "Healthy")["status"] == "Unknown"
    })
    .await?;
    for value in ["1", "2", "3"] {
        let files = [("a.yaml", never("a")), ("b.yaml", map("b", value))];
        fixture.offer("shop", &files).await?;
    }
    let last = fixture.offer("shop", &[("b.yaml", map("b", "4"))]).await?;
    let applied = fixture.applied("shop", &last).await?;
    assert!(condition(&applied, "Reconciling").is_null());
    assert_eq!(condition(&applied, "Healthy")["status"], "True");
    assert_eq!(fixture.value("b").await?.as_deref(), Some("4"));
    Ok(())
}

/// Faults 13 and 14: nothing is pruned by a build that fails, nor while an object is refused; the repair makes up for it.
#[tokio::test(flavor = "multi_thread")]
async fn refused_object_postpones_the_prune_until_its_repair() -> Result<()> {
    let fixture = Fixture::new("refused", &[]).await?;
    let first = fixture.offer("shop", &maps(&[("a", "1"), ("b", "1")])).await?;
    fixture.deploy("shop", json!({})).await?;
    let before = ids(&fixture.applied("shop", &first).await?);
    let bad = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "x" }, "spec": { "type": "None" } });
    for (file, text, reason) in [
        (
            "kustomization.yaml",
            "resources: [missing.yaml]\n".to_owned(),
            "BuildFailed",
        ),
        ("z.yaml", bad.to_string(), "ReconciliationFailed"),
    ] {
        let mut files = maps(&[("a", "2")]);
        files.push((file, text));
        fixture.offer("shop", &files).await?;
        let failed = fixture.ready("shop", "False", reason).await?;
        assert_eq!(ids(&failed), before, "{reason}");
        // The objects of a stage are tried before any is written.
        assert_eq!(fixture.value("a").await?.as_deref(), Some("1"), "{reason}");
        assert!(fixture.value("b").await?.is_some(), "{reason}");
    }
    let last = fixture.offer("shop", &maps(&[("a", "3")])).await?;
    let applied = fixture.applied("shop", &last).await?;
    assert_eq!(ids(&applied).len(), 1);
    assert_eq!(fixture.value("b").await?, None);
    Ok(())
}

/// Fault 15: replicas that the source doesn't name belong to an autoscaler, and other drift is corrected.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_of_an_autoscaler_stay_while_other_drift_is_corrected() -> Result<()> {
    let fixture = Fixture::new("scaled", &[]).await?;
    let mut workload: Value = serde_json::from_str(&never("web"))?;
    workload["spec"]
        .as_object_mut()
        .context("a spec")?
        .remove("replicas");
    let files = [("a.yaml", workload.to_string()), ("b.yaml", map("b", "1"))];
    let revision = fixture.offer("shop", &files).await?;
    fixture.deploy("shop", json!({ "interval": "1s" })).await?;
    fixture.applied("shop", &revision).await?;
    let (workloads, _) = fixture
        .plane
        .api_for({
            workload["metadata"]["namespace"] = fixture.namespace.clone().into();
            workload
        })
        .await?;
    let scaler = PatchParams {
        field_manager: Some("horizontal-pod-autoscaler".to_owned()),
        ..PatchParams::default()
    };
    let scaled = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    let scaled = workloads.patch("web", &scaler, &scaled).await?;
    let drift = Patch::Merge(json!({ "data": { "value": "drifted" } }));
    fixture.maps().patch("b", &PatchParams::default(), &drift).await?;
    eventually("the drift to be corrected", TIMEOUT, || async {
        let value = fixture.value("b").await?;
        ensure!(value.as_deref() == Some("1"), "{value:?}");
        Ok(())
    })
    .await?;
    fixture.more_passes(2.0).await?;
    let now = workloads.get("web").await?;
    assert_eq!(now.data["spec"]["replicas"], 3);
    assert_eq!(now.metadata.generation, scaled.metadata.generation);
    Ok(())
}

/// Fault 23: kubeconfigs with programs and files are refused, and nothing is applied with the controller's own rights.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_identities_are_refused_without_a_request() -> Result<()> {
    let fixture = Fixture::new("identities", &["--default-service-account=missing"]).await?;
    let (dir, server) = (fixture.controller.dir().join("canary"), fixture.plane.server());
    let canary = dir.display();
    let mark = fixture.plane.audit_mark();
    for (name, user) in [
        (
            "program",
            format!(
                "exec: {{ apiVersion: client.authentication.k8s.io/v1, command: touch, args: ['{canary}'], interactiveMode: Never }}"
            ),
        ),
        ("file", "tokenFile: /etc/passwd".to_owned()),
        ("provider", "auth-provider: { name: gcp }".to_owned()),
    ] {
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{{ name: x, context: {{ cluster: x, user: x }} }}]\n\
             clusters: [{{ name: x, cluster: {{ server: '{server}' }} }}]\nusers: [{{ name: x, user: {{ {user} }} }}]\n"
        );
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": fixture.namespace },
            "stringData": { "value": kubeconfig },
        });
        fixture.plane.apply(secret).await?;
        fixture.offer(name, &[("a.yaml", map(name, "1"))]).await?;
        fixture
            .deploy(name, json!({ "kubeConfig": { "secretRef": { "name": name } } }))
            .await?;
    }
    fixture.offer("default", &maps(&[("a", "1")])).await?;
    fixture.deploy("default", json!({})).await?;
    for name in ["program", "file", "provider", "default"] {
        wait_for(&fixture.objects(), name, "a refusal", TIMEOUT, |object| {
            condition(object, "Ready")["status"] == "False"
        })
        .await?;
    }
    ensure!(!dir.exists(), "the program ran");
    let mut own = fixture.plane.audit_since(mark)?;
    own.retain(|entry| {
        // All Kustomizations share a list and a watch of names.
        let is_of_object = !["list", "watch"].contains(&entry.verb.as_str());
        let is_own = entry.user == fixture.user && entry.impersonated.is_none();
        is_own && is_of_object && entry.resource == "configmaps"
    });
    assert_eq!(own, []);
    let left = fixture.maps().list(&Default::default()).await?;
    let names = left.iter().filter_map(|map| map.metadata.name.as_deref());
    assert_eq!(names.filter(|name| *name != "kube-root-ca.crt").count(), 0);
    Ok(())
}
