//! Results that are stored in the cluster: one Secret each, which kluctl and its web UI read.
//!
//! A Secret holds at most one MiB. A larger result is stored in parts: the first Secret holds the reduced result, the first
//! piece of the compressed objects and the number of parts; the others, of the same id, hold the rest. The original reads the
//! reduced result only, which is all that its lists need.
//!
//! The summary is an annotation, and has only as many errors and warnings as fit; the reduced result has all of them.
//!
//! The label `weir.io/result-group` has a hash of the owner, the project, the target and the type of result, so that a write lists only
//! the results among which it deletes old ones. The label `weir.io/result-deployment` has a hash of the KluctlDeployment, so that its
//! deletion lists its results only. Results of the original don't have them until [`ResultStore::adopt`] adds them.

mod pack;
mod read;
mod retention;
mod secrets;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use cluster::{ApplyOptions, Cluster, DeleteOptions, Deleted, Detail, Patch};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use limits::blocking;
use objects::ObjectRef;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use yaml::{Map, Value};

use super::{CommandResult, KluctlDeployment, Origin, ResultObject, bounded, contents};
use crate::{Error, ValidateResult};
use read::ReadError;
use retention::KnownResults;
use secrets::{deployment, group, part_ref, secrets, stored};

const LABEL: &str = "kluctl.io/result";
const COMMAND_ID: &str = "kluctl.io/command-result-id";
const VALIDATE_ID: &str = "kluctl.io/validate-result-id";
const COMMAND_SUMMARY: &str = "kluctl.io/command-result-summary";
const VALIDATE_SUMMARY: &str = "kluctl.io/validate-result-summary";
const REPO_KEY: &str = "kluctl.io/result-project-repo-key";
const SUB_DIR: &str = "kluctl.io/result-project-subdir";
const DEPLOYMENT_NAME: &str = "kluctl.io/result-deployment-name";
const DEPLOYMENT_NAMESPACE: &str = "kluctl.io/result-deployment-namespace";
const AS_RESULTS: ApplyOptions<'_> = ApplyOptions {
    dry_run: false,
    force: false,
    manager: "kluctl-results",
};
/// Annotation on the first Secret of a result: the number of its Secrets.
const PARTS: &str = "weir.io/result-parts";
const PART: &str = "weir.io/result-part";
/// Label on all Secrets of a result: the hash of its owner, its project, its target and its type.
const GROUP: &str = "weir.io/result-group";
/// Label on the first Secret of a result: the hash of its KluctlDeployment, or `none`.
const DEPLOYMENT: &str = "weir.io/result-deployment";
/// Maximum size of the part of a result in one Secret, in bytes; leaves room for the other fields and for base64.
const PART_BYTES: usize = 900 << 10;
/// Maximum size of a summary in bytes. All annotations of an object together have at most 256 KiB.
const SUMMARY_BYTES: usize = 128 << 10;
const UNGROUPED: &str = "kluctl.io/result=true,!weir.io/result-group";
/// Selects results that were stored without one of the labels: all have the second one.
const UNLABELLED: &str = "kluctl.io/result=true,!weir.io/result-deployment";
const MOST_RESULTS: usize = 100_000;
const MOST_PARTS: usize = 64;

const PARALLEL: usize = 8;

/// Number of results to keep per owner (a KluctlDeployment, or command lines), project and target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Number of results of operations; default 5.
    pub commands: usize,
    /// Number of results of validations; default 2.
    pub validations: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            commands: 5,
            validations: 2,
        }
    }
}

#[derive(Debug, Clone)]
pub struct ResultStore {
    cluster: Cluster,
    namespace: String,
    retention: Retention,
    /// True after results without labels were adopted: then nothing looks for any. Clones share it.
    adopted: Arc<AtomicBool>,
    known: Arc<KnownResults>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredResult {
    pub id: String,
    pub is_validation: bool,
    pub summary: Value,
    /// The Secret that holds it, or its first part.
    pub secret: ObjectRef,
    pub parts: usize,
}

impl StoredResult {
    /// Returns the KluctlDeployment of the result; `None` for a command line. The ID of its cluster is empty if its controller
    /// could not read that.
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
            cluster_id: field("clusterId").unwrap_or_default().to_owned(),
        })
    }

    fn broken(&self, reason: &ReadError) -> Error {
        Error::StoredResult {
            id: self.id.clone(),
            reason: reason.to_string(),
        }
    }
}

