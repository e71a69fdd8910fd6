//! Searches that count their work and can be interrupted: Pike's simulation of an automaton.
//!
//! Every thread is at a state of the program, and no two are at the same: a byte of the string costs at most one visit of each
//! state. Threads are in the order of their priority, which makes the first match the one that Go finds.

use std::{mem, ops::Range};

use regex_automata::{
    nfa::thompson::{NFA, State},
    util::primitives::StateID,
};

use super::{Captures, Regexp};

/// A position of a group that is not part of the match.
pub(super) const NONE: usize = usize::MAX;

/// The number of visits after which they are counted.
const BATCH: u64 = 4096;

/// The number of bytes that are skipped at the cost of one visit.
const SKIPPED: usize = 64;

pub(super) type FirstBytes = [bool; 256];

/// Returns the bytes with which a match can begin; `None` if a match can be empty.
pub(super) fn first_bytes(nfa: &NFA) -> Option<Box<FirstBytes>> {
    let mut first = Box::new([false; 256]);
    let mut seen = Threads::new(nfa.states().len(), 0);
    let mut stack = vec![nfa.start_anchored()];
    let mut mark = |start: u8, end: u8| {
        let range = first.get_mut(usize::from(start)..=usize::from(end));
        range.into_iter().flatten().for_each(|first| *first = true);
    };
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        match nfa.state(id) {
            State::Match { .. } => return None,
            State::Fail => {}
            State::ByteRange { trans } => mark(trans.start, trans.end),
            State::Sparse(sparse) => sparse.transitions.iter().for_each(|it| mark(it.start, it.end)),
            State::Dense(_) => mark(0, u8::MAX),
            State::Look { next, .. } | State::Capture { next, .. } => stack.push(*next),
            State::Union { alternates } => stack.extend(alternates.iter()),
            State::BinaryUnion { alt1, alt2 } => stack.extend([*alt1, *alt2]),
        }
    }
    Some(first)
}

/// The states of threads in the order of their priority, with the positions of their groups.
#[derive(Debug)]
struct Threads {
    list: Vec<StateID>,
    /// The index in `list` of each state; meaningless for a state that is not there.
    index: Vec<u32>,
    positions: Vec<usize>,
    /// Positions of a thread.
    width: usize,
}

impl Threads {
    fn new(states: usize, width: usize) -> Self {
        Self {
            list: Vec::new(),
            index: vec![0; states],
            positions: vec![NONE; states.saturating_mul(width)],
            width,
        }
    }

    /// Returns false if a thread is at the state already.
    fn insert(&mut self, id: StateID) -> bool {
        let next = self.list.len();
        let Some(index) = self.index.get_mut(id.as_usize()) else {
            return false;
        };
        if self.list.get(*index as usize) == Some(&id) {
            return false;
        }
        *index = u32::try_from(next).unwrap_or(u32::MAX);
        self.list.push(id);
        true
    }

    fn range(&self, id: StateID) -> Range<usize> {
        let start = id.as_usize().saturating_mul(self.width);
        start..start.saturating_add(self.width)
    }

    fn positions(&self, id: StateID) -> &[usize] {
        self.positions.get(self.range(id)).unwrap_or_default()
    }

    fn set_positions(&mut self, id: StateID, positions: &[usize]) {
        let range = self.range(id);
        if let Some(own) = self.positions.get_mut(range) {
            own.copy_from_slice(positions);
        }
    }
}

enum Frame {
    Visit(StateID),
    /// Resets the position of a group after a branch.
    Reset(usize, usize),
}

/// A search for all matches in a string, one after the other.
pub struct Search<'a, M> {
    regexp: &'a Regexp,
    text: &'a str,
    meter: M,
    /// The position from which the next match is searched; `None` at the end.
    from: Option<usize>,
    last_end: Option<usize>,
    machine: Option<Machine>,
}

