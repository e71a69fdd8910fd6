//! Proves that a commit is on a branch, without its history.
//!
//! The server is asked for the commit as if the client had the head of the branch and everything that it leads to: a pack without any
//! object means that the commit is among that.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use gix::{error::Error as GixError, odb::pack::data::header::decode, protocol::transport::Protocol};

use super::{
    Session,
    conversation::{self, Wanted},
};
use crate::{Error, Reference, Resolved, error::chain, lock::lock, pack::PACK_HEADER};

/// Maximum number of commits of branches that are remembered.
const MAX_KEPT: usize = 4096;
/// Bytes that a server may send of its answer. It is read as far as the number of objects.
const ANSWER_BYTES: u64 = 1 << 20;

/// A commit, and a head that leads to it, in a repository that a tenant sees.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    tenant: String,
    url: String,
    branch: String,
    commit: String,
    head: String,
}

impl Key {
    /// Returns true if both are about the same commit and branch.
    fn is_like(&self, other: &Self) -> bool {
        self.commit == other.commit
            && self.branch == other.branch
            && self.url == other.url
            && self.tenant == other.tenant
    }
}

/// Commits that were found to be on branches. They stay on them until the heads of the branches move. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Proofs(Arc<Mutex<HashSet<Key>>>);

impl Proofs {
    fn has(&self, key: &Key) -> bool {
        lock(&self.0).contains(key)
    }

    fn remember(&self, key: Key) {
        let mut all = lock(&self.0);
        // The older proof of the commit is of no use any more.
        all.retain(|other| !other.is_like(&key));
        if all.len() >= MAX_KEPT
            && let Some(other) = all.iter().next().cloned()
        {
            all.remove(&other);
        }
        all.insert(key);
    }
}

impl Session {
    /// Returns `wanted` if it is on a branch of the server.
    pub(super) fn resolve_on(&mut self, branch: &str, wanted: Resolved) -> Result<Resolved, Error> {
        let head = self.resolve(&Reference::Branch(branch.to_owned()))?;
        let key = Key {
            tenant: self.tenant.clone(),
            url: self.remote.url().as_str().to_owned(),
            branch: branch.to_owned(),
            commit: wanted.commit.clone(),
            head: head.commit.clone(),
        };
        if head.commit == wanted.commit || self.proofs.has(&key) {
            return Ok(wanted);
        }
        if !self.leads_to(&head, &wanted)? {
            return Err(Error::NotOnBranch {
                commit: wanted.commit,
                branch: branch.to_owned(),
                url: self.remote.shown(),
            });
        }
        self.proofs.remember(key);
        Ok(wanted)
    }

    /// Asks the server if a commit is one of those that a head leads to.
    fn leads_to(&mut self, head: &Resolved, wanted: &Resolved) -> Result<bool, Error> {
        match self.leads_to_once(head, wanted) {
            // The server may have other capabilities than when it announced itself.
            Err(Error::Protocol { .. }) if self.way.forgets_announcement() => {
                self.transport = self.way.transport(&self.remote, &self.clock, &self.intake)?;
                self.leads_to_once(head, wanted)
            }
            done => done,
        }
    }

    fn leads_to_once(&mut self, head: &Resolved, wanted: &Resolved) -> Result<bool, Error> {
        let asked = Wanted::Beside {
            commit: wanted.want()?,
            head: head.want()?,
        };
        let handshake = self.with_room(Self::handshake)?;
        self.intake.allow_pack(ANSWER_BYTES);
        let watch = self.clock.watch();
        let (intake, shown) = (&self.intake, self.remote.shown());
        let failed = |why: String| {
            let why = format!("the pack is damaged: {why}");
            GixError::from_error(intake.fail(Error::Protocol {
                url: shown.clone(),
                why,
            }))
        };
        let transport = &mut self.transport;
        let received = conversation::fetch(asked, &handshake, transport, &watch.stop, |pack| {
            let mut bytes = [0; PACK_HEADER];
            let read = pack.read_exact(&mut bytes);
            read.map_err(|error| failed(error.to_string()))?;
            let (_, objects) = decode(&bytes).map_err(|error| failed(chain(&error)))?;
            Ok((objects == 0, objects == 0))
        });
        let is_on = received.map_err(|error| self.explain(&error, Some(wanted)))?;
        match handshake.server_protocol_version {
            Protocol::V2 if is_on => self.handshake = Some(handshake),
            // Older servers end the conversation, and else the rest of the answer is unread.
            _ => self.transport = self.way.transport(&self.remote, &self.clock, &self.intake)?,
        }
        Ok(is_on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(tenant: &str, head: usize, commit: usize) -> Key {
        Key {
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
        proofs.remember(key("a", 1, 2));
        assert!(proofs.has(&key("a", 1, 2)) && !proofs.has(&key("b", 1, 2)) && !proofs.has(&key("a", 3, 2)));
        proofs.remember(key("a", 3, 2));
        assert!(
            proofs.has(&key("a", 3, 2)) && !proofs.has(&key("a", 1, 2)),
            "the head moved"
        );
        for commit in 0..=MAX_KEPT {
            proofs.remember(key("b", 1, commit));
        }
        assert_eq!(lock(&proofs.0).len(), MAX_KEPT);
        assert!(proofs.has(&key("b", 1, MAX_KEPT)));
    }
}
