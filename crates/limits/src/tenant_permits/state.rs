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
    evicted: CancellationToken,
}

type Request = oneshot::Sender<TenantPermit>;

/// The permits and requests of a tenant; it is known while it has some.
#[derive(Default)]
struct Usage {
    quick: usize,
    slow: usize,
    evicted: usize,
    requests: VecDeque<Request>,
    /// Number of requests at which those that are gone are removed.
    compact_at: usize,
}

impl Usage {
    const fn permits(&self) -> usize {
        self.quick + self.slow + self.evicted
    }

    const fn of(&mut self, class: Class) -> &mut usize {
        match class {
            Class::Quick => &mut self.quick,
            Class::Slow => &mut self.slow,
            Class::Evicted => &mut self.evicted,
        }
    }
}

pub(super) struct Grant {
    pub(super) request: Request,
    pub(super) number: u64,
    pub(super) tenant: String,
    pub(super) evicted: CancellationToken,
}

pub(super) struct State {
    limits: PermitLimits,
    sequence: u64,
    /// By number, so the oldest come first.
    permits: BTreeMap<u64, Granted>,
    tenants: HashMap<String, Usage>,
    /// Tenants with requests, the one that was served longest ago first.
    turns: VecDeque<String>,
    quick: usize,
    slow: usize,
    /// Number of requests that were looked at.
    #[cfg(test)]
    pub(super) visited: usize,
}

/// Number of requests of a tenant below which those that are gone are left until their turn.
const COMPACT: usize = 64;

impl State {
    pub(super) fn new(limits: PermitLimits) -> Self {
        Self {
            limits,
            sequence: 0,
            permits: BTreeMap::new(),
            tenants: HashMap::new(),
            turns: VecDeque::new(),
            quick: 0,
            slow: 0,
            #[cfg(test)]
            visited: 0,
        }
    }

    pub(super) const fn free(&self) -> usize {
        self.limits.quick.saturating_sub(self.quick)
    }

    /// Returns the number of tenants with permits, or with requests that are not gone.
    pub(super) fn tenants(&self) -> usize {
        let is_known =
            |usage: &&Usage| usage.permits() > 0 || usage.requests.iter().any(|request| !request.is_closed());
        self.tenants.values().filter(is_known).count()
    }

    /// Adds a request. Requests that are gone go with their turn, and all of a tenant whenever it has twice as many as last time.
    pub(super) fn request(&mut self, tenant: &str, request: Request) {
        let usage = self.tenants.entry(tenant.to_owned()).or_default();
        if usage.requests.is_empty() {
            self.turns.push_back(tenant.to_owned());
        }
        if usage.requests.len() >= usage.compact_at.max(COMPACT) {
            #[cfg(test)]
            (self.visited += usage.requests.len());
            usage.requests.retain(|request| !request.is_closed());
            usage.compact_at = 2 * usage.requests.len();
        }
        usage.requests.push_back(request);
    }

    pub(super) fn remove(&mut self, number: u64) {
        let Some(permit) = self.permits.remove(&number) else {
            return;
        };
        self.count_less(&permit.tenant, permit.class);
        self.forget_unused(&permit.tenant);
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.tenants.values().map(|usage| usage.requests.len()).sum()
    }

    fn set_class(&mut self, number: u64, class: Class) {
        let Some(permit) = self.permits.get_mut(&number) else {
            return;
        };
        let before = std::mem::replace(&mut permit.class, class);
        let tenant = permit.tenant.clone();
        self.count_less(&tenant, before);
        self.count_more(&tenant, class);
    }

    fn count_more(&mut self, tenant: &str, class: Class) {
        *self.tenants.entry(tenant.to_owned()).or_default().of(class) += 1;
        match class {
            Class::Quick => self.quick += 1,
            Class::Slow => self.slow += 1,
            Class::Evicted => {}
        }
    }

    fn count_less(&mut self, tenant: &str, class: Class) {
        if let Some(usage) = self.tenants.get_mut(tenant) {
            *usage.of(class) -= 1;
        }
        match class {
            Class::Quick => self.quick -= 1,
            Class::Slow => self.slow -= 1,
            Class::Evicted => {}
        }
    }

