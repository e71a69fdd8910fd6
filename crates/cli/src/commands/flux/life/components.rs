//! The state of the controllers' Deployments.

use jiff::Timestamp;
use objects::{
    kstatus::{self, Status},
    meta,
};
use yaml::Value;

/// A line about a Deployment: its name, and the reason why it isn't ready.
pub(super) fn readiness(deployment: &Value) -> (String, Option<String>) {
    let name = meta::text(deployment, "name").unwrap_or_default().to_owned();
    let health = kstatus::status(deployment, Timestamp::now());
    let problem = (health.status != Status::Current).then_some(health.message);
    (name, problem)
}
