//! KluctlDeployments of gitops.kluctl.io while the API server fails, others write the same objects, registries change under a download,
//! and users try values. Seeds choose the order.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::{Controller, Outcome, Page, WebServer, eventually, proxy::ApiRequest, wait_for};

use crate::{
    fixture::{Fixture, TIMEOUT, grant, plane},
    gitops::{Gitops, ready_of},
    gitops_sources::packed,
};

/// Seeds of each test.
const SEEDS: u64 = 3;
const SUCCEEDED: &str = "ReconciliationSucceeded";

/// Returns the flag for a namespace of results.
fn results(prefix: &str) -> String {
    format!("--command-result-namespace={prefix}-results")
}

impl Gitops {
    /// Pushes a project with one ConfigMap in a directory, and its own discriminator, and deploys it as an object of that name.
    async fn deploy_dir(&self, name: &str, mut spec: Value) -> Result<()> {
        let files: Vec<(String, String)> = self
            .fixture
            .other_maps(name, &[(name, "1")])
            .into_iter()
            .map(|(path, text)| (format!("{name}/{path}"), text))
            .collect();
        self.push_files(&files, &[])?;
        spec["source"] = json!({ "git": { "url": self.repo.url(), "path": name } });
        self.create(name, spec).await
    }
}

#[tokio::test]
async fn status_that_meets_faults_is_written_late_and_the_deployment_not_repeated() -> Result<()> {
    let (fixture, proxy) = Fixture::by_proxy(plane().await?, "gx-status", &[&results("gx-status")]).await?;
    let shop = Gitops::of(fixture)?;
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
        let (count, before) = (outcomes.len(), proxy.requests().len());
        let shown = format!("seed {seed}: {outcomes:?}");
        proxy.outcomes(is_status, outcomes);
        shop.deploy_dir(&name, json!({})).await?;
        shop.ready(&name, SUCCEEDED).await.context(shown.clone())?;
        eventually("the status to be written after all faults", TIMEOUT, || async {
            let requests = proxy.requests().split_off(before);
            let written = requests.iter().filter(|request| is_status(request)).count();
            ensure!(written > count, "{shown}: {written} attempts");
            Ok(())
        })
        .await?;
        let requests = proxy.requests().split_off(before);
        let path = format!("/configmaps/{name}");
        let acts = requests
            .iter()
            .filter(|request| request.is_write() && request.path.ends_with(&path) && !request.is_dry_run());
        assert_eq!(acts.count(), 1, "{shown}");
    }
    Ok(())
}

#[tokio::test]
async fn changes_missed_by_a_watch_are_deployed_without_a_restart() -> Result<()> {
    let (fixture, proxy) = Fixture::by_proxy(plane().await?, "gx-deaf", &[&results("gx-deaf")]).await?;
    let shop = Gitops::of(fixture)?;
    shop.deploy_dir("known", json!({})).await?;
    shop.ready("known", SUCCEEDED).await?;
    proxy.swallow_events(true);
    shop.deploy_dir("new", json!({})).await?;
    let files = shop.fixture.other_maps("known", &[("known", "2")]);
    let files: Vec<(String, String)> = files
        .into_iter()
        .map(|(path, text)| (format!("other/{path}"), text))
        .collect();
    // The new commit has only this project: `new` fails until it is there again.
    let restored = shop.fixture.other_maps("new", &[("new", "1")]);
    let restored = restored
        .into_iter()
        .map(|(path, text)| (format!("new/{path}"), text));
    shop.push_files(&files.into_iter().chain(restored).collect::<Vec<_>>(), &[])?;
    shop.change("known", json!({ "source": { "git": { "path": "other" } } }))
        .await?;
    // All objects are listed again every two minutes.
    let objects = shop.api();
    for name in ["new", "known"] {
        let found = wait_for(
            &objects,
            name,
            "the newest spec to be deployed",
            3 * TIMEOUT,
            |object| {
                let status = object.status.as_ref();
                let observed = status.and_then(|status| status.observed_generation);
                observed == object.metadata.generation
                    && status.is_some_and(|status| ready_of(status).0 == SUCCEEDED)
            },
        );
        found.await?;
    }
    ensure!(proxy.swallowed() > 0);
    proxy.swallow_events(false);
    assert_eq!(shop.value("known").await?.as_deref(), Some("2"));
    assert_eq!(shop.value("new").await?.as_deref(), Some("1"));
    Ok(())
}

