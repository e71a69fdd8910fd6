//! The status of a Kustomization.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, Time, conditions::HasConditions, schema};

/// Observed state of the object, and the applied objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationStatus {
    /// Generation that the status describes; -1 before the first reconciliation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the object: Ready, Healthy, Reconciling, Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Revision that was applied last, with all objects ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
    /// Revision of the original that the applied artifact was made of, as its metadata has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_origin_revision: Option<String>,
    /// Revision that was tried last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,
    /// Value of the annotation `reconcile.fluxcd.io/requestedAt` that was last handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Objects that are applied and kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<Inventory>,
    /// Last builds with different results, the newest first; at most 5.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Snapshot>,
}

/// Objects that are applied and kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Inventory {
    /// An entry for each object.
    #[schemars(extend("maxItems" = 50_000))]
    pub entries: Vec<InventoryEntry>,
}

/// An applied object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InventoryEntry {
    /// Identity of the object: `<namespace>_<name>_<group>_<kind>`.
    pub id: String,
    /// API version of the object, without the group.
    pub v: String,
}

/// The reconciliations of one build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// SHA-256 of the built objects, as in `sha256:<hex>`.
    pub digest: String,
    /// Time of the first reconciliation.
    pub first_reconciled: Time,
    /// Time of the last reconciliation.
    pub last_reconciled: Time,
    /// Duration of the last reconciliation, as in `1.5s`.
    pub last_reconciled_duration: String,
    /// Reason of Ready after the last reconciliation.
    pub last_reconciled_status: String,
    /// Number of reconciliations.
    pub total_reconciliations: i64,
    /// Revisions of the artifact and of its original.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl HasConditions for KustomizationStatus {
    fn conditions(&self) -> &Vec<Condition> {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }
}
