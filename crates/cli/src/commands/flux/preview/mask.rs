//! Encrypted values of built objects, which are replaced by a mask. Pure.

use anyhow::{Result, anyhow};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use objects::meta;
use yaml::{Map, Value};

/// The value that stands for an encrypted one.
pub(super) const MASK: &str = "**SOPS**";
/// The same for Secrets of Docker's credentials, which have to be JSON.
const MASK_JSON: &str = "{\"mask\":\"**SOPS**\"}";
const DOCKER: &str = "kubernetes.io/dockerconfigjson";

/// Masks the values that SOPS has encrypted, and removes its metadata.
///
/// # Errors
/// If a value of a Secret is not base64.
pub(super) fn mask(object: &mut Value) -> Result<()> {
    if object.get("kind").and_then(Value::as_str) != Some("Secret") {
        if let Some(fields) = object.as_map_mut() {
            fields.remove("sops");
        }
        return Ok(());
    }
    // The marks count wherever they are, as in the original.
    let text = yaml::print::goyaml(object);
    if !text.contains("sops:") || !text.contains("mac: ENC[") {
        return mask_files(object);
    }
    let is_docker = object.get("type").and_then(Value::as_str) == Some(DOCKER);
    let mask = if is_docker { MASK_JSON } else { MASK };
    if let Some(fields) = object.as_map_mut() {
        fields.remove("sops");
    }
    for (field, mask) in [("data", STANDARD.encode(mask)), ("stringData", mask.to_owned())] {
        for value in values(object, field) {
            *value = Value::from(mask.clone());
        }
    }
    Ok(())
}

/// Masks the values of a Secret that are encrypted files.
fn mask_files(object: &mut Value) -> Result<()> {
    let name = meta::text(object, "name").unwrap_or_default().to_owned();
    let mask = STANDARD.encode(MASK);
    for value in values(object, "data") {
        let decoded = STANDARD.decode(value.as_str().unwrap_or_default());
        let decoded = decoded.map_err(|error| {
            anyhow!("failed to mask secret {name} sops data: illegal base64 data: {error}")
        })?;
        if is_encrypted(&decoded) {
            *value = Value::from(mask.clone());
        }
    }
    for value in values(object, "stringData") {
        if is_encrypted(value.as_str().unwrap_or_default().as_bytes()) {
            // quirk: the mask is encoded here, too.
            *value = Value::from(mask.clone());
        }
    }
    Ok(())
}

fn values<'o>(object: &'o mut Value, field: &str) -> impl Iterator<Item = &'o mut Value> {
    let map = object.get_mut(field).and_then(Value::as_map_mut);
    map.into_iter().flat_map(Map::values_mut)
}

fn is_encrypted(bytes: &[u8]) -> bool {
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    has(b"sops") && has(b"ENC[")
}

/// Returns true if a Secret has a masked value.
pub(super) fn is_masked(object: &Value) -> bool {
    let data = object.get("data").and_then(Value::as_map).into_iter();
    let mut values = data.flat_map(|data| data.iter().map(|(_, value)| value));
    values.any(|value| {
        let decoded = STANDARD.decode(value.as_str().unwrap_or_default());
        decoded.is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(MASK))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn masked(object: Json) -> Json {
        let mut object = Value::from_json(object);
        mask(&mut object).unwrap();
        object.to_json()
    }

    fn secret(fields: &Json) -> Json {
        let mut secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } });
        for (name, value) in fields.as_object().unwrap() {
            secret[name] = value.clone();
        }
        secret
    }

    #[test]
    fn all_values_of_an_encrypted_secret_are_masked() {
        let sops = json!({ "mac": "ENC[AES256_GCM,data:x]" });
        let made = masked(secret(
            &json!({ "sops": sops, "data": { "a": "ENC[b]" }, "stringData": { "b": "ENC[c]" } }),
        ));
        assert_eq!(
            made,
            secret(&json!({ "data": { "a": "KipTT1BTKio=" }, "stringData": { "b": MASK } }))
        );
        let made = masked(secret(
            &json!({ "sops": sops, "type": DOCKER, "data": { ".dockerconfigjson": "ENC[b]" } }),
        ));
        assert_eq!(made["data"][".dockerconfigjson"], STANDARD.encode(MASK_JSON));
        assert!(is_masked(&Value::from_json(made)));
    }

    #[test]
    fn encrypted_files_in_a_secret_are_masked() {
        let file = "token: ENC[AES256_GCM]\nsops: {}\n";
        let made = masked(secret(&json!({
            "data": { "a": STANDARD.encode(file), "b": "eA==" }, "stringData": { "c": file, "d": "sops" },
        })));
        let expected = json!({ "data": { "a": "KipTT1BTKio=", "b": "eA==" }, "stringData": { "c": "KipTT1BTKio=", "d": "sops" } });
        assert_eq!(made, secret(&expected));
        assert!(is_masked(&Value::from_json(made)));
        let error = mask(&mut Value::from_json(secret(&json!({ "data": { "a": "%" } })))).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("failed to mask secret s sops data: illegal base64 data")
        );
    }

    #[test]
    fn other_objects_lose_the_metadata_of_sops() {
        let object =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "b" }, "sops": { "mac": "x" } });
        assert_eq!(
            masked(object),
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "b" } })
        );
    }
}
