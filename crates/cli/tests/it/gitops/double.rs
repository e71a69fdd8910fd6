//! The controller's side of requests, played by a test: its reads and writes at the API server. Deployments are made by
//! `weir deploy`, which stores real results.

use anyhow::{Context as _, Result, bail, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value as Json, json};
use testkit::{eventually, wait_for};

use super::{Fixture, TIMEOUT, deployments};

#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) result_id: Option<String>,
    pub(super) error: Option<String>,
    pub(super) status: Json,
}

impl Fixture {
    /// Waits for a request, and returns it.
    pub(super) async fn requested(&self, name: &str, kind: &str) -> Result<Json> {
        let annotation = format!("kluctl.io/request-{kind}");
        let api = deployments(self.plane, &self.namespace).await?;
        let requested = wait_for(&api, name, "a request", TIMEOUT, |object| {
            let annotations = object.metadata.annotations.as_ref();
            annotations.is_some_and(|all| all.contains_key(&annotation))
        });
        let annotations = requested.await?.metadata.annotations.unwrap_or_default();
        Ok(serde_json::from_str(
            annotations.get(&annotation).context("no request")?,
        )?)
    }

    /// Waits for a request, removes its annotation, and writes that the work begins. Returns the request.
    pub(super) async fn begins(&self, name: &str, kind: &str) -> Result<Json> {
        let annotation = format!("kluctl.io/request-{kind}");
        let request = self.requested(name, kind).await?;
        self.patch(name, "", json!({"metadata": {"annotations": {annotation: null}}}))
            .await?;
        let status = json!({
            "conditions": [{
                "type": "Reconciling", "status": "True", "reason": "Progressing", "message": format!("Performing {kind}"),
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
            format!("{kind}RequestResult"): {
                "request": request, "startTime": "2026-01-01T00:00:00Z", "reconcileId": format!("{name}-{kind}"),
                "endTime": null, "resultId": null, "commandError": null,
            },
        });
        self.patch(name, "status", json!({"status": status})).await?;
        Ok(request)
    }

    pub(super) async fn ends(&self, name: &str, kind: &str, answer: Answer) -> Result<()> {
        let mut result = json!({"endTime": "2026-01-01T00:00:01Z"});
        if let Some(id) = answer.result_id {
            result["resultId"] = json!(id);
        }
        if let Some(error) = answer.error {
            result["commandError"] = json!(error);
        }
        let mut status = json!({format!("{kind}RequestResult"): result});
        if let (Some(all), Some(more)) = (status.as_object_mut(), answer.status.as_object()) {
            all.extend(more.clone());
        }
        self.patch(name, "status", json!({"status": status})).await
    }

    /// Answers one request.
    pub(super) async fn answers(&self, name: &str, kind: &str, answer: Answer) -> Result<Json> {
        let request = self.begins(name, kind).await?;
        self.ends(name, kind, answer).await?;
        Ok(request)
    }

    /// Answers a request with a deployment of the project by `weir`, with further flags. Returns the request and the output of the
    /// deployment.
    pub(super) async fn deploys(&self, name: &str, kind: &str, flags: &str) -> Result<(Json, String)> {
        let request = self.begins(name, kind).await?;
        self.is_read_twice(name).await?;
        let words = format!(
            "deploy --yes -o text -o json=result.json -o yaml=result.yaml --command-result-namespace {} {flags}",
            self.results
        );
        let deployed = self.run(&words).await?;
        let result: Json = serde_json::from_str(&self.read("result.json")?)?;
        let answer = Answer {
            result_id: result["id"].as_str().map(str::to_owned),
            error: (!deployed.status.success()).then(|| "deploy failed with 1 errors.".to_owned()),
            status: json!({"lastDiffResult": {"id": result["id"]}}),
        };
        self.ends(name, kind, answer).await?;
        Ok((request, super::stdout(&deployed)))
    }

    /// Waits until the command has read the object twice, so that it knows its present state.
    async fn is_read_twice(&self, name: &str) -> Result<()> {
        let mark = self.plane.audit_mark();
        eventually("two reads by the command", TIMEOUT, || async {
            let entries = self.plane.audit_since(mark)?;
            let reads = entries.iter().filter(|entry| {
                entry.verb == "get"
                    && entry.user_agent.starts_with("weir")
                    && (entry.namespace.as_str(), entry.name.as_str()) == (&self.namespace, name)
            });
            ensure!(reads.count() >= 2, "too few");
            Ok(())
        })
        .await
    }

    pub(super) fn read(&self, file: &str) -> Result<String> {
        let file = self.dir.path().join("deploy").join(file);
        std::fs::read_to_string(&file).with_context(|| file.display().to_string())
    }

    pub(super) async fn patch(&self, name: &str, subresource: &str, patch: Json) -> Result<()> {
        let (api, params) = (
            deployments(self.plane, &self.namespace).await?,
            PatchParams::default(),
        );
        let patch = Patch::Merge(patch);
        match subresource {
            "" => api.patch(name, &params, &patch).await?,
            "status" => api.patch_status(name, &params, &patch).await?,
            other => bail!("no subresource {other} is patched"),
        };
        Ok(())
    }
}
