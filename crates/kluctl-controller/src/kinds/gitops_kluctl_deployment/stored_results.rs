//! The results of commands: their origin, and the store that clients read them from.

use std::time::Duration;

use api::kluctl::gitops::KluctlDeployment;
use cluster::Cluster;
use results::{CommandResult, Initiator, Origin, ProjectKey, ResultStore, ValidateResult};
use runtime::Pass;
use yaml::Value;

use super::{controller::Controller, spec};

const STORE_TIMEOUT: Duration = Duration::from_secs(30);

impl Controller {
    /// Returns the origin of the results of an object, without the parts of its source, its target and the cluster.
    pub(super) async fn own_origin(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        object: &KluctlDeployment,
        project: ProjectKey,
    ) -> Origin {
        let spec = &object.spec;
        let images = spec
            .images
            .iter()
            .filter_map(|image| serde_json::to_value(image).ok());
        Origin {
            reconcile_id: pass.id.to_owned(),
            initiator: Initiator::KluctlDeployment,
            project,
            deployment: Some(results::KluctlDeployment {
                name: pass.name.to_owned(),
                namespace: pass.namespace.to_owned(),
                cluster_id: self.own_cluster_id().await,
            }),
            target_name_override: spec.target_name_override.clone().unwrap_or_default(),
            context_override: spec.context.clone().unwrap_or_default(),
            args: spec::args(spec),
            images: images.map(Value::from_json).collect(),
            ..Origin::default()
        }
    }

    /// Stores the result of a command, unless it says nothing and nobody asked for it. Returns true if it is stored.
    pub(super) async fn store_command(&self, result: &CommandResult, is_request: bool) -> bool {
        let counts = result.counts();
        let is_empty = result.is_unchanged() && counts.orphans + counts.errors + counts.warnings == 0;
        let wanted = match is_request {
            true => self.results.write_command_result,
            false => !is_empty && self.results.stores(result.dry_run),
        };
        if !wanted {
            return false;
        }
        let store = self.result_store();
        is_stored(tokio::time::timeout(STORE_TIMEOUT, store.write_command(result)).await)
    }

    pub(super) async fn store_validation(&self, result: &ValidateResult) -> bool {
        if !self.results.write_command_result {
            return false;
        }
        let store = self.result_store();
        is_stored(tokio::time::timeout(STORE_TIMEOUT, store.write_validation(result)).await)
    }

    /// Returns the store of results, which is written with the rights of the controller.
    fn result_store(&self) -> ResultStore {
        self.store.over(Cluster::new(self.client().clone()))
    }
}

fn is_stored<E: std::fmt::Display>(written: Result<Result<(), E>, tokio::time::error::Elapsed>) -> bool {
    match written {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot store the result of the command");
            false
        }
        Err(_) => {
            tracing::warn!("cannot store the result of the command: the API server did not answer in time");
            false
        }
    }
}
