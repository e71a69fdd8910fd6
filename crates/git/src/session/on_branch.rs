//! Proves that a commit is on a branch, without its history.
//!
//! The server is asked for the commit as if the client had the branch's head with its history: an empty pack means that the
//! commit is part of it.

use gix::{error::Error as GixError, odb::pack::data::header::decode, protocol::transport::Protocol};

use super::{
    Session,
    conversation::{self, Wanted},
    proofs::Proof,
};
use crate::{Error, Reference, Resolved, error::chain, pack::PACK_HEADER};

/// Maximum bytes of the answer. It is read up to the number of objects.
const ANSWER_BYTES: u64 = 1 << 20;

impl Session {
    pub(super) fn resolve_on(&mut self, branch: &str, wanted: Resolved) -> Result<Resolved, Error> {
        let head = self.resolve(&Reference::Branch(branch.to_owned()))?;
        let proof = Proof {
            tenant: self.tenant.clone(),
            url: self.remote.url().as_str().to_owned(),
            branch: branch.to_owned(),
            commit: wanted.commit.clone(),
            head: head.commit.clone(),
        };
        if head.commit == wanted.commit || self.proofs.has(&proof) {
            return Ok(wanted);
        }
        if !self.leads_to(&head, &wanted)? {
            return Err(Error::NotOnBranch {
                commit: wanted.commit,
                branch: branch.to_owned(),
                url: self.remote.safe_url(),
            });
        }
        self.proofs.remember(proof);
        Ok(wanted)
    }

    fn leads_to(&mut self, head: &Resolved, wanted: &Resolved) -> Result<bool, Error> {
        match self.leads_to_once(head, wanted) {
            // The server may differ from its remembered announcement.
            Err(Error::Protocol { .. }) if self.connector.forgets_announcement() => {
                self.transport = self
                    .connector
                    .transport(&self.remote, &self.clock, &self.intake)?;
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
        let handshake = self.with_memory(Self::handshake)?;
        self.intake.allow_pack(ANSWER_BYTES);
        let watch = self.clock.watch();
        let (intake, safe_url) = (&self.intake, self.remote.safe_url());
        let failed = |why: String| {
            let why = format!("the pack is damaged: {why}");
            GixError::from_error(intake.fail(Error::Protocol {
                url: safe_url.clone(),
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
            // Older servers end the session; with others, the rest of the answer is unread.
            _ => {
                self.transport = self
                    .connector
                    .transport(&self.remote, &self.clock, &self.intake)?;
            }
        }
        Ok(is_on)
    }
}
