//! Plays one case.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use cluster::Cluster;
use engine::{Error, RenderOptions};
use kluctl::{Contexts, Rendered, Request};
use testkit::ControlPlane;
use tokio::time::Instant;
use tree::Mem;
use yaml::Value;

use super::{
    command::{Command, Ended},
    expect::{self, strings},
    read_yaml,
    snapshot::{self, Incarnations, Scope, State},
};
use crate::world::PATIENCE;

/// A case and its state.
pub(crate) struct Case {
    plane: &'static ControlPlane,
    cluster: Cluster,
    folder: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
    scope: Scope,
    incarnations: Incarnations,
    /// The last snapshot.
    last: State,
}

impl Case {
    pub(crate) fn new(plane: &'static ControlPlane, cluster: Cluster, folder: PathBuf) -> Self {
        Self {
            plane,
            cluster,
            folder,
            files: BTreeMap::new(),
            scope: Scope::default(),
            incarnations: Incarnations::default(),
            last: State::new(),
        }
    }

    pub(crate) async fn run(mut self) -> Result<()> {
        let case = read_yaml(&self.folder.join("case.yaml"))?;
        let list = |name: &str| strings(case.get(name)).map(str::to_owned).collect();
        self.scope = Scope {
            namespaces: list("namespaces"),
            kinds: list("snapshot_kinds"),
            cluster_scoped: list("snapshot_cluster_scoped"),
        };
        let root = self.folder.join("project");
        self.load(&root, &root)?;
        for namespace in strings(case.get("create_namespaces")) {
            self.plane.namespace_named(namespace).await?;
        }
        let steps = case.get("steps").and_then(Value::as_seq).context("no steps")?;
        for (number, step) in steps.iter().enumerate() {
            self.step(step)
                .await
                .with_context(|| format!("step {}", number + 1))?;
        }
        Ok(())
    }

