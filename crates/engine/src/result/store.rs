//! Results that are kept in the cluster: one Secret each, that kluctl and its web UI read.
//!
//! A Secret holds at most one MiB. A result that needs more is kept in parts: the first Secret holds the reduced result and the
//! first piece of the compressed objects, and names how many parts there are; the others, of the same id, hold the rest. The
//! original reads the reduced result of such a one, which is all that its lists need.

mod pack;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cluster::{ApplyOptions, Cluster, DeleteOptions, Detail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use objects::{ObjectRef, meta};
use yaml::{Map, Value};

use super::{CommandResult, KluctlDeployment, Origin, contents};
use crate::{Error, PARALLEL, ValidateResult};

const LABEL: &str = "kluctl.io/result";
const COMMAND_ID: &str = "kluctl.io/command-result-id";
const VALIDATE_ID: &str = "kluctl.io/validate-result-id";
const COMMAND_SUMMARY: &str = "kluctl.io/command-result-summary";
const VALIDATE_SUMMARY: &str = "kluctl.io/validate-result-summary";
const REPO_KEY: &str = "kluctl.io/result-project-repo-key";
const SUB_DIR: &str = "kluctl.io/result-project-subdir";
const DEPLOYMENT_NAME: &str = "kluctl.io/result-deployment-name";
const DEPLOYMENT_NAMESPACE: &str = "kluctl.io/result-deployment-namespace";
/// Results are no part of any deployment.
const AS_RESULTS: ApplyOptions<'_> = ApplyOptions {
    dry_run: false,
    force: false,
    manager: "kluctl-results",
};
/// Annotation on the first Secret of a result: the number of its Secrets.
const PARTS: &str = "weir.io/result-parts";
/// The result of which this is a further part, as `id/number`.
const PART: &str = "weir.io/result-part";
/// Maximum size of the part of a result in one Secret, in bytes; leaves room for the other fields and for base64.
const PART_BYTES: usize = 900 << 10;
/// Maximum number of results that are listed.
const MOST_RESULTS: usize = 100_000;
/// Maximum number of Secrets of one result.
const MOST_PARTS: usize = 64;

/// Number of results to keep per project and target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Number of results of operations; default 5.
    pub commands: usize,
    /// Number of results of validations; default 2.
    pub validations: usize,
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            commands: 5,
            validations: 2,
        }
    }
}

/// The place where results are kept.
#[derive(Debug, Clone)]
pub struct ResultStore {
    cluster: Cluster,
    namespace: String,
    keep: Keep,
}

/// A result that is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredResult {
    /// Identity of the result.
    pub id: String,
    /// True for the result of a validation.
    pub is_validation: bool,
    /// Summary of the result.
    pub summary: Value,
    /// The Secret that holds it, or its first part.
    pub secret: ObjectRef,
    /// Number of Secrets of the result.
    pub parts: usize,
}

impl StoredResult {
    /// Returns the KluctlDeployment that the result is of; `None` if it is of a command line, or of a cluster whose ID is unknown.
    #[must_use]
    pub fn deployment(&self) -> Option<KluctlDeployment> {
        let fields = self.summary.get("kluctlDeployment")?;
        let field = |name: &str| {
            fields
                .get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        Some(KluctlDeployment {
            name: field("name")?.to_owned(),
            namespace: field("namespace")?.to_owned(),
            cluster_id: field("clusterId")?.to_owned(),
        })
    }

    fn broken(&self, reason: &ReadError) -> Error {
        Error::StoredResult {
            id: self.id.clone(),
            reason: reason.to_string(),
        }
    }
}

/// The serialized form of a result.
struct Record<'a> {
    id: &'a str,
    origin: &'a Origin,
    is_validation: bool,
    summary: Value,
    /// The entries of the Secret, compressed.
    data: Vec<(&'static str, Vec<u8>)>,
}

impl ResultStore {
    /// The results in a namespace, which is made when it is missing.
    #[must_use]
    pub fn new(cluster: Cluster, namespace: &str, keep: Keep) -> Self {
        let namespace = namespace.to_owned();
        Self {
            cluster,
            namespace,
            keep,
        }
    }

