//! The types of kluctl that decode statuses and stored results. They refuse fields that they don't know, and values of another type.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

/// The type of a value; null is the zero value of each.
#[derive(Debug)]
pub(crate) enum Shape {
    Text,
    /// A time by RFC 3339.
    Time,
    Number,
    Flag,
    Any,
    List(&'static Self),
    Struct(&'static [(&'static str, Self)]),
}

use Shape::{Any, Flag, List, Number, Struct, Text, Time};

const PROJECT_KEY: Shape = Struct(&[("repoKey", Text), ("subDir", Text)]);
const TARGET_KEY: Shape = Struct(&[("targetName", Text), ("clusterId", Text), ("discriminator", Text)]);
const DEPLOYMENT: Shape = Struct(&[("name", Text), ("namespace", Text), ("clusterId", Text)]);
const CLUSTER: Shape = Struct(&[("clusterId", Text)]);
const REFERENCE: Shape = Struct(&[
    ("group", Text),
    ("version", Text),
    ("kind", Text),
    ("name", Text),
    ("namespace", Text),
]);
const MESSAGES: Shape = List(&Struct(&[("ref", REFERENCE), ("message", Text)]));
const CHANGES: Shape = List(&Struct(&[
    ("type", Text),
    ("jsonPath", Text),
    ("oldValue", Any),
    ("newValue", Any),
    ("unifiedDiff", Text),
]));
const IMAGES: Shape = List(&Struct(&[
    ("image", Text),
    ("imageRegex", Text),
    ("resultImage", Text),
    ("deployedImage", Text),
    ("namespace", Text),
    ("object", REFERENCE),
    ("deployment", Text),
    ("container", Text),
    ("deployTags", List(&Text)),
    ("deploymentDir", Text),
]));
const TARGET: Shape = Struct(&[
    ("name", Text),
    ("context", Text),
    ("args", Any),
    ("aws", Any),
    ("images", IMAGES),
    ("discriminator", Text),
]);
const GIT: Shape = Struct(&[
    ("url", Text),
    (
        "ref",
        Struct(&[("branch", Text), ("tag", Text), ("commit", Text)]),
    ),
    ("subDir", Text),
    ("commit", Text),
    ("dirty", Flag),
]);
const COMMAND: Shape = Struct(&[
    ("initiator", Text),
    ("startTime", Time),
    ("endTime", Time),
    ("command", Text),
    ("target", Text),
    ("targetNameOverride", Text),
    ("contextOverride", Text),
    ("args", Any),
    ("images", IMAGES),
    ("dryRun", Flag),
    ("noWait", Flag),
    ("forceApply", Flag),
    ("replaceOnError", Flag),
    ("forceReplaceOnError", Flag),
    ("abortOnError", Flag),
    ("includeTags", List(&Text)),
    ("excludeTags", List(&Text)),
    ("includeDeploymentDirs", List(&Text)),
    ("excludeDeploymentDirs", List(&Text)),
]);
/// The project as it was rendered, without the content of its items.
const PROJECT: Shape = Struct(&[
    ("vars", Any),
    ("when", Text),
    ("deployments", Any),
    ("commonLabels", Any),
    ("commonAnnotations", Any),
    ("overrideNamespace", Text),
    ("tags", List(&Text)),
    ("ignoreForDiff", Any),
    ("conflictResolution", Any),
]);

/// The result of a command as Secrets have it, with its objects in their short form.
pub(crate) const COMMAND_RESULT: Shape = Struct(&[
    ("id", Text),
    ("reconcileId", Text),
    ("projectKey", PROJECT_KEY),
    ("targetKey", TARGET_KEY),
    ("target", TARGET),
    ("command", COMMAND),
    ("kluctlDeployment", DEPLOYMENT),
    ("overridesPatch", Any),
    ("gitInfo", GIT),
    ("clusterInfo", CLUSTER),
    ("deployment", PROJECT),
    ("renderedObjectsHash", Text),
    (
        "compactedObjects",
        List(&Struct(&[
            ("ref", REFERENCE),
            ("changes", CHANGES),
            ("new", Flag),
            ("orphan", Flag),
            ("deleted", Flag),
            ("hook", Flag),
            ("rendered", Text),
            ("remote", Text),
            ("applied", Text),
        ])),
    ),
    ("errors", MESSAGES),
    ("warnings", MESSAGES),
    ("seenImages", IMAGES),
]);

/// The summary of the result of a command, in statuses and annotations.
pub(crate) const SUMMARY: Shape = Struct(&[
    ("id", Text),
    ("reconcileId", Text),
    ("projectKey", PROJECT_KEY),
    ("targetKey", TARGET_KEY),
    ("target", TARGET),
    ("commandInfo", COMMAND),
    ("kluctlDeployment", DEPLOYMENT),
    ("gitInfo", GIT),
    ("clusterInfo", CLUSTER),
    ("renderedObjectsHash", Text),
    ("renderedObjects", Number),
    ("remoteObjects", Number),
    ("appliedObjects", Number),
    ("appliedHookObjects", Number),
    ("newObjects", Number),
    ("changedObjects", Number),
    ("orphanObjects", Number),
    ("deletedObjects", Number),
    ("errors", MESSAGES),
    ("warnings", MESSAGES),
    ("totalChanges", Number),
]);

