//! The KluctlDeployments of a repository, and the comparison of their targets.

use std::sync::Arc;

use anyhow::{Result, bail};
use api::kluctl::{KluctlDeploymentSpec, gitops};
use cluster::{Cluster, access::Contexts};
use engine::{
    DeployOptions, EnvironmentVariables, ExternalAccess, RenderOptions,
    commands::{self, Project},
    specs,
};
use fleet::kind::{FLUX_KLUCTL_DEPLOYMENT, GITOPS_KLUCTL_DEPLOYMENT};
use kluctl::Request;
use objects::meta;
use results::{CommandResult, ResultObject};
use secrets::Keys;
use serde::de::DeserializeOwned;
use tree::{Tree, TreePath};
use yaml::Value;

use super::{
    result::{DeploymentDiff, DiffError},
    sources::RepositorySources,
};
use crate::{
    commands::flux::preview::{
        report,
        subject::Key,
        trial::{Effect, ObjectChange},
    },
    logins::Logins,
};

/// A KluctlDeployment whose project is in the repository.
pub(super) struct KluctlSubject {
    pub(super) key: Key,
    pub(super) is_suspended: bool,
    pub(super) is_remote: bool,
    /// The source in the form of `--source`; empty for a KluctlDeployment with its own.
    pub(super) source: String,
    request: Request,
    options: DeployOptions,
    prunes: bool,
}

impl KluctlSubject {
    /// Decodes an object; `None` if it has another kind, or its project is not in the repository. Pure.
    ///
    /// # Errors
    /// If a field is invalid.
    pub(super) fn of(object: &Value, namespace: &str, sources: &RepositorySources) -> Result<Option<Self>> {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let (group, _) = objects::split_api_version(text("apiVersion"));
        let key = (
            meta::text(object, "namespace").unwrap_or(namespace).to_owned(),
            meta::text(object, "name").unwrap_or_default().to_owned(),
        );
        let is = |kind: &fleet::Kind| group == kind.group && text("kind") == kind.kind;
        // An object that can't be decoded says nothing of its source; a dry run names the field.
        if is(&FLUX_KLUCTL_DEPLOYMENT) {
            decoded(object).map_or(Ok(None), |spec| of_flux(&key, &spec, sources))
        } else if is(&GITOPS_KLUCTL_DEPLOYMENT) {
            decoded(object).map_or(Ok(None), |spec| of_gitops(&key, &spec, sources))
        } else {
            Ok(None)
        }
    }

    /// Renders the target from the files, and compares it with the cluster. Its name is the one of the render.
    ///
    /// # Errors
    /// If it can't be rendered, or the API server can't be asked. Objects that it refuses are errors of the deployment.
    pub(super) async fn compare(
        &self,
        cluster: &Cluster,
        files: Arc<dyn Tree>,
        deployment: &mut DeploymentDiff,
    ) -> Result<()> {
        let dir = &self.request.project_dir;
        if !files.is_dir(dir) {
            bail!("the repository has no directory {:?}", dir.as_str());
        }
        let rendering = RenderOptions {
            name: format!("{}/{}", self.key.0, self.key.1),
            keys: Some(Arc::new(Keys::from_environment(
                EnvironmentVariables::from_process().ambient(),
            ))),
            external: ExternalAccess::of_user().with_credentials(Arc::new(Logins::default())),
            ..RenderOptions::default()
        };
        let rendered = engine::render(cluster, files, self.request.clone(), &rendering).await?;
        let result = commands::diff(&Project::new(cluster, &rendered), &self.options).await?;
        self.note(&result, deployment);
        Ok(())
    }

    fn note(&self, result: &CommandResult, deployment: &mut DeploymentDiff) {
        let changes = result.objects.iter().filter_map(|object| self.change(object));
        deployment.changes.extend(changes);
        let errors = result.errors.iter().map(|error| DiffError {
            reference: error.reference.clone(),
            message: error.message.clone(),
            is_premature: false,
        });
        deployment.errors.extend(errors);
    }

