//! Building definitions: served versions, columns, defaults.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition as Column, CustomResourceDefinition, CustomResourceDefinitionVersion,
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, SelectableField,
};
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{annotation, crd::bounds};

const SUSPEND: &str = ".spec.suspend";

pub(crate) struct Version {
    pub(crate) name: &'static str,
    pub(crate) deprecated: bool,
    pub(crate) columns: Vec<Column>,
}

pub(crate) struct ServedKind {
    /// Compares the API group and the kind without building the definition, which takes milliseconds.
    pub(super) is: fn(&str, &str) -> bool,
    pub(super) definition: fn() -> CustomResourceDefinition,
    pub(super) decode: fn(Value) -> Result<(), serde_json::Error>,
}

impl ServedKind {
    pub(crate) const fn of<O>(definition: fn() -> CustomResourceDefinition) -> Self
    where
        O: Resource<DynamicType = ()> + DeserializeOwned,
    {
        Self {
            is: |group, kind| O::group(&()) == group && O::kind(&()) == kind,
            definition,
            decode: |object| serde_json::from_value::<O>(object).map(drop),
        }
    }
}

/// Returns the definition that the derive made with these versions instead of its own. The first version is stored.
pub(crate) fn build(mut crd: CustomResourceDefinition, versions: &[Version]) -> CustomResourceDefinition {
    let newest = versions.first().map_or("", |version| version.name);
    let kind = crd.spec.names.kind.clone();
    let mut template = crd.spec.versions.pop();
    if let Some(schema) = template
        .as_mut()
        .and_then(|v| v.schema.as_mut())
        .and_then(|s| s.open_api_v3_schema.as_mut())
    {
        tidy(schema);
        bounds::add(schema);
    }
    let can_be_suspended = template.as_ref().is_some_and(has_suspend);
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
            additional_printer_columns: Some(columns(version, can_be_suspended)),
            ..template.clone().unwrap_or_default()
        })
        .collect();
    crd.metadata
        .annotations
        .get_or_insert_default()
        .insert(annotation::SUBSTITUTE.to_owned(), "disabled".to_owned());
    crd
}

/// Returns the columns of a version. Kinds that can be suspended say so in wide tables, if no other column does.
fn columns(version: &Version, can_be_suspended: bool) -> Vec<Column> {
    let mut columns = version.columns.clone();
    if can_be_suspended && columns.iter().all(|column| column.json_path != SUSPEND) {
        columns.push(Column {
            priority: Some(1),
            ..column("Suspended", "boolean", SUSPEND)
        });
    }
    columns
}

fn has_suspend(version: &CustomResourceDefinitionVersion) -> bool {
    let schema = version
        .schema
        .as_ref()
        .and_then(|s| s.open_api_v3_schema.as_ref());
    let spec = schema.and_then(|s| s.properties.as_ref()?.get("spec"));
    spec.and_then(|s| s.properties.as_ref())
        .is_some_and(|fields| fields.contains_key("suspend"))
}

/// Sets the default of `status.observedGeneration` to -1, so that `kubectl wait` and kstatus wait for new objects.
pub(crate) fn default_status(crd: &mut CustomResourceDefinition) {
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

/// Lets lists select objects by a field, such as `.status.discriminator`. API servers before 1.30 ignore that.
pub(crate) fn selectable(mut crd: CustomResourceDefinition, path: &str) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        version.selectable_fields = Some(vec![SelectableField {
            json_path: path.to_owned(),
        }]);
    }
    crd
}

/// Removes additions of the derive that the API server does not need, most of all `nullable`: with it, a null would be kept
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
    // A default of null is noise in every object.
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

pub(crate) fn column(name: &str, type_: &str, path: &str) -> Column {
    Column {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: path.to_owned(),
        ..Column::default()
    }
}

pub(crate) fn age() -> Column {
    column("Age", "date", ".metadata.creationTimestamp")
}

pub(crate) fn ready() -> Column {
    column(
        "Ready",
        "string",
        r#".status.conditions[?(@.type=="Ready")].status"#,
    )
}

pub(crate) fn status() -> Column {
    column(
        "Status",
        "string",
        r#".status.conditions[?(@.type=="Ready")].message"#,
    )
}
