//! Finding the deployments of a repository, and comparing each once: first the Kustomizations that no other deploys, then the
//! KluctlDeployments.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Context as _, Error, Result, bail, ensure};
use cluster::{Cluster, Selection};
use fleet::{
    Kind,
    kind::{FLUX_KLUCTL_DEPLOYMENT, GIT_REPOSITORY, GITOPS_KLUCTL_DEPLOYMENT, KUSTOMIZATION},
};
use kustomization::OWNER_LABELS;
use objects::{ObjectRef, meta};
use serde_json::Value as Json;
use tree::{TreePath, ignore::Rules};
use yaml::Value;

use super::{
    kluctl::KluctlSubject,
    result::{DeploymentDiff, DiffError, RepositoryDiff, State},
    sources::RepositorySources,
    work_tree::WorkTree,
};
use crate::{
    commands::{
        flux::{
            preview::{
                manifest_builder::ManifestBuilder,
                subject::{Key, Subject, is_kustomization},
                trial::{Effect, Trial, TriedObject},
            },
            served,
        },
        kustomize::BuildDirectory,
    },
    output::error_chain,
};

const REMOTE: &str = "it deploys to a remote cluster";

/// The comparison of a repository with a cluster.
pub(super) struct Walk<'a> {
    cluster: &'a Cluster,
    work_tree: &'a WorkTree,
    builder: &'a ManifestBuilder,
    pub(super) sources: RepositorySources,
    /// The Kustomizations in the cluster, or in files that count as such.
    known: BTreeMap<Key, Subject>,
    /// The Kustomizations that deploy others of the repository.
    parents: HashMap<Key, Key>,
    visited: HashSet<Key>,
    /// The Kustomizations that leave the repository.
    removed: HashSet<Key>,
    /// The KluctlDeployments in the cluster, or built from the work tree, by group, namespace and name.
    kluctl: BTreeMap<(String, Key), Value>,
    diff: RepositoryDiff,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        work_tree: &'a WorkTree,
        builder: &'a ManifestBuilder,
        sources: RepositorySources,
    ) -> Self {
        Self {
            cluster,
            work_tree,
            builder,
            sources,
            known: BTreeMap::new(),
            parents: HashMap::new(),
            visited: HashSet::new(),
            removed: HashSet::new(),
            kluctl: BTreeMap::new(),
            diff: RepositoryDiff::default(),
        }
    }

    /// Finds the sources of the repository and its Kustomizations: in the cluster, and among local objects, whose namespace is the
    /// default one if they have none.
    ///
    /// # Errors
    /// If they can't be listed.
    pub(super) async fn find(
        &mut self,
        namespace: Option<String>,
        local: &[Value],
        default_namespace: &str,
    ) -> Result<()> {
        let selection = Selection {
            namespace,
            ..Selection::default()
        };
        let sources = sources(self.cluster, &selection).await?;
        let live = list(self.cluster, &KUSTOMIZATION, &selection).await?;
        for source in sources.iter().chain(local) {
            self.sources.note(source, default_namespace);
        }
        let local_ones = local.iter().filter(|object| is_kustomization(object));
        for object in live.iter().chain(local_ones) {
            self.add(object, default_namespace);
        }
        for kind in [&FLUX_KLUCTL_DEPLOYMENT, &GITOPS_KLUCTL_DEPLOYMENT] {
            let live = list(self.cluster, kind, &selection).await?;
            live.iter()
                .for_each(|object| self.note_kluctl(object, default_namespace));
        }
        local
            .iter()
            .for_each(|object| self.note_kluctl(object, default_namespace));
        Ok(())
    }

    /// Adds a Kustomization if it is built from the repository. A later one replaces an earlier one, and has its inventory.
    fn add(&mut self, object: &Value, namespace: &str) {
        // One that can't be decoded says nothing of its source; a dry run names the field.
        let Ok(mut subject) = Subject::of(object, namespace) else {
            return;
        };
        let key = subject.key();
        let earlier = self.known.remove(&key);
        self.sources.note_use(&subject.source());
        if !self.sources.contains(&subject.source()) {
            return;
        }
        if let Some(earlier) = earlier {
            subject.inventory = earlier.inventory;
        }
        let (name, namespace) = OWNER_LABELS;
        let labels = (meta::label(object, namespace), meta::label(object, name));
        if let (Some(namespace), Some(name)) = labels {
            self.parents
                .insert(key.clone(), (namespace.to_owned(), name.to_owned()));
        }
        self.known.insert(key, subject);
    }

    /// Notes a KluctlDeployment. A later one with the same name replaces an earlier one.
    fn note_kluctl(&mut self, object: &Value, namespace: &str) {
        let Ok(reference) = ObjectRef::of(object) else {
            return;
        };
        let kinds = [&FLUX_KLUCTL_DEPLOYMENT, &GITOPS_KLUCTL_DEPLOYMENT];
        if kinds.iter().any(|kind| reference.is(kind.group, kind.kind)) {
            let namespace = reference.namespace.unwrap_or_else(|| namespace.to_owned());
            let key = (reference.group, (namespace, reference.name));
            self.kluctl.insert(key, object.clone());
        }
    }

    /// Returns true if nothing in the cluster is built from the repository.
    pub(super) fn is_empty(&self) -> bool {
        let is_own = |(_, object): (&(String, Key), &Value)| {
            matches!(KluctlSubject::of(object, "", &self.sources), Ok(Some(_)) | Err(_))
        };
        self.known.is_empty() && !self.kluctl.iter().any(is_own)
    }

    /// Compares all Kustomizations. An error about one of them is part of the result.
    ///
    /// # Errors
    /// If the command is cancelled, or a named source is unknown.
    pub(super) async fn compare(mut self) -> Result<RepositoryDiff> {
        while let Some(key) = self.next() {
            let Some(subject) = self.known.get(&key).cloned() else {
                break;
            };
            match self.removed.contains(&key) {
                true => self.remove(&subject).await,
                false => self.visit(subject).await?,
            }
        }
        for ((group, key), object) in std::mem::take(&mut self.kluctl) {
            ensure!(!self.cluster.cancellation().is_cancelled(), "cancelled");
            if !self.is_deleted(&group, &key) {
                self.compare_kluctl(&key, &object).await;
            }
        }
        self.sources.check_named()?;
        self.diff.resolve_premature();
        Ok(self.diff)
    }

    /// Returns true for a KluctlDeployment that would be deleted.
    fn is_deleted(&self, group: &str, (namespace, name): &Key) -> bool {
        let changes = self.diff.deployments.iter().flat_map(|one| &one.changes);
        let mut deleted = changes.filter(|change| change.effect == Effect::Deleted);
        deleted.any(|change| {
            let reference = &change.reference;
            reference.is(group, FLUX_KLUCTL_DEPLOYMENT.kind)
                && reference.namespace.as_ref() == Some(namespace)
                && reference.name == *name
        })
    }

    /// Compares the target of a KluctlDeployment, if its project is in the repository.
    async fn compare_kluctl(&mut self, key: &Key, object: &Value) {
        let mut deployment = DeploymentDiff::new(FLUX_KLUCTL_DEPLOYMENT.kind, key.clone());
        match KluctlSubject::of(object, &key.0, &self.sources) {
            Ok(None) => return,
            Ok(Some(subject)) => {
                self.sources.note_use(&subject.source);
                deployment.is_suspended = subject.is_suspended;
                if subject.is_remote {
                    deployment.state = State::Skipped(REMOTE);
                } else {
                    let files = self.work_tree.artifact(self.sources.ignore(&subject.source));
                    let compared = subject.compare(self.cluster, files, &mut deployment).await;
                    deployment
                        .errors
                        .extend(compared.err().map(|error| general(&error)));
                }
            }
            Err(error) => deployment.errors.push(general(&error)),
        }
        self.diff.deployments.push(deployment);
    }

    /// Returns the next Kustomization to compare: a removed one, else one whose parent is compared already, else any.
    fn next(&self) -> Option<Key> {
        let open = || self.known.keys().filter(|key| !self.visited.contains(*key));
        let is_open = |key: &Key| self.known.contains_key(key) && !self.visited.contains(key);
        let is_ready = |key: &&Key| {
            let parent = self.parents.get(*key).filter(|parent| *parent != *key);
            !parent.is_some_and(is_open)
        };
        let removed = open().find(|key| self.removed.contains(*key));
        let found = removed.or_else(|| open().find(is_ready));
        found.or_else(|| open().next()).cloned()
    }

    /// Compares a Kustomization, then the ones among its objects.
    async fn visit(&mut self, first: Subject) -> Result<()> {
        let mut open = vec![first];
        while let Some(subject) = open.pop() {
            ensure!(!self.cluster.cancellation().is_cancelled(), "cancelled");
            if !self.visited.insert(subject.key()) {
                continue;
            }
            let mut deployment = DeploymentDiff {
                is_suspended: subject.spec.suspend,
                ..DeploymentDiff::new(KUSTOMIZATION.kind, subject.key())
            };
            if subject.spec.kube_config.is_some() {
                deployment.state = State::Skipped(REMOTE);
            } else {
                let compared = self.compare_one(&subject, &mut deployment).await;
                match compared {
                    Ok(children) => open.extend(children.into_iter().rev()),
                    Err(error) => deployment.errors.push(general(&error)),
                }
            }
            self.diff.deployments.push(deployment);
        }
        Ok(())
    }

    /// Compares the objects of a Kustomization, and returns the Kustomizations of the repository among them.
    async fn compare_one(
        &mut self,
        subject: &Subject,
        deployment: &mut DeploymentDiff,
    ) -> Result<Vec<Subject>> {
        let directory = self.directory(subject)?;
        let built = self.builder.build(subject, &directory, Rules::new()).await?;
        let hidden = built.hidden.clone();
        let trial = Trial::new(self.cluster, subject);
        let tried = trial.objects(built).await?;
        let mut children = Vec::new();
        for one in &tried {
            self.sources.note(&one.manifest, &subject.namespace);
        }
        for one in &tried {
            self.note_kluctl(&one.manifest, &subject.namespace);
            self.note_definition(one);
            if is_kustomization(&one.manifest) {
                let child = Subject::of(&one.manifest, &subject.namespace).ok();
                if let Some(child) = &child {
                    self.sources.note_use(&child.source());
                }
                children.extend(child.filter(|child| self.sources.contains(&child.source())));
            }
        }
        let current: Vec<ObjectRef> = tried.iter().map(|one| one.reference.clone()).collect();
        let is_complete = tried.iter().all(|one| {
            one.result
                .as_ref()
                .err()
                .is_none_or(|refusal| refusal.is_premature)
        });
        for one in tried {
            match one.result {
                Ok(change) => deployment.changes.extend(change),
                Err(refusal) => deployment.errors.push(DiffError {
                    reference: Some(one.reference),
                    message: refusal.message,
                    is_premature: refusal.is_premature,
                }),
            }
        }
        if subject.spec.prune && is_complete {
            deployment.changes.extend(trial.pruned(&current).await?);
        }
        self.note_removed(deployment);
        for change in &mut deployment.changes {
            change.text = kustomization::variables::redact(&change.text, &hidden);
        }
        Ok(children
            .into_iter()
            .map(|child| match self.known.get(&child.key()) {
                Some(live) => Subject {
                    inventory: live.inventory.clone(),
                    ..child
                },
                None => child,
            })
            .collect())
    }

    fn directory(&self, subject: &Subject) -> Result<BuildDirectory> {
        let path = subject.spec.path.as_deref().unwrap_or_default();
        let dir = TreePath::confined(path);
        let files = self.work_tree.artifact(self.sources.ignore(&subject.source()));
        if !files.is_dir(&dir) {
            bail!("spec.path: the repository has no directory {path:?}");
        }
        Ok(BuildDirectory {
            tree: files,
            dir,
            is_local: false,
        })
    }

    /// Notes the kind of a definition that would be created.
    fn note_definition(&mut self, one: &TriedObject) {
        let is_definition = one
            .reference
            .is("apiextensions.k8s.io", "CustomResourceDefinition");
        if !is_definition || !one.is_new() {
            return;
        }
        let text = |path: &[&str]| one.manifest.pointer(path).and_then(Value::as_str);
        if let (Some(group), Some(kind)) = (text(&["spec", "group"]), text(&["spec", "names", "kind"])) {
            self.diff.new_kinds.insert((group.to_owned(), kind.to_owned()));
        }
    }

    /// Notes the Kustomizations that would be deleted.
    fn note_removed(&mut self, deployment: &DeploymentDiff) {
        let is_removed = |reference: &&ObjectRef| reference.is(KUSTOMIZATION.group, KUSTOMIZATION.kind);
        let deleted = deployment.changes.iter();
        let deleted = deleted.filter(|change| change.effect == Effect::Deleted);
        let deleted = deleted.map(|change| &change.reference).filter(is_removed);
        let keys = deleted.map(|reference| {
            (
                reference.namespace.clone().unwrap_or_default(),
                reference.name.clone(),
            )
        });
        self.removed.extend(keys);
    }

    /// Adds a Kustomization that leaves the repository, with the objects that its controller deletes then.
    async fn remove(&mut self, subject: &Subject) {
        self.visited.insert(subject.key());
        let mut deployment = DeploymentDiff {
            is_suspended: subject.spec.suspend,
            state: State::Removed,
            ..DeploymentDiff::new(KUSTOMIZATION.kind, subject.key())
        };
        if deletes(subject) {
            match Trial::new(self.cluster, subject).pruned(&[]).await {
                Ok(deleted) => deployment.changes = deleted,
                Err(error) => deployment.errors.push(general(&error)),
            }
        }
        self.note_removed(&deployment);
        self.diff.deployments.push(deployment);
    }
}

