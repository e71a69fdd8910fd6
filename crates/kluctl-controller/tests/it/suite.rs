//! The world of the original's end-to-end suite for gitops.kluctl.io: its definition and flags, objects as Go writes them, a Git server
//! without settings, and its waits.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use api::kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use testkit::{GitServer, controller::Launch, eventually, git::Repo, ports};

use crate::{
    decoding::{self, COMMAND_RESULT, SUMMARY},
    fixture::{Fixture, TIMEOUT, original_plane},
    gitops::ready_of,
};

/// The deployment of each test.
pub(crate) const NAME: &str = "project";

/// A project in a Git repository that is deployed by one controller.
pub(crate) struct Suite {
    pub(crate) fixture: Fixture,
    pub(crate) repo: Repo,
    _server: GitServer,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) items: Vec<&'static str>,
}

impl Suite {
    /// Starts a controller and a Git server, and makes a project without deployments.
    pub(crate) async fn new(prefix: &str, targets: &[&str]) -> Result<Self> {
        let plane = original_plane().await?;
        let namespace = plane.namespace(prefix).await?;
        let system = plane.namespace(&format!("{prefix}-system")).await?;
        let launch = Launch::by_kluctls_suite(plane, &namespace, &system, ports::free_port()?)?;
        let controller = launch.spawn()?;
        let server = GitServer::start()?;
        let repo = server.repo("kluctl-project")?;
        repo.grow_old()?;
        let targets: String = targets.iter().map(|name| format!("- name: {name}\n")).collect();
        let mut suite = Self {
            fixture: Fixture::of(plane, &system, namespace, controller).await?,
            repo,
            _server: server,
            files: BTreeMap::new(),
            items: Vec::new(),
        };
        let discriminator = format!(
            "discriminator: {}-{{{{ target.name or 'no-name' }}}}\n",
            suite.fixture.namespace
        );
        let targets = if targets.is_empty() {
            targets
        } else {
            format!("targets:\n{targets}")
        };
        suite.write(".kluctl.yml", discriminator + &targets);
        suite.write_items();
        Ok(suite)
    }

    pub(crate) fn write(&mut self, path: &str, text: impl Into<String>) {
        self.files.insert(path.to_owned(), text.into());
    }

    pub(crate) fn write_items(&mut self) {
        let items: String = self
            .items
            .iter()
            .map(|item| format!("- path: {item}\n"))
            .collect();
        let items = if items.is_empty() {
            items
        } else {
            format!("deployments:\n{items}")
        };
        let labels = format!("commonLabels:\n  project_name: {}\n", self.fixture.namespace);
        self.write("deployment.yml", labels + &items);
    }

    /// Adds a directory with one ConfigMap, whose data is a block of YAML.
    pub(crate) fn add_map(&mut self, dir: &'static str, name: &str, data: &str) {
        self.items.push(dir);
        self.write_items();
        let kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n";
        self.write(
            &format!("{dir}/kustomization.yml"),
            format!("{kustomization}- {name}.yaml\n"),
        );
        let map = self.map(name, data);
        self.write(&format!("{dir}/{name}.yaml"), map);
    }