    /// Keeps the result of an operation, and lets go of older ones. The result should hold its objects.
    ///
    /// # Errors
    /// Fails when the API server refuses the request or can't be reached.
    pub async fn write_command(&self, result: &CommandResult) -> Result<(), Error> {
        let record = Record {
            id: &result.origin.id,
            origin: &result.origin,
            is_validation: false,
            summary: result.summary(),
            data: vec![
                (
                    "reducedResult",
                    pack::with_list(
                        &result.frame(None),
                        "objects",
                        result.objects.iter().map(contents::reduced),
                    )?,
                ),
                (
                    "compactedObjects",
                    pack::list(result.objects.iter().map(contents::compact))?,
                ),
            ],
        };
        self.write(record).await
    }

    /// Keeps the result of a validation, and lets go of older ones.
    ///
    /// # Errors
    /// Fails when the API server refuses the request or can't be reached.
    pub async fn write_validation(&self, result: &ValidateResult) -> Result<(), Error> {
        let record = Record {
            id: &result.origin.id,
            origin: &result.origin,
            is_validation: true,
            summary: result.summary(),
            data: vec![("result", pack::value(&result.to_value())?)],
        };
        self.write(record).await
    }

    async fn write(&self, record: Record<'_>) -> Result<(), Error> {
        let stored = self.list().await;
        let secrets = match self.kept(&record) {
            0 => Vec::new(),
            _ => secrets(&self.namespace, &record),
        };
        if secrets.len() > MOST_PARTS {
            return Err(Error::StoredResult {
                id: record.id.to_owned(),
                reason: format!("it needs more than {MOST_PARTS} Secrets"),
            });
        }
        // The first one last: a result that can be seen is whole.
        for secret in secrets.iter().rev() {
            self.write_secret(secret).await?;
        }
        match stored {
            Err(Error::Cluster(error)) if error.is_forbidden() => Ok(()),
            Err(error) => Err(error),
            Ok(stored) => self.clean_up(&record, &stored).await,
        }
    }

