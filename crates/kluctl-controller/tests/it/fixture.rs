//! A shared control plane; a namespace, a controller process and sources for each test.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use api::kluctl::KluctlDeployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{
    ControlPlane, Controller, FaultProxy, LentPlane, Manifest, Options, audit, eventually, manifest,
    wait_for, wait_gone,
};
use tokio::sync::OnceCell;

use crate::source::OfferedSource;

/// Timeout of every wait, for a busy machine.
pub(crate) const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();

/// The control plane of these tests, with all definitions.
pub(crate) async fn plane() -> Result<&'static ControlPlane> {
    PLANE
        .get_or_try_init(|| async {
            let plane = ControlPlane::start(Options::default()).await?;
            plane
                .install_crds(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds"))
                .await?;
            Ok(plane)
        })
        .await
}

/// The control plane of the tests beside a source-controller that is so old that it serves v1beta2 only.
pub(crate) async fn old_plane() -> Result<&'static ControlPlane> {
    static OLD: OnceCell<ControlPlane> = OnceCell::const_new();
    OLD.get_or_try_init(|| async {
        let plane = ControlPlane::start(Options::default()).await?;
        let mut sources = api::crd::git_repository();
        sources.spec.versions.retain(|version| version.name == "v1beta2");
        for version in &mut sources.spec.versions {
            version.storage = true;
        }
        for crd in [sources, api::crd::kluctl_deployment()] {
            plane.apply(serde_json::to_value(crd)?).await?;
        }
        Ok(plane)
    })
    .await
}

/// The control plane whose schema accepts durations that the types refuse, as schemas of other releases do, and whose fields can't be selected.
pub(crate) async fn loose_plane() -> Result<&'static ControlPlane> {
    static LOOSE: OnceCell<ControlPlane> = OnceCell::const_new();
    LOOSE
        .get_or_try_init(|| async {
            let plane = ControlPlane::start(Options::default()).await?;
            let mut deployments = serde_json::to_value(api::crd::kluctl_deployment())?;
            let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
            let interval = deployments
                .pointer_mut(&format!("{spec}/interval"))
                .context("a field of the schema")?;
            *interval = json!({ "type": "string" });
            let version = deployments.pointer_mut("/spec/versions/0").context("a version")?;
            let version = version.as_object_mut().context("a version is no map")?;
            ensure!(version.remove("selectableFields").is_some());
            for crd in [serde_json::to_value(api::crd::git_repository())?, deployments] {
                plane.apply(crd).await?;
            }
            Ok(plane)
        })
        .await
}

/// The control plane whose schema allows only short results in a status.
pub(crate) async fn strict_plane() -> Result<&'static ControlPlane> {
    static STRICT: OnceCell<ControlPlane> = OnceCell::const_new();
    STRICT
        .get_or_try_init(|| async {
            let plane = ControlPlane::start(Options::default()).await?;
            let mut deployments = serde_json::to_value(api::crd::kluctl_deployment())?;
            let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
            let result = deployments
                .pointer_mut(&format!("{status}/lastDeployResult/properties/rawResult"))
                .context("a field of the schema")?;
            *result = json!({ "type": "string", "maxLength": 5 });
            for crd in [serde_json::to_value(api::crd::git_repository())?, deployments] {
                plane.apply(crd).await?;
            }
            Ok(plane)
        })
        .await
}

/// The control plane whose definition of gitops.kluctl.io is the original one: fields of ours are not stored, those that it
/// requires are, and none can be selected.
pub(crate) async fn original_plane() -> Result<&'static ControlPlane> {
    static ORIGINAL: OnceCell<ControlPlane> = OnceCell::const_new();
    ORIGINAL
        .get_or_try_init(|| async {
            let plane = ControlPlane::start(Options::default()).await?;
            let mut deployments = serde_json::to_value(api::crd::gitops_kluctl_deployment())?;
            let version = deployments.pointer_mut("/spec/versions/0").context("a version")?;
            let version = version.as_object_mut().context("a version is no map")?;
            ensure!(version.remove("selectableFields").is_some());
            let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
            let status = deployments.pointer_mut(status).context("a status")?;
            let fields = status.as_object_mut().context("the fields are no map")?;
            for own in ["begunInventory", "deployedInventory"] {
                ensure!(fields.remove(own).is_some(), "{own} is not in the schema");
            }
            status["targetKey"]["required"] = json!(["clusterId"]);
            for kind in ["deploy", "diff", "prune", "reconcile", "validate"] {
                status[format!("{kind}RequestResult")]["required"] =
                    json!(["reconcileId", "request", "startTime"]);
            }
            plane.apply(deployments).await?;
            Ok(plane)
        })
        .await
}

