//! Requests of users for a pass, in annotations. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Returns true if an annotation has a request other than the one that was handled last, by the status.
#[must_use]
pub fn is_unhandled(meta: &ObjectMeta, annotation: &str, handled: Option<&str>) -> bool {
    let annotations = meta.annotations.as_ref();
    let requested = annotations.and_then(|all| all.get(annotation));
    requested.is_some_and(|value| handled != Some(value.as_str()))
}
