//! The view of consumers on sources of any kind.

use kube::core::{DynamicObject, ObjectMeta};
use serde::Deserialize;

use crate::{Artifact, Condition, condition_type, conditions};

/// A source of any kind, as its consumers see it. Nothing of its spec but `suspend` is read, so sources of third parties
/// work, too.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "Wire")]
pub struct SourceView {
    pub metadata: ObjectMeta,
    pub suspend: bool,
    pub observed_generation: Option<i64>,
    /// Artifact that the source offers; `None` before the first.
    pub artifact: Option<Artifact>,
    pub conditions: Vec<Condition>,
}

impl SourceView {
    pub fn of(object: &DynamicObject) -> Result<Self, serde_json::Error> {
        let body = Body::deserialize(&object.data)?;
        Ok(Self::from(Wire {
            metadata: object.metadata.clone(),
            body,
        }))
    }

    #[must_use]
    pub fn ready(&self) -> Option<&Condition> {
        conditions::get(&self.conditions, condition_type::READY)
    }
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(flatten)]
    body: Body,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    spec: Option<Spec>,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    suspend: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    observed_generation: Option<i64>,
    artifact: Option<Artifact>,
    #[serde(default)]
    conditions: Option<Vec<Condition>>,
}

impl From<Wire> for SourceView {
    fn from(wire: Wire) -> Self {
        let status = wire.body.status.unwrap_or_default();
        Self {
            metadata: wire.metadata,
            suspend: wire.body.spec.and_then(|spec| spec.suspend).unwrap_or_default(),
            observed_generation: status.observed_generation,
            artifact: status.artifact,
            conditions: status.conditions.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn view_reads_sources_of_any_kind() {
        let json = json!({
            "apiVersion": "example.com/v1", "kind": "Drive",
            "metadata": { "name": "shop", "namespace": "apps" },
            "spec": { "letter": "C", "interval": 5 },
            "status": {
                "observedGeneration": 3,
                "artifact": { "path": "a/b.tar.gz", "url": "http://x/a/b.tar.gz", "revision": "7", "odd": true },
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        });
        let object: DynamicObject = serde_json::from_value(json.clone()).unwrap();
        let view = SourceView::of(&object).unwrap();
        assert_eq!(view.metadata.name.as_deref(), Some("shop"));
        assert_eq!(view.artifact.as_ref().map(|a| a.revision.as_str()), Some("7"));
        assert!(view.ready().is_some_and(Condition::is_true) && !view.suspend);
        assert_eq!(serde_json::from_value::<SourceView>(json).unwrap(), view);
    }

    #[test]
    fn view_reads_a_source_without_status() {
        let json = json!({ "metadata": { "name": "new" }, "spec": { "suspend": true } });
        let view: SourceView = serde_json::from_value(json).unwrap();
        assert!(view.suspend && view.artifact.is_none() && view.conditions.is_empty());
    }

    #[test]
    fn view_refuses_a_malformed_artifact() {
        let object: DynamicObject = serde_json::from_value(
            json!({ "metadata": { "name": "bad" }, "status": { "artifact": { "path": 7 } } }),
        )
        .unwrap();
        assert!(SourceView::of(&object).is_err());
    }
}