/// Returns true if the controller deletes the objects of a Kustomization that is deleted.
fn deletes(subject: &Subject) -> bool {
    let spec = &subject.spec;
    if spec.suspend || spec.kube_config.is_some() {
        return false;
    }
    match spec.deletion_policy.as_deref() {
        Some("Delete" | "WaitForTermination") => true,
        Some("Orphan") => false,
        _ => spec.prune,
    }
}

fn general(error: &Error) -> DiffError {
    DiffError::general(api::redact(&error_chain(error)))
}

/// Lists the GitRepositories of all namespaces, or of the selected one if the user may not list all.
async fn sources(cluster: &Cluster, selection: &Selection) -> Result<Vec<Value>> {
    let is_forbidden = |error: &Error| {
        let error = error.downcast_ref::<cluster::Error>();
        error.is_some_and(cluster::Error::is_forbidden)
    };
    match list(cluster, &GIT_REPOSITORY, &Selection::default()).await {
        Err(error) if selection.namespace.is_some() && is_forbidden(&error) => {
            list(cluster, &GIT_REPOSITORY, selection).await
        }
        listed => listed,
    }
}

/// Lists the objects of a kind; none if the cluster does not serve it.
async fn list(cluster: &Cluster, kind: &Kind, selection: &Selection) -> Result<Vec<Value>> {
    let snapshot = cluster.snapshot().await?;
    let Some(resource) = served(&snapshot, kind) else {
        return Ok(Vec::new());
    };
    let mut objects = Vec::new();
    let add = |json: &str| -> Result<()> {
        let object: Json = serde_json::from_str(json).context("an object of the list can't be read")?;
        objects.push(Value::from_json(object));
        Ok(())
    };
    cluster.each_object(&resource, selection, add).await?;
    Ok(objects)
}
