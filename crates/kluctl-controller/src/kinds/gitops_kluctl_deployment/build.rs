//! Prepares a deployment: fetches the project, connects to the cluster, renders.

use std::sync::Arc;

use api::{
    Reason,
    kluctl::gitops::{KluctlDeployment, TargetKey},
};
use cluster::Cluster;
use deployer::{ClusterIdentity, credentials::kms_role, key, working};
use engine::{DecryptionKeys, ExternalAccess, ReadObjects, RemoteOverride, RenderOptions};
use kluctl::{GitReference, Rendered, SourceAddress};
use objects::ObjectRef;
use results::{GitInfo, Origin, ProjectKey};
use runtime::Pass;
use tree::{Record, Recording, Tree};

use super::{
    controller::Controller,
    credentials,
    pass::Draft,
    plan,
    prepare_error::PrepareError,
    spec::{self, Source},
};

#[derive(Debug)]
pub struct Built {
    pub(crate) cluster: Cluster,
    pub(crate) identity: Arc<ClusterIdentity>,
    pub(crate) rendered: Rendered,
    pub(crate) hash: String,
    pub(crate) origin: Origin,
    pub(super) read: ProjectRead,
}

/// The source that a render read, and if it read anything else.
#[derive(Debug)]
pub(super) struct ProjectRead {
    pub(super) address: SourceAddress,
    pub(super) external: ExternalAccess,
    /// The revision that the source named: a commit or a digest; `None` for files of a command line.
    pub(super) revision: Option<String>,
    /// The commit that the status shows.
    pub(super) commit: Option<String>,
    /// The calls by which the render read the files; `None` if they were too many.
    pub(super) record: Option<Record>,
    /// The objects that the render read besides; `None` if it read anything else.
    pub(super) outside: Option<ReadObjects>,
}

impl Built {
    pub(super) fn references(&self) -> Vec<ObjectRef> {
        let objects = self.rendered.objects();
        objects.filter_map(|object| ObjectRef::of(object).ok()).collect()
    }

    pub(crate) fn target_key(&self) -> TargetKey {
        let target = &self.rendered.target;
        TargetKey {
            target_name: Some(target.name.clone()).filter(|name| !name.is_empty()),
            cluster_id: self.origin.cluster_id.clone(),
            discriminator: target.discriminator.clone().filter(|text| !text.is_empty()),
        }
    }
}

pub struct FetchedProject {
    source: Source,
    external: ExternalAccess,
    tree: Arc<dyn Tree>,
    revision: Option<String>,
    commit: Option<String>,
}

impl Controller {
    pub(super) async fn fetch_source(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        draft: &mut Draft,
    ) -> Result<FetchedProject, PrepareError> {
        let (object, status) = (&draft.object, &mut draft.status);
        let source = spec::source(&object.spec)?;
        status.project_key = Some(source.key.clone());
        self.show_source(object, &source);
        let external = credentials::external(self.client(), object, &self.external);
        let mut external = pass.slot.lending(external).await?;
        external.remote_overrides = self.remote_overrides(object)?;
        let limit = spec::timeout(&object.spec) / 3;
        let fetching = engine::fetch_project(
            source.address.clone(),
            &external,
            &self.rendering,
            &draft.ssh,
            &pass.cancel,
        );
        let fetched = pass.slot.waiting(tokio::time::timeout(limit, fetching)).await;
        let fetched = fetched.map_err(|_| PrepareError::FetchTimeout(limit))??;
        status.observed_commit.clone_from(&fetched.commit);
        if !fetched.tree.is_dir(&source.dir) {
            return Err(PrepareError::NoDirectory(source.path));
        }
        Ok(FetchedProject {
            source,
            external,
            tree: fetched.tree,
            revision: fetched.revision,
            commit: fetched.commit,
        })
    }

