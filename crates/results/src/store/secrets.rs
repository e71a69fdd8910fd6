//! The Secrets that hold a result: their names, labels, annotations and entries.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use objects::{ObjectRef, meta};
use sha2::{Digest as _, Sha256};
use yaml::{Map, Value};

use super::{
    COMMAND_ID, COMMAND_SUMMARY, DEPLOYMENT, DEPLOYMENT_NAME, DEPLOYMENT_NAMESPACE, GROUP, KluctlDeployment,
    LABEL, MOST_PARTS, PART, PART_BYTES, PARTS, REPO_KEY, ReadError, Record, SUB_DIR, StoredResult,
    VALIDATE_ID, VALIDATE_SUMMARY,
};

/// Returns the value of the label that all Secrets of results of one type, owner, project and target have: 40 hexadecimal digits.
pub(super) fn group(is_validation: bool, summary: &Value) -> String {
    hash(&[vec![Value::from(is_validation)], group_keys(summary).to_vec()].concat())
}

/// Returns the name and namespace of the KluctlDeployment of a result, its project and its target. Whoever knows project and target of another
/// owner must not evict its results.
pub(super) fn group_keys(summary: &Value) -> [Value; 4] {
    let owner = |field| summary.pointer(&["kluctlDeployment", field]);
    let keys = [
        owner("name"),
        owner("namespace"),
        summary.get("projectKey"),
        summary.get("targetKey"),
    ];
    keys.map(|key| key.cloned().unwrap_or(Value::Null))
}

/// Returns the value of the label of the results of a KluctlDeployment: 40 hexadecimal digits, or `none` for results of a command line.
pub(super) fn deployment(of: Option<&KluctlDeployment>) -> String {
    of.map_or_else(
        || "none".to_owned(),
        |of| hash(&[&of.name, &of.namespace, &of.cluster_id].map(|text| Value::from(text.as_str()))),
    )
}

/// Returns the first 160 bits of the SHA-256 of a list, in hexadecimal.
fn hash(facts: &[Value]) -> String {
    let digest = Sha256::digest(yaml::print::json_sorted_html(&Value::from(facts.to_vec())));
    digest.iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}

/// Reads the metadata of the first Secret of a result; `None` if it is another Secret.
pub(super) fn stored(secret: &Value) -> Option<StoredResult> {
    let (id, is_validation) = match meta::label(secret, COMMAND_ID) {
        Some(id) => (id, false),
        None => (meta::label(secret, VALIDATE_ID)?, true),
    };
    let name = if is_validation {
        VALIDATE_SUMMARY
    } else {
        COMMAND_SUMMARY
    };
    Some(StoredResult {
        id: id.to_owned(),
        is_validation,
        summary: serde_json::from_str(meta::annotation(secret, name)?).ok()?,
        secret: ObjectRef::of(secret).ok()?,
        parts: meta::annotation(secret, PARTS)
            .and_then(|text| text.parse().ok())
            .unwrap_or(1)
            .min(MOST_PARTS),
    })
}

pub(super) fn secrets(namespace: &str, record: &Record<'_>) -> Vec<Value> {
    let name = secret_name(record);
    let group = group(record.is_validation, &record.summary);
    let mut chunks = chunks(&record.data).into_iter();
    let first = chunks.next().unwrap_or_default();
    let (labels, mut annotations) = marks(record, &group);
    if chunks.len() > 0 {
        annotations.insert(PARTS, (chunks.len() + 1).to_string());
    }
    let mut secrets = vec![secret(namespace, &name, labels, annotations, &first)];
    for (index, chunk) in chunks.enumerate() {
        let number = index + 1;
        let labels = Map::from([(GROUP, Value::from(group.as_str()))]);
        let annotations = Map::from([(PART, Value::from(format!("{}/{number}", record.id)))]);
        let name = format!("{name}-{number}");
        secrets.push(secret(namespace, &name, labels, annotations, &chunk));
    }
    secrets
}

