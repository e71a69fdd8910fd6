//! The holders of the bytes of a budget, and the decision whose bytes are revoked for others. Pure.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::PART;

/// Fraction of the units up to which a tenant may revoke shares of others that hold less than it asks for.
const FLOOR: u64 = 8;
/// Time for which a share holds its units whoever needs them, and time in which the work of a revoked share stops.
pub(super) const REVOKE_AFTER: Duration = Duration::from_secs(15);
/// Time for which revoked units are reserved for the tenant that they were revoked for.
const CLAIM: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct State {
    units: u64,
    free: u64,
    /// False if one tenant may hold all units.
    is_divided: bool,
    tenants: HashMap<Arc<str>, u64>,
    /// Shares that hold units, by their number.
    shares: BTreeMap<u64, ShareState>,
    /// Number of shares with a token.
    revocable: usize,
    claims: Vec<Claim>,
}

#[derive(Debug)]
struct ShareState {
    tenant: Arc<str>,
    units: u64,
    since: Instant,
    /// Ends the work of the share; `None` if it cannot be revoked.
    token: Option<CancellationToken>,
    revoked: Option<Instant>,
}

/// The units of a tenant that aren't revoked yet, and its shares that may be revoked.
type Revocable<'a> = (u64, Vec<(u64, &'a ShareState)>);

/// Free units that are reserved for a tenant.
#[derive(Debug)]
struct Claim {
    tenant: Arc<str>,
    units: u64,
    until: Instant,
}

/// Units that a share asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) tenant: &'a Arc<str>,
    pub(super) share: u64,
    pub(super) token: Option<&'a CancellationToken>,
    pub(super) units: u64,
}

impl State {
    pub(super) fn new(units: u64, is_divided: bool) -> Self {
        Self {
            units,
            free: units,
            is_divided,
            tenants: HashMap::new(),
            shares: BTreeMap::new(),
            revocable: 0,
            claims: Vec::new(),
        }
    }

    pub(super) const fn in_use(&self) -> u64 {
        self.units - self.free
    }

    #[cfg(test)]
    pub(super) fn holders(&self) -> (usize, usize, usize) {
        (self.tenants.len(), self.shares.len(), self.revocable)
    }

    fn of(&self, tenant: &str) -> u64 {
        self.tenants.get(tenant).copied().unwrap_or_default()
    }

    /// Returns the number of free units with which a request is granted: the tenant has at most its part of the units that the others leave.
    fn needed(&self, request: Request<'_>) -> u64 {
        if !self.is_divided {
            return request.units;
        }
        let own = self.of(request.tenant);
        let total = own.saturating_add(request.units);
        let left = total.div_ceil(PART.0).saturating_mul(PART.1);
        left.saturating_sub(own)
    }

    /// Returns the number of units that are reserved for other tenants, which have at most as many as this one.
    fn reserved(&self, tenant: &str, now: Instant) -> u64 {
        let own = self.of(tenant);
        let precedes =
            |claim: &&Claim| &*claim.tenant != tenant && claim.until > now && self.of(&claim.tenant) <= own;
        self.claims.iter().filter(precedes).map(|claim| claim.units).sum()
    }

    /// Gives units to a share. Returns false if there are too few for it now.
    pub(super) fn take(&mut self, request: Request<'_>, now: Instant) -> bool {
        let free = self.free.saturating_sub(self.reserved(request.tenant, now));
        if request.units > self.free || self.needed(request) > free {
            return false;
        }
        self.claims
            .retain(|claim| claim.tenant != *request.tenant && claim.until > now);
        self.free -= request.units;
        *self.tenants.entry(Arc::clone(request.tenant)).or_default() += request.units;
        let held = self.shares.entry(request.share).or_insert_with(|| {
            self.revocable += usize::from(request.token.is_some());
            ShareState {
                tenant: Arc::clone(request.tenant),
                units: 0,
                since: now,
                token: request.token.cloned(),
                revoked: None,
            }
        });
        held.units += request.units;
        true
    }