    fn forget_unused(&mut self, tenant: &str) {
        let usage = self.tenants.get(tenant);
        if usage.is_some_and(|usage| usage.permits() == 0 && usage.requests.is_empty()) {
            self.tenants.remove(tenant);
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
                self.set_class(number, Class::Evicted);
                evicted.extend(self.permits.get(&number).map(|permit| permit.evicted.clone()));
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

    fn permits_of(&self, tenant: &str) -> usize {
        self.tenants.get(tenant).map_or(0, Usage::permits)
    }

    /// Returns true if a tenant may have one more slow permit, beside the limit of all.
    fn may_be_slow(&self, tenant: &str) -> bool {
        self.tenants.get(tenant).map_or(0, |usage| usage.slow) < self.limits.slow_of_tenant
    }

    /// Returns the slow work that has quick permits.
    fn overdue(&self, now: Instant) -> Vec<(u64, String)> {
        let quick_time = self.limits.quick_time;
        let permits = self.permits.iter();
        permits
            .filter(|(_, permit)| permit.class == Class::Quick && now >= permit.since + quick_time)
            .map(|(number, permit)| (*number, permit.tenant.clone()))
            .collect()
    }

    fn move_slow(&mut self, now: Instant) {
        for (number, tenant) in self.overdue(now) {
            if self.slow < self.limits.slow && self.may_be_slow(&tenant) {
                self.set_class(number, Class::Slow);
            }
        }
    }

    /// Returns the tenant with a request that gets the next permit. Those with too much evicted work get none.
    fn next_tenant(&mut self) -> Option<String> {
        let most = self.limits.slow_of_tenant.max(1);
        loop {
            let usage = |tenant: &String| self.tenants.get(tenant);
            let may_run = |tenant: &&String| usage(tenant).is_some_and(|usage| usage.evicted < most);
            let permits = |tenant: &&String| usage(tenant).map_or(0, Usage::permits);
            let tenant = self.turns.iter().filter(may_run).min_by_key(permits)?.clone();
            if self.has_request(&tenant) {
                return Some(tenant);
            }
            self.turns.retain(|other| *other != tenant);
            self.forget_unused(&tenant);
        }
    }

    /// Returns true if a tenant has a request; removes those before it that are gone.
    fn has_request(&mut self, tenant: &str) -> bool {
        let Some(usage) = self.tenants.get_mut(tenant) else {
            return false;
        };
        while let Some(request) = usage.requests.front() {
            #[cfg(test)]
            (self.visited += 1);
            if !request.is_closed() {
                return true;
            }
            usage.requests.pop_front();
        }
        false
    }

    fn may_have(&self, tenant: &str) -> bool {
        let reserve = match self.permits_of(tenant) {
            0 => 0,
            _ => self.limits.reserve,
        };
        self.free() > reserve
    }

    fn grant(&mut self, tenant: &str, now: Instant) -> Option<Grant> {
        self.turns.retain(|other| other != tenant);
        let usage = self.tenants.get_mut(tenant)?;
        let request = usage.requests.pop_front()?;
        if !usage.requests.is_empty() {
            self.turns.push_back(tenant.to_owned());
        }
        self.sequence += 1;
        self.count_more(tenant, Class::Quick);
        let evicted = CancellationToken::new();
        let permit = Granted {
            tenant: tenant.to_owned(),
            class: Class::Quick,
            since: now,
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
        let own = self.permits_of(tenant);
        let least = self.limits.evict_after * if own == 0 { 1 } else { PATIENT };
        let overdue = self.overdue(now);
        let is_useful = |permit: &Granted| match permit.class {
            Class::Quick => true,
            // Its slow permit goes to one of them.
            Class::Slow => {
                let takes = |other: &String| *other == permit.tenant || self.may_be_slow(other);
                overdue.iter().any(|(_, other)| takes(other))
            }
            Class::Evicted => false,
        };
        let long = || {
            let permits = self.permits.iter();
            permits.filter(|(_, permit)| now >= permit.since + least && is_useful(permit))
        };
        let others = long().filter(|(_, permit)| permit.tenant != tenant);
        let (_, first) =
            others.min_by_key(|(number, permit)| (Reverse(self.permits_of(&permit.tenant)), **number))?;
        let has_more = own == 0 || self.permits_of(&first.tenant) > own + 1;
        let mut of_first = long().filter(|(_, permit)| permit.tenant == first.tenant);
        of_first
            .next_back()
            .filter(|_| has_more)
            .map(|(number, _)| *number)
    }
}