    fn load(&mut self, root: &PathBuf, dir: &PathBuf) -> Result<()> {
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                self.load(root, &path)?;
            } else {
                let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
                self.files.insert(name, std::fs::read(&path)?);
            }
        }
        Ok(())
    }

    async fn step(&mut self, step: &Value) -> Result<()> {
        if let Some(args) = step.get("kluctl") {
            let expected = step
                .get("expect")
                .and_then(Value::as_str)
                .context("nothing expected")?;
            let expected = read_yaml(&self.folder.join(expected))?;
            return self.command(&Command::parse(args)?, &expected).await;
        }
        if let Some(files) = step.get("write").and_then(Value::as_map) {
            for (path, text) in files {
                let text = text.as_str().unwrap_or_default().as_bytes();
                self.files.insert(path.to_owned(), text.to_vec());
            }
            return Ok(());
        }
        if let Some(paths) = step.get("remove") {
            for path in strings(Some(paths)) {
                self.files
                    .retain(|name, _| name != path && !name.starts_with(&format!("{path}/")));
            }
            return Ok(());
        }
        if let Some(seconds) = step.get("sleep").and_then(Value::as_u64) {
            // The recording lets time pass here; there is nothing to wait for.
            tokio::time::sleep(Duration::from_secs(seconds.min(30))).await;
            return Ok(());
        }
        self.act(step).await
    }

    /// Performs a step of another field manager with kubectl.
    async fn act(&self, step: &Value) -> Result<()> {
        let manager = step.get("manager").and_then(Value::as_str).unwrap_or("foreign");
        let manager = format!("--field-manager={manager}");
        if let Some(object) = step.get("apply") {
            let mut args = vec!["apply", "--server-side", &manager, "-f", "-"];
            if step.get("force").and_then(Value::as_bool) != Some(false) {
                args.push("--force-conflicts");
            }
            self.plane.kubectl_with(&args, &yaml::print::json(object)).await?;
        } else if let Some(object) = step.get("create") {
            self.plane
                .kubectl_with(&["create", &manager, "-f", "-"], &yaml::print::json(object))
                .await?;
        } else if let Some(patch) = step.get("merge_patch") {
            let patch = yaml::print::json(patch);
            let mut args = vec!["patch"];
            args.extend(named(step.get("object").unwrap_or(&Value::Null)));
            args.extend(["--type=merge", "-p", &patch, &manager]);
            if let Some(subresource) = step.get("subresource").and_then(Value::as_str) {
                args.extend(["--subresource", subresource]);
            }
            self.plane.kubectl(&args).await?;
        } else if let Some(object) = step.get("delete") {
            let mut args = vec!["delete", "--wait"];
            args.extend(named(object));
            self.plane.kubectl(&args).await?;
        } else if let Some(object) = step.get("wait_for") {
            let condition = object.get("for").and_then(Value::as_str).unwrap_or_default();
            let condition = format!("--for={condition}");
            let mut args = vec!["wait", "--timeout=60s", &condition];
            args.extend(named(object));
            self.plane.kubectl(&args).await?;
        } else {
            bail!("an unknown step: {step:?}");
        }
        Ok(())
    }

    async fn render(&self, command: &Command) -> Result<Rendered, Error> {
        let files = self.files.iter().map(|(path, bytes)| (path, bytes.clone()));
        let tree = Mem::from_files(files).unwrap_or_default();
        let context = "default".to_owned();
        let request = Request {
            target: command.target.clone(),
            inclusion: command.options.inclusion.clone(),
            discriminator: command.discriminator.clone().filter(|_| command.verb != "delete"),
            contexts: Contexts {
                current: Some(context.clone()),
                names: vec![context],
            },
            ..Request::default()
        };
        engine::render(&self.cluster, Arc::new(tree), request, &RenderOptions::default()).await
    }

    async fn command(&mut self, command: &Command, expected: &Value) -> Result<()> {
        let before = snapshot::state(&self.cluster, &self.scope).await?;
        let ended = match self.render(command).await {
            Ok(rendered) => command.run(&self.cluster, &rendered).await,
            Err(error) => Ended {
                error: Some(error.to_string()),
                result: None,
            },
        };
        let text = |name| expected.get(name).and_then(Value::as_str).unwrap_or_default();
        match &ended.error {
            Some(error) => {
                ensure!(text("exit") == "error", "it failed: {error} {:?}", errors(&ended));
                expect::error(text("error"), error)?;
            }
            None => ensure!(text("exit") == "ok", "it succeeded, recorded '{}'", text("error")),
        }
        if let Some(recorded) = expected.get("result") {
            let found = ended.result.as_ref().context("there is no result")?;
            expect::result(recorded, found)?;
        }
        let after = self.settled().await?;
        expect::written(expected, &snapshot::written(&before, &after))?;
        let gone: Vec<Value> = self
            .last
            .keys()
            .filter(|name| !after.contains_key(*name))
            .map(|name| Value::from(name.as_str()))
            .collect();
        let gone_recorded = expected.get("gone").cloned().unwrap_or_default();
        expect::same("what is gone", &gone_recorded, &Value::Seq(gone))?;
        let found = snapshot::snapshot(&after, &mut self.incarnations);
        let recorded = expected.get("objects").cloned().unwrap_or_default();
        self.last = after;
        expect::same(
            "objects on the cluster",
            &by_name(&recorded),
            &by_name(&Value::Seq(found)),
        )
    }

    /// The state once what is being deleted is gone.
    async fn settled(&self) -> Result<State> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let state = snapshot::state(&self.cluster, &self.scope).await?;
            if !snapshot::is_going(&state) || Instant::now() > deadline {
                return Ok(state);
            }
            self.cluster.pause(Duration::from_millis(100)).await?;
        }
    }
}

fn errors(ended: &Ended) -> String {
    let errors = ended.result.as_ref().and_then(|result| result.get("errors"));
    errors.map(yaml::print::json).unwrap_or_default()
}

/// A list of objects as a map, so that the differences name the object.
fn by_name(list: &Value) -> Value {
    let entries = list.as_seq().unwrap_or_default().iter().map(|object| {
        let text = |path: &[&str]| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let name = format!(
            "{}/{}/{}",
            text(&["kind"]),
            text(&["metadata", "namespace"]),
            text(&["metadata", "name"])
        );
        (name, object.clone())
    });
    Value::Map(entries.collect())
}

/// The arguments that name an object.
fn named(object: &Value) -> Vec<&str> {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut args = vec![text("kind"), text("name")];
    if !text("namespace").is_empty() {
        args.extend(["-n", text("namespace")]);
    }
    args
}
