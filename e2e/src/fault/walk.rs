//! A walk over random specs that the schema accepts, which ends as a fresh object does.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::{condition_type, conditions};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    cluster::{CONTROLLERS, TestCluster, is_ready},
    report::Report,
};

const STEPS: usize = 200;
const NAME: &str = "walk";
const OBSERVED: Duration = Duration::from_secs(30);

/// Changes the specs of a GitRepository, a KluctlDeployment and a Kustomization, then changes them back.
pub async fn walk_over_specs(report: &mut Report, seed: u64) -> Result<()> {
    let mut cluster = TestCluster::bare().await?;
    for &name in CONTROLLERS {
        cluster.start(name, &[]).await?;
    }
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": "flux-system"}});
    let repo = cluster.git.repo(NAME)?;
    let commit = repo
        .change("first")
        .write(".kluctl.yaml", "discriminator: walk\ntargets:\n  - name: only\n")
        .write("deployment.yaml", "deployments:\n  - path: objects\n")
        .write("objects/map.yaml", map.to_string())
        .push()?;
    let mut first = Vec::new();
    let title = format!("{STEPS} specs are observed (seed {seed})");
    report
        .step(&title, async {
            begin(&cluster, &repo.url()).await?;
            cluster.ready(NAME, &commit).await?;
            cluster.applied(NAME, &commit).await?;
            first = specs(&cluster).await?;
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut accepted, mut refused) = (0, 0);
            for _ in 0..STEPS {
                match step(&cluster, &mut random).await? {
                    true => accepted += 1,
                    false => refused += 1,
                }
            }
            ensure!(accepted > STEPS / 4, "the schema refused {refused} of {STEPS}");
            Ok(format!("{accepted} accepted, {refused} refused by the schema"))
        })
        .await?;
    report
        .step("the first specs work as in the beginning", async {
            restore(&cluster, &first).await?;
            cluster.fetched(NAME, &commit).await?;
            let object = cluster.ready(NAME, &commit).await?;
            ensure!(is_ready(&object), "it isn't ready");
            cluster.applied(NAME, &commit).await?;
            for controller in &cluster.controllers {
                ensure!(controller.is_running(), "{} has ended", controller.name());
                let log = controller.log();
                ensure!(!log.contains("panicked"), "{} panicked: {log}", controller.name());
            }
            Ok("Ready".to_owned())
        })
        .await?;
    cluster.stop().await
}

async fn begin(cluster: &TestCluster, url: &str) -> Result<()> {
    cluster.apply_repository(NAME, url, "5s").await?;
    cluster
        .apply_deployment(NAME, NAME, json!({"target": "only"}))
        .await?;
    let spec = json!({"path": "objects", "namePrefix": "kustomized-"});
    cluster.apply_kustomization(NAME, NAME, spec).await
}

/// Returns the kinds with the specs that the API server has.
async fn specs(cluster: &TestCluster) -> Result<Vec<(&'static str, Value)>> {
    let mut specs = Vec::new();
    for kind in ["gitrepository", "kluctldeployment", "kustomization"] {
        let args = ["get", kind, NAME, "-n", "flux-system", "-o", "json"];
        let mut object: Value = serde_json::from_str(&cluster.plane.kubectl(&args).await?)?;
        specs.push((kind, object["spec"].take()));
    }
    Ok(specs)
}

/// Replaces both specs by the first ones, whatever the walk left in them.
async fn restore(cluster: &TestCluster, specs: &[(&str, Value)]) -> Result<()> {
    for (kind, spec) in specs {
        let patch = json!([{"op": "replace", "path": "/spec", "value": spec}]).to_string();
        let args = [
            "patch",
            kind,
            NAME,
            "-n",
            "flux-system",
            "--type=json",
            "-p",
            &patch,
        ];
        cluster.plane.kubectl(&args).await?;
    }
    Ok(())
}