#[tokio::test]
async fn stopped_leader_deploys_nothing_after_its_lease() -> Result<()> {
    let plane = plane().await?;
    let namespace = plane.namespace("gx-lease").await?;
    let launch = async |account: &str| -> Result<Controller> {
        let kubeconfig = plane.service_account_kubeconfig(&namespace, account).await?;
        grant(plane, &namespace, account, &format!("{namespace}-{account}")).await?;
        let launch = Controller::named("kluctl-controller")
            .run_by(&kubeconfig)
            .namespace(&namespace)
            .flag("--watch-all-namespaces=false")
            .flag(&results("gx-lease"))
            .with_short_lease();
        launch.start().await
    };
    let leads = |entry: &Value| entry["msg"] == "this process leads";
    let old = launch("controller").await?;
    old.wait_log("to lead", TIMEOUT, leads).await?;
    let shop = Gitops::of(Fixture::of(plane, &namespace, namespace.clone(), old).await?)?;
    shop.push(&[("a", "1"), ("b", "1")])?;
    shop.create("shop", json!({ "interval": "1s", "prune": true }))
        .await?;
    shop.ready("shop", SUCCEEDED).await?;
    let new = launch("successor").await?;

    let old = &shop.fixture.controller;
    old.pause()?;
    new.wait_log("to lead", TIMEOUT, leads).await?;
    shop.push(&[("a", "2")])?;
    eventually("the new leader to deploy", TIMEOUT, || async {
        let (a, b) = (shop.value("a").await?, shop.value("b").await?);
        ensure!(a.as_deref() == Some("2") && b.is_none(), "{a:?} {b:?}");
        Ok(())
    })
    .await?;
    let mark = plane.audit_mark();
    old.resume()?;
    ensure!(!old.exit().await?.success(), "it must end");
    shop.push(&[("a", "3")])?;
    eventually("the new leader to go on", TIMEOUT, || async {
        ensure!(shop.value("a").await?.as_deref() == Some("3"));
        Ok(())
    })
    .await?;
    let mut late = shop.fixture.requests_since(mark)?;
    late.retain(|entry| entry.is_write() && entry.resource != "leases");
    assert_eq!(late, []);
    assert!((new.metric("leader_election_master_status").await? - 1.0).abs() < f64::EPSILON);
    Ok(())
}

/// A Deployment with as many replicas as an autoscaler starts with.
fn scaled(color: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: shop\n  labels: {{color: {color}}}\nspec:\n  replicas: 1\n  \
         selector:\n    matchLabels: {{app: shop}}\n  template:\n    metadata:\n      labels: {{app: shop}}\n    spec:\n      \
         containers:\n      - name: main\n        image: shop:1\n"
    )
}

