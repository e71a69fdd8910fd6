//! Plays a recorded case on a cluster.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use cluster::Cluster;
use testkit::{ControlPlane, eventually};
use tokio::{sync::Mutex, time::Instant};
use tree::Budget;
use yaml::Value;

use super::{
    expect::{self, strings},
    read_yaml,
    sandbox::Sandbox,
    snapshot::{self, Incarnations, Scope, State},
};

/// Timeout for changes of objects, which suffices on a busy machine.
const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

pub(crate) struct Case<'p> {
    plane: &'p ControlPlane,
    cluster: Cluster,
    folder: PathBuf,
    description: Value,
    sandbox: Sandbox,
    scope: Scope,
    incarnations: Incarnations,
    /// True after a step in which the recording lets time pass, so that statuses of objects change.
    awaits_statuses: bool,
}

impl<'p> Case<'p> {
    pub(crate) fn new(plane: &'p ControlPlane, cluster: Cluster, folder: PathBuf) -> Result<Self> {
        let description = read_yaml(&folder.join("case.yaml"))?;
        let mut sandbox = Sandbox::new(&folder, &description)?;
        sandbox.kubeconfig = Some(plane.kubeconfig().to_owned());
        let list = |name: &str| strings(description.get(name)).map(str::to_owned).collect();
        Ok(Self {
            plane,
            cluster,
            scope: Scope {
                namespaces: list("namespaces"),
                kinds: list("snapshot_kinds"),
                cluster_scoped: list("snapshot_cluster_scoped"),
            },
            folder,
            description,
            sandbox,
            incarnations: Incarnations::default(),
            awaits_statuses: false,
        })
    }

    pub(crate) async fn run(mut self) -> Result<()> {
        let case = std::mem::take(&mut self.description);
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

    async fn step(&mut self, step: &Value) -> Result<()> {
        if let Some(args) = step.get("kluctl") {
            let expected = step
                .get("expect")
                .and_then(Value::as_str)
                .context("nothing expected")?;
            let expected = read_yaml(&self.folder.join(expected))?;
            let args = self.sandbox.args(args);
            if std::mem::take(&mut self.awaits_statuses) {
                return self.command_after_statuses(args, &expected).await;
            }
            return self.command(args, &expected).await;
        }
        if let Some(files) = step.get("write").and_then(Value::as_map) {
            for (path, text) in files {
                let path = self.sandbox.project().join(path);
                fs::create_dir_all(path.parent().context("no parent")?)?;
                fs::write(path, text.as_str().unwrap_or_default())?;
            }
            return Ok(());
        }
        if let Some(paths) = step.get("remove") {
            for path in strings(Some(paths)) {
                let path = self.sandbox.project().join(path);
                match path.is_dir() {
                    true => fs::remove_dir_all(path)?,
                    false => fs::remove_file(path)?,
                }
            }
            return Ok(());
        }
        if step.get("sleep").is_some() {
            self.awaits_statuses = true;
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

    /// Repeats a command that changes nothing until its outcome is as recorded.
    async fn command_after_statuses(&mut self, args: Vec<String>, expected: &Value) -> Result<()> {
        let verb = args.first().map(String::as_str).unwrap_or_default();
        ensure!(
            verb == "validate",
            "{verb} can't be repeated until statuses change"
        );
        let case = Mutex::new(self);
        eventually("the recorded outcome", TIMEOUT, || async {
            case.lock().await.command(args.clone(), expected).await
        })
        .await
    }

    /// Runs the binary, and compares its outcome, and the cluster's.
    async fn command(&mut self, args: Vec<String>, expected: &Value) -> Result<()> {
        let before = snapshot::state(&self.cluster, &self.scope).await?;
        let finished = self.sandbox.run(&with_implied(args)).await?;
        let text = |name| expected.get(name).and_then(Value::as_str).unwrap_or_default();
        if finished.success {
            ensure!(text("exit") == "ok", "it succeeded, recorded '{}'", text("error"));
        } else {
            ensure!(
                text("exit") == "error",
                "it failed: {}{}",
                finished.stderr,
                finished.stdout
            );
            expect::error(text("error"), finished.error())?;
        }
        if let Some(recorded) = expected.get("result") {
            let found = yaml::read::goyaml(finished.stdout.as_str(), &Budget::default())?.value;
            expect::result(recorded, &found)?;
        }
        if let Some(recorded) = expected.get("stdout") {
            // Before a diff, the original prints one or two blank lines, depending on the random order of a map.
            let recorded = without_blank_lines(recorded.as_str().unwrap_or_default());
            expect::same("stdout", &recorded, &without_blank_lines(&finished.stdout))?;
        }
        let after = self.stable_state().await?;
        expect::written(expected, &snapshot::written(&before, &after))?;
        let gone: Vec<Value> = before
            .keys()
            .filter(|name| !after.contains_key(*name))
            .map(|name| Value::from(name.as_str()))
            .collect();
        let gone_recorded = expected.get("gone").cloned().unwrap_or_default();
        expect::same("what is gone", &gone_recorded, &Value::Seq(gone))?;
        let found = snapshot::snapshot(&after, &mut self.incarnations);
        let recorded = expected.get("objects").cloned().unwrap_or_default();
        expect::same(
            "objects on the cluster",
            &by_name(&recorded),
            &by_name(&Value::Seq(found)),
        )
    }

    /// Returns the state once no object is being deleted any more.
    async fn stable_state(&self) -> Result<State> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let state = snapshot::state(&self.cluster, &self.scope).await?;
            if !snapshot::is_going(&state) || Instant::now() > deadline {
                return Ok(state);
            }
            self.cluster.pause(Duration::from_millis(100)).await?;
        }
    }
}

/// Adds the flags that recordings imply where the command has them: `--yes`, YAML output, and no writing of results.
fn with_implied(mut args: Vec<String>) -> Vec<String> {
    let verb = args.first().cloned().unwrap_or_default();
    let has = |flags: &[&str]| args.iter().any(|arg| flags.contains(&arg.as_str()));
    let mut implied = Vec::new();
    if ["deploy", "prune", "delete", "poke-images"].contains(&verb.as_str()) {
        implied.extend(["--yes", "--write-command-result=false"]);
    }
    let prints_result = verb == "diff" || verb == "validate" || !implied.is_empty();
    if prints_result && !has(&["-o", "--output-format"]) {
        implied.extend(["-o", "yaml"]);
    }
    args.extend(implied.into_iter().map(str::to_owned));
    args
}

fn without_blank_lines(text: &str) -> Value {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    Value::from(lines.join("\n"))
}

/// Returns a list of objects as a map, so that the differences name the object.
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
