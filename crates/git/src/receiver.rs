//! Receives a pack: measures it, then indexes it in memory or in a directory.

use std::{io::BufRead, path::Path, sync::atomic::AtomicBool};

use gix::error::Error as GixError;

use crate::{
    Error, Limits,
    clock::Clock,
    intake::Intake,
    objects::Objects,
    pack::{
        self, Needed,
        spool::{Spooled, spool},
    },
};

pub(crate) struct Receiver<'a> {
    pub(crate) above: &'a Path,
    pub(crate) limits: &'a Limits,
    pub(crate) clock: &'a Clock,
    pub(crate) intake: &'a Intake,
    pub(crate) safe_url: &'a str,
    pub(crate) stop: &'a AtomicBool,
}

impl Receiver<'_> {
    /// Receives and indexes a pack.
    pub(crate) fn receive(&self, pack: &mut dyn BufRead) -> gix::Result<Objects> {
        self.index(spool(pack, self.above, self.intake))
    }

    fn index(&self, spooled: Result<Spooled, Error>) -> gix::Result<Objects> {
        let failed = |error: Error| GixError::from_error(self.intake.fail(error));
        let spooled = spooled.map_err(failed)?;
        let needed = pack::measure(&spooled, self.limits, self.clock, self.safe_url).map_err(failed)?;
        match spooled {
            Spooled::InMemory(mut pack) if self.has_memory(needed) => {
                pack.shrink_to_fit();
                Objects::in_memory(pack, self.limits, self.stop)
            }
            // Nobody waits while holding memory, so that fetches never wait for each other.
            other => {
                let stored = other.store(self.above, self.intake).map_err(failed)?;
                self.intake.take_memory(needed.work).map_err(failed)?;
                Objects::stored(stored, self.limits, self.stop, self.intake)
            }
        }
    }

    fn has_memory(&self, needed: Needed) -> bool {
        if !self.intake.try_take_small_pack(needed.index) {
            return false;
        }
        let is_there = self.intake.try_take_memory(needed.work);
        if !is_there {
            self.intake.release_small_pack(needed.index);
        }
        is_there
    }
}

#[cfg(test)]
mod tests;
