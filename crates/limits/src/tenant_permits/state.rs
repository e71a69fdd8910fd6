//! The permits and requests of all tenants, without a clock.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{PermitLimits, TenantPermit};

const SHORTEST: Duration = Duration::from_millis(100);
/// Work of tenants with many permits runs longer by this factor before it is evicted for a tenant that has some.
const PATIENT: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Quick,
    Slow,
    /// Told to end.
    Evicted,
}

struct Granted {
    tenant: String,
    class: Class,
    since: Instant,
    is_slow: bool,
    evicted: CancellationToken,
}

pub(super) struct Grant {
    pub(super) request: oneshot::Sender<TenantPermit>,
    pub(super) number: u64,
    pub(super) tenant: String,
    pub(super) evicted: CancellationToken,
}

pub(super) struct State {
    limits: PermitLimits,
    sequence: u64,
    /// By number, so the oldest come first.
    permits: BTreeMap<u64, Granted>,
    requests: HashMap<String, VecDeque<oneshot::Sender<TenantPermit>>>,
    /// Tenants with requests, the one that was served longest ago first.
    turns: VecDeque<String>,
}

impl State {
    pub(super) fn new(limits: PermitLimits) -> Self {
        Self {
            limits,
            sequence: 0,
            permits: BTreeMap::new(),
            requests: HashMap::new(),
            turns: VecDeque::new(),
        }
    }

    pub(super) fn free(&self) -> usize {
        self.limits.quick.saturating_sub(self.count(Class::Quick, None))
    }

    pub(super) fn tenants(&self) -> usize {
        let without_permits = |tenant: &&String| self.count_of(tenant) == 0;
        let requesting = self.requests.keys().filter(without_permits).count();
        requesting + self.by_tenant().len()
    }

    pub(super) fn request(&mut self, tenant: &str, request: oneshot::Sender<TenantPermit>) {
        let requests = self.requests.entry(tenant.to_owned()).or_default();
        requests.push_back(request);
        if requests.len() == 1 {
            self.turns.push_back(tenant.to_owned());
        }
    }

    pub(super) fn remove(&mut self, number: u64) {
        self.permits.remove(&number);
    }

    pub(super) fn mark_slow(&mut self, number: u64) {
        if let Some(permit) = self.permits.get_mut(&number) {
            permit.is_slow = true;
        }
    }

    /// Moves slow work to its class, and grants permits to requests, for which it may evict work.
    pub(super) fn advance(&mut self, now: Instant) -> (Vec<Grant>, Vec<CancellationToken>) {
        let (mut granted, mut evicted) = (Vec::new(), Vec::new());
        loop {
            self.move_slow(now);
            // The others have as many permits or more, so they get none either.
            let Some(tenant) = self.next_tenant() else { break };
            if self.may_have(&tenant) {
                granted.extend(self.grant(&tenant, now));
            } else if let Some(number) = self.evictable(&tenant, now) {
                if let Some(permit) = self.permits.get_mut(&number) {
                    permit.class = Class::Evicted;
                    evicted.push(permit.evicted.clone());
                }
            } else {
                break;
            }
        }
        (granted, evicted)
    }

    /// Returns the next time after `now` at which work becomes slow, or may be evicted; by the work that is granted a permit later, too.
    pub(super) fn next_change(&self, now: Instant) -> Instant {
        let later = now + self.limits.quick_time.max(SHORTEST);
        let permits = self.permits.values();
        let running = permits.filter(|permit| permit.class != Class::Evicted);
        let changes = running.flat_map(|permit| {
            let evict_after = self.limits.evict_after;
            [self.limits.quick_time, evict_after, evict_after * PATIENT].map(|time| permit.since + time)
        });
        changes
            .filter(|change| *change > now)
            .min()
            .unwrap_or(later)
            .min(later)
    }

    fn count(&self, class: Class, tenant: Option<&str>) -> usize {
        let of_tenant = |permit: &&Granted| tenant.is_none_or(|tenant| permit.tenant == tenant);
        let permits = self.permits.values().filter(of_tenant);
        permits.filter(|permit| permit.class == class).count()
    }

    fn count_of(&self, tenant: &str) -> usize {
        let permits = self.permits.values();
        permits.filter(|permit| permit.tenant == tenant).count()
    }

