//! Reading single objects.

use anyhow::{Context as _, Result, bail};
use fleet::{Kind, Object};
use objects::ObjectRef;
use yaml::Value;

use super::super::Flux;

/// Reads an object.
///
/// # Errors
/// Fails if it does not exist.
pub(super) async fn get(flux: &Flux, kind: &Kind, namespace: &str, name: &str) -> Result<Value> {
    match find(flux, kind, namespace, name).await? {
        Some(object) => Ok(object),
        None => bail!("{}.{} \"{name}\" not found", kind.plural, kind.group),
    }
}

/// Reads an object; `None` if it does not exist.
pub(super) async fn find(flux: &Flux, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Value>> {
    let resource = flux.served(kind).await?;
    let reference = ObjectRef {
        group: resource.group,
        version: resource.version,
        kind: resource.kind,
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    };
    Ok(flux.cluster.get(&reference).await?)
}

/// Decodes the fields that people look at.
pub(super) fn decode(object: &Value) -> Result<Object> {
    serde_json::from_value(object.to_json()).context("the object can't be read")
}

/// Returns the string at a path; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}
