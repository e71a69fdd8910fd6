//! The fields of objects that people look at. Other fields are skipped while an object is decoded.

use std::{collections::BTreeMap, fmt};

use api::condition_type::{DELIVERED, READY};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

use crate::Kind;

/// An object of any kind. Missing fields have their defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Object {
    pub metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub spec: Spec,
    #[serde(deserialize_with = "or_default")]
    pub status: Status,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub generation: i64,
    pub creation_timestamp: String,
    pub deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    /// All annotations but the manifest that `kubectl apply` keeps.
    #[serde(deserialize_with = "annotations")]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    pub suspend: bool,
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub type_: String,
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    pub source: Option<ProjectSource>,
    pub source_ref: Option<Reference>,
    pub chart_ref: Option<Reference>,
    pub provider_ref: Option<Reference>,
    pub image_repository_ref: Option<Reference>,
    pub chart: Option<Chart>,
    #[serde(deserialize_with = "or_default")]
    pub depends_on: Vec<Reference>,
}

/// The repository that a KluctlDeployment deploys from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ProjectSource {
    pub url: String,
    pub git: Option<Location>,
    pub oci: Option<Location>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Location {
    pub url: String,
}

/// The chart of a HelmRelease (a template) or of a HelmChart (a name).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Chart {
    Template { spec: ChartSpec },
    Name(String),
    Other {},
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartSpec {
    pub chart: String,
    pub version: String,
    pub source_ref: Option<Reference>,
}

/// A reference to another object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    #[serde(deserialize_with = "or_default")]
    pub namespace: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    pub observed_generation: Option<i64>,
    pub artifact: Option<Artifact>,
    pub last_applied_revision: String,
    pub last_attempted_revision: String,
    pub history: Vec<Release>,
    pub last_scan_result: Option<Scan>,
    pub latest_ref: Option<Image>,
    pub latest_image: String,
    pub last_automation_run_time: String,
    /// The commit that a KluctlDeployment with its own source observed.
    pub observed_commit: String,
    /// The errors of a KluctlDeployment with its own source, whose condition Ready only counts them.
    pub last_prepare_error: String,
    #[serde(deserialize_with = "failures")]
    pub last_deploy_result: Failures,
    #[serde(deserialize_with = "failures")]
    pub last_validate_result: Failures,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub last_transition_time: String,
    pub observed_generation: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Artifact {
    pub revision: String,
    pub size: Option<u64>,
    pub last_update_time: String,
    #[serde(deserialize_with = "or_default")]
    pub metadata: BTreeMap<String, String>,
}

/// An entry of `status.history`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Release {
    pub chart_version: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scan {
    pub scan_time: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Image {
    pub name: String,
    pub tag: String,
}

/// The first errors of a command, and the number of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failures {
    pub first: Vec<String>,
    pub count: usize,
}

impl Failures {
    /// Maximum number of errors in a message.
    const MOST: usize = 3;

    /// Joins the first errors, and counts the others.
    fn text(&self) -> String {
        let text = self.first.join("; ");
        match self.count.saturating_sub(self.first.len()) {
            0 => text,
            more => format!("{text} and {more} more"),
        }
    }
}

impl Object {
    /// Returns the reason of a failure: the message of a condition, with the errors that the status has elsewhere.
    #[must_use]
    pub fn failure(&self, condition: &Condition) -> String {
        let status = &self.status;
        let errors = match condition.reason.as_str() {
            "PrepareFailed" if !status.last_prepare_error.is_empty() => {
                return status.last_prepare_error.trim().to_owned();
            }
            "DeployFailed" | "PruneFailed" => &status.last_deploy_result,
            "ValidateFailed" => &status.last_validate_result,
            _ => return condition.message.clone(),
        };
        match errors.first.first() {
            // Some controllers quote the errors in the message.
            Some(first) if !condition.message.contains(first.as_str()) => {
                format!("{} {}", condition.message, errors.text())
                    .trim()
                    .to_owned()
            }
            _ => condition.message.clone(),
        }
    }