/// The result of a validation.
pub(crate) const VALIDATION: Shape = Struct(&[
    ("id", Text),
    ("reconcileId", Text),
    ("projectKey", PROJECT_KEY),
    ("targetKey", TARGET_KEY),
    ("kluctlDeployment", DEPLOYMENT),
    ("overridesPatch", Any),
    ("renderedObjectsHash", Text),
    ("startTime", Time),
    ("endTime", Time),
    ("ready", Flag),
    ("warnings", MESSAGES),
    ("errors", MESSAGES),
    (
        "results",
        List(&Struct(&[
            ("ref", REFERENCE),
            ("annotation", Text),
            ("message", Text),
        ])),
    ),
]);

/// The result of a drift detection.
pub(crate) const DRIFT: Shape = Struct(&[
    ("id", Text),
    ("reconcileId", Text),
    ("projectKey", PROJECT_KEY),
    ("targetKey", TARGET_KEY),
    ("kluctlDeployment", DEPLOYMENT),
    ("renderedObjectsHash", Text),
    ("startTime", Time),
    ("endTime", Time),
    ("warnings", MESSAGES),
    ("errors", MESSAGES),
    (
        "objects",
        List(&Struct(&[
            ("ref", REFERENCE),
            ("changes", CHANGES),
            ("new", Flag),
            ("orphan", Flag),
            ("deleted", Flag),
            ("hook", Flag),
            ("lastResourceVersion", Text),
        ])),
    ),
]);

/// The requests and other fields of a status that have types of their own.
pub(crate) const REQUEST_RESULT: Shape = Struct(&[
    (
        "request",
        Struct(&[("requestValue", Text), ("overridesPatch", Any)]),
    ),
    ("startTime", Time),
    ("endTime", Time),
    ("reconcileId", Text),
    ("resultId", Text),
    ("commandError", Text),
]);

impl Shape {
    /// Fails if a value can't be decoded.
    pub(crate) fn decode(&self, value: &Value) -> Result<()> {
        match self {
            _ if value.is_null() => {}
            Any => {}
            Text => ensure!(value.is_string(), "no string: {value}"),
            Number => ensure!(value.is_i64() || value.is_u64(), "no number: {value}"),
            Flag => ensure!(value.is_boolean(), "no boolean: {value}"),
            Time => {
                let text = value.as_str().with_context(|| format!("no time: {value}"))?;
                text.parse::<jiff::Timestamp>().context("no time")?;
            }
            List(of) => {
                let list = value.as_array().with_context(|| format!("no list: {value}"))?;
                for entry in list {
                    of.decode(entry)?;
                }
            }
            Struct(fields) => {
                let map = value.as_object().with_context(|| format!("no map: {value}"))?;
                for (name, value) in map {
                    let Some((_, shape)) = fields.iter().find(|(known, _)| known == name) else {
                        bail!("unknown field {name:?}");
                    };
                    shape.decode(value).context(name.clone())?;
                }
            }
        }
        Ok(())
    }
}

/// Fails if kluctl can't decode the status of a KluctlDeployment of gitops.kluctl.io.
pub(crate) fn decode_status(status: &Value) -> Result<()> {
    let fields: [(&str, &Shape); 9] = [
        ("lastDeployResult", &SUMMARY),
        ("lastDiffResult", &SUMMARY),
        ("lastValidateResult", &VALIDATION),
        ("lastDriftDetectionResult", &DRIFT),
        ("reconcileRequestResult", &REQUEST_RESULT),
        ("deployRequestResult", &REQUEST_RESULT),
        ("projectKey", &PROJECT_KEY),
        ("targetKey", &TARGET_KEY),
        ("observedGeneration", &Number),
    ];
    for (name, shape) in fields {
        let value = status.get(name).unwrap_or(&Value::Null);
        shape.decode(value).with_context(|| format!("status.{name}"))?;
    }
    Ok(())
}

#[test]
fn other_fields_and_types_are_refused() {
    let summary =
        json!({ "id": "1", "commandInfo": { "startTime": "2026-01-01T00:00:00.5Z" }, "errors": null });
    SUMMARY.decode(&summary).unwrap();
    for other in [
        json!({ "inventory": [] }),
        json!({ "overridesPatch": {} }),
        json!({ "newObjects": "1" }),
        json!({ "commandInfo": { "startTime": "yesterday" } }),
        json!({ "errors": [{ "message": "m", "denied": true }] }),
    ] {
        assert!(SUMMARY.decode(&other).is_err(), "{other}");
    }
    assert!(DRIFT.decode(&json!({ "target": {} })).is_err() && VALIDATION.decode(&json!([])).is_err());
}
