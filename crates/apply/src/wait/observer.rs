//! The observation of a set of objects by watches, or by reads where there is no watch.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use cluster::{Cluster, Detail, Error, News, ObjectWatch};
use futures::{
    StreamExt as _,
    stream::{self, BoxStream, SelectAll},
};
use jiff::Timestamp;
use objects::{
    ObjectRef,
    kstatus::{self, Health, Status},
};
use tokio::time::{self, Instant};
use yaml::Value;

use super::{
    Checked, WaitEnd, WaitTarget,
    goal::{Goal, Verdict},
};
use crate::{PARALLEL, concurrent};

/// Pause between two reads of objects that are not watched.
const POLL: Duration = Duration::from_secs(2);
/// Longest pause between two reads of objects of which none was found.
const LAST_POLL: Duration = Duration::from_secs(30);
/// Pause between two checks of things that are not watched: pods of workloads, and times.
const TICK: Duration = Duration::from_secs(5);
/// Time for a watch to start before the objects are read without it.
const START: Duration = Duration::from_secs(2);
/// Maximum number of pods of a workload that are read.
const PODS: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Reached,
    Failed,
}

/// The position of a target, and its object as it was read; `None` if there is none.
type Read = (usize, Option<Arc<Value>>);

struct Target {
    reference: ObjectRef,
    /// The state that was read last.
    object: Option<Arc<Value>>,
    /// The last status; absent as soon as the goal is reached.
    open: Option<Health>,
}

/// The objects of a kind in a namespace.
struct Group {
    targets: Vec<usize>,
    watch: Option<Arc<ObjectWatch>>,
    /// The time of the next read, if changes are not delivered.
    poll: Option<Instant>,
    period: Duration,
}

/// Returns the pause before the next read of objects that are not watched. It grows while none is found. Pure.
fn next_period(period: Duration, is_any_found: bool) -> Duration {
    match is_any_found {
        true => POLL,
        false => (period * 2).min(LAST_POLL),
    }
}

pub(super) struct Observer<'a> {
    cluster: &'a Cluster,
    goal: Goal<'a>,
    targets: Vec<Target>,
    groups: Vec<Group>,
    /// True if nothing can be judged any more.
    is_exhausted: bool,
}

impl<'a> Observer<'a> {
    pub(super) fn new(cluster: &'a Cluster, goal: Goal<'a>, targets: Vec<WaitTarget>) -> Self {
        let target = |target: WaitTarget| Target {
            reference: target.reference,
            object: target.known,
            open: Some(Health::new(Status::Unknown, "")),
        };
        Self {
            cluster,
            goal,
            targets: targets.into_iter().map(target).collect(),
            groups: Vec::new(),
            is_exhausted: false,
        }
    }

    pub(super) fn has_custom_checks(&self) -> bool {
        self.goal.custom().is_some()
    }

    pub(super) fn result(self, end: WaitEnd) -> super::SetWaited {
        let open = self.targets.into_iter();
        super::SetWaited {
            end,
            open: open
                .filter_map(|target| Some((target.reference, target.open?)))
                .collect(),
        }
    }

    /// Judges the objects whose state is known, without a request.
    pub(super) async fn judge_known(&mut self) -> Option<Ended> {
        let targets = self.targets.iter().enumerate();
        let known = targets.filter_map(|(at, target)| Some((at, Some(target.object.clone()?))));
        self.judge_all(known.collect()).await;
        self.ended()
    }

    /// Observes until the goal is reached, or an object has failed.
    pub(super) async fn run(&mut self) -> Ended {
        if self.has_custom_checks()
            && let Some(ended) = self.judge_known().await
        {
            return ended;
        }
        // Objects are often ready, or gone, before there is a watch.
        let unknown = self.targets.iter().enumerate();
        let unknown = unknown.filter(|(_, target)| target.object.is_none());
        self.read(unknown.map(|(at, _)| at).collect()).await;
        if let Some(ended) = self.ended() {
            return ended;
        }
        let mut news = self.subscribe().await;
        let mut tick = Instant::now() + TICK;
        loop {
            if let Some(ended) = self.ended() {
                return ended;
            }
            let polls = self.groups.iter().filter_map(|group| group.poll);
            let next = polls.chain([tick]).min().unwrap_or(tick);
            tokio::select! {
                Some((group, news)) = news.next() => self.take(group, news).await,
                () = time::sleep_until(next) => {
                    self.poll().await;
                    if Instant::now() >= tick {
                        self.check_times_and_pods().await;
                        tick = Instant::now() + TICK;
                    }
                }
            }
        }
    }

