//! Requests to Git servers that passes share: one list of refs and one fetch for all objects with the same URL, credentials and reference.
//!
//! Contents of Secrets are compared, not their names, so that nobody gets an answer that the own credentials don't give. A list of refs is
//! used by passes that started before it was asked for; by passes that are only due by their interval a little longer ([`tolerated_age`]).
//! A fetch is used by the passes of a namespace while one of them goes on.

use std::{
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};

use api::{annotation, condition_type as types, conditions, source::GitRepository};
use git::{Error, Reference, Remote};
use parking_lot::Mutex;
use runtime::requests;
use tokio::runtime::Handle;

use super::{checkout::Part, verification};
use limits::{Flight, FlightKey, Flights};

use crate::{blocking::Job, source_kind::Verification};

const LONGEST: Duration = Duration::from_secs(10);
/// A list of refs may be as old as this part of the interval.
const PART_OF_INTERVAL: u32 = 10;

/// Returns the tolerated age of a list of refs: a tenth of the interval, at most 10 s, for passes that are only due by it. Others, as after
/// a change, a request or a failure, see the refs at their start or later. Pure.
pub(super) fn tolerated_age(object: &GitRepository) -> Duration {
    let Some(status) = &object.status else {
        return Duration::ZERO;
    };
    let handled = status.last_handled_reconcile_at.as_deref();
    let is_settled = status.observed_generation == object.metadata.generation
        && !requests::is_unhandled(&object.metadata, annotation::RECONCILE_REQUESTED_AT, handled)
        && conditions::is_true(&status.conditions, types::READY)
        && conditions::get(&status.conditions, types::RECONCILING).is_none();
    match is_settled {
        true => (object.spec.interval.as_duration() / PART_OF_INTERVAL).min(LONGEST),
        false => Duration::ZERO,
    }
}

#[derive(Clone)]
struct Head {
    asked: Instant,
    answer: Result<git::Resolved, Error>,
}

impl Head {
    /// Returns true if a pass that started at `start` may use the answer. A failure is used if the pass would have met it, too.
    fn is_usable(&self, start: Instant, age: Duration) -> bool {
        match &self.answer {
            Ok(_) => self.asked + age >= start,
            Err(error) => self.asked >= start && !error.is_of_call(),
        }
    }
}

#[derive(PartialEq)]
struct HeadKey(Remote, Reference);

impl FlightKey for HeadKey {
    fn group(&self) -> &str {
        self.0.url().as_str()
    }
}

#[derive(Default)]
pub(super) struct Heads(Flights<HeadKey, Head>);

impl Heads {
    /// Returns the commit of a reference. `ask` asks the server for it within a timeout, unless another pass does or did so lately.
    pub(super) fn get(
        &self,
        runtime: &Handle,
        job: &Job,
        (remote, reference): (&Remote, &Reference),
        age: Duration,
        ask: impl FnOnce(Duration) -> Result<git::Resolved, Error>,
    ) -> Result<git::Resolved, Error> {
        let start = Instant::now();
        let flight = self.0.get(HeadKey(remote.clone(), reference.clone()));
        let keep = flight.clone();
        let asked = |left| {
            let asked = Instant::now();
            let answer = ask(left);
            // Keeps the answer alive until the passes come that are due next.
            runtime.spawn(async move {
                tokio::time::sleep(LONGEST).await;
                drop(keep);
            });
            Ok::<_, Infallible>(Head { asked, answer })
        };
        match flight.get_or(runtime, job, |head| head.is_usable(start, age), asked) {
            Ok(head) => head.answer,
            Err(never) => match never {},
        }
    }
}

/// All inputs of the fetched files. Namespaces don't share it, because each has memory and permits of its own.
#[derive(PartialEq)]
pub(super) struct FetchKey {
    pub(super) namespace: String,
    pub(super) remote: Remote,
    pub(super) head: git::Resolved,
    pub(super) submodules: bool,
    pub(super) verify: Option<verification::VerifyKey>,
}

impl FlightKey for FetchKey {
    fn group(&self) -> &str {
        self.remote.url().as_str()
    }
}