impl<'a, E, M: FnMut(u64) -> Result<(), E>> Search<'a, M> {
    pub(super) fn new(regexp: &'a Regexp, text: &'a str, meter: M) -> Self {
        Self {
            regexp,
            text,
            meter,
            from: Some(0),
            last_end: None,
            machine: None,
        }
    }

    /// Returns true if the string has a match.
    pub fn is_match(mut self) -> Result<bool, E> {
        self.run(0, 0).map(|found| found.is_some())
    }

    /// Returns the next match.
    #[allow(clippy::should_implement_trait, reason = "a failed search has no next item")]
    pub fn next(&mut self) -> Result<Option<Range<usize>>, E> {
        let positions = self.advance(2)?;
        Ok(positions.and_then(|positions| Some(*positions.first()?..*positions.get(1)?)))
    }

    /// Returns the next match with its groups.
    pub fn next_captures(&mut self) -> Result<Option<Captures<'a>>, E> {
        let width = self.regexp.nfa.group_info().slot_len();
        Ok(self.advance(width)?.map(|positions| Captures {
            regexp: self.regexp,
            text: self.text,
            positions,
        }))
    }

    /// As in Go, an empty match directly after another match doesn't count.
    fn advance(&mut self, width: usize) -> Result<Option<Vec<usize>>, E> {
        while let Some(from) = self.from {
            let Some(found) = self.run(from, width)? else {
                self.from = None;
                break;
            };
            let (start, end) = (found.first().copied(), found.get(1).copied());
            let end = end.unwrap_or(self.text.len());
            if start == Some(end) && self.last_end == Some(end) {
                let next = self.text.get(end..).and_then(|rest| rest.chars().next());
                self.from = next.map(|c| end.saturating_add(c.len_utf8()));
                continue;
            }
            self.from = Some(end);
            self.last_end = Some(end);
            return Ok(Some(found));
        }
        Ok(None)
    }

    fn run(&mut self, from: usize, width: usize) -> Result<Option<Vec<usize>>, E> {
        let nfa = &self.regexp.nfa;
        let fits = |machine: &mut Machine| machine.positions.len() == width;
        let machine = self
            .machine
            .take_if(fits)
            .unwrap_or_else(|| Machine::new(nfa, width));
        self.machine
            .insert(machine)
            .find(self.regexp, self.text, from, &mut self.meter)
    }
}

struct Machine {
    current: Threads,
    next: Threads,
    stack: Vec<Frame>,
    positions: Vec<usize>,
    /// Visits that were not counted yet.
    visits: u64,
}

impl Machine {
    fn new(nfa: &NFA, width: usize) -> Self {
        let threads = || Threads::new(nfa.states().len(), width);
        Self {
            current: threads(),
            next: threads(),
            stack: Vec::new(),
            positions: vec![NONE; width],
            visits: 0,
        }
    }