    fn by_tenant(&self) -> HashMap<&str, usize> {
        let mut counts = HashMap::new();
        for permit in self.permits.values() {
            *counts.entry(permit.tenant.as_str()).or_default() += 1;
        }
        counts
    }

    /// Returns the slow work that has quick permits.
    fn overdue(&self, now: Instant) -> Vec<(u64, String)> {
        let quick_time = self.limits.quick_time;
        let is_slow = |permit: &Granted| permit.is_slow || now >= permit.since + quick_time;
        let permits = self.permits.iter();
        permits
            .filter(|(_, permit)| permit.class == Class::Quick && is_slow(permit))
            .map(|(number, permit)| (*number, permit.tenant.clone()))
            .collect()
    }

    fn move_slow(&mut self, now: Instant) {
        for (number, tenant) in self.overdue(now) {
            let has_space = self.count(Class::Slow, None) < self.limits.slow
                && self.count(Class::Slow, Some(&tenant)) < self.limits.slow_of_tenant;
            if has_space && let Some(permit) = self.permits.get_mut(&number) {
                permit.class = Class::Slow;
            }
        }
    }

    /// Returns the tenant with a request that gets the next permit. Those with too much evicted work get none.
    fn next_tenant(&mut self) -> Option<String> {
        let requests = &mut self.requests;
        requests.retain(|_, requests| {
            requests.retain(|request| !request.is_closed());
            !requests.is_empty()
        });
        self.turns.retain(|tenant| requests.contains_key(tenant));
        let (counts, most) = (self.by_tenant(), self.limits.slow_of_tenant.max(1));
        let may_run = |tenant: &&String| self.count(Class::Evicted, Some(tenant)) < most;
        let held = |tenant: &&String| counts.get(tenant.as_str()).copied().unwrap_or_default();
        self.turns.iter().filter(may_run).min_by_key(held).cloned()
    }

    fn may_have(&self, tenant: &str) -> bool {
        let reserve = match self.count_of(tenant) {
            0 => 0,
            _ => self.limits.reserve,
        };
        self.free() > reserve
    }

    fn grant(&mut self, tenant: &str, now: Instant) -> Option<Grant> {
        self.turns.retain(|other| other != tenant);
        let requests = self.requests.get_mut(tenant)?;
        let request = requests.pop_front()?;
        if requests.is_empty() {
            self.requests.remove(tenant);
        } else {
            self.turns.push_back(tenant.to_owned());
        }
        self.sequence += 1;
        let evicted = CancellationToken::new();
        let permit = Granted {
            tenant: tenant.to_owned(),
            class: Class::Quick,
            since: now,
            is_slow: false,
            evicted: evicted.clone(),
        };
        self.permits.insert(self.sequence, permit);
        Some(Grant {
            request,
            number: self.sequence,
            tenant: tenant.to_owned(),
            evicted,
        })
    }

    /// Returns the work to evict for a tenant: the newest that runs for long enough, of the tenant with the most permits and among equals with
    /// the oldest work. The tenant must have at least two more than `tenant`, or `tenant` none. `None` unless slow work has a quick permit.
    fn evictable(&self, tenant: &str, now: Instant) -> Option<u64> {
        let counts = self.by_tenant();
        let count = |tenant: &str| counts.get(tenant).copied().unwrap_or_default();
        let own = count(tenant);
        let least = self.limits.evict_after * if own == 0 { 1 } else { PATIENT };
        let overdue = self.overdue(now);
        let is_useful = |permit: &Granted| match permit.class {
            Class::Quick => true,
            // Its slow permit goes to one of them.
            Class::Slow => overdue.iter().any(|(_, other)| {
                *other == permit.tenant || self.count(Class::Slow, Some(other)) < self.limits.slow_of_tenant
            }),
            Class::Evicted => false,
        };
        let long = || {
            let permits = self.permits.iter();
            permits.filter(|(_, permit)| now >= permit.since + least && is_useful(permit))
        };
        let others = long().filter(|(_, permit)| permit.tenant != tenant);
        let (_, first) = others.min_by_key(|(number, permit)| (Reverse(count(&permit.tenant)), **number))?;
        let has_more = own == 0 || count(&first.tenant) > own + 1;
        let mut of_first = long().filter(|(_, permit)| permit.tenant == first.tenant);
        of_first
            .next_back()
            .filter(|_| has_more)
            .map(|(number, _)| *number)
    }
}