pub(super) type Fetches = Flights<FetchKey, Arc<Contents>>;
/// A fetch, and its files until the last pass that uses them ends.
pub(super) type Fetch = Flight<Arc<Contents>>;

pub(crate) struct Contents {
    parts: Mutex<Vec<Part>>,
    pub(super) verification: Option<Verification>,
    runtime: Handle,
}

impl Contents {
    /// Owns the parts and their temporary directories.
    pub(super) fn new(parts: Vec<Part>, verification: Option<Verification>, runtime: Handle) -> Self {
        Self {
            parts: Mutex::new(parts),
            verification,
            runtime,
        }
    }

    pub(super) fn parts(&self) -> Vec<Part> {
        self.parts.lock().clone()
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        // Passes end on threads that many share, and removing files blocks.
        let parts = self.parts.get_mut();
        let parts = std::mem::take(parts);
        if parts.iter().any(|part| part.snapshot.is_on_disk()) {
            self.runtime.spawn_blocking(move || drop(parts));
        }
    }
}

#[cfg(test)]
mod tests {
    use api::{Reason, source::GitRepositorySpec, source::GitRepositoryStatus};
    use kube::ResourceExt as _;

    use super::*;

    fn ready(interval: i64) -> GitRepository {
        let spec = GitRepositorySpec {
            interval: api::GoDuration::from_secs(interval),
            ..GitRepositorySpec::default()
        };
        let ready = api::Condition::new(
            types::READY,
            true,
            Reason::Succeeded,
            "",
            None,
            api::Time(Default::default()),
        );
        let mut object = GitRepository::new("repo", spec);
        object.metadata.generation = Some(2);
        object.status = Some(GitRepositoryStatus {
            observed_generation: Some(2),
            conditions: vec![ready],
            last_handled_reconcile_at: Some("1".to_owned()),
            ..GitRepositoryStatus::default()
        });
        object
    }

    fn request(object: &mut GitRepository, value: &str) {
        let annotations = object.annotations_mut();
        annotations.insert(annotation::RECONCILE_REQUESTED_AT.to_owned(), value.to_owned());
    }

    #[test]
    fn refs_may_be_old_only_if_nothing_but_the_interval_is_due() {
        assert_eq!(tolerated_age(&ready(60)), Duration::from_secs(6));
        assert_eq!(tolerated_age(&ready(3600)), LONGEST);
        type Change = fn(&mut GitRepository);
        let changes: [(Change, bool); 6] = [
            (|object| request(object, "1"), true),
            (|object| request(object, "2"), false),
            (|object| object.metadata.generation = Some(3), false),
            (|object| object.status = None, false),
            (
                |object| object.status.as_mut().unwrap().conditions[0].status = false.into(),
                false,
            ),
            (
                |object| object.status.as_mut().unwrap().conditions[0].type_ = types::RECONCILING.into(),
                false,
            ),
        ];
        for (at, (change, tolerated)) in changes.into_iter().enumerate() {
            let mut object = ready(60);
            change(&mut object);
            assert_eq!(tolerated_age(&object) > Duration::ZERO, tolerated, "case {at}");
        }
    }

    #[test]
    fn answers_are_used_by_passes_that_began_before_they_were_asked_for() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let head = |asked, answer| Head { asked, answer };
        let commit = || {
            let head = git::Advertised {
                name: "refs/heads/main".to_owned(),
                object: "5394cb7f48332b2de7c17dd8b8384bbc84b7e738".to_owned(),
                peeled: None,
                target: None,
            };
            git::select(&Reference::Branch("main".to_owned()), &[head])
        };
        let url = || "https://h/r".to_owned();
        let missing = || Err(Error::NotFound { url: url() });
        let cancelled = || Err(Error::Cancelled { url: url() });
        for (head, age, usable) in [
            (head(start, commit()), Duration::ZERO, true),
            (head(start - second, commit()), Duration::ZERO, false),
            (head(start - second, commit()), second, true),
            (head(start - 2 * second, commit()), second, false),
            (head(start, missing()), Duration::ZERO, true),
            (head(start - second, missing()), second, false),
            (head(start, cancelled()), second, false),
        ] {
            assert_eq!(head.is_usable(start, age), usable, "{:?}", head.answer);
        }
    }
}
