//! Deployments that failed: hooks, deletions and waits are repeated when they are due, and not by the passes in between, which look for other
//! reasons.

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};
use testkit::{audit::Mark, eventually, wait_for};

use crate::{
    fixture::{Fixture, TIMEOUT, config_map, project},
    gitops::{Gitops, ready_of},
};

const SUCCEEDED: &str = "ReconciliationSucceeded";
/// An object that the API server refuses.
const REFUSED: &str =
    "apiVersion: v1\nkind: Service\nmetadata:\n  name: bad\nspec:\n  ports:\n  - port: 99999999\n";

/// Returns a hook that is ready as soon as it is there.
fn ready_hook() -> String {
    config_map("hook", "1").replace("metadata:\n", &format!("metadata:\n{}", annotation("pre-deploy")))
}

fn annotation(time: &str) -> String {
    format!("  annotations:\n    kluctl.io/hook: {time}\n")
}

/// Returns a hook that never ends by itself; `spec` has further lines of its spec.
fn job_hook(spec: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: hook\n{}spec:\n{spec}  template:\n    spec:\n      restartPolicy: Never\n      \
         nodeSelector: {{no: such-node}}\n      containers:\n      - name: main\n        image: hook:1\n",
        annotation("pre-deploy")
    )
}

impl Fixture {
    /// Returns the number of runs of the hook since a mark.
    fn hook_runs(&self, mark: Mark) -> Result<usize> {
        let requests = self.requests_since(mark)?;
        let runs = requests.iter().filter(|entry| {
            let is_apply = entry.is_write() && entry.verb != "delete" && !entry.uri.contains("dryRun");
            is_apply && entry.uri.contains(&format!("/{}/", self.namespace)) && entry.uri.contains("/hook")
        });
        Ok(runs.count())
    }

    fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Waits for the Job of a hook, and deletes it.
    async fn end_job(&self) -> Result<()> {
        let jobs = self.jobs();
        wait_for(&jobs, "hook", "the Job", TIMEOUT, |_| true).await?;
        jobs.delete("hook", &DeleteParams::background()).await?;
        Ok(())
    }
}

#[tokio::test]
async fn checks_of_validation_repeat_no_hook_and_the_interval_does() -> Result<()> {
    let shop = Gitops::new("gr-checks").await?;
    let fixture = &shop.fixture;
    let mark = fixture.plane.audit_mark();
    let files = project(&fixture.namespace, &[("bad", REFUSED), ("hook", &ready_hook())]);
    shop.push_files(&files, &[])?;
    shop.create("shop", json!({ "prune": true })).await?;
    shop.ready("shop", "DeployFailed").await?;
    fixture.more_passes(4.0).await?;
    assert_eq!(fixture.hook_runs(mark)?, 1);
    shop.ready("shop", "DeployFailed").await?;

    let mark = fixture.plane.audit_mark();
    shop.change("shop", json!({ "interval": "5s" })).await?;
    eventually("the hook to run at its interval", TIMEOUT, || async {
        let runs = fixture.hook_runs(mark)?;
        ensure!(runs >= 3, "{runs} runs");
        Ok(())
    })
    .await?;
    // A mended project is deployed at once.
    shop.change("shop", json!({ "interval": "1h" })).await?;
    shop.push_files(
        &project(
            &fixture.namespace,
            &[("hook", &ready_hook()), ("a", &config_map("a", "1"))],
        ),
        &[],
    )?;
    shop.reconcile("shop").await?;
    shop.ready("shop", SUCCEEDED).await?;
    Ok(())
}

