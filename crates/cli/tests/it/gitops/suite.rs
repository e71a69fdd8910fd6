//! The sequences of kluctl's end-to-end suite for its controller: each step with the same words, beside a controller with the same flags.

use std::{
    collections::BTreeMap,
    path::Path,
    process::Output,
    sync::Mutex,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use testkit::{
    ControlPlane, Controller, GitServer, Repo, controller::Launch, controlplane::CONTEXT, eventually, ports,
};

use super::{TIMEOUT, config_map, delete_config_map, deployments, plane, succeeded};
use crate::commands::{stored_results, weir};

/// A controller with exactly the flags of the suite, which watches one namespace, and a Git server.
pub(super) struct Suite {
    pub(super) plane: &'static ControlPlane,
    pub(super) namespace: String,
    pub(super) system: String,
    pub(super) port: u16,
    pub(super) server: GitServer,
    _controller: Controller,
}

/// A project in a repository, of which the local directory is a checkout.
pub(super) struct Project<'a> {
    pub(super) suite: &'a Suite,
    pub(super) name: String,
    repo: Repo,
    pub(super) dir: TempDir,
    pub(super) files: BTreeMap<String, String>,
    pub(super) targets: Vec<String>,
    pub(super) items: Vec<String>,
    /// Items that include another source.
    pub(super) includes: Vec<Json>,
    /// Words before the names of commands.
    pub(super) words: String,
    pub(super) commit: String,
}

impl Suite {
    /// Starts the controller, and waits until its Secret for local sources has all entries.
    pub(super) async fn start(prefix: &str) -> Result<Self> {
        let plane = plane().await?;
        let namespace = plane.namespace(prefix).await?;
        let system = format!("{namespace}-system");
        plane.namespace_named(&system).await?;
        let port = ports::free_port()?;
        let controller = Launch::by_kluctls_suite(plane, &namespace, &system, port)?.spawn()?;
        let suite = Self {
            plane,
            system,
            port,
            server: GitServer::start()?,
            _controller: controller,
            namespace,
        };
        eventually("the Secret for local sources", TIMEOUT, || async {
            let secrets: Api<Secret> = Api::namespaced(plane.client().await?, &suite.system);
            let secret = secrets.get("kluctl-source-override-secret").await?;
            let data = secret.data.unwrap_or_default();
            for key in ["ca.pem", "tls.crt", "tls.key", "controllerSecret"] {
                ensure!(data.contains_key(key), "{key} is missing");
            }
            Ok(())
        })
        .await?;
        Ok(suite)
    }

    /// Creates a project without targets, and the namespace of its objects.
    pub(super) async fn project(&self, prefix: &str) -> Result<Project<'_>> {
        let name = self.plane.namespace(prefix).await?;
        let repo = self.server.repo(&format!("{name}/kluctl-project"))?;
        let dir = tempfile::tempdir()?;
        let url = repo.url().trim_end_matches(".git").to_owned();
        git(dir.path(), &["init", "-q"])?;
        git(dir.path(), &["remote", "add", "origin", &url])?;
        Ok(Project {
            suite: self,
            repo,
            dir,
            name,
            files: BTreeMap::new(),
            targets: Vec::new(),
            items: Vec::new(),
            includes: Vec::new(),
            words: String::new(),
            commit: String::new(),
        })
    }

    /// Returns the summary of a stored result, wherever it is stored.
    pub(super) async fn summary(&self, id: &str, kind: &str) -> Result<Json> {
        let label = format!("kluctl.io/{kind}-result-id={id}");
        let secrets: Api<Secret> = Api::all(self.plane.client().await?);
        let listed = secrets.list(&ListParams::default().labels(&label)).await?;
        let [secret] = listed.items.as_slice() else {
            anyhow::bail!("{} results {id}", listed.items.len());
        };
        let entries: &[&str] = match kind {
            "command" => &["reducedResult", "compactedObjects"],
            _ => &["result"],
        };
        let data = secret.data.as_ref().context("no data")?;
        for entry in entries {
            ensure!(data.contains_key(*entry), "{entry} is missing");
        }
        let summary = secret
            .annotations()
            .get(&format!("kluctl.io/{kind}-result-summary"));
        Ok(serde_json::from_str(summary.context("a summary")?)?)
    }
}