/// A control plane of its own for one test, with all definitions.
pub(crate) async fn own_plane(options: Options) -> Result<LentPlane> {
    let plane = ControlPlane::lent(options).await?;
    let definitions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
    plane.get().install_crds(&definitions).await?;
    Ok(plane)
}

/// A namespace with a controller that watches nothing else.
pub(crate) struct Fixture {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) controller: Controller,
    /// The name of the controller in the audit log.
    pub(crate) user: String,
    /// The control plane, if it is this test's own. It ends after the controller.
    pub(crate) _own: Option<LentPlane>,
}

impl Fixture {
    /// Starts a controller with these flags.
    pub(crate) async fn new(prefix: &str, flags: &[&str]) -> Result<Self> {
        Self::on(plane().await?, prefix, flags).await
    }

    /// Starts a controller with these flags on another control plane.
    pub(crate) async fn on(plane: &'static ControlPlane, prefix: &str, flags: &[&str]) -> Result<Self> {
        let namespace = plane.namespace(prefix).await?;
        Self::started(plane, None, namespace.clone(), namespace, flags).await
    }

    /// Starts a controller with these flags on a control plane of its own.
    pub(crate) async fn alone(prefix: &str, flags: &[&str]) -> Result<Self> {
        let plane = own_plane(Options::default()).await?;
        let fixture = Self::on(plane.get(), prefix, flags).await?;
        Ok(Self {
            _own: Some(plane),
            ..fixture
        })
    }

    /// Starts a controller with these flags that reaches the API server by way of a proxy.
    pub(crate) async fn by_proxy(
        plane: &'static ControlPlane,
        prefix: &str,
        flags: &[&str],
    ) -> Result<(Self, FaultProxy)> {
        let proxy = FaultProxy::start(plane)?;
        let namespace = plane.namespace(prefix).await?;
        let fixture = Self::started(plane, Some(&proxy), namespace.clone(), namespace, flags).await?;
        Ok((fixture, proxy))
    }

    /// Starts a controller with these flags for a namespace that exists.
    pub(crate) async fn within(
        plane: &'static ControlPlane,
        namespace: &str,
        flags: &[&str],
    ) -> Result<Self> {
        Self::started(plane, None, namespace.to_owned(), namespace.to_owned(), flags).await
    }

    /// Starts a controller with these flags whose own account is in another namespace.
    pub(crate) async fn apart(prefix: &str, flags: &[&str]) -> Result<Self> {
        let plane = plane().await?;
        let home = plane.namespace("home").await?;
        Self::started(plane, None, home, plane.namespace(prefix).await?, flags).await
    }

    async fn started(
        plane: &'static ControlPlane,
        proxy: Option<&FaultProxy>,
        home: String,
        namespace: String,
        flags: &[&str],
    ) -> Result<Self> {
        let kubeconfig = plane.service_account_kubeconfig(&home, "controller").await?;
        let kubeconfig = match proxy {
            Some(proxy) => proxy.kubeconfig(&kubeconfig)?,
            None => kubeconfig,
        };
        grant(plane, &home, "controller", &home).await?;
        let mut launch = Controller::named("kluctl-controller")
            .run_by(&kubeconfig)
            .namespace(&namespace)
            .flag("--watch-all-namespaces=false")
            .flag("--requeue-dependency=60s");
        for flag in flags {
            launch = launch.flag(flag);
        }
        let controller = launch.start().await?;
        Self::of(plane, &home, namespace, controller).await
    }

    /// Takes a running controller, whose account is `controller` of the namespace `home`.
    pub(crate) async fn of(
        plane: &'static ControlPlane,
        home: &str,
        namespace: String,
        controller: Controller,
    ) -> Result<Self> {
        Ok(Self {
            plane,
            client: plane.client().await?,
            controller,
            user: format!("system:serviceaccount:{home}:controller"),
            namespace,
            _own: None,
        })
    }