struct Record<'a> {
    id: &'a str,
    origin: &'a Origin,
    is_validation: bool,
    summary: Value,
    /// The entries of the Secret, compressed.
    data: Vec<(&'static str, Vec<u8>)>,
}

/// The objects of a result, of which one or two exist as copies at a time.
type Objects<'a> = &'a mut dyn Iterator<Item = ResultObject>;

/// Formats and compresses objects on a thread, since that takes seconds for a large result.
async fn packed(
    objects: &[ResultObject],
    pack: impl FnOnce(Objects<'_>) -> Result<Vec<u8>, Error> + Send + 'static,
) -> Result<Vec<u8>, Error> {
    let (send, mut receive) = mpsc::channel(1);
    let copy = async move {
        for object in objects {
            // The thread has ended with an error.
            if send.send(object.clone()).await.is_err() {
                return;
            }
        }
    };
    let never = CancellationToken::new();
    let job = blocking::run("", Duration::MAX, &never, move |_| {
        pack(&mut std::iter::from_fn(|| receive.blocking_recv()))
    });
    let (packed, ()) = tokio::join!(job, copy);
    packed.map_err(|failed| Error::StoredResult {
        id: String::new(),
        reason: failed.to_string(),
    })?
}

impl ResultStore {
    #[must_use]
    pub fn new(cluster: Cluster, namespace: &str, retention: Retention) -> Self {
        let namespace = namespace.to_owned();
        Self {
            cluster,
            namespace,
            retention,
            adopted: Arc::default(),
            known: Arc::default(),
        }
    }

    #[must_use]
    pub fn over(&self, cluster: Cluster) -> Self {
        Self {
            cluster,
            ..self.clone()
        }
    }

    pub async fn write_command(&self, result: &CommandResult) -> Result<(), Error> {
        let frame = result.frame(None);
        let reduced = move |objects: Objects<'_>| {
            pack::with_list(
                &frame,
                "objects",
                objects.map(|object| contents::reduced(&object)),
            )
        };
        let compact = |objects: Objects<'_>| pack::list(objects.map(|object| contents::compact(&object)));
        let record = Record {
            id: &result.origin.id,
            origin: &result.origin,
            is_validation: false,
            summary: bounded(result.summary(), SUMMARY_BYTES),
            data: vec![
                ("reducedResult", packed(&result.objects, reduced).await?),
                ("compactedObjects", packed(&result.objects, compact).await?),
            ],
        };
        self.write(record).await
    }

    pub async fn write_validation(&self, result: &ValidateResult) -> Result<(), Error> {
        let value = result.to_value();
        let record = Record {
            id: &result.origin.id,
            origin: &result.origin,
            is_validation: true,
            summary: result.summary(),
            data: vec![("result", packed(&[], move |_| pack::value(&value)).await?)],
        };
        self.write(record).await
    }

    async fn write(&self, record: Record<'_>) -> Result<(), Error> {
        let before = self.before(&record).await;
        let secrets = match self.retained(&record) {
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
        let first = secrets.first().and_then(|first| ObjectRef::of(first).ok());
        let first = first.map(|first| (first, secrets.len()));
        match before {
            Err(Error::Cluster(error)) if error.is_forbidden() => Ok(()),
            Err(error) => Err(error),
            Ok(before) => self.clean_up(&record, before, first).await,
        }
    }

    async fn write_secret(&self, secret: &Value) -> Result<(), Error> {
        let options = ApplyOptions {
            force: true,
            ..AS_RESULTS
        };
        match self.cluster.apply(secret, options).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => {
                match self.make_namespace().await {
                    // A writer of results need not be allowed to create namespaces; that it is missing says more.
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

    fn retained(&self, record: &Record<'_>) -> usize {
        if record.is_validation {
            self.retention.validations
        } else {
            self.retention.commands
        }
    }

    pub async fn list(&self) -> Result<Vec<StoredResult>, Error> {
        let listed = Instant::now();
        let mut found = self.labelled(LABEL, "true").await?;
        self.known.learn(listed, &found);
        newest_first(&mut found);
        Ok(found)
    }

    /// Adds the labels to results that were stored without them, such as the original's. From then on, nothing lists results without
    /// labels through this store and its clones. Returns their number. Those that are deleted meanwhile are left out.
    pub async fn adopt(&self) -> Result<usize, Error> {
        let found = self.selected(UNLABELLED).await?;
        let results = found.iter().filter_map(stored).collect::<Vec<_>>();
        let labelled = results.iter().map(|result| async move {
            let labels = Map::from([
                (GROUP, group(result.is_validation, &result.summary)),
                (DEPLOYMENT, deployment(result.deployment().as_ref())),
            ]);
            let patch = Patch::Merge(Value::Map(Map::from([(
                "metadata",
                Map::from([("labels", labels)]),
            )])));
            match self
                .cluster
                .patch(&result.secret, &patch, AS_RESULTS.manager)
                .await
            {
                Ok(_) => Ok(1),
                Err(error) if error.is_not_found() => Ok(0),
                Err(error) => Err(Error::from(error)),
            }
        });
        let labelled = stream::iter(labelled.collect::<Vec<_>>()).buffer_unordered(PARALLEL);
        let count = labelled
            .try_fold(0, |sum, one| async move { Ok(sum + one) })
            .await?;
        self.adopted.store(true, Ordering::Relaxed);
        Ok(count)
    }

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

    async fn labelled(&self, label: &str, value: &str) -> Result<Vec<StoredResult>, Error> {
        let listed = self.selected(&format!("{label}={value}")).await?;
        Ok(listed.iter().filter_map(stored).collect())
    }

    /// Lists the metadata of Secrets in the namespace of this store. A writer of Secrets in other namespaces must not be able to
    /// pretend to have results.
    async fn selected(&self, selector: &str) -> Result<Vec<Value>, Error> {
        let kind = self.cluster.kind("", "v1", "Secret").await?;
        let namespace = Some(self.namespace.as_str());
        let listed = self
            .cluster
            .list_selected(&kind, namespace, selector, Detail::Metadata, MOST_RESULTS);
        Ok(listed.await?)
    }

    /// Lists the results of KluctlDeployments of any cluster; none without the right to list Secrets.
    pub async fn of_deployments(&self) -> Result<Vec<StoredResult>, Error> {
        let mut found = match self.list().await {
            Err(Error::Cluster(error)) if error.is_forbidden() => Vec::new(),
            other => other?,
        };
        found.retain(|result| result.deployment().is_some());
        Ok(found)
    }

    /// Lists the results of a KluctlDeployment; none without the right to list Secrets. All results are listed as long as those without labels
    /// are not adopted.
    pub async fn of_deployment(&self, wanted: &KluctlDeployment) -> Result<Vec<StoredResult>, Error> {
        if !self.adopted.load(Ordering::Relaxed) {
            let mut found = self.of_deployments().await?;
            found.retain(|result| result.deployment().as_ref() == Some(wanted));
            return Ok(found);
        }
        let mut found = match self.labelled(DEPLOYMENT, &deployment(Some(wanted))).await {
            Err(Error::Cluster(error)) if error.is_forbidden() => Vec::new(),
            other => other?,
        };
        // Every writer of Secrets may write labels.
        found.retain(|result| result.deployment().as_ref() == Some(wanted));
        Ok(found)
    }

    /// Deletes several results, and returns their number. A failure doesn't keep the others.
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

    fn secret(&self, name: &str) -> ObjectRef {
        ObjectRef::core("Secret", &self.namespace, name)
    }

    pub async fn delete(&self, stored: &StoredResult) -> Result<(), Error> {
        self.delete_secrets(&stored.secret, stored.parts).await.map(drop)
    }

    async fn delete_secrets(&self, first: &ObjectRef, parts: usize) -> Result<bool, Error> {
        let deleted = self.cluster.delete(first, DeleteOptions::default()).await?;
        for number in 1..parts {
            let part = part_ref(first, number);
            self.cluster.delete(&part, DeleteOptions::default()).await?;
        }
        Ok(deleted != Deleted::AlreadyGone)
    }
}

fn newest_first(results: &mut [StoredResult]) {
    results.sort_by_cached_key(|result| std::cmp::Reverse(start(&result.summary)));
}

fn start(summary: &Value) -> Option<Timestamp> {
    let start = summary
        .pointer(&["commandInfo", "startTime"])
        .or_else(|| summary.get("startTime"));
    start.and_then(Value::as_str)?.parse().ok()
}