impl Project<'_> {
    pub(super) fn url(&self) -> String {
        self.repo.url().trim_end_matches(".git").to_owned()
    }

    /// Adds a deployment item with a ConfigMap of these values.
    pub(super) fn map(&mut self, item: &str, name: &str, data: &Json) {
        if !self.items.iter().any(|one| one == item) {
            self.items.push(item.to_owned());
        }
        let kustomization = format!(
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [configmap-{name}.yml]\n"
        );
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": self.name}, "data": data,
        });
        self.files
            .insert(format!("{item}/kustomization.yml"), kustomization);
        self.files
            .insert(format!("{item}/configmap-{name}.yml"), map.to_string());
    }

    /// Commits and writes all files, with the names that the suite gives them.
    pub(super) fn push(&mut self) -> Result<()> {
        let name = &self.name;
        let config = format!(
            "discriminator: \"{name}-{{{{ target.name or 'no-name' }}}}\"\ntargets: [{}]\n",
            self.targets.join(", ")
        );
        let items = self.items.iter().map(|item| json!({ "path": item }));
        let items: Vec<Json> = items.chain(self.includes.iter().cloned()).collect();
        let deployment = json!({ "commonLabels": {"project_name": name}, "deployments": &items });
        self.files.insert(".kluctl.yml".to_owned(), config);
        if !items.is_empty() {
            self.files
                .insert("deployment.yml".to_owned(), deployment.to_string());
        }
        let mut change = self.repo.change("update").clear();
        for (path, text) in &self.files {
            change = change.write(path, text);
            let file = self.dir.path().join(path);
            std::fs::create_dir_all(file.parent().context("a folder")?)?;
            std::fs::write(file, text)?;
        }
        self.commit = change.push()?;
        Ok(())
    }

    pub(super) fn commit_copy(&self) -> Result<String> {
        git(self.dir.path(), &["add", "."])?;
        let author = ["-c", "user.name=weir", "-c", "user.email=weir@example.com"];
        git(
            self.dir.path(),
            &[&author[..], &["commit", "-qm", "copy"]].concat(),
        )?;
        git(self.dir.path(), &["rev-parse", "HEAD"])
    }

    /// Creates the KluctlDeployment as a Go client does: with all fields that have no `omitempty`.
    pub(super) async fn create(&self, target: &str, args: Json) -> Result<()> {
        let source = json!({"git": {"url": self.url()}});
        self.create_from(source, target, args).await
    }

    /// Creates the KluctlDeployment with another source.
    pub(super) async fn create_from(&self, source: Json, target: &str, args: Json) -> Result<()> {
        let object = json!({
            "apiVersion": "gitops.kluctl.io/v1beta1", "kind": "KluctlDeployment",
            "metadata": {"name": self.name, "namespace": self.suite.namespace, "creationTimestamp": null},
            "spec": {
                "source": source, "credentials": {}, "interval": "5s", "timeout": "5m0s",
                "target": target, "args": args, "validate": false,
            },
            "status": {},
        });
        let path = format!(
            "/apis/gitops.kluctl.io/v1beta1/namespaces/{}/kluctldeployments",
            self.suite.namespace
        );
        self.suite
            .plane
            .kubectl_with(&["create", "--raw", &path, "-f", "-"], &object.to_string())
            .await?;
        Ok(())
    }

    pub(super) async fn live(&self) -> Result<Json> {
        let deployments = deployments(self.suite.plane, &self.suite.namespace).await?;
        Ok(serde_json::to_value(deployments.get(&self.name).await?)?)
    }

    pub(super) async fn patch(&self, patch: Json) -> Result<()> {
        deployments(self.suite.plane, &self.suite.namespace)
            .await?
            .patch(&self.name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Changes fields of the spec.
    pub(super) async fn change(&self, spec: Json) -> Result<()> {
        self.patch(json!({ "spec": spec })).await
    }

    /// Requests a reconciliation, and waits for its end and a known readiness. Returns the status.
    pub(super) async fn reconcile(&self) -> Result<Json> {
        let value = unique();
        let request = json!({ "requestValue": value }).to_string();
        self.patch(json!({"metadata": {"annotations": {"kluctl.io/request-reconcile": request}}}))
            .await?;
        let seen = Mutex::new(Json::Null);
        eventually("the reconciliation", TIMEOUT, || async {
            let live = self.live().await?;
            let result = &live["status"]["reconcileRequestResult"];
            ensure!(
                result["request"]["requestValue"] == value && result["endTime"].is_string(),
                "{result}"
            );
            let conditions = live["status"]["conditions"].as_array().context("no conditions")?;
            let ready = conditions
                .iter()
                .find(|one| one["type"] == "Ready")
                .context("no Ready")?;
            ensure!(ready["status"] != "Unknown", "{ready}");
            if let Ok(mut seen) = seen.lock() {
                *seen = live["status"].clone();
            }
            Ok(())
        })
        .await?;
        seen.into_inner().ok().context("no status")
    }

    /// Runs a command with the words that the suite puts before and behind it.
    pub(super) async fn gitops(&self, command: &str, more: &str) -> Result<Output> {
        let namespace = &self.suite.namespace;
        let words = format!(
            "gitops {command} --context {CONTEXT} --namespace {namespace} --name {} {more}",
            self.name
        );
        self.weir(&words).await
    }

    pub(super) async fn weir(&self, words: &str) -> Result<Output> {
        let dir = self.dir.path().display();
        let mut command = weir(
            Path::new("/"),
            &format!("{} --project-dir {dir} {words}", self.words),
        );
        command
            .env("KUBECONFIG", self.suite.plane.kubeconfig())
            .env("HOME", self.dir.path());
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true).output().await.context("run weir")
    }

    /// Runs a command that succeeds, and returns the numbers of new, changed, orphan and deleted objects in the result that it stored.
    pub(super) async fn counts(&self, command: &str, more: &str) -> Result<[u64; 4]> {
        succeeded(&self.gitops(command, more).await?)?;
        let live = self.live().await?;
        let result = &live["status"][format!("{command}RequestResult")];
        let id = result["resultId"].as_str().with_context(|| result.to_string())?;
        let summary = self.suite.summary(id, "command").await?;
        Ok(
            ["newObjects", "changedObjects", "orphanObjects", "deletedObjects"]
                .map(|field| summary[field].as_u64().unwrap_or(99)),
        )
    }

    /// Returns the values of a ConfigMap; null if it is missing.
    pub(super) async fn data(&self, map: &str) -> Result<Json> {
        let found = config_map(self.suite.plane, &self.name, map).await?;
        Ok(found.map_or(Json::Null, |map| json!(map.data.unwrap_or_default())))
    }

    pub(super) async fn delete_map(&self, map: &str) -> Result<()> {
        delete_config_map(self.suite.plane, &self.name, map).await
    }

    pub(super) async fn appears(&self, map: &str) -> Result<()> {
        eventually(&format!("{map} to appear"), TIMEOUT, || async {
            ensure!(self.data(map).await?.is_object());
            Ok(())
        })
        .await
    }

    /// Asserts that this number of results of the project is stored where command lines store them, and that the newest one has these
    /// numbers: applied, new, changed, orphan and deleted objects, and changes.
    pub(super) async fn stored(&self, count: usize, newest: [u64; 6]) -> Result<()> {
        let label = "kluctl.io/command-result-id";
        let listed = stored_results(self.suite.plane, label, "json").await?;
        let listed: Json = serde_json::from_str(&listed)?;
        let url = self.url();
        let key = format!("git://{}", url.split_once("://").context("a URL")?.1);
        let mut summaries = Vec::new();
        for secret in listed["items"].as_array().context("a list")? {
            let text = secret["metadata"]["annotations"]["kluctl.io/command-result-summary"].as_str();
            let summary: Json = serde_json::from_str(text.context("a summary")?)?;
            if summary["projectKey"] == json!({ "repoKey": key }) {
                summaries.push(summary);
            }
        }
        summaries.sort_by_key(|summary| summary["commandInfo"]["startTime"].as_str().map(str::to_owned));
        assert_eq!(summaries.len(), count);
        let last = summaries.last().context("no result")?;
        let fields = [
            "appliedObjects",
            "newObjects",
            "changedObjects",
            "orphanObjects",
            "deletedObjects",
            "totalChanges",
        ];
        assert_eq!(
            fields.map(|field| last[field].as_u64()),
            newest.map(Some),
            "{last}"
        );
        // An empty list is none for Go.
        assert_eq!(
            (&last["errors"], &last["warnings"]),
            (&Json::Null, &Json::Null),
            "{last}"
        );
        Ok(())
    }

    /// Returns the number of requests to the repository so far.
    pub(super) fn asked(&self) -> usize {
        self.repo.requests().len()
    }
}

/// Runs git in a directory, and returns its output.
fn git(dir: &Path, args: &[&str]) -> Result<String> {
    let output = std::process::Command::new("git")
        .args(args)
        .current_dir(dir)
        .output()?;
    ensure!(output.status.success(), "git {args:?}");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Returns a string that no other request has.
fn unique() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_nanos().to_string()
}
