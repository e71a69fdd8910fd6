//! Selection of the KluctlDeployments of a command.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use cluster::{Cluster, Detail, ResourceKind};
use git::Checkout;
use objects::{ObjectRef, meta};
use tree::TreePath;
use yaml::Value;

use super::{GitOps, flags::SelectFlags};
use crate::{session::project_dir, terminal::Terminal};

const GROUP: &str = "gitops.kluctl.io";
const VERSION: &str = "v1beta1";
const KIND: &str = "KluctlDeployment";
/// Maximum number of KluctlDeployments that are listed.
const MOST: usize = 10_000;
const NO_CRD: &str =
    "KluctlDeployment CRD not found, which usually means the kluctl-controller is not installed";

/// The effect of a command without `--name` and `--label-selector`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unnamed {
    /// The KluctlDeployments of the local project, after confirmation.
    Confirm,
    /// The KluctlDeployments of the local project.
    Take,
    /// All KluctlDeployments, after confirmation.
    ConfirmAll,
}

pub(super) fn reference(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        kind: KIND.to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    }
}

/// Returns `namespace/name`.
pub(super) fn full_name(reference: &ObjectRef) -> String {
    format!(
        "{}/{}",
        reference.namespace.as_deref().unwrap_or_default(),
        reference.name
    )
}