    pub(super) fn give_back(&mut self, share: u64, units: u64) {
        let Some(held) = self.shares.get_mut(&share) else {
            return;
        };
        let units = units.min(held.units);
        held.units -= units;
        self.free += units;
        if let Some(of_tenant) = self.tenants.get_mut(&held.tenant) {
            *of_tenant -= units;
            if *of_tenant == 0 {
                self.tenants.remove(&held.tenant);
            }
        }
        if held.units == 0 {
            self.remove(share);
        }
    }

    fn remove(&mut self, share: u64) -> Option<ShareState> {
        let removed = self.shares.remove(&share)?;
        self.revocable -= usize::from(removed.token.is_some());
        Some(removed)
    }

    /// Moves the units of a share to another one of its tenant.
    pub(super) fn merge(&mut self, from: u64, into: u64) {
        let Some(moved) = self.remove(from) else {
            return;
        };
        match self.shares.get_mut(&into) {
            Some(held) => {
                held.units += moved.units;
                held.since = held.since.min(moved.since);
            }
            None => {
                self.revocable += usize::from(moved.token.is_some());
                self.shares.insert(into, moved);
            }
        }
    }

    /// Revokes shares for a request that was not granted, as many as it needs, and reserves their units for its tenant. Returns the tokens of
    /// their work. A tenant revokes only from tenants with more units than it has, and beyond its floor only from tenants with more than it
    /// would have.
    pub(super) fn revoke_for(&mut self, request: Request<'_>, now: Instant) -> Vec<CancellationToken> {
        let mut tokens = Vec::new();
        if !self.is_divided || self.revocable == 0 {
            return tokens;
        }
        let stops = |held: &&ShareState| held.revoked.is_some_and(|since| since + REVOKE_AFTER > now);
        let coming: u64 = self.shares.values().filter(stops).map(|held| held.units).sum();
        let needed = self.needed(request);
        let wanted = needed.saturating_add(self.reserved(request.tenant, now));
        let mut missing = wanted.saturating_sub(self.free).saturating_sub(coming);
        while missing > 0
            && let Some(number) = self.greediest(request, now)
            && let Some(held) = self.shares.get_mut(&number)
        {
            held.revoked = Some(now);
            missing = missing.saturating_sub(held.units);
            tokens.extend(held.token.clone());
        }
        if !tokens.is_empty() {
            self.claims
                .retain(|claim| claim.tenant != *request.tenant && claim.until > now);
            self.claims.push(Claim {
                tenant: Arc::clone(request.tenant),
                units: needed,
                until: now + CLAIM,
            });
        }
        tokens
    }

    /// Returns the newest of the large shares of the tenant with the most units, among those that may be revoked for a request.
    fn greediest(&self, request: Request<'_>, now: Instant) -> Option<u64> {
        let own = self.of(request.tenant);
        let total = own.saturating_add(request.units);
        let is_floor = total <= self.units / FLOOR;
        let mut tenants: HashMap<&str, Revocable<'_>> = HashMap::new();
        for (number, held) in &self.shares {
            if held.tenant == *request.tenant || held.revoked.is_some() {
                continue;
            }
            let (units, revocable) = tenants.entry(&held.tenant).or_default();
            *units += held.units;
            if held.token.is_some() && held.since + REVOKE_AFTER <= now {
                revocable.push((*number, held));
            }
        }
        tenants
            .values()
            .filter(|(units, revocable)| {
                !revocable.is_empty() && *units > own && (is_floor || *units > total)
            })
            .max_by_key(|(units, _)| *units)
            .and_then(|(_, revocable)| {
                let largest = revocable.iter().map(|(_, held)| held.units).max()?;
                let is_large = |(_, held): &&(u64, &ShareState)| held.units >= largest.div_ceil(2);
                let newest = revocable
                    .iter()
                    .filter(is_large)
                    .max_by_key(|(number, held)| (held.since, *number));
                newest.map(|(number, _)| *number)
            })
    }
}