    #[must_use]
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status
            .conditions
            .iter()
            .find(|condition| condition.type_ == type_)
    }

    /// Returns the URL of the repository or server that the object reads; empty if there is none.
    #[must_use]
    pub fn url(&self) -> &str {
        let Some(source) = &self.spec.source else {
            return &self.spec.url;
        };
        match source.git.as_ref().or(source.oci.as_ref()) {
            Some(location) => &location.url,
            None => &source.url,
        }
    }

    /// Returns true if no controller writes a status: objects of such kinds as long as they have none, and OCI registries of charts.
    /// Flux writes none to Alerts and Providers, Weir does.
    #[must_use]
    pub fn is_static(&self, kind: &Kind) -> bool {
        !kind.features.has_status && self.status.conditions.is_empty()
            || kind.kind == "HelmRepository" && self.spec.type_ == "oci"
    }

    /// Returns the condition of an Alert or Provider whose last notification was not delivered since its last change.
    #[must_use]
    pub fn undelivered(&self) -> Option<&Condition> {
        let generation = self.metadata.generation;
        self.condition(DELIVERED).filter(|delivered| {
            delivered.status == "False" && [0, generation].contains(&delivered.observed_generation)
        })
    }

    /// Returns true for an ArtifactGenerator that an annotation disables.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        let disabled = self
            .metadata
            .annotations
            .get("source.extensions.fluxcd.io/reconcile");
        disabled.is_some_and(|value| value == "disabled")
    }

    #[must_use]
    pub fn ready(&self) -> Option<&Condition> {
        self.condition(READY)
    }

    /// Returns the source that the object is made of, with its namespace.
    #[must_use]
    pub fn source(&self) -> Option<Reference> {
        let of_template = match &self.spec.chart {
            Some(Chart::Template { spec }) => spec.source_ref.as_ref(),
            _ => None,
        };
        let found = self.spec.chart_ref.as_ref().or(of_template);
        let mut source = found.or(self.spec.source_ref.as_ref())?.clone();
        if source.namespace.is_empty() {
            source.namespace.clone_from(&self.metadata.namespace);
        }
        Some(source)
    }
}

/// Reads the errors of a result of kluctl, whatever else it has.
fn failures<'de, D: Deserializer<'de>>(from: D) -> Result<Failures, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Result {
            #[serde(default)]
            errors: Option<Vec<Error>>,
        },
        Other(IgnoredAny),
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Error {
        Of {
            #[serde(rename = "ref", default)]
            object: Option<Reference>,
            message: String,
        },
        Text(String),
        Other(IgnoredAny),
    }

    let errors = match Stored::deserialize(from)? {
        Stored::Result { errors } => errors.unwrap_or_default(),
        Stored::Other(IgnoredAny) => Vec::new(),
    };
    let count = errors.len();
    let first = errors.into_iter().filter_map(|error| match error {
        Error::Of { object, message } => Some(match object.filter(|object| !object.kind.is_empty()) {
            Some(object) if object.namespace.is_empty() => {
                format!("{}/{}: {message}", object.kind, object.name)
            }
            Some(object) => format!("{}/{}/{}: {message}", object.kind, object.namespace, object.name),
            None => message,
        }),
        Error::Text(message) => Some(message),
        Error::Other(IgnoredAny) => None,
    });
    Ok(Failures {
        first: first.take(Failures::MOST).collect(),
        count,
    })
}

/// An annotation with a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Reads annotations, and skips the one that is as large as the object.
fn annotations<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct Annotations;

    impl<'de> Visitor<'de> for Annotations {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of annotations")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
            let mut all = BTreeMap::new();
            while let Some(name) = from.next_key::<String>()? {
                if name == LAST_APPLIED {
                    from.next_value::<IgnoredAny>()?;
                } else {
                    all.insert(name, from.next_value()?);
                }
            }
            Ok(all)
        }
    }

    from.deserialize_any(Annotations)
}

/// Takes null for the default: it must not hide an object.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn failures_of_kluctl_have_their_errors() {
        let failure = |reason: &str, message: &str, status: serde_json::Value| {
            let object: Object = serde_json::from_value(json!({"status": status})).unwrap();
            let condition = Condition {
                reason: reason.to_owned(),
                message: message.to_owned(),
                ..Condition::default()
            };
            object.failure(&condition)
        };
        let prepare = "prepare failed. Check status.lastPrepareError for details";
        assert_eq!(
            failure(
                "PrepareFailed",
                prepare,
                json!({"lastPrepareError": "no such target\n"})
            ),
            "no such target"
        );
        let of = json!({"kind": "Deployment", "namespace": "n", "name": "web"});
        let errors = json!([{"ref": of, "message": "denied"}, {"message": "b"}, "c", {"message": "d"}, 5]);
        let status = json!({"lastDeployResult": {"id": "1", "errors": errors}, "lastValidateResult": "odd"});
        assert_eq!(
            failure("DeployFailed", "deploy failed with 5 errors.", status.clone()),
            "deploy failed with 5 errors. Deployment/n/web: denied; b; c and 2 more"
        );
        assert_eq!(
            failure("ValidateFailed", "validate failed", status.clone()),
            "validate failed"
        );
        assert_eq!(failure("BuildFailed", "no", status), "no");
        let quoted = json!({"lastDeployResult": {"errors": [{"message": "denied"}]}});
        assert_eq!(
            failure("DeployFailed", "deploy: denied", quoted),
            "deploy: denied"
        );
    }

    #[test]
    fn copies_of_objects_in_annotations_are_skipped() {
        let of = |annotations: serde_json::Value| -> BTreeMap<String, String> {
            let object = json!({ "metadata": { "name": "a", "annotations": annotations } });
            let object: Object = serde_json::from_value(object).unwrap();
            object.metadata.annotations
        };
        let other = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        assert_eq!(of(json!({ LAST_APPLIED: "{}", "a": "b" })), other);
        assert_eq!(of(json!(null)), BTreeMap::new());
        assert_eq!(of(json!({})), BTreeMap::new());
    }
}
