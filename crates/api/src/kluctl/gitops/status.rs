//! The status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ManualRequestResult;
use crate::{Condition, conditions::HasConditions, schema};

/// Observed state of the deployment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KluctlDeploymentStatus {
    /// Result of the last request to reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconcile_request_result: Option<ManualRequestResult>,
    /// Result of the last request for a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff_request_result: Option<ManualRequestResult>,
    /// Result of the last request to deploy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy_request_result: Option<ManualRequestResult>,
    /// Result of the last request to prune.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune_request_result: Option<ManualRequestResult>,
    /// Result of the last request to validate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate_request_result: Option<ManualRequestResult>,
    /// Generation of the object at the last full reconciliation, also of one that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Commit of the project that was last fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_commit: Option<String>,
    /// Conditions of the deployment: Ready, and Reconciling while it is worked on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Repository and directory of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_key: Option<ProjectKey>,
    /// Target, cluster and discriminator of the deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_key: Option<TargetKey>,
    /// SHA-256 of the objects that were last rendered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_objects_hash: Option<String>,
    /// Value of `spec.manualObjectsHash` at the last full reconciliation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_manual_objects_hash: Option<String>,
    /// Errors of fetching and rendering the project; absent after it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_prepare_error: Option<String>,
    /// Kinds and namespaces of deployments that began and have no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub begun_inventory: Option<Map<String, Value>>,
    /// Kinds and namespaces of objects that may be deployed after `lastDeployResult`, and the ID of that result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub deployed_inventory: Option<Map<String, Value>>,
    /// Summary of the last deployment or requested prune.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub last_deploy_result: Option<Value>,
    /// Summary of the last requested diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub last_diff_result: Option<Value>,
    /// Result of the last validation; absent if `spec.validate` is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub last_validate_result: Option<Value>,
    /// Result of the last drift detection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub last_drift_detection_result: Option<Value>,
    /// Counts of the last drift detection, or `no drift`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_drift_detection_result_message: Option<String>,
}

impl HasConditions for KluctlDeploymentStatus {
    fn conditions(&self) -> &Vec<Condition> {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }
}

/// Repository and directory of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectKey {
    /// Key of the repository, as in `git://example.com/project` or `oci://example.com/project`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_key: Option<String>,
    /// Directory in the repository; absent for its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_dir: Option<String>,
}

/// Target, cluster and discriminator of a deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetKey {
    /// Name of the target; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_name: Option<String>,
    /// Identity of the cluster: the UID of its namespace `kube-system`.
    // The definition of kluctl requires it, also if it is empty because it may not be read.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub cluster_id: String,
    /// Discriminator: the value of the label `kluctl.io/discriminator` on all deployed objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<String>,
}
