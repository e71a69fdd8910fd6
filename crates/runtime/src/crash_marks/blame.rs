//! Decides who is to blame for the end of a process. Pure.

use std::{collections::HashMap, time::Duration};

use super::{PassEnd, Subject};

/// Maximum number of marks. Passes beyond it have none.
pub(super) const CAPACITY: usize = 2048;

/// Points of an object that was in its pass at the end of a process. Three ends set an object aside in any case, two if it was the only
/// suspect at both, or if nothing else ran at one of them.
const AMONG_SUSPECTS: u8 = 2;
const ONLY_SUSPECT: u8 = 3;
const ALONE: u8 = 4;
const SET_ASIDE: u8 = 6;

/// Time for which a suspect keeps other suspects waiting. One that ends the process mostly does so soon.
const SECONDS_ALONE: u64 = 5;
/// Time in which all suspects begin, if each may have a second.
const SECONDS_OF_ALL: u64 = 60;

/// Returns the time for which each of the suspects keeps the others waiting: 1 to 5 s, a minute for all if there are at most 60.
pub(super) fn time_alone(suspects: usize) -> Duration {
    let share = SECONDS_OF_ALL / u64::try_from(suspects).unwrap_or(u64::MAX).max(1);
    Duration::from_secs(share.clamp(1, SECONDS_ALONE))
}

/// Number of passes, other than complete ones, after which a suspect is none.
const SURVIVALS: u8 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) subject: Subject,
    pub(super) is_running: bool,
    pub(super) points: u8,
    /// Number of passes since the last blame.
    pub(super) survived: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Clear,
    Suspect,
    /// Its passes ended the process: it gets none until it changes.
    SetAside,
}

/// The marks of all objects, each in a slot of the file.
#[derive(Debug)]
pub(super) struct Ledger {
    slots: Vec<Option<Mark>>,
    free: Vec<usize>,
    /// Slots by the hashes of objects.
    objects: HashMap<u64, usize>,
}

impl Ledger {
    /// Takes the marks that the process before left: objects in a pass are to blame for its end.
    pub(super) fn after(mut marks: Vec<Mark>) -> Self {
        let running = marks.iter().filter(|mark| mark.is_running).count();
        let suspects = marks
            .iter()
            .filter(|mark| mark.is_running && mark.points > 0)
            .count();
        for mark in marks.iter_mut().filter(|mark| mark.is_running) {
            let points = match (running, suspects) {
                (1, _) => ALONE,
                (_, 1) if mark.points > 0 => ONLY_SUSPECT,
                _ => AMONG_SUSPECTS,
            };
            mark.points = mark.points.saturating_add(points);
            mark.survived = 0;
            mark.is_running = false;
        }
        // The most blamed ones stay if there are too many.
        marks.sort_by_key(|mark| std::cmp::Reverse(mark.points));
        marks.truncate(CAPACITY / 2);
        let mut ledger = Self {
            slots: vec![None; CAPACITY],
            free: (0..CAPACITY).rev().collect(),
            objects: HashMap::new(),
        };
        for mark in marks {
            ledger.insert(mark);
        }
        ledger
    }

    /// Returns the marks of all slots.
    pub(super) fn marks(&self) -> impl Iterator<Item = Option<&Mark>> {
        self.slots.iter().map(Option::as_ref)
    }

    pub(super) fn mark(&self, slot: usize) -> Option<&Mark> {
        self.slots.get(slot)?.as_ref()
    }

    /// Returns the numbers of suspects and of objects that are set aside.
    pub(super) fn counts(&self) -> (usize, usize) {
        let blamed = || self.slots.iter().flatten().filter(|mark| mark.points > 0);
        let set_aside = blamed().filter(|mark| mark.points >= SET_ASIDE).count();
        (blamed().count() - set_aside, set_aside)
    }

    /// Returns the standing of an object, and the slot that changed. One that was set aside in another state is a suspect again, which the
    /// next end sets aside.
    pub(super) fn standing(&mut self, subject: Subject) -> (Standing, Option<usize>) {
        let Some((slot, mark)) = self.find(subject) else {
            return (Standing::Clear, None);
        };
        if mark.points >= SET_ASIDE {
            if mark.subject.state == subject.state {
                return (Standing::SetAside, None);
            }
            mark.points = SET_ASIDE - ONLY_SUSPECT;
            mark.survived = 0;
            mark.subject = subject;
            return (Standing::Suspect, Some(slot));
        }
        match mark.points {
            0 => (Standing::Clear, None),
            _ => (Standing::Suspect, None),
        }
    }

    /// Returns the slot of the pass; `None` if all are taken, or if the object is in a pass already.
    pub(super) fn begin(&mut self, subject: Subject) -> Option<usize> {
        if let Some((slot, mark)) = self.find(subject) {
            if mark.is_running {
                return None;
            }
            mark.is_running = true;
            mark.subject = subject;
            return Some(slot);
        }
        self.insert(Mark {
            subject,
            is_running: true,
            points: 0,
            survived: 0,
        })
    }

    pub(super) fn end(&mut self, slot: usize, end: PassEnd) {
        let Some(mark) = self.slots.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        mark.is_running = false;
        mark.survived = match end {
            PassEnd::Complete => SURVIVALS,
            PassEnd::Partial => mark.survived.saturating_add(1),
            PassEnd::Cut => mark.survived,
        };
        if mark.points == 0 || mark.survived >= SURVIVALS {
            self.remove(slot);
        }
    }

    /// Ends all passes and keeps the blame. Returns true if there is any.
    pub(super) fn end_all(&mut self) -> bool {
        for slot in 0..self.slots.len() {
            self.end(slot, PassEnd::Cut);
        }
        !self.objects.is_empty()
    }

    fn find(&mut self, subject: Subject) -> Option<(usize, &mut Mark)> {
        let slot = *self.objects.get(&subject.object)?;
        let mark = self.slots.get_mut(slot)?.as_mut()?;
        Some((slot, mark))
    }

    fn insert(&mut self, mark: Mark) -> Option<usize> {
        let slot = self.free.pop()?;
        *self.slots.get_mut(slot)? = Some(mark);
        self.objects.insert(mark.subject.object, slot);
        Some(slot)
    }

    fn remove(&mut self, slot: usize) {
        if let Some(mark) = self.slots.get_mut(slot).and_then(Option::take) {
            self.objects.remove(&mark.subject.object);
            self.free.push(slot);
        }
    }
}