#[tokio::test]
async fn replicas_of_an_autoscaler_stay_while_other_drift_is_corrected() -> Result<()> {
    let shop = Gitops::new("gx-scaler").await?;
    let push = |color: &str| {
        let files = crate::fixture::project(&shop.fixture.namespace, &[("shop", &scaled(color))]);
        shop.push_files(&files, &[])
    };
    push("red")?;
    let spec = json!({ "interval": "1s", "deployInterval": "1s", "noWait": true, "validate": false });
    shop.create("shop", spec).await?;
    shop.ready("shop", SUCCEEDED).await?;
    let api: Api<Deployment> = Api::namespaced(shop.fixture.client.clone(), &shop.fixture.namespace);
    let write = async |manager: &str, change: Value| {
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        api.patch("shop", &params, &Patch::Merge(change)).await
    };
    write("horizontal-pod-autoscaler", json!({ "spec": { "replicas": 3 } })).await?;
    let objects = shop.api();
    let message = wait_for(
        &objects,
        "shop",
        "a warning about the conflict",
        TIMEOUT,
        |object| {
            let status = object.status.as_ref();
            status.is_some_and(|status| ready_of(status).1.contains("with 1 warnings"))
        },
    );
    let status = message.await?.status.context("a status")?;
    let warnings = json!(status.last_deploy_result)["warnings"].to_string();
    ensure!(warnings.contains("replicas"), "{warnings}");

    let color = |deployment: &Deployment| {
        let labels = deployment.metadata.labels.clone().unwrap_or_default();
        labels.get("color").cloned().unwrap_or_default()
    };
    for seed in 0..SEEDS {
        let mut changes = [
            (
                "kubectl-edit",
                json!({ "metadata": { "labels": { "color": "none" } } }),
            ),
            (
                "horizontal-pod-autoscaler",
                json!({ "spec": { "replicas": 4 + seed } }),
            ),
        ];
        fastrand::Rng::with_seed(seed).shuffle(&mut changes);
        for (manager, change) in changes {
            write(manager, change).await?;
        }
        wait_for(&api, "shop", "the label", TIMEOUT, |deployment| {
            color(deployment) == "red"
        })
        .await?;
        let generation = api.get("shop").await?.metadata.generation;
        shop.fixture.more_passes(4.0).await?;
        let found = api.get("shop").await?;
        let replicas = found.spec.as_ref().and_then(|spec| spec.replicas);
        assert_eq!(
            replicas.map(i64::from),
            Some(i64::try_from(4 + seed)?),
            "seed {seed}"
        );
        assert_eq!(
            found.metadata.generation, generation,
            "seed {seed}: two managers fight"
        );
    }
    push("green")?;
    wait_for(&api, "shop", "the next commit", TIMEOUT, |deployment| {
        color(deployment) == "green"
    })
    .await?;
    let replicas = api.get("shop").await?.spec.and_then(|spec| spec.replicas);
    ensure!(replicas > Some(1), "{replicas:?}");
    Ok(())
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

#[tokio::test]
async fn artifact_that_changes_under_a_download_is_never_deployed_in_part() -> Result<()> {
    let shop = Gitops::new("gx-artifact").await?;
    let registry = WebServer::start()?;
    let blob = |digest: &str| format!("/v2/org/repo/blobs/{digest}");
    // Returns the page of the layer with its content, after the tag names it.
    let offer = |value: &str, more: &str| {
        let archive = packed(&shop.fixture.maps(&[("a", value), (more, value)]), "");
        let descriptor = |kind: &str, bytes: &[u8]| json!({ "mediaType": kind, "digest": digest(bytes), "size": bytes.len() });
        let manifest = json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.cncf.flux.config.v1+json", b"{}"),
            "layers": [descriptor("application/vnd.cncf.flux.content.v1.tar+gzip", &archive)],
        });
        let manifest = Page::Content(manifest.to_string().into());
        registry.page("/v2/org/repo/manifests/latest", manifest);
        (blob(&digest(&archive)), archive)
    };
    let (page, archive) = offer("0", "b0");
    registry.page(&page, Page::Content(archive.into()));
    let url = registry.url("org/repo").replace("http://", "oci://");
    let spec = json!({ "prune": true, "source": { "oci": { "url": url } } });
    shop.create("shop", spec).await?;
    shop.ready("shop", SUCCEEDED).await?;
    for seed in 0..SEEDS {
        let (now, next) = (seed.to_string(), (seed + 1).to_string());
        let (kept, new) = (format!("b{now}"), format!("b{next}"));
        let (page, archive) = offer(&next, &new);
        let (half, _) = archive.split_at(archive.len() / 2);
        let other = packed(&shop.fixture.maps(&[("a", "other")]), "");
        let mut padded = other;
        padded.resize(archive.len().max(padded.len()), 0);
        padded.truncate(archive.len());
        let mut faults = vec![
            // It was collected as garbage.
            None,
            Some(Page::Content(half.to_vec().into())),
            Some(Page::Cut(half.to_vec().into())),
            Some(Page::Content(padded.into())),
        ];
        let mut random = fastrand::Rng::with_seed(seed);
        random.shuffle(&mut faults);
        // A kind that isn't served from the start can't be removed again.
        faults.sort_by_key(Option::is_some);
        for fault in faults {
            let shown = format!("seed {seed}: {}", fault.as_ref().map_or("none", |_| "altered"));
            if let Some(fault) = fault {
                registry.page(&page, fault);
            }
            let (reason, message, error) = shop.outcome("shop").await?;
            ensure!(reason == "PrepareFailed", "{shown}: {reason} {message}");
            ensure!(
                error.starts_with("failed to pull OCI source: "),
                "{shown}: {error}"
            );
            let found = (
                shop.value("a").await?,
                shop.value(&kept).await?,
                shop.value(&new).await?,
            );
            ensure!(
                found == (Some(now.clone()), Some(now.clone()), None),
                "{shown}: {found:?}"
            );
        }
        registry.page(&page, Page::Content(archive.into()));
        let (reason, message, _) = shop.outcome("shop").await?;
        ensure!(reason == SUCCEEDED, "seed {seed}: {message}");
        let found = (
            shop.value("a").await?,
            shop.value(&kept).await?,
            shop.value(&new).await?,
        );
        ensure!(
            found == (Some(next.clone()), None, Some(next)),
            "seed {seed}: {found:?}"
        );
    }
    Ok(())
}