impl GitOps {
    /// Checks that the API of the controller is there and new enough.
    pub(super) fn check_definition(&self) -> Result<()> {
        let definition = ObjectRef {
            group: "apiextensions.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: None,
            name: format!("kluctldeployments.{GROUP}"),
        };
        match self.block_on(self.cluster.get(&definition)) {
            Ok(Some(definition)) => {
                ensure!(
                    has_requests(&definition),
                    "the KluctlDeployment CRD has no status.reconcileRequestResult, so it is outdated: install a kluctl-controller of \
                     version v2.22.0 or later"
                );
                Ok(())
            }
            Ok(None) => bail!(NO_CRD),
            // Users with rights in namespaces only can't read definitions.
            Err(error) if error.is_forbidden() => self.kind().map(drop),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn kind(&self) -> Result<ResourceKind> {
        match self.block_on(self.cluster.kind(GROUP, VERSION, KIND)) {
            Err(cluster::Error::NoMatch { .. }) => bail!(NO_CRD),
            other => Ok(other?),
        }
    }

    /// Lists KluctlDeployments, in all namespaces if `namespace` is `None`.
    pub(super) fn list(&self, namespace: Option<&str>, selector: &str) -> Result<Vec<Value>> {
        let kind = self.kind()?;
        let listed = self
            .cluster
            .list_selected(&kind, namespace, selector, Detail::Full, MOST);
        let listed = self.block_on(listed);
        let place = namespace.map_or("all namespaces".to_owned(), |name| format!("namespace {name}"));
        listed.with_context(|| format!("list KluctlDeployments in {place} (use --namespace for others)"))
    }

    /// Returns the selected KluctlDeployments, after confirmation if that is needed.
    pub(super) fn select(
        &self,
        flags: &SelectFlags,
        unnamed: Unnamed,
        verb: &str,
        yes: bool,
    ) -> Result<Vec<ObjectRef>> {
        flags.check()?;
        self.check_definition()?;
        if let Some(name) = &flags.name {
            let namespace = flags.namespace.as_deref().unwrap_or(&self.namespace);
            let found = reference(namespace, name);
            let object = self.block_on(self.cluster.get(&found))?;
            ensure!(
                object.is_some(),
                "KluctlDeployment {} not found: use --namespace if it is in another one",
                full_name(&found)
            );
            return Ok(vec![found]);
        }
        let namespace = flags.namespace.as_deref();
        let (found, confirms) = match &flags.label_selector {
            Some(selector) => (self.list(namespace, selector)?, unnamed == Unnamed::ConfirmAll),
            None if unnamed == Unnamed::ConfirmAll => (self.list(namespace, "")?, true),
            None => (self.of_local_project(flags)?, unnamed == Unnamed::Confirm),
        };
        let found: Vec<ObjectRef> = found.iter().map(ObjectRef::of).collect::<Result<_, _>>()?;
        ensure!(!found.is_empty(), "no matching KluctlDeployments found");
        match confirms && !yes {
            true => choose(&self.terminal, found, verb),
            false => Ok(found),
        }
    }

    /// Warns of changes in the local project that the controller doesn't read, if its KluctlDeployments are selected by it.
    pub(super) fn warn_of_changes(&self, flags: &SelectFlags) {
        let is_by_project = flags.name.is_none() && flags.label_selector.is_none();
        if is_by_project && LocalProject::find(flags).is_ok_and(|local| local.dirty) {
            self.terminal.warning(
                "The local project has changes that are not committed. The controller doesn't see them: it uses the source of the \
                 KluctlDeployment",
            );
        }
    }

    /// Returns the KluctlDeployments with the repository and the directory of the local project.
    fn of_local_project(&self, flags: &SelectFlags) -> Result<Vec<Value>> {
        let local = LocalProject::find(flags)?;
        let found = self.list(flags.namespace.as_deref(), "")?;
        Ok(found
            .into_iter()
            .filter(|object| local.is_source_of(object))
            .collect())
    }
}

/// The repository and the directory of the local project.
pub(super) struct LocalProject {
    pub(super) repo_key: String,
    /// Root of the working tree.
    pub(super) root: PathBuf,
    sub_dir: String,
    dirty: bool,
}

impl LocalProject {
    pub(super) fn find(flags: &SelectFlags) -> Result<Self> {
        const HINT: &str = "so its KluctlDeployments can't be found: use --name or --label-selector";
        let dir = project_dir(flags.project_dir.as_deref())?;
        let display = dir.display();
        let checkout = Checkout::around(&dir)?
            .with_context(|| format!("{display} is not in a Git repository, {HINT}"))?;
        let origin = checkout.origin.as_deref().unwrap_or_default();
        let repo_key = kluctl::repo_key(origin).with_context(|| {
            format!("the Git repository of {display} has no remote `origin` on a server, {HINT}")
        })?;
        let root = checkout.root.canonicalize()?;
        let below = dir.strip_prefix(&root).unwrap_or(&dir).to_string_lossy();
        Ok(Self {
            repo_key,
            sub_dir: TreePath::parse(&below)?.as_str().to_owned(),
            dirty: checkout.dirty,
            root,
        })
    }

    fn is_source_of(&self, object: &Value) -> bool {
        let text = |path: &[&str]| object.pointer(path).and_then(Value::as_str);
        let url = text(&["spec", "source", "git", "url"]).or_else(|| text(&["spec", "source", "url"]));
        let path = match text(&["spec", "source", "git", "url"]) {
            Some(_) => text(&["spec", "source", "git", "path"]),
            None => text(&["spec", "source", "path"]),
        };
        let path = TreePath::parse(path.unwrap_or_default());
        url.and_then(kluctl::repo_key).as_ref() == Some(&self.repo_key)
            && path.is_ok_and(|path| path.as_str() == self.sub_dir)
    }
}

fn has_requests(definition: &Value) -> bool {
    let versions = definition.pointer(&["spec", "versions"]).and_then(Value::as_seq);
    let version = versions
        .unwrap_or_default()
        .iter()
        .find(|version| version.get("name").and_then(Value::as_str) == Some(VERSION));
    let status = ["schema", "openAPIV3Schema", "properties", "status", "properties"];
    let status = version.and_then(|version| version.pointer(&status));
    status.is_some_and(|status| status.get("reconcileRequestResult").is_some())
}

/// Lets the user confirm one object, or choose among several.
fn choose(terminal: &Terminal, mut found: Vec<ObjectRef>, verb: &str) -> Result<Vec<ObjectRef>> {
    if let [one] = found.as_slice() {
        let question = format!("Do you want to {verb} KluctlDeployment {}?", full_name(one));
        ensure!(terminal.ask(&question), "aborted");
        return Ok(found);
    }
    terminal.plain("These KluctlDeployments match:");
    for (index, reference) in found.iter().enumerate() {
        terminal.plain(&format!("  [{}] {}", index + 1, full_name(reference)));
    }
    let question = format!("Which of them do you want to {verb}? Enter a number, or a for all");
    let count = found.len();
    match terminal.choose(&question, |answer| parse_choice(answer, count)) {
        None => bail!("aborted"),
        Some(Choice::All) => Ok(found),
        Some(Choice::One(index)) => Ok(vec![found.swap_remove(index)]),
    }
}

/// The user's choice of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    All,
    One(usize),
}

fn parse_choice(answer: &str, count: usize) -> Option<Choice> {
    match answer.trim() {
        "a" | "A" => Some(Choice::All),
        number => {
            let index = number.parse::<usize>().ok()?.checked_sub(1)?;
            (index < count).then_some(Choice::One(index))
        }
    }
}

/// Returns the live object. Fails when it is gone.
pub(super) async fn live(cluster: &Cluster, reference: &ObjectRef) -> Result<Value> {
    let object = cluster.get(reference).await?;
    object.with_context(|| format!("KluctlDeployment {} was deleted", full_name(reference)))
}

/// Returns the generation of an object, and its observed generation.
pub(super) fn generations(object: &Value) -> (i64, i64) {
    let number = |value: Option<&Value>| value.and_then(Value::as_i64).unwrap_or_default();
    (
        number(object.pointer(&["metadata", "generation"])),
        number(object.pointer(&["status", "observedGeneration"])),
    )
}

pub(super) fn names(object: &Value) -> (&str, &str) {
    (
        meta::text(object, "name").unwrap_or_default(),
        meta::text(object, "namespace").unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn source_with_the_repository_and_path_of_the_project_matches() {
        let local = LocalProject {
            repo_key: "git://example.com/team/shop".to_owned(),
            sub_dir: "deploy".to_owned(),
            dirty: false,
            root: PathBuf::new(),
        };
        let matches = |source: serde_json::Value| {
            local.is_source_of(&Value::from_json(json!({"spec": {"source": source}})))
        };
        assert!(matches(
            json!({"git": {"url": "https://example.com/team/shop.git", "path": "./deploy/"}})
        ));
        assert!(matches(
            json!({"git": {"url": "git@example.com:Team/Shop.git", "path": "deploy"}})
        ));
        assert!(matches(
            json!({"url": "https://example.com/team/shop", "path": "deploy"})
        ));
        for other in [
            json!({"git": {"url": "https://example.com/team/shop"}}),
            json!({"git": {"url": "https://example.com/team/other", "path": "deploy"}}),
            json!({"git": {"url": ":::", "path": "deploy"}}),
            json!({"oci": {"url": "oci://example.com/team/shop", "path": "deploy"}}),
            json!(null),
        ] {
            assert!(!matches(other.clone()), "{other}");
        }
    }

    #[test]
    fn choices_are_numbers_or_all() {
        for (answer, expected) in [
            ("1\n", Some(Choice::One(0))),
            (" 3 ", Some(Choice::One(2))),
            ("a\n", Some(Choice::All)),
            ("0", None),
            ("4", None),
            ("", None),
        ] {
            assert_eq!(parse_choice(answer, 3), expected, "{answer:?}");
        }
    }
}
