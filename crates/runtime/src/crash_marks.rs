//! Marks of passes in progress, in a file that outlives the process: they tell which object's pass ended it.
//!
//! A stack overflow, an abort or a kill for lack of memory leaves no other trace. Each pass writes its mark to the page cache, which
//! outlives the process. After an end without a shutdown, the objects that were in a pass are suspects: they run one at a time, beside all
//! others, so that another such end points at one of them. An object that is blamed often enough is set aside.

mod blame;
mod file;
#[cfg(test)]
mod tests;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use blame::Ledger;
pub(crate) use blame::Standing;
use file::MarkFile;

use crate::slots::Slots;

/// An object in one state: another generation or another request is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Hash of kind, namespace and name.
    object: u64,
    state: u64,
}

impl Subject {
    /// `state` is a hash of UID, generation and requests. An update of the program may change the hashes: then, all is tried again.
    pub(crate) fn new(object: impl Hash, state: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        object.hash(&mut hasher);
        let object = hasher.finish();
        Self { object, state }
    }
}

/// The end of a pass that did not end the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassEnd {
    /// The pass did all of its work.
    Complete,
    /// It failed, or waits for something else: it may not have come to the dangerous part.
    Partial,
    /// It was cut short.
    Cut,
}

/// The marks of a process. Clones share them.
#[derive(Clone)]
pub(crate) struct CrashMarks {
    state: Arc<Mutex<State>>,
    /// Suspects run one at a time; namespaces take turns.
    lane: Slots,
}

struct State {
    ledger: Ledger,
    /// `None` without a file, and after a failed write.
    file: Option<MarkFile>,
}

impl CrashMarks {
    /// Reads the marks of the process before, and starts to write its own. `scope` tells processes apart
    /// that share the directory, for other clusters for example. Without a usable file, marks end with the process; this is logged.
    pub(crate) fn open(dir: &Path, controller: &str, scope: &str) -> Self {
        let (file, marks) = match MarkFile::open(dir, controller, scope) {
            Ok((file, marks)) => (Some(file), marks),
            Err(error) => {
                tracing::warn!(
                    %error,
                    dir = %dir.display(),
                    "cannot note which objects are worked on: one that ends this process will do so again"
                );
                (None, Vec::new())
            }
        };
        let ledger = Ledger::after(marks);
        let (suspects, set_aside) = ledger.counts();
        if suspects + set_aside > 0 {
            tracing::warn!(
                suspects,
                set_aside,
                "the process ended without a shutdown before: suspects are tried one at a time"
            );
        }
        let mut state = State { ledger, file };
        state.rewrite();
        Self {
            state: Arc::new(Mutex::new(state)),
            lane: Slots::new(1),
        }
    }

    pub(crate) fn standing(&self, subject: Subject) -> Standing {
        let mut state = self.state.lock();
        let (standing, changed) = state.ledger.standing(subject);
        state.write(changed);
        standing
    }

    /// Returns the time for which a suspect keeps other suspects waiting.
    pub(crate) fn time_alone(&self) -> Duration {
        let (suspects, _) = self.state.lock().ledger.counts();
        blame::time_alone(suspects)
    }

    /// The lane of suspects.
    pub(crate) fn lane(&self) -> &Slots {
        &self.lane
    }

    /// Notes that a pass begins. It has ended when the mark is dropped.
    pub(crate) fn begin(&self, subject: Subject) -> PassMark {
        let mut state = self.state.lock();
        let slot = state.ledger.begin(subject);
        state.write(slot);
        PassMark {
            marks: self.clone(),
            slot,
            end: PassEnd::Cut,
        }
    }

    /// Notes that the process ends on purpose: no pass is to blame for it. Later marks are not written.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        let has_blame = state.ledger.end_all();
        state.rewrite();
        if let Some(file) = state.file.take()
            && !has_blame
            && let Err(error) = file.remove()
        {
            tracing::info!(%error, "the file of passes in progress stays");
        }
    }
}

impl State {
    fn write(&mut self, slot: Option<usize>) {
        if let (Some(file), Some(slot)) = (&self.file, slot) {
            let written = file.write(slot, self.ledger.mark(slot));
            self.check(written);
        }
    }

    fn rewrite(&mut self) {
        if let Some(file) = &self.file {
            let written = file.rewrite(self.ledger.marks());
            self.check(written);
        }
    }

    fn check(&mut self, written: std::io::Result<()>) {
        if let Err(error) = written {
            tracing::warn!(%error, "cannot note which objects are worked on, from now on");
            self.file = None;
        }
    }
}

/// The mark of a pass in progress. Dropping it removes the mark.
pub(crate) struct PassMark {
    marks: CrashMarks,
    slot: Option<usize>,
    end: PassEnd,
}

impl PassMark {
    pub(crate) fn end(mut self, end: PassEnd) {
        self.end = end;
    }
}

impl Drop for PassMark {
    fn drop(&mut self) {
        let Some(slot) = self.slot else { return };
        let mut state = self.marks.state.lock();
        state.ledger.end(slot, self.end);
        state.write(Some(slot));
    }
}
