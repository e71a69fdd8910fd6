//! Retention of results: a write deletes the oldest ones of its owner, project, target and type.
//!
//! A process that writes many results knows the stored ones from a list of all results, or else from its first list of a group, and
//! its own writes: it lists a group again only after a day, or when a known result is gone. Command lines and other processes that
//! write results of the same group clean up by themselves, so that at most twice as many are stored until then.

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use cluster::DeleteOptions;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use objects::{ObjectRef, meta};
use parking_lot::Mutex;
use yaml::Value;

use super::PARALLEL;
use super::{
    COMMAND_ID, GROUP, PART, Record, ResultStore, StoredResult, UNGROUPED, VALIDATE_ID,
    secrets::{group, group_keys, stored},
    start,
};
use crate::Error;

/// Age of a part without its first Secret from which on no write of it can still be under way.
const LEFT_OVER: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);
const LISTED_FOR: Duration = Duration::from_secs(24 * 3600);
const GROUPS: usize = 20_000;

#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownResult {
    id: Box<str>,
    /// Name of its first Secret, in the namespace of the store.
    secret: Box<str>,
    parts: usize,
    start: Option<Timestamp>,
}

impl From<&StoredResult> for KnownResult {
    fn from(result: &StoredResult) -> Self {
        Self {
            start: start(&result.summary),
            id: result.id.as_str().into(),
            secret: result.secret.name.as_str().into(),
            parts: result.parts,
        }
    }
}

#[derive(Debug)]
struct KnownGroup {
    listed: Instant,
    results: Vec<KnownResult>,
}

impl KnownGroup {
    fn is_recent(&self) -> bool {
        self.listed.elapsed() < LISTED_FOR
    }
}

#[derive(Debug, Default)]
pub(super) struct KnownResults(Mutex<Groups>);

#[derive(Debug, Default)]
struct Groups {
    /// The time of a list of all results: groups that are not here have none.
    all_listed: Option<Instant>,
    /// The results by their groups; `None` if the group has to be listed.
    by_group: HashMap<String, Option<KnownGroup>>,
}

impl KnownResults {
    /// Takes the known results of a group; `None` if it has to be listed. Until they are put back, nobody else knows them, and a write
    /// that fails forgets them.
    fn take(&self, group: &str) -> Option<KnownGroup> {
        let mut groups = self.0.lock();
        let known = match groups.by_group.insert(group.to_owned(), None) {
            Some(known) => known,
            None => groups.all_listed.map(|listed| KnownGroup {
                listed,
                results: Vec::new(),
            }),
        };
        known.filter(KnownGroup::is_recent)
    }

    fn put(&self, group: String, known: KnownGroup) {
        let mut groups = self.0.lock();
        if groups.by_group.len() >= GROUPS {
            *groups = Groups::default();
        }
        groups.by_group.insert(group, Some(known));
    }

    /// Notes all results as they were `listed`. Groups that are known from their own list or writes stay.
    pub(super) fn learn(&self, listed: Instant, results: &[StoredResult]) {
        let mut by_group: HashMap<String, Option<KnownGroup>> = HashMap::new();
        for result in results {
            let group = by_group.entry(group(result.is_validation, &result.summary));
            let known = group.or_insert(Some(KnownGroup {
                listed,
                results: Vec::new(),
            }));
            known
                .iter_mut()
                .for_each(|known| known.results.push(result.into()));
        }
        let mut groups = self.0.lock();
        by_group.extend(groups.by_group.drain());
        if by_group.len() < GROUPS {
            *groups = Groups {
                all_listed: Some(listed),
                by_group,
            };
        }
    }
}

pub(super) struct Before {
    known: KnownGroup,
    /// Parts that an interrupted write or deletion left.
    left: Vec<ObjectRef>,
}

impl ResultStore {
    /// Returns the stored results of the same type, owner, project and target. If they are not known, the Secrets of the group are listed,
    /// together with the other type's, which is mostly written next, and results that have no group yet.
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
                results: same.map(|result| KnownResult::from(&result)).collect(),
            }
        };
        self.known.put(other, group_of(!record.is_validation));
        Ok(Before {
            known: group_of(record.is_validation),
            left: left_over(&found, record.id, Timestamp::now()),
        })
    }

    /// Deletes older results of the same type, owner, project and target, and parts that an interrupted write or deletion left. `first` is
    /// the first Secret of the result, if it was stored.
    pub(super) async fn clean_up(
        &self,
        record: &Record<'_>,
        before: Before,
        first: Option<(ObjectRef, usize)>,
    ) -> Result<(), Error> {
        let Before { mut known, left } = before;
        known.results.retain(|result| *result.id != *record.id);
        known
            .results
            .sort_by_cached_key(|result| std::cmp::Reverse(result.start));
        let others = self.retained(record).saturating_sub(1).min(known.results.len());
        let old = known.results.split_off(others);
        let deletions = old.iter().map(|old| async move {
            let secret = self.secret(&old.secret);
            self.delete_secrets(&secret, old.parts).await
        });
        let deletions = deletions.collect::<Vec<_>>();
        let were_there = stream::iter(deletions)
            .buffer_unordered(PARALLEL)
            .try_fold(true, |all, one| async move { Ok(all && one) })
            .await?;
        for part in left {
            self.cluster.delete(&part, DeleteOptions::default()).await?;
        }
        known.results.extend(first.map(|(secret, parts)| KnownResult {
            id: record.id.into(),
            secret: secret.name.into(),
            parts,
            start: start(&record.summary),
        }));
        // Another process cleans up, too: the stored results are no longer known.
        if were_there {
            self.known
                .put(group(record.is_validation, &record.summary), known);
        }
        Ok(())
    }
}

