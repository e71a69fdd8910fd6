//! Remembered proofs that commits are on branches.

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;

const MAX_PROOFS: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Proof {
    pub(super) tenant: String,
    pub(super) url: String,
    pub(super) branch: String,
    pub(super) commit: String,
    pub(super) head: String,
}

impl Proof {
    fn is_like(&self, other: &Self) -> bool {
        self.commit == other.commit
            && self.branch == other.branch
            && self.url == other.url
            && self.tenant == other.tenant
    }
}

/// Proofs that commits are on branches, which hold until the heads move. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Proofs(Arc<Mutex<HashSet<Proof>>>);

impl Proofs {
    pub(super) fn has(&self, proof: &Proof) -> bool {
        self.0.lock().contains(proof)
    }

    pub(super) fn remember(&self, proof: Proof) {
        let mut all = self.0.lock();
        // The older proof of the commit is obsolete.
        all.retain(|other| !other.is_like(&proof));
        if all.len() >= MAX_PROOFS
            && let Some(other) = all.iter().next().cloned()
        {
            all.remove(&other);
        }
        all.insert(proof);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(tenant: &str, head: usize, commit: usize) -> Proof {
        Proof {
            tenant: tenant.to_owned(),
            url: "https://example.com/a".to_owned(),
            branch: "main".to_owned(),
            commit: commit.to_string(),
            head: head.to_string(),
        }
    }

    #[test]
    fn proofs_are_of_one_tenant_and_head_and_bounded_in_number() {
        let proofs = Proofs::default();
        proofs.remember(proof("a", 1, 2));
        assert!(
            proofs.has(&proof("a", 1, 2)) && !proofs.has(&proof("b", 1, 2)) && !proofs.has(&proof("a", 3, 2))
        );
        proofs.remember(proof("a", 3, 2));
        assert!(
            proofs.has(&proof("a", 3, 2)) && !proofs.has(&proof("a", 1, 2)),
            "the head moved"
        );
        for commit in 0..=MAX_PROOFS {
            proofs.remember(proof("b", 1, commit));
        }
        assert_eq!(proofs.0.lock().len(), MAX_PROOFS);
        assert!(proofs.has(&proof("b", 1, MAX_PROOFS)));
    }
}