/// Makes one change; returns false if the schema refuses it.
async fn step(cluster: &TestCluster, random: &mut fastrand::Rng) -> Result<bool> {
    let (kind, field, value) = random_field(random);
    let patch = json!({"spec": {field: value}}).to_string();
    let args = [
        "patch",
        kind,
        NAME,
        "-n",
        "flux-system",
        "--type=merge",
        "-p",
        &patch,
    ];
    if cluster.plane.kubectl(&args).await.is_err() {
        return Ok(false);
    }
    // A source that waits or is suspended is not waited for: its consumers show whether it goes on.
    if kind == "gitrepository" {
        return Ok(true);
    }
    let what = format!("{field} = {value:.100} of the {kind} to be observed");
    eventually(&what, OBSERVED, || async {
        let (generation, conditions) = match kind {
            "kluctldeployment" => {
                let object = cluster.deployments().get(NAME).await?;
                let status = object.status.unwrap_or_default();
                (object.metadata.generation, status.conditions)
            }
            _ => {
                let object = cluster.kustomizations().get(NAME).await?;
                let status = object.status.unwrap_or_default();
                (object.metadata.generation, status.conditions)
            }
        };
        let ready = conditions::get(&conditions, condition_type::READY);
        let known = ready.is_some_and(|ready| ready.observed_generation == generation);
        ensure!(known, "{conditions:?}");
        Ok(())
    })
    .await?;
    Ok(true)
}

/// Returns a kind, a field of its spec, and a value that the schema may accept.
fn random_field(random: &mut fastrand::Rng) -> (&'static str, &'static str, Value) {
    let durations = ["0s", "1ns", "-1s", "1s", "10000h", "5s", "1m", "99999999999h", ""];
    let long = "x".repeat(1 << random.u32(0..14));
    let strings = [
        "",
        "only",
        "..",
        "/",
        "a b",
        "\u{e9}",
        "refs/heads/main",
        long.as_str(),
    ];
    let duration = json!(durations[random.usize(..durations.len())]);
    let text = json!(strings[random.usize(..strings.len())]);
    let flag = json!(random.bool());
    let mut fields = vec![
        ("gitrepository", "interval", duration.clone()),
        ("gitrepository", "timeout", duration.clone()),
        ("gitrepository", "ref", json!({"branch": text})),
        ("gitrepository", "ref", json!({"tag": text})),
        ("gitrepository", "ref", json!({"semver": text})),
        ("gitrepository", "suspend", flag.clone()),
        ("gitrepository", "ignore", text.clone()),
    ];
    for kind in ["kluctldeployment", "kustomization"] {
        fields.extend([
            (kind, "interval", duration.clone()),
            (kind, "timeout", duration.clone()),
            (kind, "retryInterval", duration.clone()),
            (kind, "path", text.clone()),
            (kind, "prune", flag.clone()),
        ]);
    }
    fields.extend([
        ("kluctldeployment", "deployInterval", duration),
        ("kluctldeployment", "target", text.clone()),
        (
            "kluctldeployment",
            "args",
            json!({"a": text, "b": [1, null, {"c": text}]}),
        ),
        ("kluctldeployment", "dryRun", flag.clone()),
        ("kluctldeployment", "deployMode", text.clone()),
        ("kluctldeployment", "includeTags", json!([text])),
        ("kustomization", "wait", flag.clone()),
        ("kustomization", "force", flag),
        ("kustomization", "targetNamespace", text.clone()),
        ("kustomization", "namePrefix", text.clone()),
        ("kustomization", "components", json!([text])),
        ("kustomization", "images", json!([{"name": text, "newTag": text}])),
        ("kustomization", "patches", json!([{"patch": text}])),
        ("kustomization", "postBuild", json!({"substitute": {"a": text}})),
        ("kustomization", "commonMetadata", json!({"labels": {"a": text}})),
        ("kustomization", "deletionPolicy", text.clone()),
        ("kustomization", "dependsOn", json!([{"name": text}])),
        (
            "kustomization",
            "healthChecks",
            json!([{"kind": text, "name": text}]),
        ),
    ]);
    fields.swap_remove(random.usize(..fields.len()))
}
