//! The manifests of a build: variables are substituted, lists split, common metadata set. Pure.

use std::collections::BTreeMap;

use api::kustomize::CommonMetadata;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use objects::{meta, split_api_version};
use tree::Budget;
use yaml::{Map, Value};

use crate::{
    decrypt::DECRYPT,
    substitute::{Substitution, SubstitutionError},
};

const SUBSTITUTE: &str = api::annotation::SUBSTITUTE;
/// Groups of objects that only kustomize reads.
const LOCAL: [&str; 1] = ["kustomize.config.k8s.io/"];

/// The reason why built objects are not manifests.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    #[error("failed to decode Kubernetes apiVersion, kind and name from: {0}")]
    Incomplete(String),
    #[error("post build failed for '{name}': envsubst error: variable substitution failed: {source}")]
    Substitution { name: String, source: SubstitutionError },
    #[error("post build failed for '{name}': {why}")]
    PostBuild { name: String, why: String },
    #[error("{0} is SOPS encrypted, configuring decryption is required for this secret to be reconciled")]
    Encrypted(String),
}

/// Returns the name of an object in messages, as in `ConfigMap/apps/shop`.
pub(crate) fn name(object: &Value) -> String {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let name = meta::text(object, "name").unwrap_or_default();
    match meta::text(object, "namespace").filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => format!("{kind}/{namespace}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// Returns the name of an object in messages about its build, as in `Deployment.v1.apps/shop`.
pub(crate) fn build_name(object: &Value) -> String {
    let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = split_api_version(field("apiVersion"));
    let or = |text: &str, missing: &str| {
        if text.is_empty() {
            missing.to_owned()
        } else {
            text.to_owned()
        }
    };
    format!(
        "{}.{}.{}/{}",
        or(field("kind"), "[noKind]"),
        or(version, "[noVer]"),
        or(group, "[noGrp]"),
        meta::text(object, "name").unwrap_or_default()
    )
}

/// Checks that a built object has an apiVersion, a kind and a name.
pub(crate) fn check(object: &Value) -> Result<(), ObjectError> {
    let is_set = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
    let field = |name: &str| object.get(name).and_then(Value::as_str);
    let is_complete =
        is_set(field("apiVersion")) && is_set(field("kind")) && is_set(meta::text(object, "name"));
    match is_complete {
        true => Ok(()),
        false => Err(ObjectError::Incomplete(name(object))),
    }
}

/// Returns true if an annotation or a label asks for that. Unlike for others, the case counts.
pub(crate) fn is_not_substituted(object: &Value) -> bool {
    let says = |value: Option<&str>| value == Some("disabled");
    says(meta::annotation(object, SUBSTITUTE)) || says(meta::label(object, SUBSTITUTE))
}

/// Substitutes the variables of an object in its printed form, which is read again: a value may become a number, as in the original.
pub(crate) fn substituted(
    object: Value,
    substitution: Substitution<'_>,
    budget: &Budget,
) -> Result<Value, ObjectError> {
    if is_not_substituted(&object) {
        return Ok(object);
    }
    let printed = yaml::print::goyaml(&object);
    let text = substitution
        .apply(&printed, budget)
        .map_err(|source| ObjectError::Substitution {
            name: build_name(&object),
            source,
        })?;
    if text == printed {
        return Ok(object);
    }
    let read = yaml::read::goyaml_lenient(text.as_bytes(), budget);
    let read = read.map_err(|error| ObjectError::PostBuild {
        name: build_name(&object),
        why: error.to_string(),
    })?;
    check(&read.value)?;
    Ok(read.value)
}

/// Returns the manifests of built objects: items of lists, without objects that only kustomize reads.
///
/// # Errors
/// If an object is incomplete, or a Secret is encrypted.
pub fn manifests(built: Vec<Value>, common: Option<&CommonMetadata>) -> Result<Vec<Value>, ObjectError> {
    let mut manifests = items_of(built);
    for object in &mut manifests {
        check(object)?;
        refuse_encrypted(object)?;
        normalize(object);
        set_common(object, common);
    }
    Ok(manifests)
}

/// Returns built objects for people: items of lists with the common metadata, otherwise as they were built.
///
/// # Errors
/// If an object is incomplete.
pub fn printable(built: Vec<Value>, common: Option<&CommonMetadata>) -> Result<Vec<Value>, ObjectError> {
    let mut objects = items_of(built);
    for object in &mut objects {
        check(object)?;
        set_common(object, common);
    }
    Ok(objects)
}

/// Returns the items of lists and the other objects, without objects that only kustomize reads.
fn items_of(built: Vec<Value>) -> Vec<Value> {
    let mut manifests = Vec::with_capacity(built.len());
    for object in built {
        match items(object) {
            Ok(items) => manifests.extend(items),
            Err(object) => manifests.push(object),
        }
    }
    manifests.retain(|object| {
        let version = object
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        !LOCAL.iter().any(|group| version.starts_with(group))
    });
    manifests
}

/// Returns the items of a list; the object itself if it is not one.
fn items(mut object: Value) -> Result<Vec<Value>, Value> {
    let is_list = object.get("items").and_then(Value::as_seq).is_some();
    match object.get_mut("items").and_then(Value::as_seq_mut) {
        Some(items) if is_list => Ok(std::mem::take(items)),
        _ => Err(object),
    }
}

fn is_secret(object: &Value) -> bool {
    let field = |name: &str| object.get(name).and_then(Value::as_str);
    field("apiVersion") == Some("v1") && field("kind") == Some("Secret")
}

fn refuse_encrypted(object: &Value) -> Result<(), ObjectError> {
    let is_encrypted = object.get("sops").is_some();
    let opts_out =
        meta::annotation(object, DECRYPT).is_some_and(|value| value.eq_ignore_ascii_case("disabled"));
    match is_secret(object) && is_encrypted && !opts_out {
        true => Err(ObjectError::Encrypted(name(object))),
        false => Ok(()),
    }
}

/// Removes parts that are not desired state, and encodes the strings of a Secret.
fn normalize(object: &mut Value) {
    let secret = is_secret(object);
    let is_definition = object.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition");
    let Some(fields) = object.as_map_mut() else { return };
    if !is_definition {
        fields.remove("status");
    }
    if let Some(Value::Map(metadata)) = fields.get_mut("metadata")
        && metadata.get("creationTimestamp").is_some_and(Value::is_null)
    {
        metadata.remove("creationTimestamp");
    }
    if secret && let Some(Value::Map(strings)) = fields.remove("stringData") {
        let encoded: Vec<(String, String)> = strings
            .iter()
            .map(|(key, value)| {
                let text = value.as_str().unwrap_or_default();
                (key.to_owned(), STANDARD.encode(text))
            })
            .collect();
        if !matches!(fields.get("data"), Some(Value::Map(_))) {
            fields.insert("data", Map::new());
        }
        if let Some(Value::Map(data)) = fields.get_mut("data") {
            for (key, value) in encoded {
                data.insert(key, value);
            }
        }
    }
}

fn set_common(object: &mut Value, common: Option<&CommonMetadata>) {
    let none = BTreeMap::new();
    let (labels, annotations) = common.map_or((&none, &none), |common| (&common.labels, &common.annotations));
    for (name, value) in labels {
        meta::set_label(object, name, value);
    }
    for (name, value) in annotations {
        meta::annotate(object, name, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn substitute(object: Json, pairs: &[(&str, &str)]) -> Result<Json, String> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let variables = pairs.collect();
        let substitution = Substitution {
            variables: &variables,
            strict: true,
        };
        let result = substituted(Value::from_json(object), substitution, &Budget::default());
        result
            .map(|object| object.to_json())
            .map_err(|error| error.to_string())
    }

    fn map(data: &str) -> Json {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "key": data } })
    }

    #[test]
    fn values_become_the_types_that_they_look_like() {
        let data = |text: &str, value: &str| {
            substitute(map(text), &[("v", value), ("quote", "\"")]).unwrap()["data"]["key"].clone()
        };
        assert_eq!(data("${v}", "text"), json!("text"));
        assert_eq!(data("${v}", "3"), json!(3));
        assert_eq!(data("${v}", "true"), json!(true));
        assert_eq!(data("${quote}${v}${quote}", "3"), json!("3"));
        assert_eq!(data("$$(POD)", ""), json!("$(POD)"));
    }

    #[test]
    fn objects_can_opt_out_in_exact_case() {
        let with = |part: &str, value: &str| {
            let mut object = map("${v}");
            object["metadata"][part] = json!({ SUBSTITUTE: value });
            substitute(object, &[("v", "x")]).unwrap()["data"]["key"].clone()
        };
        assert_eq!(with("annotations", "disabled"), "${v}");
        assert_eq!(with("labels", "disabled"), "${v}");
        assert_eq!(with("labels", "Disabled"), "x");
    }

    #[test]
    fn errors_name_the_object() {
        let error = substitute(map("${v}"), &[]).unwrap_err();
        assert_eq!(
            error,
            "post build failed for 'ConfigMap.v1.[noGrp]/a': envsubst error: variable substitution failed: variable not set \
             (strict mode): \"v\""
        );
        let error = substitute(map("${v}"), &[("v", "\"")]).unwrap_err();
        assert!(
            error.starts_with("post build failed for 'ConfigMap.v1.[noGrp]/a': "),
            "{error}"
        );
    }

    #[test]
    fn manifests_are_normalized_items_with_common_metadata() {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": [map("1")] });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s", "creationTimestamp": null },
            "data": { "a": "eA==" }, "stringData": { "b": "y", "a": "z" }, "status": {},
        });
        let local = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "metadata": { "name": "k" },
        });
        let common = CommonMetadata {
            labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
            annotations: BTreeMap::from([("note".to_owned(), "b".to_owned())]),
        };
        let built = [list, secret, local].map(Value::from_json).to_vec();
        let made = manifests(built, Some(&common)).unwrap();
        let made: Vec<Json> = made.iter().map(Value::to_json).collect();
        assert_eq!(made.len(), 2);
        assert_eq!(made[0]["metadata"]["labels"]["team"], "a");
        assert_eq!(made[1]["metadata"]["annotations"]["note"], "b");
        assert_eq!(made[1]["data"], json!({ "a": "eg==", "b": "eQ==" }));
        assert!(made[1].get("status").is_none() && made[1].get("stringData").is_none());
        assert!(made[1]["metadata"].get("creationTimestamp").is_none());
    }

    #[test]
    fn encrypted_secrets_and_incomplete_objects_are_refused() {
        let error = |object: Json| {
            manifests(vec![Value::from_json(object)], None)
                .unwrap_err()
                .to_string()
        };
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s", "namespace": "n" }, "sops": { "mac": "x" },
        });
        assert_eq!(
            error(secret),
            "Secret/n/s is SOPS encrypted, configuring decryption is required for this secret to be reconciled"
        );
        assert_eq!(
            error(json!({ "kind": "A", "metadata": { "name": "a" } })),
            "failed to decode Kubernetes apiVersion, kind and name from: A/a"
        );
    }
}
