//! Leader election by a `coordination.k8s.io/v1` Lease, with the names and timings of upstream's controllers, so that an old and a new
//! controller never act at the same time.
//!
//! A candidate never trusts the clock of another machine: a lease is over when its record has not changed for its whole length by the
//! candidate's own clock. The leader's gate shuts at the renew deadline, before another process may take over. Between the two, requests in
//! flight end: so a lease that could not be renewed is not given back, but runs out.

use std::time::{Duration, Instant};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{client::describe, error::Error, flags::CommonFlags, gate::WriteGate, metrics::Metrics};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leadership {
    Standby,
    Leader,
    /// This process led, and must never act again.
    Lost,
}

#[derive(Debug, Clone, Copy)]
pub struct Timings {
    pub lease: Duration,
    /// Time for which the leader tries to renew.
    pub renew: Duration,
    pub retry: Duration,
}

#[derive(Debug, Clone)]
pub struct Election {
    pub name: String,
    pub namespace: String,
    pub identity: String,
    pub timings: Timings,
    pub release: bool,
}

impl Election {
    #[must_use]
    pub fn of(flags: &CommonFlags, base: &str, namespace: &str, host: &str) -> Self {
        Self {
            name: lease_name(base, &flags.watch_label_selector),
            namespace: namespace.to_owned(),
            identity: format!("{host}_{}", uuid::Uuid::new_v4()),
            timings: Timings {
                lease: flags.leader_election_lease_duration,
                renew: flags.leader_election_renew_deadline,
                retry: flags.leader_election_retry_period,
            },
            release: flags.leader_election_release_on_cancel,
        }
    }
}

/// Returns the name of a lease. Controllers that share the objects by label elect a leader for each share.
fn lease_name(base: &str, selector: &str) -> String {
    if selector.is_empty() {
        return base.to_owned();
    }
    let digest = hex::encode(Sha256::digest(selector.as_bytes()));
    format!("{base}-{}", digest.get(..8).unwrap_or(&digest))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Renew,
    Acquire,
    Wait,
}

/// Decides from the record, and from the time for which it has not changed by the own clock.
fn decide(me: &str, spec: &LeaseSpec, unchanged: Duration) -> Step {
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    let length = Duration::from_secs(u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0));
    if holder == me {
        Step::Renew
    } else if holder.is_empty() || unchanged >= length {
        Step::Acquire
    } else {
        Step::Wait
    }
}

fn record(me: &str, timings: Timings, old: Option<&LeaseSpec>, now: Timestamp) -> LeaseSpec {
    let held = old.is_some_and(|old| old.holder_identity.as_deref() == Some(me));
    let transitions = old.and_then(|old| old.lease_transitions).unwrap_or(0);
    LeaseSpec {
        holder_identity: Some(me.to_owned()),
        lease_duration_seconds: Some(whole_seconds(timings.lease)),
        acquire_time: if held {
            old.and_then(|old| old.acquire_time.clone())
        } else {
            Some(MicroTime(now))
        },
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(if held || old.is_none() {
            transitions
        } else {
            transitions.saturating_add(1)
        }),
        ..LeaseSpec::default()
    }
}

/// Rounds up: others must not take a lease over before its whole length has passed.
fn whole_seconds(length: Duration) -> i32 {
    let seconds = length
        .as_secs()
        .saturating_add(u64::from(length.subsec_nanos() > 0));
    i32::try_from(seconds.max(1)).unwrap_or(i32::MAX)
}

/// Returns the lease as its holder leaves it; `None` if another process holds it.
fn released(me: &str, mut lease: Lease, now: Timestamp) -> Option<Lease> {
    let spec = lease.spec.as_mut()?;
    if spec.holder_identity.as_deref() != Some(me) {
        return None;
    }
    spec.holder_identity = Some(String::new());
    spec.lease_duration_seconds = Some(1);
    spec.renew_time = Some(MicroTime(now));
    Some(lease)
}

pub(crate) struct Candidate {
    election: Election,
    api: Api<Lease>,
    gate: WriteGate,
    metrics: Metrics,
    state: watch::Sender<Leadership>,
    /// The lease as of the last write; `None` if that failed, or has no answer.
    mine: Option<Lease>,
    /// True if a write has no answer, so that this process may hold the lease.
    is_unanswered: bool,
    /// The last seen record, and the time of its first sight.
    seen: Option<(LeaseSpec, Instant)>,
}

