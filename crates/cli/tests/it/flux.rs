//! The commands about objects of Flux and kluctl, against a real API server.

mod create;
mod get;
mod inspect;
mod logs;
mod original;
mod preview;
mod real;
mod repository;
mod status;
mod steer;
mod trigger;

use std::{
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value as Json, json};
use testkit::ControlPlane;
use tokio::process::Child;

use crate::{
    commands::{stderr, weir},
    gitops::plane,
};

const SOURCE: &str = "source.toolkit.fluxcd.io/v1";
const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";

const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;
/// Pause between two reads.
const PAUSE: Duration = Duration::from_millis(100);

/// A namespace of objects that no controller reconciles: the test writes their status.
struct Objects {
    plane: &'static ControlPlane,
    namespace: String,
}

impl Objects {
    async fn new(prefix: &str) -> Result<Self> {
        let plane = plane().await?;
        Ok(Self {
            plane,
            namespace: plane.namespace(prefix).await?,
        })
    }

    /// Creates or changes an object, such as `{kind, name, labels, spec, status}` of `source.toolkit.fluxcd.io/v1`.
    async fn put(&self, api_version: &str, kind: &str, name: &str, rest: Json) -> Result<()> {
        let mut object = json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace, "labels": rest["labels"]},
        });
        if object["metadata"]["labels"].is_null() {
            object["metadata"]["labels"] = json!({});
        }
        if !rest["spec"].is_null() {
            object["spec"] = rest["spec"].clone();
        }
        self.plane.apply(object).await?;
        if !rest["status"].is_null() {
            self.put_status(api_version, kind, name, &rest["status"]).await?;
        }
        Ok(())
    }

    async fn put_status(&self, api_version: &str, kind: &str, name: &str, status: &Json) -> Result<()> {
        let (what, patch) = (resource(api_version, kind), json!({"status": status}).to_string());
        let words = [
            "patch",
            &what,
            name,
            "-n",
            &self.namespace,
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ];
        self.plane.kubectl(&words).await?;
        Ok(())
    }

    /// Returns an object.
    async fn live(&self, api_version: &str, kind: &str, name: &str) -> Result<Json> {
        let what = resource(api_version, kind);
        let words = ["get", &what, name, "-n", &self.namespace, "-o", "json"];
        Ok(serde_json::from_str(&self.plane.kubectl(&words).await?)?)
    }

    /// Plays a controller: waits for an object that is to be answered, and writes its status.
    async fn answer(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        is_asked: impl Fn(&Json) -> bool,
        status: impl Fn(&Json) -> Json,
    ) -> Result<()> {
        let answered = async {
            loop {
                match self.live(api_version, kind, name).await {
                    Ok(object) if is_asked(&object) => {
                        let status = status(&object);
                        return self.put_status(api_version, kind, name, &status).await;
                    }
                    _ => tokio::time::sleep(PAUSE).await,
                }
            }
        };
        let answered = tokio::time::timeout(TIMEOUT, answered).await;
        answered.with_context(|| format!("{kind} {name} was not to be answered"))?
    }

    /// Returns the decoded data of a Secret.
    async fn secret(&self, name: &str) -> Result<Json> {
        let secret = self.live("v1", "Secret", name).await?;
        let data = secret["data"].as_object().context("no data")?;
        let decoded = data.iter().map(|(key, value)| {
            let bytes = STANDARD.decode(value.as_str().unwrap_or_default())?;
            anyhow::Ok((key.clone(), Json::from(String::from_utf8(bytes)?)))
        });
        Ok(Json::Object(decoded.collect::<Result<_>>()?))
    }

    fn command(&self, words: &str) -> tokio::process::Command {
        let mut command = weir(Path::new("."), words);
        command.env("KUBECONFIG", self.plane.kubeconfig());
        command.env("FLUX_SYSTEM_NAMESPACE", &self.namespace);
        let mut command = tokio::process::Command::from(command);
        // It ends with the test that waits for it.
        command.kill_on_drop(true);
        command
    }

    async fn run(&self, words: &str) -> Result<Output> {
        self.command(words).output().await.context("run weir")
    }

    async fn succeeds(&self, words: &str) -> Result<String> {
        let output = self.run(words).await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "weir {words}: {text}{}", stderr(&output));
        Ok(text)
    }

    /// Returns the error of a command that fails.
    async fn fails(&self, words: &str) -> Result<String> {
        let output = self.run(words).await?;
        ensure!(
            output.status.code() == Some(1),
            "weir {words}: {:?}",
            output.status
        );
        Ok(stderr(&output))
    }

    /// Starts a command that goes on until it is dropped.
    fn start(&self, words: &str) -> Result<Child> {
        let mut command = self.command(words);
        command.stdout(Stdio::piped()).stdin(Stdio::null());
        command.spawn().context("start weir")
    }
}

/// Returns the name of a kind that kubectl takes.
fn resource(api_version: &str, kind: &str) -> String {
    match api_version.split_once('/') {
        Some((group, version)) => format!("{kind}.{version}.{group}").to_lowercase(),
        None => kind.to_lowercase(),
    }
}

fn ready(status: &str, reason: &str, message: &str) -> Json {
    json!({
        "type": "Ready", "status": status, "reason": reason, "message": message, "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// Returns the spec of a GitRepository.
fn git(url: &str) -> Json {
    json!({"interval": "1m", "url": url})
}
