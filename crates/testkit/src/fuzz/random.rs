//! Random choices that are recorded, so that they can be replayed, and made smaller.

use std::{fmt::Debug, ops::Range};

/// Characters that parsers often handle wrongly.
const ODD: &[char] = &[
    '\0',
    '\t',
    '\n',
    '\r',
    '\u{b}',
    ' ',
    '"',
    '\'',
    '`',
    '%',
    '\\',
    '/',
    '.',
    ':',
    '@',
    '#',
    '?',
    '*',
    '[',
    ']',
    '{',
    '}',
    '<',
    '~',
    '\u{7f}',
    '\u{85}',
    '\u{a0}',
    'é',
    'ß',
    '\u{301}',
    '\u{200b}',
    '\u{2028}',
    '\u{202e}',
    '绿',
    '\u{feff}',
    '\u{fffd}',
    '\u{ffff}',
    '😀',
    '\u{10ffff}',
];

/// Numbers at the bounds of common types.
const EDGES: &[i64] = &[
    0,
    1,
    -1,
    2,
    9,
    10,
    127,
    128,
    255,
    256,
    65_535,
    65_536,
    2_147_483_647,
    2_147_483_648,
    -2_147_483_648,
    4_294_967_295,
    4_294_967_296,
    9_007_199_254_740_993,
    i64::MAX,
    i64::MIN,
];

#[derive(Debug)]
enum Choices {
    Fresh(fastrand::Rng),
    Replay(std::vec::IntoIter<u64>),
}

/// The random choices of one case. Smaller numbers make simpler values: the first of several, the shorter string.
#[derive(Debug)]
pub struct Random {
    choices: Choices,
    taken: Vec<u64>,
    notes: Option<Vec<String>>,
}

impl Random {
    pub(super) fn seeded(seed: u64) -> Self {
        Self::new(Choices::Fresh(fastrand::Rng::with_seed(seed)))
    }

    /// Replays the given choices, followed by zeros.
    pub(super) fn replayed(choices: Vec<u64>) -> Self {
        Self::new(Choices::Replay(choices.into_iter()))
    }

    fn new(choices: Choices) -> Self {
        Self {
            choices,
            taken: Vec::new(),
            notes: None,
        }
    }

    pub(super) fn with_notes(mut self) -> Self {
        self.notes = Some(Vec::new());
        self
    }

    /// Returns the size of the input so far: eight bytes for each choice.
    pub(super) fn input_bytes(&self) -> usize {
        self.taken.len() * size_of::<u64>()
    }

    pub(super) fn taken(self) -> Vec<u64> {
        self.taken
    }

    pub(super) fn notes(self) -> Vec<String> {
        self.notes.unwrap_or_default()
    }

    /// Adds a part of the input to the message of a failing case; costs nothing if the case passes.
    pub fn note(&mut self, name: &str, value: &impl Debug) {
        if let Some(notes) = &mut self.notes {
            notes.push(format!("  {name}: {value:?}"));
        }
    }

    fn take(&mut self, last: u64, make: impl FnOnce(&mut fastrand::Rng) -> u64) -> u64 {
        let value = match &mut self.choices {
            Choices::Fresh(random) => make(random),
            Choices::Replay(values) => values.next().unwrap_or_default().min(last),
        };
        self.taken.push(value);
        value
    }

    /// Returns a number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let last = (n as u64).saturating_sub(1);
        usize::try_from(self.take(last, |random| random.u64(0..=last))).unwrap_or_default()
    }

    pub fn within(&mut self, range: Range<usize>) -> usize {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    pub fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Returns true once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) + 1 == n
    }

    pub fn bits(&mut self) -> u64 {
        self.take(u64::MAX, |random| random.u64(..))
    }

    /// Returns an integer of any size, often one at the bounds of a type.
    pub fn int(&mut self) -> i64 {
        match self.below(4) {
            0 => self.below(20) as i64,
            1 => *self.pick(EDGES),
            2 => self.bits() as i64 >> self.below(64),
            _ => -(self.below(1000) as i64),
        }
    }

    /// Returns a finite number, often with a fraction.
    pub fn float(&mut self) -> f64 {
        match self.below(3) {
            0 => self.int() as f64 / 8.0,
            1 => self.int() as f64,
            _ => Some(f64::from_bits(self.bits()))
                .filter(|float| float.is_finite())
                .unwrap_or_default(),
        }
    }

    #[allow(clippy::indexing_slicing, reason = "a test that picks from nothing is wrong")]
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len());
        &from[at]
    }

    pub fn list<T>(&mut self, length: Range<usize>, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let last = length.end.saturating_sub(1).max(length.start);
        // One choice before each item, so that leaving out some choices leaves out an item.
        let go_on = 1.0 - 1.0 / ((length.start + last) as f64 / 2.0 + 1.0);
        let mut list = Vec::new();
        while list.len() < last && (list.len() < length.start || self.likely(go_on)) {
            list.push(item(self));
        }
        list
    }

    fn likely(&mut self, probability: f64) -> bool {
        self.take(1, |random| u64::from(random.f64() < probability)) == 1
    }

    /// Returns a character, often one that parsers handle wrongly.
    pub fn char(&mut self) -> char {
        match self.below(3) {
            0 => char::from(b'a' + self.below(26) as u8),
            1 => *self.pick(ODD),
            _ => u32::try_from(self.below(0x11_0000))
                .ok()
                .and_then(char::from_u32)
                .unwrap_or('a'),
        }
    }

    /// Returns a string of pieces that its parser knows, with a few others, and sometimes one repeated many times.
    pub fn text(&mut self, pieces: &[&str], length: Range<usize>) -> String {
        let piece = |random: &mut Self| match random.below(24) {
            23 => random.char().to_string(),
            22 => random.pick(pieces).repeat(random.within(2..60)),
            _ => (*random.pick(pieces)).to_owned(),
        };
        self.list(length, piece).concat()
    }

    pub fn word(&mut self, length: Range<usize>) -> String {
        self.list(length, Self::char).into_iter().collect()
    }

    pub fn bytes(&mut self, length: Range<usize>) -> Vec<u8> {
        self.list(length, |random| random.below(256) as u8)
    }

    /// Damages `bytes` in up to `times` places: flips, cuts, repeats, overwrites, inserts.
    pub fn damage(&mut self, bytes: &mut Vec<u8>, times: usize) {
        for _ in 0..self.below(times + 1) {
            let at = self.below(bytes.len() + 1);
            match self.below(5) {
                0 => bytes.truncate(at),
                1 => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
                2 => {
                    let value = *self.pick(&[0, 0xff, b'0', b'/', b'.', 0x80, b' ']);
                    let until = (at + self.within(1..16)).min(bytes.len());
                    bytes.get_mut(at..until).unwrap_or_default().fill(value);
                }
                3 => {
                    let new = self.bytes(0..8);
                    bytes.splice(at..at, new);
                }
                _ => {
                    let until = (at + self.below(600)).min(bytes.len());
                    let copy = bytes.get(at..until).unwrap_or_default().to_vec();
                    let to = self.below(bytes.len() + 1);
                    bytes.splice(to..to, copy);
                }
            }
        }
    }
}