impl Candidate {
    /// Creates a candidate. `client` must not pass the gate: the lease opens it.
    pub(crate) fn new(election: Election, client: Client, gate: WriteGate, metrics: Metrics) -> Self {
        let api = Api::namespaced(client, &election.namespace);
        metrics.leader(&election.name, false);
        Self {
            election,
            api,
            gate,
            metrics,
            state: watch::Sender::new(Leadership::Standby),
            mine: None,
            is_unanswered: false,
            seen: None,
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Leadership> {
        self.state.subscribe()
    }

    /// Campaigns, then leads, until `end`, and gives the lease back. Fails when the lease was lost.
    pub(crate) async fn run(mut self, end: CancellationToken) -> Result<(), Error> {
        let timings = self.election.timings;
        let mut renewed: Option<Instant> = None;
        loop {
            let sent = Instant::now();
            let left = renewed.map_or(timings.renew, |at| {
                (at + timings.renew).saturating_duration_since(sent)
            });
            let attempt = tokio::time::timeout(left, self.attempt());
            let held = match end.run_until_cancelled(attempt).await {
                None => break,
                Some(Err(_)) => None,
                Some(Ok(Err(error))) => {
                    tracing::info!(lease = self.election.name, error = %describe(&error), "cannot get or renew the lease");
                    None
                }
                Some(Ok(Ok(held))) => Some(held),
            };
            match (held, renewed) {
                (Some(true), before) => {
                    self.gate.extend(sent, timings.renew);
                    renewed = Some(sent);
                    if before.is_none() {
                        self.lead();
                    }
                }
                (Some(false), Some(_)) => return Err(self.lose()),
                (None, Some(at)) if at.elapsed() >= timings.renew => return Err(self.lose()),
                _ => {}
            }
            let pause = match renewed {
                Some(at) => timings
                    .retry
                    .min((at + timings.renew).saturating_duration_since(Instant::now())),
                None => timings.retry.mul_f64(1.0 + 0.2 * fastrand::f64()),
            };
            if end.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                break;
            }
        }
        if renewed.is_some() || self.is_unanswered {
            self.resign().await;
        }
        Ok(())
    }

    fn lead(&self) {
        tracing::info!(
            lease = self.election.name,
            identity = self.election.identity,
            "this process leads"
        );
        self.metrics.leader(&self.election.name, true);
        self.state.send_replace(Leadership::Leader);
    }

    fn lose(&self) -> Error {
        self.gate.close();
        self.metrics.leader(&self.election.name, false);
        self.state.send_replace(Leadership::Lost);
        Error::LeaseLost(self.election.name.clone())
    }

    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        // The holder knows its lease from its last write; after a failed write, and for all others, it is read.
        let mut lease = match self.mine.take() {
            Some(lease) => lease,
            None => match self.api.get_opt(&self.election.name).await? {
                None => return self.create().await,
                Some(lease) => lease,
            },
        };
        let old = lease.spec.take().unwrap_or_default();
        let unchanged = self.unchanged(&old);
        if decide(&self.election.identity, &old, unchanged) == Step::Wait {
            return Ok(false);
        }
        lease.spec = Some(record(
            &self.election.identity,
            self.election.timings,
            Some(&old),
            Timestamp::now(),
        ));
        self.is_unanswered = true;
        self.mine = Some(self.replace(&lease).await?);
        self.is_unanswered = false;
        Ok(true)
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, kube::Error> {
        let post = PostParams::default();
        self.api.replace(&self.election.name, &post, lease).await
    }

    async fn create(&mut self) -> Result<bool, kube::Error> {
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.election.name.clone()),
                namespace: Some(self.election.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(record(
                &self.election.identity,
                self.election.timings,
                None,
                Timestamp::now(),
            )),
        };
        self.is_unanswered = true;
        self.mine = Some(self.api.create(&PostParams::default(), &lease).await?);
        self.is_unanswered = false;
        Ok(true)
    }

    fn unchanged(&mut self, spec: &LeaseSpec) -> Duration {
        match &self.seen {
            Some((seen, since)) if seen == spec => since.elapsed(),
            _ => {
                self.seen = Some((spec.clone(), Instant::now()));
                Duration::ZERO
            }
        }
    }