#[tokio::test]
async fn revision_with_the_same_objects_repeats_no_failed_deployment() -> Result<()> {
    let fixture = Fixture::new("repeat-same", &[]).await?;
    let mark = fixture.plane.audit_mark();
    let mut files = project(&fixture.namespace, &[("bad", REFUSED), ("hook", &ready_hook())]);
    let source = fixture.source("shop", &files).await?;
    // A failure is due again after the test.
    fixture.deploy("shop", json!({ "retryInterval": "1h" })).await?;
    fixture.ready("shop", "False", "DeployFailed").await?;
    files.push(("README.md".to_owned(), "another commit".to_owned()));
    let revision = source.offer(&files).await?;
    let deployments = fixture.deployments();
    wait_for(&deployments, "shop", "the revision", TIMEOUT, |object| {
        let status = object.status.as_ref();
        status.and_then(|status| status.last_attempted_revision.as_deref()) == Some(&*revision)
    })
    .await?;
    assert_eq!(fixture.hook_runs(mark)?, 1);
    fixture.ready("shop", "False", "DeployFailed").await?;
    // Somebody who asks for it gets it.
    fixture.reconcile("shop").await?;
    eventually("the hook to run", TIMEOUT, || async {
        ensure!(fixture.hook_runs(mark)? == 2);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn hook_that_exceeds_the_timeout_is_not_repeated_with_backoff() -> Result<()> {
    let flags = [
        "--max-timeout=4s",
        "--command-result-namespace=gr-timeout-results",
    ];
    let shop = Gitops::of(Fixture::new("gr-timeout", &flags).await?)?;
    let fixture = &shop.fixture;
    let mark = fixture.plane.audit_mark();
    let files = project(&fixture.namespace, &[("hook", &job_hook(""))]);
    shop.push_files(&files, &[])?;
    shop.create("shop", json!({})).await?;
    let objects = shop.api();
    wait_for(&objects, "shop", "the timeout", TIMEOUT, |object| {
        object
            .status
            .as_ref()
            .is_some_and(|status| ready_of(status).0 == "Timeout")
    })
    .await?;
    let source = fixture.source("flux", &fixture.other_maps("flux", &[])).await?;
    let files: Vec<(String, String)> = files
        .into_iter()
        .map(|(path, text)| (path, text.replace("discriminator: ", "discriminator: flux-")))
        .map(|(path, text)| (path, text.replace("name: hook\n", "name: hook-of-flux\n")))
        .collect();
    source.offer(&files).await?;
    fixture
        .deploy("flux", json!({ "interval": "1h", "retryInterval": "1h" }))
        .await?;
    fixture.ready("flux", "False", "Timeout").await?;
    // Passes for other reasons say the same.
    let (_, result) = shop.request("shop", "validate", Value::Null).await?;
    ensure!(result.end_time.is_some());
    shop.ready("shop", "Timeout").await?;
    fixture.annotate("flux", "example.com/touched", "1").await?;
    assert_eq!(fixture.hook_runs(mark)?, 2);
    Ok(())
}

#[tokio::test]
async fn hook_that_is_deleted_after_its_end_has_ended() -> Result<()> {
    let shop = Gitops::new("gr-ttl").await?;
    let fixture = &shop.fixture;
    let map = config_map("a", "1");
    let hook = job_hook("  ttlSecondsAfterFinished: 0\n");
    shop.push_files(&project(&fixture.namespace, &[("hook", &hook), ("a", &map)]), &[])?;
    shop.create("shop", json!({})).await?;
    fixture.end_job().await?;
    // Validation does not miss it either.
    let status = shop.ready("shop", SUCCEEDED).await?;
    ensure!(shop.value("a").await?.is_some(), "{status:?}");

    // A hook that somebody deletes has not ended.
    let hook = job_hook("");
    shop.push_files(&project(&fixture.namespace, &[("hook", &hook), ("a", &map)]), &[])?;
    let requested = shop.request("shop", "deploy", Value::Null);
    let (requested, ended) = futures::join!(requested, fixture.end_job());
    ended?;
    let (status, _) = requested?;
    let result = json!(status.last_deploy_result).to_string();
    ensure!(result.contains("disappeared while waiting"), "{result}");
    Ok(())
}