/// Returns a field of the spec with a value that the schema may accept.
fn any_change(random: &mut fastrand::Rng) -> Value {
    let long = "x".repeat(1 << random.u32(0..14));
    let texts = [
        "",
        "test",
        "none",
        "..",
        "/",
        "a b",
        "\u{e9}",
        "refs/heads/main",
        &long,
    ];
    let durations = [
        "0s",
        "1ns",
        "1ms",
        "-1s",
        "1s",
        "10000h",
        "1m",
        "99999999999h",
        "",
    ];
    let text = json!(random.choice(texts).unwrap_or_default());
    let duration = json!(random.choice(durations).unwrap_or_default());
    let flag = json!(random.bool());
    let secret = json!({ "secretRef": { "name": text } });
    let fields = [
        json!({ "interval": duration }),
        json!({ "retryInterval": duration }),
        json!({ "deployInterval": duration }),
        json!({ "validateInterval": duration }),
        json!({ "timeout": duration }),
        json!({ "target": text }),
        json!({ "targetNameOverride": text }),
        json!({ "context": text }),
        json!({ "args": { "a": text, "b": [1, null, { "c": text }] } }),
        json!({ "source": { "git": { "path": text } } }),
        json!({ "source": { "git": { "ref": { "branch": text } } } }),
        json!({ "source": { "git": { "ref": { "tag": text } } } }),
        json!({ "source": { "oci": { "url": text } } }),
        json!({ "sourceOverrides": [{ "repoKey": text, "url": text }] }),
        json!({ "credentials": { "git": [{ "host": text, "secretRef": { "name": text } }] } }),
        json!({ "decryption": { "provider": text, "secretRef": { "name": text } } }),
        json!({ "kubeConfig": secret }),
        json!({ "serviceAccountName": text }),
        json!({ "images": [{ "imageRegex": text, "resultImage": text }] }),
        json!({ "includeTags": [text], "excludeDeploymentDirs": [text] }),
        json!({ "deployMode": text }),
        json!({ "manual": flag, "manualObjectsHash": text }),
        json!({ "dryRun": flag, "prune": flag }),
        json!({ "suspend": flag }),
        json!({ "validate": flag, "noWait": flag, "forceApply": flag }),
    ];
    random.choice(fields).unwrap_or_default()
}

/// Returns true if the newest generation was observed, Ready says something, and nothing is being done.
fn is_settled(object: &DynamicObject) -> bool {
    let (status, generation) = (&object.data["status"], json!(object.metadata.generation));
    let conditions = status["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let is_busy = conditions
        .clone()
        .any(|condition| condition["type"] == "Reconciling" && condition["status"] == "True");
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    // The condition alone has the generation of the invalid spec.
    let is_observed = |ready: &Value| {
        [status, ready]
            .iter()
            .any(|of| of["observedGeneration"] == generation)
    };
    !is_busy
        && ready
            .is_some_and(|ready| is_observed(ready) && ready["status"] != "Unknown" && ready["message"] != "")
}

#[tokio::test]
async fn walk_over_specs_ends_as_it_began() -> Result<()> {
    const STEPS: usize = 200;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let shop = Gitops::new("gx-walk").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "retryInterval": "30m" })).await?;
    let first = shop.ready("shop", SUCCEEDED).await?;
    let object = serde_json::to_value(shop.api().get("shop").await?)?;
    let spec = object["spec"].clone();
    // The controller alone must understand all that the schema accepts.
    let (objects, _) = shop.fixture.plane.api_for(object).await?;
    let mut accepted = 0;
    for _ in 0..STEPS {
        let change = any_change(&mut random);
        let patch = Patch::Merge(json!({ "spec": change }));
        if objects
            .patch("shop", &PatchParams::default(), &patch)
            .await
            .is_err()
        {
            continue;
        }
        accepted += 1;
        let what = format!("seed {seed}: {change:.200} to be observed");
        wait_for(&objects, "shop", &what, TIMEOUT, is_settled).await?;
    }
    ensure!(accepted > STEPS / 4, "seed {seed}: {accepted} of {STEPS}");
    // Whatever the walk left in it.
    let mut whole = objects.get("shop").await?;
    whole.data["spec"] = spec;
    objects.replace("shop", &PostParams::default(), &whole).await?;
    let last = shop.ready("shop", SUCCEEDED).await?;
    assert_eq!(last.target_key, first.target_key, "seed {seed}");
    assert_eq!(last.last_objects_hash, first.last_objects_hash, "seed {seed}");
    assert_eq!(last.project_key, first.project_key, "seed {seed}");
    ensure!(last.last_prepare_error.is_none(), "seed {seed}: {last:?}");
    assert_eq!(shop.value("a").await?.as_deref(), Some("1"), "seed {seed}");
    let log = shop.fixture.controller.log();
    ensure!(
        shop.fixture.controller.is_running() && !log.contains("panicked"),
        "seed {seed}: {log}"
    );
    Ok(())
}