    pub(crate) fn map(&self, name: &str, data: &str) -> String {
        let namespace = &self.fixture.namespace;
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: \"{namespace}\"\n{data}"
        )
    }

    /// Replaces the project in the repository, below a directory that may be empty, and returns the commit.
    pub(crate) fn push(&self, below: &str) -> Result<String> {
        let change = self.repo.change("update").clear().write(".dummy", "");
        let files = self.files.iter();
        let change = files.fold(change, |change, (path, text)| {
            change.write(&format!("{below}{path}"), text)
        });
        change.push()
    }

    pub(crate) fn api(&self) -> Api<KluctlDeployment> {
        Api::namespaced(self.fixture.client.clone(), &self.fixture.namespace)
    }

    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        self.fixture.config_maps()
    }

    pub(crate) async fn data(&self, name: &str) -> Result<Option<Value>> {
        Ok(self.maps().get_opt(name).await?.map(|map| json!(map.data)))
    }

    /// Creates the deployment, with all that Go writes for fields that are not set.
    pub(crate) async fn create(&self, target: Option<&str>, args: Value) -> Result<()> {
        let mut spec = json!({
            "source": { "git": { "url": self.repo.url() } }, "credentials": {}, "interval": "5s", "timeout": "5m0s",
            "args": args, "validate": false,
        });
        if let Some(target) = target {
            spec["target"] = json!(target);
        }
        let object = json!({
            "apiVersion": "gitops.kluctl.io/v1beta1", "kind": "KluctlDeployment",
            "metadata": { "name": NAME, "namespace": self.fixture.namespace }, "spec": spec, "status": {},
        });
        let (api, _) = self.fixture.plane.api_for(object.clone()).await?;
        let object: DynamicObject = serde_json::from_value(object)?;
        api.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    pub(crate) async fn patch(&self, change: Value) -> Result<()> {
        let params = PatchParams {
            field_manager: Some("kubectl".to_owned()),
            ..PatchParams::default()
        };
        self.api().patch(NAME, &params, &Patch::Merge(change)).await?;
        Ok(())
    }

    pub(crate) async fn update(&self, spec: Value) -> Result<()> {
        self.patch(json!({ "spec": spec })).await
    }

    /// Requests a reconciliation, and reads the object until its request has ended, at this commit, and Ready is not Unknown. All else must
    /// be final in the same read.
    pub(crate) async fn reconciled(&self, commit: Option<&str>) -> Result<KluctlDeploymentStatus> {
        let id = fastrand::u64(..).to_string();
        let request = json!({ "requestValue": id }).to_string();
        self.patch(json!({ "metadata": { "annotations": { "kluctl.io/request-reconcile": request } } }))
            .await?;
        let status = eventually("the end of the request", TIMEOUT, || async {
            let status = self.api().get(NAME).await?.status.context("no status")?;
            let result = status.reconcile_request_result.as_ref().context("no request")?;
            ensure!(
                result.request.request_value == id && result.end_time.is_some(),
                "{result:?}"
            );
            if let Some(commit) = commit {
                ensure!(
                    status.observed_commit.as_deref() == Some(commit),
                    "{:?}",
                    status.observed_commit
                );
            }
            let ready = api::conditions::get(&status.conditions, "Ready").context("no Ready")?;
            ensure!(json!(ready.status) != json!("Unknown"), "{ready:?}");
            Ok(status)
        })
        .await?;
        decoding::decode_status(&json!(status)).with_context(|| format!("{}", json!(status)))?;
        Ok(status)
    }

    /// The same at a new commit of the project as it is now.
    pub(crate) async fn pushed(&self) -> Result<KluctlDeploymentStatus> {
        let commit = self.push("")?;
        self.reconciled(Some(&commit)).await
    }

    /// Returns the stored result of a command, from any namespace.
    async fn stored(&self, id: &str) -> Result<Value> {
        let api: Api<Secret> = Api::all(self.fixture.client.clone());
        let selector = format!("kluctl.io/command-result-id={id}");
        let found = api.list(&ListParams::default().labels(&selector)).await?;
        let secret = found.items.first().context("no result is stored")?;
        let namespace = secret.metadata.namespace.clone().unwrap_or_default();
        let summary = secret.metadata.annotations.clone().unwrap_or_default();
        let summary = summary
            .get("kluctl.io/command-result-summary")
            .context("no summary")?;
        SUMMARY.decode(&serde_json::from_str(summary)?)?;
        let cluster = cluster::Cluster::new(self.fixture.client.clone());
        let store = results::ResultStore::new(cluster, &namespace, results::Retention::default());
        let stored = store.find(id).await?.context("the result is not found")?;
        let result = store.read_compacted(&stored).await?.to_json();
        COMMAND_RESULT
            .decode(&result)
            .with_context(|| result.to_string())?;
        Ok(result)
    }

    /// Fails unless Ready and the result of the last deployment say this. Without any messages, the result need not be stored.
    pub(crate) async fn says(
        &self,
        status: &KluctlDeploymentStatus,
        ready: (&str, &str),
        errors: Value,
        warnings: Value,
    ) -> Result<()> {
        let (reason, message) = ready_of(status);
        ensure!(
            reason == ready.0 && message.contains(ready.1),
            "{reason}: {message}: {:?}",
            status.last_prepare_error
        );
        let condition = api::conditions::get(&status.conditions, "Ready").context("no Ready")?;
        let expected = if reason == "ReconciliationSucceeded" {
            "True"
        } else {
            "False"
        };
        assert_eq!(json!(condition.status), json!(expected));
        let last = status.last_deploy_result.as_ref().context("no result")?;
        let of = |result: &Value, field: &str| match &result[field] {
            Value::Null => json!([]),
            list => list.clone(),
        };
        assert_eq!(
            (of(last, "errors"), of(last, "warnings")),
            (errors.clone(), warnings.clone())
        );
        if errors != json!([]) || warnings != json!([]) {
            let stored = self.stored(last["id"].as_str().context("no ID")?).await?;
            assert_eq!(
                (of(&stored, "errors"), of(&stored, "warnings")),
                (errors, warnings)
            );
        }
        Ok(())
    }

    /// Fails unless there are no errors and warnings, and Ready says this.
    pub(crate) async fn says_only(&self, status: &KluctlDeploymentStatus, ready: (&str, &str)) -> Result<()> {
        self.says(status, ready, json!([]), json!([])).await
    }
}
