//! Deletes the deployed objects when their KluctlDeployment is deleted, or keeps them.

use std::time::Instant;

use api::{Fault, Reason, kluctl::gitops::KluctlDeployment};
use deployer::{RemovalFailure, key, working};
use results::{CommandResult, ProjectKey, deployed::gitops as inventory};
use runtime::{Pass, Severity};

use super::{
    controller::Controller,
    guard::{Guard, Refusal},
    spec,
};
use crate::{common::check_removed, metrics::Command};

/// Part of the timeout of an object for storing the result of a removal.
const STORING: f32 = 0.15;

type Removed = Option<Box<CommandResult>>;

impl Controller {
    pub(super) async fn remove_deployed(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
    ) -> Result<Removed, RemovalFailure<Box<CommandResult>>> {
        let object = pass.object;
        let status = object.status.as_ref();
        let target = status.and_then(|status| status.target_key.as_ref());
        let discriminator = target
            .and_then(|target| target.discriminator.as_deref())
            .unwrap_or_default();
        let left = if !object.spec.delete {
            Some("what was deployed stays: spec.delete is off")
        } else if object.spec.suspend {
            Some("what was deployed stays: the object is suspended")
        } else if discriminator.is_empty() {
            Some("nothing is deleted: there is no discriminator")
        } else {
            None
        };
        if let Some(left) = left {
            self.parts
                .report_removal(object, Severity::Trace, left.to_owned());
            return Ok(None);
        }
        self.delete(pass, discriminator).await
    }

    /// Stores the result of a removal, unless it is tried again and deleted nothing: it would replace the results of deployments. If that
    /// fails, the log has the reason.
    pub(super) async fn store_removed(
        &self,
        object: &KluctlDeployment,
        removed: &CommandResult,
        is_last: bool,
    ) {
        if !is_last && removed.counts().deleted == 0 {
            return;
        }
        let limit = spec::timeout(&object.spec).mul_f32(STORING);
        let stored = tokio::time::timeout(limit, self.store_command(removed, false)).await;
        if stored.is_err() {
            tracing::warn!("cannot store the result of the removal in time");
        }
    }

    /// Deletes the objects with the discriminator. Returns the result, unless other owners keep everything.
    async fn delete(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        discriminator: &str,
    ) -> Result<Removed, RemovalFailure<Box<CommandResult>>> {
        let (object, started) = (pass.object, Instant::now());
        let account = object.spec.service_account_name.as_deref();
        let target = self
            .parts
            .clusters
            .of(pass.namespace, object.spec.kube_config.as_ref(), account)
            .await;
        let target = target.map_err(|error| RemovalFailure::of_cluster(&error))?;
        let cluster = working(&target.cluster, pass);
        let guard = Guard::new(self, object, &cluster, &target.identity, discriminator);
        let previous = inventory::of(object.status.as_ref()).objects();
        let options = engine::RemoveOptions {
            previous: previous.as_deref(),
            dry_run: self.is_dry_run(object),
            inclusion: spec::inclusion(&object.spec),
            confirm: Some(&guard),
            ..engine::RemoveOptions::default()
        };
        let deleted = engine::delete(&cluster, discriminator, &options).await;
        match guard.refusal() {
            Some(refusal @ Refusal::Shared(_)) => {
                self.parts
                    .report_removal(object, Severity::Error, refusal.to_string());
                return Ok(None);
            }
            Some(Refusal::Transient(why)) => return Err(RemovalFailure::of_unknown_owners(why)),
            None => {}
        }
        let result = deleted.map_err(|error| failed(error.to_string()))?;
        let result = Box::new(self.described(pass, result).await);
        self.metrics
            .done(&key(object), Command::Delete, started.elapsed(), result.counts());
        let own = object.spec.kube_config.is_none().then_some(pass.namespace);
        let checked = check_removed(&result, previous.as_deref().unwrap_or_default(), own);
        if let Err(failure) = checked {
            return Err(RemovalFailure {
                removed: Some(result),
                ..failure
            });
        }
        self.parts
            .report_removal(object, Severity::Info, result.message());
        Ok(Some(result))
    }

    /// Describes the result of a removal by the status: nothing is fetched.
    async fn described(&self, pass: &Pass<'_, KluctlDeployment>, mut result: CommandResult) -> CommandResult {
        let status = pass.object.status.as_ref();
        let project = status.and_then(|status| status.project_key.clone());
        let project = project.map_or_else(ProjectKey::default, |key| ProjectKey {
            repo_key: key.repo_key.unwrap_or_default(),
            sub_dir: key.sub_dir.unwrap_or_default(),
        });
        let inclusion = spec::inclusion(&pass.object.spec);
        result.options.include_dirs = inclusion.include_dirs;
        result.options.exclude_dirs = inclusion.exclude_dirs;
        let mut origin = self.own_origin(pass, pass.object, project).await;
        if let Some(target) = status.and_then(|status| status.target_key.clone()) {
            origin.cluster_id = target.cluster_id;
            origin
                .target
                .insert("name", target.target_name.unwrap_or_default());
        }
        result.described(origin)
    }
}

fn failed(why: String) -> Fault {
    Fault::retry(Reason::Failed, why)
}