    fn ended(&self) -> Option<Ended> {
        if self.is_exhausted {
            return Some(Ended::Failed);
        }
        let open = || self.targets.iter().filter_map(|target| target.open.as_ref());
        if open().next().is_none() {
            return Some(Ended::Reached);
        }
        open()
            .any(|health| self.goal.ends_with(health))
            .then_some(Ended::Failed)
    }

    /// Subscribes to the changes of all objects that are not ready.
    async fn subscribe(&mut self) -> SelectAll<BoxStream<'static, (usize, News)>> {
        let mut groups: BTreeMap<(String, String, String, Option<String>), Vec<usize>> = BTreeMap::new();
        for (at, target) in self
            .targets
            .iter()
            .enumerate()
            .filter(|(_, target)| target.open.is_some())
        {
            let ObjectRef {
                group,
                version,
                kind,
                namespace,
                ..
            } = &target.reference;
            let key = (group.clone(), version.clone(), kind.clone(), namespace.clone());
            groups.entry(key).or_default().push(at);
        }
        let mut all = SelectAll::new();
        for ((group, version, kind, namespace), targets) in groups {
            let names = targets
                .iter()
                .filter_map(|at| Some(self.targets.get(*at)?.reference.name.clone()));
            // A kind that is not served yet is asked for from time to time.
            let watch = match self.cluster.kind(&group, &version, &kind).await {
                Ok(kind) => {
                    let namespace = namespace.as_deref().unwrap_or("default");
                    let watch = self.cluster.watch_objects(&kind, Some(namespace), names);
                    watch.map(Arc::new)
                }
                Err(_) => None,
            };
            let at = self.groups.len();
            if let Some(watch) = &watch {
                let news = stream::unfold(Arc::clone(watch), move |watch| async move {
                    let news = watch.next().await;
                    Some(((at, news), watch))
                });
                all.push(news.boxed());
            }
            let start = if watch.is_some() { START } else { Duration::ZERO };
            self.groups.push(Group {
                targets,
                watch,
                poll: Some(Instant::now() + start),
                period: POLL,
            });
        }
        all
    }

    async fn take(&mut self, group: usize, news: News) {
        let Some(found) = self.groups.get_mut(group) else {
            return;
        };
        if news.failure.is_some() {
            found.poll.get_or_insert_with(Instant::now);
        } else if news.restarted {
            found.poll = None;
            found.period = POLL;
        }
        if news.restarted {
            let targets = found.targets.clone();
            self.read(targets).await;
        }
        let Some(found) = self.groups.get(group) else {
            return;
        };
        let mut changed = news.objects;
        let named = found.targets.iter().filter_map(|at| {
            let name = &self.targets.get(*at)?.reference.name;
            Some((*at, changed.remove(name)?))
        });
        let named = named.collect();
        self.judge_all(named).await;
    }

    /// Reads the objects of groups whose changes are not delivered.
    async fn poll(&mut self) {
        let now = Instant::now();
        let is_due = |group: &Group| group.poll.is_some_and(|poll| poll <= now);
        let due = self.groups.iter().filter(|group| is_due(group));
        let due: Vec<usize> = due.flat_map(|group| group.targets.iter().copied()).collect();
        self.read(due).await;
        let read = Instant::now();
        for group in self.groups.iter_mut().filter(|group| is_due(group)) {
            let mut open = group.targets.iter().filter_map(|at| self.targets.get(*at));
            let is_any_found = open.any(|target| target.open.is_some() && target.object.is_some());
            group.period = next_period(group.period, is_any_found);
            group.poll = Some(read + group.period);
        }
    }

    async fn read(&mut self, targets: Vec<usize>) {
        let open = targets.into_iter().filter_map(|at| {
            let target = self.targets.get(at)?;
            target.open.as_ref()?;
            let (cluster, reference) = (self.cluster, target.reference.clone());
            Some(async move { (at, cluster.get(&reference).await) })
        });
        let mut read = VecDeque::new();
        for (at, found) in concurrent(open, PARALLEL).collect::<Vec<_>>().await {
            match found {
                Ok(object) => read.push_back((at, object.map(Arc::new))),
                Err(Error::Cancelled) => {}
                Err(error) => self.set(at, Verdict::Open(Health::new(Status::Unknown, error.to_string()))),
            }
        }
        self.judge_all(read).await;
    }

    /// Judges objects as they were read, until the wait ends. Their custom checks are asked for as many as are checked at a time.
    async fn judge_all(&mut self, mut read: VecDeque<Read>) {
        read.retain(|(at, _)| self.targets.get(*at).is_some_and(|target| target.open.is_some()));
        while !read.is_empty() && (!self.has_custom_checks() || self.ended().is_none()) {
            let checked = self.check(&read).await;
            for (checked, (at, object)) in checked.into_iter().zip(std::iter::from_fn(|| read.pop_front())) {
                self.judge(at, object, checked).await;
            }
        }
    }

    /// Returns the results of custom checks for the first of these objects, at least one.
    async fn check(&self, read: &VecDeque<Read>) -> Vec<Checked> {
        let Some(custom) = self.goal.custom() else {
            return vec![Checked::ByRules; read.len()];
        };
        let present: Vec<_> = read.iter().map_while(|(_, object)| object.clone()).collect();
        match present.is_empty() {
            true => vec![Checked::ByRules],
            false => custom.check(present).await,
        }
    }

    async fn judge(&mut self, at: usize, object: Option<Arc<Value>>, checked: Checked) {
        let Some(target) = self.targets.get_mut(at).filter(|target| target.open.is_some()) else {
            return;
        };
        let before = target.object.take();
        let indexed = (at, &target.reference);
        let verdict = self.goal.judge(
            self.cluster,
            indexed,
            (object.as_deref(), checked),
            before.as_deref(),
        );
        let verdict = verdict.await;
        // A Job that is gone for now is still known as one.
        target.object = object.or(before);
        self.set(at, verdict);
    }

    fn set(&mut self, at: usize, verdict: Verdict) {
        let Some(target) = self.targets.get_mut(at) else {
            return;
        };
        match verdict {
            Verdict::Open(health) => target.open = Some(health),
            Verdict::Exhausted(health) => {
                target.open = Some(health);
                self.is_exhausted = true;
            }
            Verdict::Reached => {
                target.open = None;
                target.object = None;
                let watches = self.groups.iter().filter(|group| group.targets.contains(&at));
                for watch in watches.filter_map(|group| group.watch.as_ref()) {
                    watch.forget(&target.reference.name);
                }
            }
        }
    }

    /// Checks objects again whose status changes with time, and the pods of workloads in progress.
    async fn check_times_and_pods(&mut self) {
        let now = Timestamp::now();
        let mut due = VecDeque::new();
        for at in 0..self.targets.len() {
            let Some(target) = self.targets.get(at) else {
                return;
            };
            let (Some(health), Some(object)) = (&target.open, &target.object) else {
                continue;
            };
            let (health, object) = (health.clone(), Arc::clone(object));
            if health.recheck.is_some_and(|recheck| recheck <= now) {
                due.push_back((at, Some(object)));
            } else if let Some(selector) = self.goal.pod_selector(&object, &health) {
                let namespace = target.reference.namespace.clone();
                // Without the right to list pods, the status of the workload alone decides.
                if let Ok(pods) = self.pods(namespace.as_deref(), &selector).await {
                    let health = kstatus::with_pods(health, &pods, now);
                    self.set(at, Verdict::Open(health));
                }
            }
        }
        self.judge_all(due).await;
    }

    async fn pods(&self, namespace: Option<&str>, selector: &str) -> Result<Vec<Value>, Error> {
        let kind = self.cluster.kind("", "v1", "Pod").await?;
        let namespace = Some(namespace.unwrap_or("default"));
        self.cluster
            .list_selected(&kind, namespace, selector, Detail::Full, PODS)
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_between_reads_grows_while_nothing_is_found() {
        let mut period = POLL;
        let mut seconds = Vec::new();
        for is_any_found in [false, false, false, false, false, true, false] {
            period = next_period(period, is_any_found);
            seconds.push(period.as_secs());
        }
        assert_eq!(seconds, [4, 8, 16, 30, 30, 2, 4]);
    }
}