    /// Writes a Secret, and makes the namespace if it is missing.
    async fn write_secret(&self, secret: &Value) -> Result<(), Error> {
        let options = ApplyOptions {
            force: true,
            ..AS_RESULTS
        };
        match self.cluster.apply(secret, options).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => {
                match self.make_namespace().await {
                    // Who may write results need not be able to make namespaces; that it is missing says more.
                    Err(Error::Cluster(refused)) if refused.is_forbidden() => return Err(error.into()),
                    made => made?,
                }
                self.cluster.apply(secret, options).await?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn make_namespace(&self) -> Result<(), Error> {
        let namespace = Value::Map(Map::from([
            ("apiVersion", Value::from("v1")),
            ("kind", Value::from("Namespace")),
            (
                "metadata",
                Value::Map(Map::from([("name", self.namespace.as_str())])),
            ),
        ]));
        self.cluster.apply(&namespace, AS_RESULTS).await?;
        Ok(())
    }

    /// Lets go of older results of the same project and target, of those that were there before this one.
    async fn clean_up(&self, record: &Record<'_>, stored: &[StoredResult]) -> Result<(), Error> {
        let same = |result: &&StoredResult| {
            result.is_validation == record.is_validation
                && result.id != record.id
                && ["projectKey", "targetKey"]
                    .iter()
                    .all(|key| result.summary.get(key) == record.summary.get(key))
        };
        let others = self.kept(record).saturating_sub(1);
        let old = stored.iter().filter(same).skip(others);
        let deletions = old.map(|old| self.delete(old)).collect::<Vec<_>>();
        stream::iter(deletions)
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await
    }

    /// Returns the number of results to keep for this kind of result.
    fn kept(&self, record: &Record<'_>) -> usize {
        if record.is_validation {
            self.keep.validations
        } else {
            self.keep.commands
        }
    }

    /// All results, the newest first.
    ///
    /// # Errors
    /// Fails when the API server refuses the request or can't be reached.
    pub async fn list(&self) -> Result<Vec<StoredResult>, Error> {
        let mut found = self.labelled(LABEL, "true").await?;
        found.sort_by_cached_key(|result| std::cmp::Reverse(start(&result.summary)));
        Ok(found)
    }

    /// Finds a result by its identity.
    ///
    /// # Errors
    /// Fails when the API server refuses the request or can't be reached.
    pub async fn find(&self, id: &str) -> Result<Option<StoredResult>, Error> {
        for label in [COMMAND_ID, VALIDATE_ID] {
            let mut found = self.labelled(label, id).await?.into_iter();
            // The ID may have been written by somebody who knows the syntax of selectors.
            if let Some(found) = found.find(|result| result.id == id) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Lists the results in the namespace of this store. Whoever may write Secrets elsewhere must not be able to pretend to have some.
    async fn labelled(&self, label: &str, value: &str) -> Result<Vec<StoredResult>, Error> {
        let kind = self.cluster.kind("", "v1", "Secret").await?;
        let (namespace, selector) = (Some(self.namespace.as_str()), format!("{label}={value}"));
        let listed = self
            .cluster
            .list_selected(&kind, namespace, &selector, Detail::Metadata, MOST_RESULTS);
        Ok(listed.await?.iter().filter_map(stored).collect())
    }

    /// Lists the results of KluctlDeployments of any cluster; none without the right to list Secrets.
    ///
    /// # Errors
    /// Fails when the API server can't be reached.
    pub async fn of_deployments(&self) -> Result<Vec<StoredResult>, Error> {
        let mut found = match self.list().await {
            Err(Error::Cluster(error)) if error.is_forbidden() => Vec::new(),
            other => other?,
        };
        found.retain(|result| result.deployment().is_some());
        Ok(found)
    }

    /// Lets go of several results, and returns their number. A failure doesn't keep the others.
    ///
    /// # Errors
    /// The first failure.
    pub async fn delete_all(&self, results: &[StoredResult]) -> Result<usize, Error> {
        let deletions = results
            .iter()
            .map(|result| self.delete(result))
            .collect::<Vec<_>>();
        let ended: Vec<Result<(), Error>> =
            stream::iter(deletions).buffer_unordered(PARALLEL).collect().await;
        ended
            .into_iter()
            .try_fold(0, |count, ended| ended.map(|()| count + 1))
    }

    /// The whole result of an operation, with all of each object.
    ///
    /// # Errors
    /// Fails when the result is missing or corrupt, or the API server refuses the request.
    pub async fn read(&self, stored: &StoredResult) -> Result<Value, Error> {
        let mut result = self.read_compacted(stored).await?;
        let Some(root) = result.as_map_mut() else {
            return Ok(result);
        };
        if let Some(Value::Seq(objects)) = root.remove("compactedObjects") {
            let objects: Result<Vec<Value>, _> = objects.iter().map(contents::expanded).collect();
            let objects = objects.map_err(|error| stored.broken(&error.into()))?;
            root.insert("objects", objects);
        }
        Ok(result)
    }

    /// The whole result of an operation or a validation, as the command that made it prints it.
    ///
    /// # Errors
    /// Fails when the result is missing or corrupt, or the API server refuses the request.
    pub async fn read_compacted(&self, stored: &StoredResult) -> Result<Value, Error> {
        let broken = |reason: ReadError| stored.broken(&reason);
        let first = self
            .cluster
            .get(&stored.secret)
            .await?
            .ok_or_else(|| broken(ReadError::Gone))?;
        if stored.is_validation {
            return unpacked(&first, "result").map_err(broken);
        }
        let mut result = unpacked(&first, "reducedResult").map_err(broken)?;
        let mut packed = entry(&first, "compactedObjects").map_err(broken)?;
        for number in 1..stored.parts {
            let part = part_ref(&stored.secret, number);
            let part = self.cluster.get(&part).await?;
            let part = part.ok_or_else(|| broken(ReadError::PartGone(number)))?;
            packed.extend(entry(&part, "compactedObjects").map_err(broken)?);
        }
        let objects = pack::unpacked(&packed).map_err(|error| broken(error.into()))?;
        if let Some(root) = result.as_map_mut() {
            root.remove("objects");
            root.insert("compactedObjects", objects);
        }
        Ok(result)
    }

    /// Lets go of a result.
    ///
    /// # Errors
    /// Fails when the API server refuses the request or can't be reached.
    pub async fn delete(&self, stored: &StoredResult) -> Result<(), Error> {
        self.cluster
            .delete(&stored.secret, DeleteOptions::default())
            .await?;
        for number in 1..stored.parts {
            let part = part_ref(&stored.secret, number);
            self.cluster.delete(&part, DeleteOptions::default()).await?;
        }
        Ok(())
    }
}

fn start(summary: &Value) -> Option<Timestamp> {
    let start = summary
        .pointer(&["commandInfo", "startTime"])
        .or_else(|| summary.get("startTime"));
    start.and_then(Value::as_str)?.parse().ok()
}

fn stored(secret: &Value) -> Option<StoredResult> {
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

/// The Secrets that hold a result, the first one first.
fn secrets(namespace: &str, record: &Record<'_>) -> Vec<Value> {
    let name = secret_name(record);
    let mut data: Vec<(&'static str, &[u8])> = Vec::new();
    let mut rest: Vec<&[u8]> = Vec::new();
    let mut room = PART_BYTES;
    for (key, bytes) in &record.data {
        let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        room -= now.len();
        data.push((key, now));
        rest.extend(later.chunks(PART_BYTES));
    }
    let mut annotations = Map::from([
        (
            if record.is_validation {
                VALIDATE_SUMMARY
            } else {
                COMMAND_SUMMARY
            },
            Value::from(yaml::print::json_sorted_html(&record.summary)),
        ),
        (REPO_KEY, Value::from(record.origin.project.repo_key.as_str())),
        (SUB_DIR, Value::from(record.origin.project.sub_dir.as_str())),
    ]);
    if let Some(deployment) = &record.origin.deployment {
        annotations.insert(DEPLOYMENT_NAME, deployment.name.as_str());
        annotations.insert(DEPLOYMENT_NAMESPACE, deployment.namespace.as_str());
    }
    if !rest.is_empty() {
        annotations.insert(PARTS, (rest.len() + 1).to_string());
    }
    let id_label = if record.is_validation {
        VALIDATE_ID
    } else {
        COMMAND_ID
    };
    let labels = Map::from([(LABEL, Value::from("true")), (id_label, Value::from(record.id))]);
    let mut secrets = vec![secret(namespace, &name, labels, annotations, &data)];
    for (index, bytes) in rest.into_iter().enumerate() {
        let number = index + 1;
        let annotations = Map::from([(PART, Value::from(format!("{}/{number}", record.id)))]);
        let name = format!("{name}-{number}");
        secrets.push(secret(
            namespace,
            &name,
            Map::new(),
            annotations,
            &[("compactedObjects", bytes)],
        ));
    }
    secrets
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

/// `cr-<repository>-<id>`, at most 60 characters, so that a number fits behind it.
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

fn part_ref(first: &ObjectRef, number: usize) -> ObjectRef {
    ObjectRef {
        name: format!("{}-{number}", first.name),
        ..first.clone()
    }
}

/// Error of reading a stored result.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("it is gone")]
    Gone,
    #[error("part {0} is gone")]
    PartGone(usize),
    #[error("{0} is missing")]
    NoEntry(&'static str),
    #[error("{0} is not valid base64")]
    Base64(&'static str),
    #[error(transparent)]
    Unpack(#[from] pack::UnpackError),
    #[error(transparent)]
    Expand(#[from] contents::ExpandError),
}

/// Decompresses an entry of a Secret.
fn unpacked(secret: &Value, key: &'static str) -> Result<Value, ReadError> {
    Ok(pack::unpacked(&entry(secret, key)?)?)
}

/// Decodes an entry of a Secret.
fn entry(secret: &Value, key: &'static str) -> Result<Vec<u8>, ReadError> {
    let text = secret.pointer(&["data", key]).and_then(Value::as_str);
    let text = text.ok_or(ReadError::NoEntry(key))?;
    STANDARD.decode(text).map_err(|_| ReadError::Base64(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(size: usize) -> (Origin, Vec<u8>) {
        let origin = Origin {
            id: "0b8f2f6e-1111-2222-3333-444455556666".to_owned(),
            project: super::super::ProjectKey {
                repo_key: "git://example.com/Team/My_Project.git".to_owned(),
                sub_dir: "sub".to_owned(),
            },
            ..Origin::default()
        };
        (origin, vec![7; size])
    }

    #[test]
    fn a_small_result_is_one_secret_and_a_large_one_several() {
        for (size, parts) in [(10, 1), (PART_BYTES, 2), (3 * PART_BYTES, 4)] {
            let (origin, bytes) = record(size);
            let record = Record {
                id: &origin.id,
                origin: &origin,
                is_validation: false,
                summary: Value::Null,
                data: vec![("reducedResult", vec![1; 100]), ("compactedObjects", bytes)],
            };
            let secrets = secrets("kluctl-results", &record);
            assert_eq!(secrets.len(), parts, "{size}");
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
            let all: usize = secrets
                .iter()
                .map(|secret| entry(secret, "compactedObjects").unwrap().len())
                .sum();
            assert_eq!(all, size);
        }
    }
}