    /// Returns the positions of the groups of the leftmost match from a position on.
    fn find<E>(
        &mut self,
        regexp: &Regexp,
        text: &str,
        from: usize,
        meter: &mut impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Option<Vec<usize>>, E> {
        let (nfa, bytes) = (&regexp.nfa, text.as_bytes());
        self.current.list.clear();
        // The threads take memory, which is as much work.
        self.visits += 1 + nfa.states().len() as u64 / 64;
        let mut found = None;
        let mut at = from;
        loop {
            if self.current.list.is_empty() {
                let is_over = found.is_some() || at > from && nfa.is_always_start_anchored();
                let next = if is_over {
                    None
                } else {
                    self.skip(regexp, bytes, at, meter)?
                };
                match next {
                    Some(next) => at = next,
                    None => break,
                }
            }
            let starts = at == from || !nfa.is_always_start_anchored();
            if found.is_none() && starts && text.is_char_boundary(at) {
                self.positions.fill(NONE);
                mem::swap(&mut self.current, &mut self.next);
                self.follow(nfa, bytes, at, nfa.start_anchored());
                mem::swap(&mut self.current, &mut self.next);
            }
            if let Some(matching) = self.step(nfa, bytes, at) {
                found = Some(matching);
                if self.positions.is_empty() {
                    break;
                }
            }
            mem::swap(&mut self.current, &mut self.next);
            if self.visits >= BATCH {
                meter(mem::take(&mut self.visits))?;
            }
            if at >= bytes.len() {
                break;
            }
            at += 1;
        }
        meter(mem::take(&mut self.visits))?;
        Ok(found)
    }

    /// Returns the next position at which a match can begin.
    fn skip<E>(
        &mut self,
        regexp: &Regexp,
        bytes: &[u8],
        from: usize,
        meter: &mut impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        let Some(first) = &regexp.first else {
            return Ok(Some(from));
        };
        let mut at = from;
        for part in bytes
            .get(from..)
            .unwrap_or_default()
            .chunks(BATCH as usize * SKIPPED)
        {
            let can_begin = |byte: &u8| first.get(usize::from(*byte)).is_some_and(|first| *first);
            if let Some(found) = part.iter().position(can_begin) {
                self.visits += (found / SKIPPED) as u64;
                return Ok(Some(at + found));
            }
            at += part.len();
            meter(mem::take(&mut self.visits) + (part.len() / SKIPPED) as u64)?;
        }
        Ok(None)
    }

    /// Moves all threads over a byte into `next`, and returns the positions of a match that ends before it.
    fn step(&mut self, nfa: &NFA, bytes: &[u8], at: usize) -> Option<Vec<usize>> {
        self.next.list.clear();
        let byte = bytes.get(at).copied();
        for index in 0..self.current.list.len() {
            let id = self.current.list.get(index).copied()?;
            self.visits += 1;
            let target = match (nfa.state(id), byte) {
                (State::Match { .. }, _) => return Some(self.current.positions(id).to_vec()),
                (State::ByteRange { trans }, Some(byte)) => trans.matches_byte(byte).then_some(trans.next),
                (State::Sparse(sparse), Some(byte)) => {
                    self.visits += sparse.transitions.len() as u64 / 8;
                    sparse.matches_byte(byte)
                }
                (State::Dense(dense), Some(byte)) => dense.matches_byte(byte),
                _ => None,
            };
            if let Some(target) = target {
                self.positions.copy_from_slice(self.current.positions(id));
                self.follow(nfa, bytes, at + 1, target);
            }
        }
        None
    }

    /// Adds the threads that a state leads to without a byte to `next`, with [`Self::positions`].
    fn follow(&mut self, nfa: &NFA, bytes: &[u8], at: usize, from: StateID) {
        let cost = 1 + self.positions.len() as u64 / 4;
        self.stack.push(Frame::Visit(from));
        while let Some(frame) = self.stack.pop() {
            let mut id = match frame {
                Frame::Visit(id) => id,
                Frame::Reset(group, before) => {
                    self.positions
                        .get_mut(group)
                        .into_iter()
                        .for_each(|it| *it = before);
                    continue;
                }
            };
            while self.next.insert(id) {
                self.visits += cost;
                id = match nfa.state(id) {
                    State::Look { look, next } if nfa.look_matcher().matches(*look, bytes, at) => *next,
                    State::BinaryUnion { alt1, alt2 } => {
                        self.stack.push(Frame::Visit(*alt2));
                        *alt1
                    }
                    State::Union { alternates } => {
                        let Some((first, others)) = alternates.split_first() else {
                            break;
                        };
                        self.visits += others.len() as u64 / 4;
                        self.stack.extend(others.iter().rev().map(|id| Frame::Visit(*id)));
                        *first
                    }
                    State::Capture { next, slot, .. } => {
                        if let Some(position) = self.positions.get_mut(slot.as_usize()) {
                            self.stack.push(Frame::Reset(slot.as_usize(), *position));
                            *position = at;
                        }
                        *next
                    }
                    State::Look { .. } => break,
                    _ => {
                        self.next.set_positions(id, &self.positions);
                        break;
                    }
                };
            }
        }
    }
}