/// Distributes entries to Secrets of at most [`PART_BYTES`] bytes. The first one has all keys.
fn chunks<'d>(data: &'d [(&'static str, Vec<u8>)]) -> Vec<Vec<(&'static str, &'d [u8])>> {
    let mut first = Vec::new();
    let mut others: Vec<Vec<(&'static str, &[u8])>> = Vec::new();
    let mut room = PART_BYTES;
    for (key, bytes) in data {
        let mut bytes = bytes.as_slice();
        if others.is_empty() {
            let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            room -= now.len();
            first.push((*key, now));
            bytes = later;
        } else {
            first.push((*key, &[][..]));
        }
        while !bytes.is_empty() {
            if room == 0 || others.is_empty() {
                others.push(Vec::new());
                room = PART_BYTES;
            }
            let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            room -= now.len();
            others
                .last_mut()
                .into_iter()
                .for_each(|last| last.push((*key, now)));
            bytes = later;
        }
    }
    let mut chunks = vec![first];
    chunks.append(&mut others);
    chunks
}

fn marks(record: &Record<'_>, group: &str) -> (Map, Map) {
    let (id, summary) = match record.is_validation {
        true => (VALIDATE_ID, VALIDATE_SUMMARY),
        false => (COMMAND_ID, COMMAND_SUMMARY),
    };
    let labels = Map::from([
        (LABEL, Value::from("true")),
        (id, Value::from(record.id)),
        (GROUP, Value::from(group)),
        (
            DEPLOYMENT,
            Value::from(deployment(record.origin.deployment.as_ref())),
        ),
    ]);
    let mut annotations = Map::from([
        (
            summary,
            Value::from(yaml::print::json_sorted_html(&record.summary)),
        ),
        (REPO_KEY, Value::from(record.origin.project.repo_key.as_str())),
        (SUB_DIR, Value::from(record.origin.project.sub_dir.as_str())),
    ]);
    if let Some(deployment) = &record.origin.deployment {
        annotations.insert(DEPLOYMENT_NAME, deployment.name.as_str());
        annotations.insert(DEPLOYMENT_NAMESPACE, deployment.namespace.as_str());
    }
    (labels, annotations)
}

fn secret(namespace: &str, name: &str, labels: Map, annotations: Map, data: &[(&str, &[u8])]) -> Value {
    let encoded: Map = data
        .iter()
        .map(|(key, bytes)| ((*key).to_owned(), Value::from(STANDARD.encode(bytes))))
        .collect();
    Value::Map(Map::from([
        ("apiVersion", Value::from("v1")),
        ("kind", Value::from("Secret")),
        (
            "metadata",
            Value::Map(Map::from([
                ("name", Value::from(name)),
                ("namespace", Value::from(namespace)),
                ("labels", Value::Map(labels)),
                ("annotations", Value::Map(annotations)),
            ])),
        ),
        ("data", Value::Map(encoded)),
    ]))
}

/// Returns `cr-<repository>-<id>`, at most 60 characters, so that a number fits behind it.
fn secret_name(record: &Record<'_>) -> String {
    let prefix = if record.is_validation { "vr" } else { "cr" };
    let repository = record
        .origin
        .project
        .repo_key
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let repository = repository.trim_end_matches(".git").to_ascii_lowercase();
    let clean: String = repository
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(60_usize.saturating_sub(record.id.len() + prefix.len() + 2))
        .collect();
    match clean.trim_matches('-') {
        "" => format!("{prefix}-{}", record.id),
        clean => format!("{prefix}-{clean}-{}", record.id),
    }
}

pub(super) fn part_ref(first: &ObjectRef, number: usize) -> ObjectRef {
    ObjectRef {
        name: format!("{}-{number}", first.name),
        ..first.clone()
    }
}

/// Decodes an entry, whose pieces are in several Secrets of a result.
pub(super) fn entry(secrets: &[Value], key: &'static str) -> Result<Vec<u8>, ReadError> {
    let mut pieces = secrets
        .iter()
        .filter_map(|secret| secret.pointer(&["data", key]).and_then(Value::as_str))
        .peekable();
    pieces.peek().ok_or(ReadError::NoEntry(key))?;
    let mut bytes = Vec::new();
    for piece in pieces {
        bytes.extend(STANDARD.decode(piece).map_err(|_| ReadError::Base64(key))?);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Origin, ProjectKey};

    fn origin() -> Origin {
        Origin {
            id: "0b8f2f6e-1111-2222-3333-444455556666".to_owned(),
            project: ProjectKey {
                repo_key: "git://example.com/Team/My_Project.git".to_owned(),
                sub_dir: "sub".to_owned(),
            },
            ..Origin::default()
        }
    }

    #[test]
    fn a_small_result_is_one_secret_and_a_large_one_several() {
        let sizes = [
            (100, 10, 1),
            (100, PART_BYTES, 2),
            (100, 3 * PART_BYTES, 4),
            (PART_BYTES, 0, 1),
            (PART_BYTES + 1, PART_BYTES - 1, 2),
            (2 * PART_BYTES + 5, PART_BYTES, 4),
        ];
        for (reduced, objects, parts) in sizes {
            let origin = origin();
            let data = vec![
                ("reducedResult", vec![1; reduced]),
                ("compactedObjects", vec![7; objects]),
            ];
            let record = Record {
                id: &origin.id,
                origin: &origin,
                is_validation: false,
                summary: Value::Null,
                data: data.clone(),
            };
            let secrets = secrets("kluctl-results", &record);
            assert_eq!(secrets.len(), parts, "{reduced} and {objects}");
            let first = &secrets[0];
            assert_eq!(meta::label(first, LABEL), Some("true"));
            let name = meta::text(first, "name").unwrap();
            assert_eq!(name, "cr-my-project-0b8f2f6e-1111-2222-3333-444455556666");
            assert_eq!(
                meta::annotation(first, PARTS),
                (parts > 1).then_some(&*parts.to_string())
            );
            for secret in &secrets[1..] {
                assert!(meta::label(secret, LABEL).is_none(), "only the first is a result");
            }
            for secret in &secrets {
                assert_eq!(meta::label(secret, GROUP), meta::label(first, GROUP));
                let held: usize = ["reducedResult", "compactedObjects"]
                    .iter()
                    .filter_map(|key| entry(std::slice::from_ref(secret), key).ok())
                    .map(|bytes| bytes.len())
                    .sum();
                assert!(held <= PART_BYTES, "{held}");
            }
            for (key, bytes) in data {
                assert!(
                    entry(&secrets, key).unwrap() == bytes,
                    "{key} of {reduced} and {objects}"
                );
            }
        }
    }

    #[test]
    fn results_of_one_target_and_type_have_one_group() {
        let summary = |target: &str, id: &str| {
            Value::from_json(serde_json::json!({
                "id": id, "projectKey": {"repoKey": "r"}, "targetKey": {"targetName": target, "clusterId": "c"}
            }))
        };
        let one = group(false, &summary("a", "1"));
        assert_eq!(one, group(false, &summary("a", "2")));
        assert_ne!(one, group(false, &summary("b", "1")));
        assert_ne!(one, group(true, &summary("a", "1")));
        assert_eq!(one.len(), 40);
    }
}
