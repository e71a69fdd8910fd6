//! The choice of the results that are kept: a write lets go of the oldest ones of its project, target and type.
//!
//! A process that writes many results knows from its first list, and its own writes, what there is: it lists a group again only after a day,
//! or when a result that it knows is gone. Command lines and other processes that write results of the same group clean up by
//! themselves, so that at most twice as many are kept until then.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use cluster::DeleteOptions;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use objects::{ObjectRef, meta};
use yaml::Value;

use super::{
    COMMAND_ID, GROUP, PART, Record, ResultStore, StoredResult, UNGROUPED, VALIDATE_ID,
    secrets::{group, stored},
    start,
};
use crate::{Error, PARALLEL};

/// Age of a part without its first Secret from which on no write of it can still be under way.
const LEFT_OVER: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);
/// Time after which a group is listed again.
const LISTED_FOR: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of groups that are remembered.
const GROUPS: usize = 20_000;

/// A result that may be let go of.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownResult {
    id: String,
    secret: ObjectRef,
    parts: usize,
    start: Option<Timestamp>,
}

impl From<StoredResult> for KnownResult {
    fn from(result: StoredResult) -> Self {
        Self {
            start: start(&result.summary),
            id: result.id,
            secret: result.secret,
            parts: result.parts,
        }
    }
}

/// The results of one group.
#[derive(Debug)]
struct KnownGroup {
    listed: Instant,
    results: Vec<KnownResult>,
}

/// The results that a store listed or wrote, by their groups.
#[derive(Debug, Default)]
pub(super) struct KnownResults(Mutex<HashMap<String, KnownGroup>>);

impl KnownResults {
    /// Takes what is known of a group; `None` if it has to be listed. Until it is put back, nobody else knows it, and a write that fails
    /// forgets it.
    fn take(&self, group: &str) -> Option<KnownGroup> {
        let known = self.lock().remove(group)?;
        (known.listed.elapsed() < LISTED_FOR).then_some(known)
    }

    fn put(&self, group: String, known: KnownGroup) {
        let mut groups = self.lock();
        if groups.len() >= GROUPS {
            groups.clear();
        }
        groups.insert(group, known);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, KnownGroup>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The results that were stored before another one.
pub(super) struct Before {
    known: KnownGroup,
    /// Parts that an interrupted write or deletion left.
    left: Vec<ObjectRef>,
}

impl ResultStore {
    /// Returns what is stored of the same type, project and target. If that is not known, the Secrets of the group are listed, together
    /// with those of the other type, which is mostly written next, and results that have no group yet.
    pub(super) async fn before(&self, record: &Record<'_>) -> Result<Before, Error> {
        let own = group(record.is_validation, &record.summary);
        if let Some(known) = self.known.take(&own) {
            let left = Vec::new();
            return Ok(Before { known, left });
        }
        let listed = Instant::now();
        let other = group(!record.is_validation, &record.summary);
        let both = format!("{GROUP} in ({own},{other})");
        let found = if self.adopted.load(Ordering::Relaxed) {
            self.selected(&both).await?
        } else {
            let (mut grouped, others) = futures::try_join!(self.selected(&both), self.selected(UNGROUPED))?;
            grouped.extend(others);
            grouped
        };
        let group_of = |is_validation: bool| {
            let results = found.iter().filter_map(stored);
            let same = results.filter(|result| is_same(result, is_validation, &record.summary));
            KnownGroup {
                listed,
                results: same.map(KnownResult::from).collect(),
            }
        };
        self.known.put(other, group_of(!record.is_validation));
        Ok(Before {
            known: group_of(record.is_validation),
            left: left_over(&found, record.id, Timestamp::now()),
        })
    }

    /// Lets go of older results of the same type, project and target, and of parts that an interrupted write or deletion left. `first` is
    /// the first Secret of the result, if it was stored.
    pub(super) async fn clean_up(
        &self,
        record: &Record<'_>,
        before: Before,
        first: Option<(ObjectRef, usize)>,
    ) -> Result<(), Error> {
        let Before { mut known, left } = before;
        known.results.retain(|result| result.id != record.id);
        known
            .results
            .sort_by_cached_key(|result| std::cmp::Reverse(result.start));
        let others = self.kept(record).saturating_sub(1).min(known.results.len());
        let old = known.results.split_off(others);
        let deletions = old.iter().map(|old| self.delete_secrets(&old.secret, old.parts));
        let deletions = deletions.collect::<Vec<_>>();
        let were_there = stream::iter(deletions)
            .buffer_unordered(PARALLEL)
            .try_fold(true, |all, one| async move { Ok(all && one) })
            .await?;
        for part in left {
            self.cluster.delete(&part, DeleteOptions::default()).await?;
        }
        known.results.extend(first.map(|(secret, parts)| KnownResult {
            id: record.id.to_owned(),
            secret,
            parts,
            start: start(&record.summary),
        }));
        // Somebody else cleans up, too: what is there is known no more.
        if were_there {
            self.known
                .put(group(record.is_validation, &record.summary), known);
        }
        Ok(())
    }
}

/// Returns true for a result of a type, and of the project and target of a summary.
fn is_same(result: &StoredResult, is_validation: bool, summary: &Value) -> bool {
    result.is_validation == is_validation
        && ["projectKey", "targetKey"]
            .iter()
            .all(|key| result.summary.get(key) == summary.get(key))
}

/// Returns the parts whose first Secret is missing, although they are old. Parts of the result `id` have just been written.
fn left_over(secrets: &[Value], id: &str, now: Timestamp) -> Vec<ObjectRef> {
    let first = |secret| meta::label(secret, COMMAND_ID).or_else(|| meta::label(secret, VALIDATE_ID));
    let whole: HashSet<&str> = secrets.iter().filter_map(first).chain([id]).collect();
    let is_left = |secret: &&Value| {
        let owner = meta::annotation(secret, PART).and_then(|part| Some(part.rsplit_once('/')?.0));
        let made = meta::text(secret, "creationTimestamp").and_then(|time| time.parse::<Timestamp>().ok());
        owner.is_some_and(|owner| !whole.contains(owner))
            && made.is_some_and(|made| now.duration_since(made) > LEFT_OVER)
    };
    secrets
        .iter()
        .filter(is_left)
        .filter_map(|secret| ObjectRef::of(secret).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_are_left_over_if_they_are_old_and_their_result_is_gone() {
        let part = |name: &str, of: &str, made: &str| {
            Value::from_json(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
                "name": name, "namespace": "n", "annotations": {PART: format!("{of}/1")}, "creationTimestamp": made}}))
        };
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-01T02:30:00Z");
        let secrets = [
            part("gone", "gone", old),
            part("under-way", "other", new),
            part("own", "own", old),
            part("whole", "whole", old),
            Value::from_json(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
                "name": "first", "namespace": "n", "labels": {COMMAND_ID: "whole"}}})),
        ];
        let now: Timestamp = "2026-01-01T03:00:00Z".parse().unwrap();
        let left = left_over(&secrets, "own", now);
        let names: Vec<_> = left.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["gone"]);
    }

    #[test]
    fn group_is_known_to_one_write_at_a_time_and_for_a_day() {
        let known = KnownResults::default();
        let group = |listed| KnownGroup {
            listed,
            results: Vec::new(),
        };
        assert!(known.take("a").is_none());
        known.put("a".to_owned(), group(Instant::now()));
        assert!(known.take("a").is_some() && known.take("a").is_none());
        if let Some(yesterday) = Instant::now().checked_sub(LISTED_FOR) {
            known.put("a".to_owned(), group(yesterday));
            assert!(known.take("a").is_none());
        }
    }
}