fn is_same(result: &StoredResult, is_validation: bool, summary: &Value) -> bool {
    result.is_validation == is_validation && group_keys(&result.summary) == group_keys(summary)
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
    fn results_of_other_owners_are_of_another_group() {
        let summary = |owner: Value| {
            let json = json!({"projectKey": {"repoKey": "r"}, "targetKey": {"targetName": "t"}});
            let mut summary = Value::from_json(json);
            summary.as_map_mut().unwrap().insert("kluctlDeployment", owner);
            summary
        };
        let of = |namespace: &str, id: &str| {
            summary(Value::from_json(
                json!({"name": "shop", "namespace": namespace, "clusterId": id}),
            ))
        };
        let victim = StoredResult {
            id: "1".to_owned(),
            is_validation: false,
            summary: of("victim", "c"),
            secret: ObjectRef {
                group: String::new(),
                version: "v1".to_owned(),
                kind: "Secret".to_owned(),
                namespace: None,
                name: "1".to_owned(),
            },
            parts: 1,
        };
        let group_of_victim = group(false, &victim.summary);
        for (other, same) in [
            (of("victim", ""), true),
            (of("attacker", "c"), false),
            (summary(Value::Null), false),
        ] {
            assert_eq!(is_same(&victim, false, &other), same, "{other:?}");
            assert_eq!(group(false, &other) == group_of_victim, same, "{other:?}");
        }
    }

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

    fn known(listed: Instant, ids: &[&str]) -> KnownGroup {
        let results = ids.iter().map(|id| KnownResult {
            id: (*id).into(),
            secret: (*id).into(),
            parts: 1,
            start: None,
        });
        KnownGroup {
            listed,
            results: results.collect(),
        }
    }

    fn ids(known: Option<KnownGroup>) -> Option<Vec<String>> {
        let results = known?.results.into_iter();
        Some(results.map(|result| result.id.into()).collect())
    }

    #[test]
    fn group_is_known_to_one_write_at_a_time_and_for_a_day() {
        let results = KnownResults::default();
        assert!(results.take("a").is_none());
        results.put("a".to_owned(), known(Instant::now(), &[]));
        assert!(results.take("a").is_some() && results.take("a").is_none());
        if let Some(yesterday) = Instant::now().checked_sub(LISTED_FOR) {
            results.put("a".to_owned(), known(yesterday, &[]));
            assert!(results.take("a").is_none());
        }
    }

    #[test]
    fn list_of_all_results_tells_of_all_groups_but_those_that_are_written() {
        let stored = |id: &str, is_validation, project: &str| StoredResult {
            id: id.to_owned(),
            is_validation,
            summary: Value::from_json(json!({"projectKey": {"repoKey": project}, "targetKey": {}})),
            secret: ObjectRef {
                group: String::new(),
                version: "v1".to_owned(),
                kind: "Secret".to_owned(),
                namespace: Some("n".to_owned()),
                name: id.to_owned(),
            },
            parts: 1,
        };
        let all = [
            stored("1", false, "a"),
            stored("2", false, "a"),
            stored("3", true, "a"),
            stored("4", false, "b"),
            stored("5", false, "c"),
        ];
        let of = |stored: &StoredResult| group(stored.is_validation, &stored.summary);
        let results = KnownResults::default();
        // One group was written before, another one is being written.
        results.put(of(&all[3]), known(Instant::now(), &["newer"]));
        assert!(results.take(&of(&all[4])).is_none());
        results.learn(Instant::now(), &all);
        let taken = |stored| ids(results.take(&of(stored)));
        assert_eq!(taken(&all[0]), Some(vec!["1".to_owned(), "2".to_owned()]));
        assert_eq!(taken(&all[2]), Some(vec!["3".to_owned()]));
        assert_eq!(taken(&all[3]), Some(vec!["newer".to_owned()]));
        assert_eq!(taken(&all[4]), None);
        // There are no results of other groups, until a write of one fails.
        let other = stored("6", false, "d");
        assert_eq!(taken(&other), Some(Vec::new()));
        assert_eq!(taken(&other), None);
    }
}