    pub(super) async fn render(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        draft: &mut Draft,
        project: &FetchedProject,
    ) -> Result<Built, PrepareError> {
        let (object, source) = (&draft.object, &project.source);
        let spec = &object.spec;
        let recording = Arc::new(Recording::new(Arc::clone(&project.tree)));
        let files: Arc<dyn Tree> = Arc::<Recording>::clone(&recording);
        let account = spec.service_account_name.as_deref();
        let target = self
            .parts
            .clusters
            .of(pass.namespace, spec.kube_config.as_ref(), account)
            .await?;
        let cluster = working(&target.cluster, pass);
        let options = RenderOptions {
            name: format!("KluctlDeployment.{}/{}", api::group::GITOPS_KLUCTL, key(object)),
            slots: self.render_slots.clone(),
            chart_cache: self.chart_cache.clone(),
            external: project.external.clone(),
            ssh: std::mem::take(&mut draft.ssh),
            keys: pass.slot.lending(self.decryption_keys(pass, object)).await?,
            limits: self.rendering.clone(),
            timeout: Some(spec::timeout(spec) / 2),
            ..RenderOptions::default()
        };
        let request = spec::request(object, source)?;
        let rendered = engine::render(&cluster, files, request, &options)
            .await
            .map_err(|error| render_error(&error))?;
        let hash = kluctl::objects_hash(rendered.objects());
        let cluster_id = self.cluster_id(object, &cluster, &target.identity).await;
        let mut origin = self.origin(pass, object, source, project.commit.as_deref()).await;
        origin.cluster_id = cluster_id;
        if let Some(requested) = draft.requested.as_ref().filter(|_| !draft.is_full()) {
            let patch = requested.request.overrides_patch.clone();
            let patch = patch.map(|patch| yaml::Value::from_json(serde_json::Value::Object(patch)));
            origin.overrides_patch = patch;
        }
        let outside = options.external_reads.objects_of(&target.cluster);
        let outside = outside.map(|read| read.with_absent(&rendered));
        let built = Built {
            cluster,
            identity: target.identity,
            rendered,
            hash,
            origin,
            read: ProjectRead {
                address: source.address.clone(),
                external: project.external.clone(),
                revision: project.revision.clone(),
                commit: project.commit.clone(),
                record: recording.take(),
                outside,
            },
        };
        draft.status.last_prepare_error = None;
        let target = built.target_key();
        if plan::shows_target(&draft.status, &target, draft.is_overridden()) {
            draft.status.target_key = Some(target);
        }
        Ok(built)
    }

    fn remote_overrides(&self, object: &KluctlDeployment) -> Result<Vec<RemoteOverride>, PrepareError> {
        let wanted = &object.spec.source_overrides;
        match &self.overrides {
            Some(overrides) => Ok(overrides.of(wanted)),
            None if wanted.is_empty() => Ok(Vec::new()),
            None => Err(PrepareError::NoOverrides),
        }
    }

    async fn decryption_keys(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        object: &KluctlDeployment,
    ) -> Result<Option<Arc<DecryptionKeys>>, PrepareError> {
        let keys = credentials::decryption(self.client(), object, &self.external).await?;
        let Some(mut keys) = keys else {
            return Ok(None);
        };
        let decryption = object.spec.decryption.as_ref();
        let account = decryption.and_then(|decryption| decryption.service_account.as_deref());
        let deploying = object.spec.service_account_name.as_deref();
        let default = self.parts.ctx.flags().default_service_account.as_str();
        let role = kms_role(&self.parts.clusters, pass.namespace, account, deploying, default).await?;
        if let Some(role) = role {
            keys.set_aws_role(role);
        }
        Ok(Some(Arc::new(keys)))
    }

    async fn origin(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        object: &KluctlDeployment,
        source: &Source,
        commit: Option<&str>,
    ) -> Origin {
        let project = ProjectKey {
            repo_key: source.key.repo_key.clone().unwrap_or_default(),
            sub_dir: source.key.sub_dir.clone().unwrap_or_default(),
        };
        Origin {
            git: git_info(source, commit),
            ..self.own_origin(pass, object, project).await
        }
    }
}

fn git_info(source: &Source, commit: Option<&str>) -> Option<GitInfo> {
    let commit = commit?.to_owned();
    let (branch, tag) = match &source.address {
        SourceAddress::Git { reference, .. } => match reference {
            GitReference::Branch(name) => (format!("refs/heads/{name}"), String::new()),
            GitReference::Tag(name) => (String::new(), format!("refs/tags/{name}")),
            _ => (String::new(), String::new()),
        },
        SourceAddress::Oci { .. } => (String::new(), String::new()),
    };
    Some(GitInfo {
        url: api::redact(source.address.url()),
        branch,
        tag,
        sub_dir: source.key.sub_dir.clone().unwrap_or_default(),
        commit,
        dirty: false,
    })
}

/// Returns the error of a failed render, with the number of failed parts of the deployment. Projects and targets that cannot be loaded
/// have no parts.
fn render_error(error: &engine::Error) -> PrepareError {
    use kluctl::Error as E;
    let count = match error {
        engine::Error::Render(E::Many(errors)) => Some(errors.len()),
        engine::Error::Render(
            E::Yaml { .. }
            | E::Template { .. }
            | E::Kustomize { .. }
            | E::Chart { .. }
            | E::Helm(_)
            | E::Pull { .. }
            | E::Decrypt { .. }
            | E::NoDecryption(_)
            | E::Object(_),
        ) => Some(1),
        _ => None,
    };
    match error {
        engine::Error::Panicked => PrepareError::Fault(error.fault(Reason::PrepareFailed)),
        _ => PrepareError::Render(error.to_string(), count),
    }
}