    fn change(&self, object: &ResultObject) -> Option<ObjectChange> {
        let new = |effect| Some(ObjectChange::new(&object.reference, effect));
        if object.new {
            return new(Effect::Created);
        }
        if object.deleted || object.orphan && self.prunes {
            return new(Effect::Deleted);
        }
        if object.changes.is_empty() {
            return None;
        }
        let null = Value::default();
        let before = object.remote.as_deref().unwrap_or(&null);
        let after = object.applied.as_deref().unwrap_or(&null);
        Some(ObjectChange {
            text: report::describe(&object.changes, before, after),
            ..ObjectChange::new(&object.reference, Effect::Drifted)
        })
    }
}

fn decoded<T: DeserializeOwned>(object: &Value) -> Option<T> {
    serde_json::from_value(object.get("spec")?.to_json()).ok()
}

fn of_flux(
    key: &Key,
    spec: &KluctlDeploymentSpec,
    sources: &RepositorySources,
) -> Result<Option<KluctlSubject>> {
    let (source, is_own) = match (&spec.source, &spec.source_ref) {
        (Some(own), _) => {
            let reference = own.reference.clone().unwrap_or_default();
            let branch = match &reference.tag {
                Some(_) => None,
                None => Some(reference.branch.unwrap_or_default()),
            };
            (
                String::new(),
                sources.is_followed(own.url.expose(), branch.as_deref()),
            )
        }
        (None, Some(reference)) => {
            let namespace = reference.namespace.as_deref().filter(|given| !given.is_empty());
            let namespace = namespace.unwrap_or(&key.0);
            let source = format!("{}/{namespace}/{}", reference.kind, reference.name);
            let is_own = sources.contains(&source);
            (source, is_own)
        }
        (None, None) => (String::new(), false),
    };
    if !is_own {
        return Ok(None);
    }
    let renames = spec.rename_contexts.iter();
    let renames = renames.map(|rename| (rename.old_context.as_str(), rename.new_context.as_str()));
    let contexts = Contexts::default().rename(renames)?;
    let contexts = kluctl::Contexts {
        current: contexts.current,
        names: contexts.names,
    };
    let path = TreePath::parse(specs::flux::path(spec).trim_start_matches('/'))?;
    Ok(Some(KluctlSubject {
        key: key.clone(),
        is_suspended: spec.suspend,
        is_remote: spec.kube_config.is_some(),
        source,
        request: specs::flux::request(spec, path, contexts),
        options: DeployOptions {
            force_apply: spec.force_apply,
            replace_on_error: spec.replace_on_error,
            force_replace_on_error: spec.force_replace_on_error,
            ..options(specs::flux::inclusion(spec))
        },
        prunes: spec.prune,
    }))
}

fn of_gitops(
    key: &Key,
    spec: &gitops::KluctlDeploymentSpec,
    sources: &RepositorySources,
) -> Result<Option<KluctlSubject>> {
    let source = &spec.source;
    let (url, reference, path) = match (&source.git, &source.oci, &source.url) {
        (Some(git), ..) => (&git.url, &git.reference, &git.path),
        (None, None, Some(url)) => (url, &source.reference, &source.path),
        _ => return Ok(None),
    };
    let reference = reference.clone().unwrap_or_default();
    let branch = match reference.tag.or(reference.commit) {
        Some(_) => None,
        None => Some(reference.branch.unwrap_or_default()),
    };
    if !sources.is_followed(url.expose(), branch.as_deref()) {
        return Ok(None);
    }
    let contexts = Contexts::default();
    let contexts = kluctl::Contexts {
        current: contexts.current,
        names: contexts.names,
    };
    let path = TreePath::parse(path.as_deref().unwrap_or_default().trim_start_matches('/'))?;
    Ok(Some(KluctlSubject {
        key: key.clone(),
        is_suspended: spec.suspend,
        is_remote: spec.kube_config.is_some(),
        source: String::new(),
        request: specs::gitops::request(spec, path, contexts)?,
        options: DeployOptions {
            force_apply: spec.force_apply,
            replace_on_error: spec.replace_on_error,
            force_replace_on_error: spec.force_replace_on_error,
            ..options(specs::gitops::inclusion(spec))
        },
        prunes: spec.prune,
    }))
}

fn options(inclusion: kluctl::Inclusion) -> DeployOptions {
    DeployOptions {
        dry_run: true,
        orphans: true,
        contents: true,
        inclusion,
        ..DeployOptions::default()
    }
}