    /// Gives the lease back, so that the next leader need not wait.
    async fn resign(mut self) {
        self.gate.close();
        self.metrics.leader(&self.election.name, false);
        self.state.send_replace(Leadership::Lost);
        if !self.election.release {
            return;
        }
        match tokio::time::timeout(Duration::from_secs(2), self.release()).await {
            Ok(Ok(true)) => tracing::info!(lease = self.election.name, "gave the lease back"),
            Ok(Ok(false)) => tracing::info!(lease = self.election.name, "another process holds the lease"),
            Ok(Err(error)) => {
                tracing::info!(lease = self.election.name, error = %describe(&error), "cannot give the lease back");
            }
            Err(_) => tracing::info!(lease = self.election.name, "no time to give the lease back"),
        }
    }

    /// Releases the lease. Returns false if another process holds it.
    async fn release(&mut self) -> Result<bool, kube::Error> {
        loop {
            // After a write that failed or has no answer, it is read.
            let lease = match self.mine.take() {
                Some(lease) => Some(lease),
                None => self.api.get_opt(&self.election.name).await?,
            };
            let released = lease.and_then(|lease| released(&self.election.identity, lease, Timestamp::now()));
            let Some(lease) = released else {
                return Ok(false);
            };
            match self.replace(&lease).await {
                // Another process took it, or a write without an answer came later.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                written => return written.map(|_| true),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(holder: &str, seconds: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: Some(seconds),
            lease_transitions: Some(4),
            acquire_time: Some(MicroTime(Timestamp::UNIX_EPOCH)),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_is_taken_only_when_it_is_free_or_over() {
        for (holder, seconds, unchanged, step) in [
            ("me", 35, 0, Step::Renew),
            ("other", 35, 34, Step::Wait),
            ("other", 35, 35, Step::Acquire),
            ("", 35, 0, Step::Acquire),
            ("other", 0, 0, Step::Acquire),
        ] {
            assert_eq!(
                decide("me", &spec(holder, seconds), Duration::from_secs(unchanged)),
                step,
                "{holder} {unchanged}"
            );
        }
        assert_eq!(decide("me", &LeaseSpec::default(), Duration::ZERO), Step::Acquire);
    }

    #[test]
    fn a_record_counts_transitions_and_keeps_the_time_of_acquisition() {
        let timings = Timings {
            lease: Duration::from_secs(35),
            renew: Duration::from_secs(30),
            retry: Duration::from_secs(5),
        };
        let now = Timestamp::now();
        let taken = record("me", timings, Some(&spec("other", 35)), now);
        assert_eq!(
            (taken.lease_transitions, taken.lease_duration_seconds),
            (Some(5), Some(35))
        );
        assert_eq!(taken.acquire_time, Some(MicroTime(now)));
        let renewed = record("me", timings, Some(&spec("me", 35)), now);
        assert_eq!(renewed.lease_transitions, Some(4));
        assert_eq!(renewed.acquire_time, Some(MicroTime(Timestamp::UNIX_EPOCH)));
        assert_eq!(record("me", timings, None, now).lease_transitions, Some(0));
        let lease = Duration::from_millis(3900);
        let short = record("me", Timings { lease, ..timings }, None, now);
        assert_eq!(short.lease_duration_seconds, Some(4));
    }

    #[test]
    fn a_lease_is_released_by_its_holder_alone() {
        let lease = |holder: &str| Lease {
            spec: Some(spec(holder, 35)),
            ..Lease::default()
        };
        let now = Timestamp::now();
        assert_eq!(released("me", lease("other"), now), None);
        assert_eq!(released("me", lease(""), now), None);
        assert_eq!(released("me", Lease::default(), now), None);
        let spec = released("me", lease("me"), now)
            .and_then(|lease| lease.spec)
            .unwrap();
        assert_eq!(decide("other", &spec, Duration::ZERO), Step::Acquire);
        assert_eq!(
            (spec.lease_transitions, spec.lease_duration_seconds),
            (Some(4), Some(1))
        );
    }

    #[test]
    fn a_shard_has_a_lease_of_its_own() {
        assert_eq!(
            lease_name("source-controller-leader-election", ""),
            "source-controller-leader-election"
        );
        let name = lease_name(
            "source-controller-leader-election",
            "sharding.fluxcd.io/key=shard1",
        );
        assert_eq!(name.len(), "source-controller-leader-election-".len() + 8);
    }
}
