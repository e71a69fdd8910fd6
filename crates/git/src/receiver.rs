//! Receiving a pack: measured, and then indexed, in memory or in a directory.

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

/// The bounds within which the pack of a fetch is received, and the place for it.
pub(crate) struct Receiver<'a> {
    /// The directory for the temporary ones of large packs.
    pub(crate) above: &'a Path,
    pub(crate) limits: &'a Limits,
    pub(crate) clock: &'a Clock,
    pub(crate) intake: &'a Intake,
    /// The URL of the repository in messages.
    pub(crate) shown: &'a str,
    /// Ends the work when it becomes true.
    pub(crate) stop: &'a AtomicBool,
}

impl Receiver<'_> {
    /// Receives and indexes a pack.
    ///
    /// # Errors
    /// Fails when the pack can't be read, is damaged or larger than it may be, or there is no memory or space for it.
    pub(crate) fn receive(&self, pack: &mut dyn BufRead) -> gix::Result<Objects> {
        self.index(spool(pack, self.above, self.intake))
    }

    fn index(&self, spooled: Result<Spooled, Error>) -> gix::Result<Objects> {
        let failed = |error: Error| GixError::from_error(self.intake.fail(error));
        let spooled = spooled.map_err(failed)?;
        let needed = pack::measure(&spooled, self.limits, self.clock, self.shown).map_err(failed)?;
        match spooled {
            Spooled::Held(mut pack) if self.has_memory(needed) => {
                pack.shrink_to_fit();
                Objects::held(pack, self.limits, self.stop)
            }
            // Nobody who holds memory waits for more, so that fetches never wait for each other.
            other => {
                let stored = other.store(self.above, self.intake).map_err(failed)?;
                self.intake.take_memory(needed.work).map_err(failed)?;
                Objects::stored(stored, self.limits, self.stop, self.intake)
            }
        }
    }

    /// Takes the memory of a pack that stays there, and returns true if nothing must be waited for.
    fn has_memory(&self, needed: Needed) -> bool {
        if !self.intake.try_keep(needed.index) {
            return false;
        }
        let is_there = self.intake.try_take_memory(needed.work);
        if !is_there {
            self.intake.give_back_kept(needed.index);
        }
        is_there
    }
}

#[cfg(test)]
mod tests;