    /// Starts a controller for a namespace with exactly the flags of the original's end-to-end suite, and these. Rights for
    /// the account `controller` of the namespace are the caller's matter.
    pub(crate) async fn original(
        plane: &'static ControlPlane,
        namespace: String,
        results: &str,
        more: &[&str],
    ) -> Result<Self> {
        let kubeconfig = plane.service_account_kubeconfig(&namespace, "controller").await?;
        let file = kubeconfig.to_str().context("the path isn't UTF-8")?;
        let args = [
            "controller",
            "run",
            "--kubeconfig",
            file,
            "--context",
            "weir",
            "--namespace",
            &namespace,
            "--command-result-namespace",
            results,
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            "--source-override-bind-address=0",
        ];
        let launch = Controller::named("kluctl-controller").run_by("/does/not/exist".as_ref());
        let controller = launch.exactly(&[&args, more].concat()).spawn()?;
        let home = namespace.clone();
        Self::of(plane, &home, namespace, controller).await
    }

    pub(crate) fn deployments(&self) -> Api<KluctlDeployment> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A deployment of the source of the same name, from its root.
    pub(crate) fn deployment(&self, name: &str, source: &str) -> Manifest {
        manifest::kluctl_deployment(&self.namespace, name, source, ".").spec(json!({ "retryInterval": "1s" }))
    }

    /// Applies a deployment of the source of the same name, for the target of [`project`].
    pub(crate) async fn deploy(&self, name: &str, spec: Value) -> Result<()> {
        let deployment = self.deployment(name, name).spec(for_kind()).spec(spec);
        self.plane.apply(deployment).await?;
        Ok(())
    }

    /// Makes a service account that may do anything, and returns its kubeconfig.
    pub(crate) async fn account(&self, name: &str) -> Result<String> {
        let kubeconfig = self
            .plane
            .service_account_kubeconfig(&self.namespace, name)
            .await?;
        grant(self.plane, &self.namespace, name, &self.namespace).await?;
        Ok(std::fs::read_to_string(kubeconfig)?)
    }