/// The token in all Secrets and URLs.
const CANARY: &str = "c4n4ry-7f3e";

#[tokio::test]
async fn secrets_are_in_no_log_event_status_metric_or_result() -> Result<()> {
    let shop = Gitops::new("gx-canary").await?;
    shop.push(&[("a", "1")])?;
    shop.repo.require_basic_auth("me", CANARY);
    let values = |values: Value| shop.secret("login", values);
    values(json!({
        "username": "me", "password": CANARY, "identity": format!("bad {CANARY}"), "token": CANARY, "ca": CANARY, "cert": CANARY,
        "key": CANARY, "identity.agekey": format!("AGE-SECRET-KEY-{CANARY}"), "sops.vault-token": CANARY,
        "config": format!("apiVersion: v1\nkind: Config\nclusters: [{{name: {CANARY}"),
    }))
    .await?;
    let origin = shop.server.origin();
    let host = origin
        .split("://")
        .last()
        .unwrap_or_default()
        .trim_end_matches('/');
    let login = json!({ "name": "login" });
    let git = json!([{ "host": host, "secretRef": login }]);
    shop.create(
        "shop",
        json!({ "interval": "1s", "retryInterval": "1s", "credentials": { "git": git } }),
    )
    .await?;
    shop.ready("shop", SUCCEEDED).await?;
    let with_login = |scheme: &str| format!("{scheme}://me:{CANARY}@127.0.0.1:1/org/repo");
    let source = |source: Value| json!({ "source": source });
    let cases = [
        source(json!({ "git": { "url": with_login("http") } })),
        source(json!({ "git": { "url": with_login("ssh") } })),
        source(json!({ "git": { "url": format!("http://127.0.0.1:1/repo?token={CANARY}") } })),
        source(json!({ "oci": { "url": with_login("oci") } })),
        source(json!({ "oci": { "url": "oci://127.0.0.1:1/org/repo" } })),
        json!({ "credentials": { "oci": [{ "registry": "127.0.0.1:1", "secretRef": login }] } }),
        json!({ "kubeConfig": { "secretRef": { "name": "login", "key": "config" } } }),
        json!({ "decryption": { "provider": "sops", "secretRef": login } }),
        json!({ "sourceOverrides": [{ "repoKey": "git://h/a", "url": format!("grpc+source-override://h:1/{CANARY}") }] }),
    ];
    let mut order: Vec<Value> = cases.into();
    fastrand::Rng::with_seed(1).shuffle(&mut order);
    for (number, mut spec) in order.into_iter().enumerate() {
        let name = format!("case-{number}");
        spec["retryInterval"] = json!("1s");
        if spec["credentials"].is_null() {
            spec["credentials"] = json!({ "git": git });
        }
        shop.create(&name, spec.clone()).await?;
        let what = format!("{name} to be observed");
        let objects = shop.api();
        let done = wait_for(&objects, &name, &what, TIMEOUT, |object| {
            let status = object.status.as_ref();
            status.is_some_and(|status| {
                matches!(ready_of(status).0, "PrepareFailed" | SUCCEEDED | "DeployFailed")
            })
        });
        let status = serde_json::to_string(&done.await?.status)?;
        ensure!(!status.contains(CANARY), "{name}: {status}");
        let events = shop.fixture.events(&name).await?;
        ensure!(!format!("{events:?}").contains(CANARY), "{name}: {events:?}");
    }
    // The server takes another password now.
    shop.repo.require_basic_auth("me", "other");
    shop.ready("shop", "PrepareFailed").await?;
    let found = [
        shop.fixture.controller.log(),
        shop.fixture.controller.metrics().await?,
        format!("{:?}", shop.fixture.events("shop").await?),
        serde_json::to_string(&shop.api().get("shop").await?.status)?,
    ];
    for (text, what) in found.iter().zip(["log", "metrics", "events", "status"]) {
        let line = text.lines().find(|line| line.contains(CANARY));
        ensure!(line.is_none(), "the {what}: {line:?}");
    }
    let secrets: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(shop.fixture.client.clone(), "gx-canary-results");
    for secret in secrets.list(&Default::default()).await? {
        let shown = format!("{:?}", secret.metadata.annotations);
        ensure!(!shown.contains(CANARY), "{shown}");
    }
    Ok(())
}
