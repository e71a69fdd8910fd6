//! Plays one case.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use cluster::Cluster;
use engine::{CommandResult, DeleteOptions, DeployOptions, Error, ObjectError, PruneOptions, Rendering};
use kluctl::{Contexts, Rendered, Request};
use objects::{ObjectRef, managed};
use testkit::ControlPlane;
use tree::Mem;
use yaml::Value;

use super::read_yaml;

/// How a case ended.
pub(crate) enum Outcome {
    Matches,
    Skipped(String),
}

/// A case and its state.
pub(crate) struct Case {
    plane: &'static ControlPlane,
    cluster: Cluster,
    folder: PathBuf,
    files: BTreeMap<String, String>,
}

/// What a command line asks for.
#[derive(Default)]
struct Command {
    verb: String,
    target: Option<String>,
    discriminator: Option<String>,
    deploy: DeployOptions,
    no_wait: bool,
    /// Whether a deployment prunes, too.
    prune: bool,
}

/// The parts of a result that are compared.
#[derive(Debug, Default, PartialEq)]
struct Said {
    objects: Vec<String>,
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl Case {
    pub(crate) fn new(plane: &'static ControlPlane, cluster: Cluster, folder: PathBuf) -> Self {
        Self {
            plane,
            cluster,
            folder,
            files: BTreeMap::new(),
        }
    }

    pub(crate) async fn run(mut self) -> Result<Outcome> {
        let case = read_yaml(&self.folder.join("case.yaml"))?;
        let steps = case.get("steps").and_then(Value::as_seq).context("no steps")?;
        for step in steps {
            for unknown in ["wait_for", "sleep"] {
                if step.get(unknown).is_some() {
                    return Ok(Outcome::Skipped(format!("step {unknown}")));
                }
            }
            if let Some(Err(flag)) = step.get("kluctl").map(Command::parse) {
                return Ok(Outcome::Skipped(flag));
            }
        }
        let root = self.folder.join("project");
        self.load(&root, &root)?;
        // Before anything is created: whether all of it can be rendered.
        if let Err(error) = self.render(&Command::default()).await
            && !error.to_string().contains("target must be explicitly selected")
        {
            return Ok(Outcome::Skipped(error.to_string()));
        }
        for namespace in strings(case.get("create_namespaces")) {
            self.plane.namespace_named(namespace).await?;
        }
        for (number, step) in steps.iter().enumerate() {
            self.step(step)
                .await
                .with_context(|| format!("step {}", number + 1))?;
        }
        Ok(Outcome::Matches)
    }

    fn load(&mut self, root: &PathBuf, dir: &PathBuf) -> Result<()> {
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                self.load(root, &path)?;
            } else {
                let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
                self.files.insert(name, std::fs::read_to_string(&path)?);
            }
        }
        Ok(())
    }

    async fn step(&mut self, step: &Value) -> Result<()> {
        if let Some(command) = step.get("kluctl") {
            let command = Command::parse(command).map_err(anyhow::Error::msg)?;
            let expected = step
                .get("expect")
                .and_then(Value::as_str)
                .context("nothing expected")?;
            let expected = read_yaml(&self.folder.join(expected))?;
            return self.command(&command, &expected).await;
        }
        if let Some(files) = step.get("write").and_then(Value::as_map) {
            for (path, text) in files {
                self.files
                    .insert(path.to_owned(), text.as_str().unwrap_or_default().to_owned());
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
        self.act(step).await
    }

    /// What somebody else does.
    async fn act(&self, step: &Value) -> Result<()> {
        let manager = step.get("manager").and_then(Value::as_str).unwrap_or("kubectl");
        let manager = format!("--field-manager={manager}");
        if let Some(object) = step.get("apply") {
            let mut args = vec!["apply", "--server-side", &manager, "-f", "-"];
            if step.get("force").and_then(Value::as_bool) == Some(true) {
                args.push("--force-conflicts");
            }
            self.plane.kubectl_with(&args, &yaml::print::json(object)).await?;
        } else if let Some(object) = step.get("create") {
            self.plane
                .kubectl_with(&["create", &manager, "-f", "-"], &yaml::print::json(object))
                .await?;
        } else if let Some(patch) = step.get("merge_patch") {
            let text = |key| {
                step.pointer(&["object", key])
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let patch = yaml::print::json(patch);
            let mut args = vec![
                "patch",
                text("kind"),
                text("name"),
                "--type=merge",
                "-p",
                &patch,
                &manager,
            ];
            if !text("namespace").is_empty() {
                args.extend(["-n", text("namespace")]);
            }
            if let Some(subresource) = step.get("subresource").and_then(Value::as_str) {
                args.extend(["--subresource", subresource]);
            }
            self.plane.kubectl(&args).await?;
        } else {
            bail!("an unknown step: {step:?}");
        }
        Ok(())
    }

    async fn render(&self, command: &Command) -> Result<Rendered, Error> {
        let tree = Mem::from_files(self.files.iter().map(|(path, text)| (path, text.clone())));
        let context = "default".to_owned();
        let request = Request {
            target: command.target.clone(),
            contexts: Contexts {
                current: Some(context.clone()),
                names: vec![context],
            },
            ..Request::default()
        };
        let tree = Arc::new(tree.unwrap_or_default());
        engine::render(&self.cluster, tree, request, &Rendering::default()).await
    }

    async fn command(&self, command: &Command, expected: &Value) -> Result<()> {
        let rendered = self.render(command).await?;
        let said = match self.execute(command, &rendered).await {
            Ok(said) => said,
            Err(error) => Said {
                errors: vec![error.to_string()],
                ..Said::default()
            },
        };
        let recorded = Said::recorded(expected);
        ensure!(
            said.objects == recorded.objects,
            "objects {:#?}\nrecorded {:#?}",
            said.objects,
            recorded.objects
        );
        alike("errors", &said.errors, &recorded.errors)?;
        alike("warnings", &said.warnings, &recorded.warnings)?;
        for object in expected
            .get("objects")
            .and_then(Value::as_seq)
            .into_iter()
            .flatten()
        {
            self.check_live(object).await?;
        }
        for gone in strings(expected.get("gone")) {
            if let [kind, namespace, name] = gone.split('/').collect::<Vec<_>>()[..] {
                let found = self.plane.kubectl(&["get", kind, name, "-n", namespace]).await;
                ensure!(found.is_err(), "{gone} is still there");
            }
        }
        Ok(())
    }

    async fn execute(&self, command: &Command, rendered: &Rendered) -> Result<Said, Error> {
        let dry_run = command.deploy.dry_run;
        let wait = (!command.no_wait).then_some(Duration::from_secs(60));
        let target = rendered.target.discriminator.as_deref().unwrap_or_default();
        let discriminator = command.discriminator.as_deref().unwrap_or(target);
        Ok(match command.verb.as_str() {
            "deploy" | "diff" => {
                let mut said = Said::of(&engine::deploy(&self.cluster, rendered, &command.deploy).await?);
                if command.prune {
                    let options = PruneOptions {
                        dry_run,
                        wait,
                        ..PruneOptions::default()
                    };
                    said.add(Said::of(&engine::prune(&self.cluster, rendered, &options).await?));
                }
                said
            }
            "prune" => {
                let mut rendered = rendered.clone();
                rendered.target.discriminator = Some(discriminator.to_owned());
                let options = PruneOptions {
                    dry_run,
                    wait,
                    ..PruneOptions::default()
                };
                Said::of(&engine::prune(&self.cluster, &rendered, &options).await?)
            }
            "delete" => {
                let options = DeleteOptions {
                    dry_run,
                    wait,
                    ..DeleteOptions::default()
                };
                Said::of(&engine::delete(&self.cluster, discriminator, &options).await?)
            }
            _ => {
                let result = engine::validate(&self.cluster, rendered).await?;
                Said {
                    errors: messages(&result.errors),
                    warnings: messages(&result.warnings),
                    ..Said::default()
                }
            }
        })
    }

    /// Compares what was recorded of an object with the live one: data and spec, labels, annotations, and what we own.
    async fn check_live(&self, recorded: &Value) -> Result<()> {
        let reference = ObjectRef::of(recorded)?;
        let live = self
            .cluster
            .get(&reference)
            .await?
            .with_context(|| format!("{reference} is not there"))?;
        for path in [&["data"][..], &["metadata", "labels"]] {
            let (live, recorded) = (live.pointer(path), recorded.pointer(path));
            ensure!(
                live == recorded,
                "{reference}: {path:?} is {live:?}, recorded was {recorded:?}"
            );
        }
        let ours = |owner: &managed::Owner| owner.manager == "kluctl" && owner.operation == "Apply";
        let mut owned: Vec<String> = managed::owners(&live)
            .iter()
            .filter(|owner| ours(owner))
            .flat_map(|owner| &owner.fields)
            .filter(|field| {
                field
                    .iter()
                    .all(|element| matches!(element, managed::Element::Name(_)))
            })
            .map(|field| slashed(field))
            .collect();
        owned.sort();
        let Some(managers) = recorded.get("managers").and_then(Value::as_seq) else {
            return Ok(());
        };
        let manager = managers
            .iter()
            .find(|manager| manager.get("manager").and_then(Value::as_str) == Some("kluctl"));
        let mut recorded: Vec<String> = strings(manager.and_then(|manager| manager.get("fields")))
            .map(str::to_owned)
            .collect();
        recorded.retain(|field| !field.contains(['{', '[', '"', '=']));
        recorded.sort();
        ensure!(
            owned == recorded,
            "{reference}: we own {owned:#?}, recorded was {recorded:#?}"
        );
        Ok(())
    }
}

fn slashed(field: &[managed::Element]) -> String {
    let names = field.iter().map(|element| match element {
        managed::Element::Name(name) => name.as_str(),
        _ => "",
    });
    names.collect::<Vec<_>>().join("/")
}

fn strings(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_seq)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Equal, apart from advice that we add at the end.
fn alike(what: &str, said: &[String], recorded: &[String]) -> Result<()> {
    let equal = said.len() == recorded.len()
        && said
            .iter()
            .zip(recorded)
            .all(|(said, text)| said.starts_with(text.as_str()));
    ensure!(equal, "{what} {said:#?}\nrecorded {recorded:#?}");
    Ok(())
}

fn messages(list: &[ObjectError]) -> Vec<String> {
    let mut messages: Vec<String> = list.iter().map(|error| error.message.clone()).collect();
    messages.sort();
    messages
}

impl Said {
    fn of(result: &CommandResult) -> Self {
        let mut objects: Vec<String> = result
            .objects
            .iter()
            .filter_map(|object| {
                let mut changes: Vec<String> = object
                    .changes
                    .iter()
                    .map(|change| {
                        let value = |value: &Option<Value>| {
                            value.as_ref().map(yaml::print::json_sorted).unwrap_or_default()
                        };
                        let kind = change.kind.as_str();
                        format!(
                            "{kind} {} {} {}",
                            change.json_path(),
                            value(&change.old),
                            value(&change.new)
                        )
                    })
                    .collect();
                changes.sort();
                line(
                    &object.reference.to_string(),
                    object.new,
                    object.orphan,
                    object.deleted,
                    &changes,
                )
            })
            .collect();
        objects.sort();
        Self {
            objects,
            errors: messages(&result.errors),
            warnings: messages(&result.warnings),
        }
    }

    /// What a second command said behind the first.
    fn add(&mut self, other: Self) {
        for (list, more) in [
            (&mut self.objects, other.objects),
            (&mut self.errors, other.errors),
            (&mut self.warnings, other.warnings),
        ] {
            list.extend(more);
            list.sort();
        }
    }

    fn recorded(expected: &Value) -> Self {
        let result = expected.get("result").unwrap_or(&Value::Null);
        let list = |key| result.get(key).and_then(Value::as_seq).unwrap_or_default();
        let mut objects: Vec<String> = list("objects").iter().filter_map(recorded_line).collect();
        objects.sort();
        let messages = |key| {
            let message = |entry: &Value| {
                entry
                    .get("message")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let mut messages: Vec<String> = list(key).iter().map(message).collect();
            messages.sort();
            messages
        };
        Self {
            objects,
            errors: messages("errors"),
            warnings: messages("warnings"),
        }
    }
}

/// An object of a result in one line; none when nothing happened to it.
fn line(name: &str, new: bool, orphan: bool, deleted: bool, changes: &[String]) -> Option<String> {
    let flags = [(new, " new"), (orphan, " orphan"), (deleted, " deleted")];
    let flags: String = flags
        .iter()
        .filter(|(set, _)| *set)
        .map(|(_, flag)| *flag)
        .collect();
    (!flags.is_empty() || !changes.is_empty()).then(|| format!("{name}{flags} {}", changes.join("; ")))
}

fn recorded_line(object: &Value) -> Option<String> {
    let flag = |key| object.get(key).and_then(Value::as_bool).unwrap_or(false);
    let part = |key| {
        object
            .pointer(&["ref", key])
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let name = match part("namespace") {
        "" => format!("{}/{}", part("kind"), part("name")),
        namespace => format!("{namespace}/{}/{}", part("kind"), part("name")),
    };
    let changes = object.get("changes").and_then(Value::as_seq).unwrap_or_default();
    let mut changes: Vec<String> = changes
        .iter()
        .map(|change| {
            let text = |key| change.get(key).and_then(Value::as_str).unwrap_or_default();
            let value = |key| change.get(key).map(yaml::print::json_sorted).unwrap_or_default();
            format!(
                "{} {} {} {}",
                text("type"),
                text("jsonPath"),
                value("oldValue"),
                value("newValue")
            )
        })
        .collect();
    changes.sort();
    line(&name, flag("new"), flag("orphan"), flag("deleted"), &changes)
}

impl Command {
    /// Reads a command line; an unknown flag is the error.
    fn parse(args: &Value) -> Result<Self, String> {
        let mut args = strings(Some(args));
        let verb = args.next().unwrap_or_default().to_owned();
        if !["deploy", "diff", "prune", "delete", "validate"].contains(&verb.as_str()) {
            return Err(format!("command {verb}"));
        }
        let mut command = Self {
            verb,
            ..Self::default()
        };
        command.deploy.dry_run = command.verb == "diff";
        while let Some(flag) = args.next() {
            match flag {
                "--dry-run" => command.deploy.dry_run = true,
                "--prune" if command.verb == "deploy" => {
                    command.prune = true;
                    command.deploy.orphans = false;
                }
                "--force-apply" => command.deploy.force_apply = true,
                "--abort-on-error" => command.deploy.abort_on_error = true,
                "--no-wait" => {
                    command.deploy.no_wait = true;
                    command.no_wait = true;
                }
                "--readiness-timeout" => {
                    let seconds = args.next().and_then(|text| text.strip_suffix('s')?.parse().ok());
                    command.deploy.readiness_timeout = Duration::from_secs(seconds.unwrap_or(2));
                }
                "-t" => command.target = args.next().map(str::to_owned),
                "--discriminator" => command.discriminator = args.next().map(str::to_owned),
                other => return Err(format!("flag {other}")),
            }
        }
        Ok(command)
    }
}