    /// Stores a kubeconfig in the Secret `remote`.
    pub(crate) async fn store(&self, key: &str, kubeconfig: &str) -> Result<()> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "remote", "namespace": self.namespace },
            "stringData": { key: kubeconfig },
        });
        self.plane.apply(secret).await?;
        Ok(())
    }

    /// Makes a source that offers these files.
    pub(crate) async fn source(&self, name: &str, files: &[(String, String)]) -> Result<OfferedSource> {
        self.source_in("v1", name, files).await
    }

    /// The same with the version that is served.
    pub(crate) async fn source_in(
        &self,
        version: &str,
        name: &str,
        files: &[(String, String)],
    ) -> Result<OfferedSource> {
        // Nobody looks at this URL: the tests play the source-controller.
        let repository = manifest::git_repository(&self.namespace, name, "https://example.invalid/shop");
        let mut repository = Value::from(repository);
        repository["apiVersion"] = format!("source.toolkit.fluxcd.io/{version}").into();
        eventually("the source to be accepted", TIMEOUT, || async {
            self.plane.apply(repository.clone()).await.map(drop)
        })
        .await?;
        let (api, _) = self.plane.api_for(repository).await?;
        let source = OfferedSource {
            api,
            name: name.to_owned(),
        };
        source.offer(files).await?;
        Ok(source)
    }

    /// Waits until the Ready condition has this status and reason, and speaks of the newest generation.
    pub(crate) async fn ready(&self, name: &str, status: &str, reason: &str) -> Result<KluctlDeployment> {
        let what = format!("Ready={status} {reason}");
        wait_for(&self.deployments(), name, &what, TIMEOUT, |object| {
            let observed = object
                .status
                .as_ref()
                .and_then(|status| status.observed_generation);
            let ready = ready_of(object);
            observed == object.metadata.generation
                && ready.is_some_and(|(s, r, _)| s == status && r == reason)
        })
        .await
    }

    /// Waits until a pass at this revision ended well.
    pub(crate) async fn deployed(&self, name: &str, revision: &str) -> Result<KluctlDeployment> {
        wait_for(
            &self.deployments(),
            name,
            &format!("{revision} to be ready"),
            TIMEOUT,
            |object| {
                let tried = object
                    .status
                    .as_ref()
                    .and_then(|status| status.last_attempted_revision.as_deref());
                tried == Some(revision) && ready_of(object).is_some_and(|(status, ..)| status == "True")
            },
        )
        .await
    }

    /// Sets an annotation, which the controller may take as a request.
    pub(crate) async fn annotate(&self, name: &str, key: &str, value: &str) -> Result<()> {
        let patch = json!({ "metadata": { "annotations": { key: value } } });
        self.deployments()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Asks for a pass and waits until it is over.
    pub(crate) async fn reconcile(&self, name: &str) -> Result<()> {
        let value = format!("{:x}", fastrand::u64(..));
        self.annotate(name, "reconcile.fluxcd.io/requestedAt", &value)
            .await?;
        wait_for(
            &self.deployments(),
            name,
            "the request to be answered",
            TIMEOUT,
            |object| {
                let handled = object
                    .status
                    .as_ref()
                    .and_then(|status| status.last_handled_reconcile_at.as_deref());
                handled == Some(&value)
            },
        )
        .await?;
        Ok(())
    }

    pub(crate) async fn edit(&self, name: &str, spec: Value) -> Result<()> {
        let patch = json!({ "spec": spec });
        self.deployments()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Removes a deployment and waits until it is gone.
    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        self.deployments().delete(name, &DeleteParams::default()).await?;
        wait_gone(&self.deployments(), name, TIMEOUT).await
    }

    /// Waits until a ConfigMap holds this under `value`.
    pub(crate) async fn holds(&self, name: &str, value: &str) -> Result<ConfigMap> {
        wait_for(
            &self.config_maps(),
            name,
            &format!("value {value}"),
            TIMEOUT,
            |map| value_of(map) == Some(value),
        )
        .await
    }

    pub(crate) async fn has(&self, name: &str) -> Result<bool> {
        Ok(self.config_maps().get_opt(name).await?.is_some())
    }

    /// Returns the requests of the controller to the API server since a mark.
    pub(crate) fn requests_since(&self, mark: testkit::audit::Mark) -> Result<Vec<audit::Entry>> {
        let entries = self.plane.audit_since(mark)?;
        Ok(entries
            .into_iter()
            .filter(|entry| entry.user == self.user)
            .collect())
    }

    /// The messages of the Events about a deployment.
    pub(crate) async fn events(&self, name: &str) -> Result<Vec<(String, String)>> {
        let api: Api<k8s_openapi::api::core::v1::Event> =
            Api::namespaced(self.client.clone(), &self.namespace);
        let all = api.list(&kube::api::ListParams::default()).await?;
        let about = all
            .into_iter()
            .filter(|event| event.involved_object.name.as_deref() == Some(name));
        Ok(about
            .map(|event| (event.type_.unwrap_or_default(), event.message.unwrap_or_default()))
            .collect())
    }

    /// Waits for an Event about a deployment that contains this.
    pub(crate) async fn told(&self, name: &str, text: &str) -> Result<(String, String)> {
        eventually(&format!("an event with {text:?}"), TIMEOUT, || async move {
            let events = self.events(name).await?;
            let found = events.iter().find(|(_, message)| message.contains(text));
            found
                .cloned()
                .with_context(|| format!("the events are {events:?}"))
        })
        .await
    }

    /// Returns the number of passes of the controller.
    pub(crate) async fn passes(&self) -> Result<f64> {
        let text = self.controller.metrics().await?;
        let counts = text
            .lines()
            .filter(|line| line.starts_with("controller_runtime_reconcile_total"));
        Ok(counts
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum())
    }

    /// Waits for a number of further passes.
    pub(crate) async fn more_passes(&self, n: f64) -> Result<()> {
        let before = self.passes().await?;
        eventually("passes", TIMEOUT, || async move {
            let now = self.passes().await?;
            ensure!(now >= before + n, "{} passes so far", now - before);
            Ok(())
        })
        .await
    }
}

/// Returns true for requests of the watches that all deployments share, which no object causes: of names and labels, and of the definitions
/// of kinds and of webhooks and policies, with the questions if the controller may watch these.
pub(crate) fn is_of_shared_watch(entry: &audit::Entry) -> bool {
    let watches = matches!(entry.verb.as_str(), "list" | "watch");
    let definitions = ["customresourcedefinitions", "apiservices"].contains(&entry.resource.as_str());
    let labelled = entry.uri.contains("labelSelector=kluctl.io%2Fdiscriminator&");
    let admission = entry.group == "admissionregistration.k8s.io";
    watches && (definitions || labelled || admission) || entry.resource == "selfsubjectaccessreviews"
}

/// Status, reason and message of the Ready condition.
pub(crate) fn ready_of(object: &KluctlDeployment) -> Option<(String, String, String)> {
    let conditions = &object.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some((
        ready.status.to_string(),
        ready.reason.clone(),
        ready.message.clone(),
    ))
}

pub(crate) fn message_of(object: &KluctlDeployment) -> String {
    ready_of(object)
        .map(|(_, _, message)| message)
        .unwrap_or_default()
}

