//! The CustomResourceDefinitions, with every served version.
//!
//! No conversion: all versions of a kind share one schema, so that an object reads the same in each, and the controller
//! writes one status.

#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition as Column, CustomResourceDefinition, CustomResourceDefinitionVersion,
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::json;

use crate::{annotation, kluctl, notification, source};

/// A served version of a kind.
struct Version {
    name: &'static str,
    deprecated: bool,
    columns: Vec<Column>,
}

/// Every definition, in the order in which they are installed.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![git_repository(), kluctl_deployment(), provider(), alert()]
}

/// The definition of GitRepository.
#[must_use]
pub fn git_repository() -> CustomResourceDefinition {
    let url = || column("URL", "string", ".spec.url");
    let newer = || vec![url(), age(), ready(), status()];
    let mut crd = build(
        source::GitRepository::crd(),
        &[
            Version {
                name: "v1",
                deprecated: false,
                columns: newer(),
            },
            Version {
                name: "v1beta2",
                deprecated: true,
                columns: newer(),
            },
            Version {
                name: "v1beta1",
                deprecated: true,
                columns: vec![url(), ready(), status(), age()],
            },
        ],
    );
    default_status(&mut crd);
    crd
}

/// The definition of KluctlDeployment in `flux.kluctl.io`.
#[must_use]
pub fn kluctl_deployment() -> CustomResourceDefinition {
    let columns = vec![
        column("DryRun", "boolean", ".spec.dryRun"),
        column("Deployed", "date", ".status.lastDeployResult.time"),
        column("Pruned", "date", ".status.lastPruneResult.time"),
        column("Validated", "date", ".status.lastValidateResult.time"),
        ready(),
        status(),
        age(),
    ];
    build(
        kluctl::KluctlDeployment::crd(),
        &[Version {
            name: "v1alpha1",
            deprecated: false,
            columns,
        }],
    )
}

/// The definition of Provider.
#[must_use]
pub fn provider() -> CustomResourceDefinition {
    build(notification::Provider::crd(), &notification_versions())
}

/// The definition of Alert.
#[must_use]
pub fn alert() -> CustomResourceDefinition {
    build(notification::Alert::crd(), &notification_versions())
}

fn notification_versions() -> Vec<Version> {
    let columns = || vec![age(), ready(), status()];
    vec![
        Version {
            name: "v1beta3",
            deprecated: false,
            columns: columns(),
        },
        Version {
            name: "v1beta2",
            deprecated: true,
            columns: columns(),
        },
        Version {
            name: "v1beta1",
            deprecated: true,
            columns: columns(),
        },
    ]
}

/// Makes a definition with several versions of the one that the derive made. The first version is stored.
fn build(mut crd: CustomResourceDefinition, versions: &[Version]) -> CustomResourceDefinition {
    let newest = versions.first().map_or("", |version| version.name);
    let kind = crd.spec.names.kind.clone();
    let mut template = crd.spec.versions.pop();
    if let Some(schema) = template
        .as_mut()
        .and_then(|v| v.schema.as_mut())
        .and_then(|s| s.open_api_v3_schema.as_mut())
    {
        tidy(schema);
    }
    crd.spec.versions = versions
        .iter()
        .map(|version| CustomResourceDefinitionVersion {
            name: version.name.to_owned(),
            served: true,
            storage: version.name == newest,
            deprecated: version.deprecated.then_some(true),
            deprecation_warning: version
                .deprecated
                .then(|| format!("{} {kind} is deprecated, upgrade to {newest}", version.name)),
            additional_printer_columns: Some(version.columns.clone()),
            ..template.clone().unwrap_or_default()
        })
        .collect();
    crd.metadata
        .annotations
        .get_or_insert_default()
        .insert(annotation::SUBSTITUTE.to_owned(), "disabled".to_owned());
    crd
}

/// Lets a new object start with a generation that is never its own, so that `kubectl wait` and kstatus wait for it.
fn default_status(crd: &mut CustomResourceDefinition) {
    for version in &mut crd.spec.versions {
        let schema = version
            .schema
            .as_mut()
            .and_then(|s| s.open_api_v3_schema.as_mut());
        if let Some(status) = schema
            .and_then(|s| s.properties.as_mut())
            .and_then(|p| p.get_mut("status"))
        {
            status.default = Some(JSON(json!({ "observedGeneration": -1 })));
        }
    }
}

/// Removes what the derive adds and the API server need not know. Above all `nullable`: with it, a null would be kept
/// instead of dropped before the defaults are set.
fn tidy(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    if schema
        .format
        .as_deref()
        .is_some_and(|format| format.starts_with("uint"))
    {
        schema.format = None;
    }
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| !value.0.is_null());
    }
    // A default that says what absence says is noise in every object.
    if schema.default.as_ref().is_some_and(|value| value.0.is_null()) {
        schema.default = None;
    }
    schema
        .properties
        .iter_mut()
        .flat_map(|p| p.values_mut())
        .for_each(tidy);
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => tidy(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(tidy),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(inner)) = &mut schema.additional_properties {
        tidy(inner);
    }
}

fn column(name: &str, type_: &str, path: &str) -> Column {
    Column {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: path.to_owned(),
        ..Column::default()
    }
}

fn age() -> Column {
    column("Age", "date", ".metadata.creationTimestamp")
}

fn ready() -> Column {
    column(
        "Ready",
        "string",
        r#".status.conditions[?(@.type=="Ready")].status"#,
    )
}

fn status() -> Column {
    column(
        "Status",
        "string",
        r#".status.conditions[?(@.type=="Ready")].message"#,
    )
}
