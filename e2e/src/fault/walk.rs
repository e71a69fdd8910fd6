//! A walk over random specs that the schema accepts, which ends as a fresh object does.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    cluster::{CONTROLLERS, TestCluster, is_ready, ready_condition},
    report::Report,
};

const STEPS: usize = 200;
const NAME: &str = "walk";
const OBSERVED: Duration = Duration::from_secs(30);

/// Changes the specs of a GitRepository and a KluctlDeployment, then changes them back.
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
        .await
}

/// Returns the kinds with the specs that the API server has.
async fn specs(cluster: &TestCluster) -> Result<Vec<(&'static str, Value)>> {
    let mut specs = Vec::new();
    for kind in ["gitrepository", "kluctldeployment"] {
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
    let fields: [(&str, &str, Value); 18] = [
        ("gitrepository", "interval", duration.clone()),
        ("gitrepository", "timeout", duration.clone()),
        ("gitrepository", "ref", json!({"branch": text})),
        ("gitrepository", "ref", json!({"tag": text})),
        ("gitrepository", "ref", json!({"semver": text})),
        ("gitrepository", "suspend", flag.clone()),
        ("gitrepository", "ignore", text.clone()),
        ("kluctldeployment", "interval", duration.clone()),
        ("kluctldeployment", "timeout", duration.clone()),
        ("kluctldeployment", "retryInterval", duration.clone()),
        ("kluctldeployment", "deployInterval", duration),
        ("kluctldeployment", "path", text.clone()),
        ("kluctldeployment", "target", text.clone()),
        (
            "kluctldeployment",
            "args",
            json!({"a": text, "b": [1, null, {"c": text}]}),
        ),
        ("kluctldeployment", "prune", flag.clone()),
        ("kluctldeployment", "dryRun", flag.clone()),
        ("kluctldeployment", "deployMode", text.clone()),
        ("kluctldeployment", "includeTags", json!([text])),
    ];
    let (kind, field, value) = &fields[random.usize(..fields.len())];
    let patch = json!({"spec": {*field: value}}).to_string();
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
    // A source that waits or is suspended is not waited for: its consumer shows whether it goes on.
    if *kind == "kluctldeployment" {
        let what = format!("{field} = {value:.100} to be observed");
        eventually(&what, OBSERVED, || async {
            let object = cluster.deployments().get(NAME).await?;
            let generation = object.metadata.generation;
            let known = ready_condition(&object).is_some_and(|ready| ready.observed_generation == generation);
            ensure!(known, "{:?}", object.status.map(|status| status.conditions));
            Ok(())
        })
        .await?;
    }
    Ok(true)
}