pub(crate) fn has_condition(object: &KluctlDeployment, type_: &str) -> bool {
    let conditions = object
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    conditions
        .iter()
        .any(|condition| condition.type_ == type_ && condition.is_true())
}

pub(crate) fn value_of(map: &ConfigMap) -> Option<&str> {
    map.data.as_ref()?.get("value").map(String::as_str)
}

/// Lets a service account do anything, in this namespace and in lists of the cluster.
pub(crate) async fn grant(plane: &ControlPlane, namespace: &str, account: &str, unique: &str) -> Result<()> {
    plane
        .apply(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": format!("{unique}-{account}") },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": namespace }],
        }))
        .await?;
    Ok(())
}

/// Lets a service account of one namespace do anything in another one, as long as the returned binding exists.
pub(crate) async fn grant_in(
    plane: &ControlPlane,
    namespace: &str,
    account: (&str, &str),
) -> Result<Api<DynamicObject>> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": { "name": "tenant", "namespace": namespace },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": account.1, "namespace": account.0 }],
    });
    plane.apply(binding.clone()).await?;
    Ok(plane.api_for(binding).await?.0)
}

/// A project with a target `test` for the context `kind-kind`, whose discriminator is unique to the namespace, and one
/// item that holds these manifests.
pub(crate) fn project(namespace: &str, manifests: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut files = vec![
        (
            ".kluctl.yaml".to_owned(),
            format!(
                "targets:\n- name: test\n  context: kind-kind\ndiscriminator: {namespace}-{{{{ target.name }}}}\n"
            ),
        ),
        (
            "deployment.yaml".to_owned(),
            format!("deployments:\n- path: app\noverrideNamespace: {namespace}\n"),
        ),
    ];
    let names: Vec<String> = manifests
        .iter()
        .map(|(name, _)| format!("- {name}.yaml\n"))
        .collect();
    files.push((
        "app/kustomization.yaml".to_owned(),
        format!("resources:\n{}", names.concat()),
    ));
    for (name, text) in manifests {
        files.push((format!("app/{name}.yaml"), (*text).to_owned()));
    }
    files
}

/// A ConfigMap with one value.
pub(crate) fn config_map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  value: \"{value}\"\n")
}

/// The target of [`project`], and a new name for the only context.
pub(crate) fn for_kind() -> Value {
    json!({ "target": "test", "renameContexts": [{ "oldContext": "default", "newContext": "kind-kind" }] })
}

impl Fixture {
    /// The files of a project of this namespace with these ConfigMaps (name and value).
    pub(crate) fn maps(&self, maps: &[(&str, &str)]) -> Vec<(String, String)> {
        let texts: Vec<(&str, String)> = maps
            .iter()
            .map(|(name, value)| (*name, config_map(name, value)))
            .collect();
        let manifests: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
        project(&self.namespace, &manifests)
    }

    /// The same with another discriminator.
    pub(crate) fn other_maps(&self, prefix: &str, maps: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut files = self.maps(maps);
        for (path, text) in &mut files {
            if path == ".kluctl.yaml" {
                *text = text.replace("discriminator: ", &format!("discriminator: {prefix}-"));
            }
        }
        files
    }

    /// A source with a deployment of the same name, which is ready.
    pub(crate) async fn running(
        &self,
        name: &str,
        maps: &[(&str, &str)],
        spec: Value,
    ) -> Result<OfferedSource> {
        let source = self.source(name, &self.maps(maps)).await?;
        self.deploy(name, spec).await?;
        self.ready(name, "True", "ReconciliationSucceeded").await?;
        Ok(source)
    }
}

impl Fixture {
    /// A suspended object of the kind that brings its own source, with this status.
    pub(crate) async fn successor(&self, name: &str, status: Value) -> Result<Api<DynamicObject>> {
        let object = json!({
            "apiVersion": "gitops.kluctl.io/v1beta1", "kind": "KluctlDeployment",
            "metadata": { "name": name, "namespace": self.namespace },
            "spec": {
                "interval": "1h", "suspend": true, "source": { "git": { "url": "https://git.invalid/shop" } },
            },
        });
        self.plane.apply(object.clone()).await?;
        let api = self.plane.api_for(object).await?.0;
        // The status of the first pass would replace it.
        wait_for(&api, name, "its first pass", TIMEOUT, |object: &DynamicObject| {
            object.data.pointer("/status/observedGeneration").is_some()
        })
        .await?;
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(api)
    }
}
