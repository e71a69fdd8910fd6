//! Patterns of prefixes and suffixes: `*` and `?` match slashes, too.

use tree::{Budget, Exceeded};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Shortest,
    Longest,
}

/// A malformed pattern, which matches nothing.
#[derive(Debug)]
enum Stop {
    BadPattern,
    Exceeded(Exceeded),
}

impl From<Exceeded> for Stop {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

/// Returns a value without the prefix that matches a pattern.
pub(super) fn without_prefix(
    value: &[u8],
    pattern: &[u8],
    length: Length,
    budget: &Budget,
) -> Result<Vec<u8>, Exceeded> {
    let mut found = None;
    for end in (1..=value.len()).rev() {
        let prefix = value.get(..end).unwrap_or_default();
        match is_match(pattern, prefix, budget) {
            Ok(true) => {
                found = Some(end);
                if length == Length::Longest {
                    break;
                }
            }
            Ok(false) => {}
            Err(Stop::BadPattern) => return Ok(value.to_vec()),
            Err(Stop::Exceeded(exceeded)) => return Err(exceeded),
        }
    }
    Ok(value.get(found.unwrap_or(0)..).unwrap_or_default().to_vec())
}

/// Returns a value without the suffix that matches a pattern. Both are reversed for that, as in the original.
pub(super) fn without_suffix(
    value: &[u8],
    pattern: &[u8],
    length: Length,
    budget: &Budget,
) -> Result<Vec<u8>, Exceeded> {
    let rest = without_prefix(&reversed(value), &reversed(pattern), length, budget)?;
    Ok(reversed(&rest))
}

fn reversed(bytes: &[u8]) -> Vec<u8> {
    let text: String = String::from_utf8_lossy(bytes).chars().rev().collect();
    text.into_bytes()
}

fn is_match(mut pattern: &[u8], mut name: &[u8], budget: &Budget) -> Result<bool, Stop> {
    while !pattern.is_empty() {
        let (star, chunk, rest) = chunk_of(pattern);
        budget.step(scanned(chunk))?;
        pattern = rest;
        if star && chunk.is_empty() {
            return Ok(true);
        }
        let matched = match_chunk(chunk, name, budget)?;
        if let Some(left) = matched.filter(|left| left.is_empty() || !pattern.is_empty()) {
            name = left;
            continue;
        }
        if !star {
            return Ok(false);
        }
        let Some(left) = after_star(chunk, name, pattern.is_empty(), budget)? else {
            return Ok(false);
        };
        name = left;
    }
    Ok(name.is_empty())
}

/// Returns the rest of a name after the first match of a chunk that doesn't begin at its start; the last chunk must match to the end.
fn after_star<'n>(
    chunk: &[u8],
    name: &'n [u8],
    is_last: bool,
    budget: &Budget,
) -> Result<Option<&'n [u8]>, Stop> {
    for start in 1..=name.len() {
        let part = name.get(start..).unwrap_or_default();
        let matched = match_chunk(chunk, part, budget)?;
        if let Some(left) = matched.filter(|left| left.is_empty() || !is_last) {
            return Ok(Some(left));
        }
    }
    Ok(None)
}

/// Returns the steps of a scan of a part of a pattern.
const fn scanned(part: &[u8]) -> u64 {
    part.len() as u64 / 16
}

/// Splits off the first part of a pattern without a star, and tells if a star is before it.
fn chunk_of(pattern: &[u8]) -> (bool, &[u8], &[u8]) {
    let stars = pattern.iter().take_while(|c| **c == b'*').count();
    let rest = pattern.get(stars..).unwrap_or_default();
    let (mut is_in_class, mut at) = (false, 0);
    while let Some(c) = rest.get(at) {
        match c {
            b'\\' if at + 1 < rest.len() => at += 1,
            b'[' => is_in_class = true,
            b']' => is_in_class = false,
            b'*' if !is_in_class => break,
            _ => {}
        }
        at += 1;
    }
    let (chunk, rest) = rest.split_at(at.min(rest.len()));
    (stars > 0, chunk, rest)
}

/// Returns the rest of a name that begins with a chunk.
fn match_chunk<'n>(mut chunk: &[u8], mut name: &'n [u8], budget: &Budget) -> Result<Option<&'n [u8]>, Stop> {
    while let Some((&sign, after)) = chunk.split_first() {
        budget.step(1)?;
        let Some((&byte, rest)) = name.split_first() else {
            return Ok(None);
        };
        match sign {
            b'[' => {
                let (c, size) = character(name);
                name = name.get(size..).unwrap_or_default();
                let (is_inside, rest) = class(after, c)?;
                budget.step(scanned(after) - scanned(rest))?;
                chunk = rest;
                if !is_inside {
                    return Ok(None);
                }
            }
            b'?' => {
                name = name.get(character(name).1..).unwrap_or_default();
                chunk = after;
            }
            _ => {
                let (literal, after) = match sign {
                    b'\\' => after.split_first().ok_or(Stop::BadPattern)?,
                    _ => (&sign, after),
                };
                if *literal != byte {
                    return Ok(None);
                }
                (chunk, name) = (after, rest);
            }
        }
    }
    Ok(Some(name))
}

/// Returns true if a character is in the class that a chunk begins with, after its bracket, and the rest of the chunk.
fn class(mut chunk: &[u8], c: char) -> Result<(bool, &[u8]), Stop> {
    let is_negated = chunk.first() == Some(&b'^');
    if is_negated {
        chunk = chunk.get(1..).unwrap_or_default();
    }
    let (mut is_inside, mut ranges) = (false, 0);
    loop {
        if ranges > 0
            && let Some(rest) = chunk.strip_prefix(b"]")
        {
            return Ok((is_inside != is_negated, rest));
        }
        let (low, rest) = class_character(chunk)?;
        chunk = rest;
        let mut high = low;
        if let Some(rest) = chunk.strip_prefix(b"-") {
            (high, chunk) = class_character(rest)?;
        }
        is_inside |= (low..=high).contains(&c);
        ranges += 1;
    }
}

fn class_character(chunk: &[u8]) -> Result<(char, &[u8]), Stop> {
    let chunk = match chunk.first() {
        None | Some(b'-' | b']') => return Err(Stop::BadPattern),
        Some(b'\\') => chunk.get(1..).unwrap_or_default(),
        Some(_) => chunk,
    };
    let (c, size) = character(chunk);
    match chunk.get(size..) {
        Some(rest) if size > 0 && !rest.is_empty() && c != char::REPLACEMENT_CHARACTER => Ok((c, rest)),
        _ => Err(Stop::BadPattern),
    }
}

/// Returns the first character and its size in bytes; an invalid byte is a replacement character.
fn character(bytes: &[u8]) -> (char, usize) {
    let start = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let valid = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) => {
            std::str::from_utf8(start.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
        }
    };
    match valid.chars().next() {
        Some(c) => (c, c.len_utf8()),
        None => (char::REPLACEMENT_CHARACTER, bytes.len().min(1)),
    }
}
