//! The operators of substitutions. Offsets and lengths count bytes.

use std::borrow::Cow;

use tree::Budget;

use super::{SubstitutionError, glob};

/// Returns true for an operator that gives a value to a variable that is unset.
pub(super) fn gives_default(operator: &str) -> bool {
    matches!(operator, "=" | ":=" | ":-" | ":+" | ":?")
}

/// A variable that an operator is applied to.
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a [u8],
    pub(super) budget: &'a Budget,
}

impl Call<'_> {
    /// Returns the value of the substitution, and charges its size to the budget.
    pub(super) fn apply(
        &self,
        operator: &str,
        arguments: &[Cow<'_, [u8]>],
    ) -> Result<Vec<u8>, SubstitutionError> {
        let value = self.value;
        let argument = arguments.first().map(|argument| &**argument);
        let result = match (operator, argument) {
            ("#", None) => value.len().to_string().into_bytes(),
            (",", _) => first(value, lower),
            (",,", _) => all(value, lower),
            ("^", _) => first(value, upper),
            ("^^", _) => all(value, upper),
            (":", Some(_)) => self.part(arguments)?,
            ("#", Some(pattern)) => {
                glob::without_prefix(value, pattern, glob::Length::Shortest, self.budget)?
            }
            ("##", Some(pattern)) => {
                glob::without_prefix(value, pattern, glob::Length::Longest, self.budget)?
            }
            ("%", Some(pattern)) => {
                glob::without_suffix(value, pattern, glob::Length::Shortest, self.budget)?
            }
            ("%%", Some(pattern)) => {
                glob::without_suffix(value, pattern, glob::Length::Longest, self.budget)?
            }
            ("/" | "//" | "/#" | "/%", Some(pattern)) => {
                return self.replaced(operator, pattern, arguments.get(1).map(|new| &**new));
            }
            _ if value.is_empty() => arguments.concat(),
            _ => value.to_vec(),
        };
        self.budget.output(result.len() as u64)?;
        Ok(result)
    }

    /// Returns the bytes from an offset, up to a length. If either is not a number, that is the whole value.
    fn part(&self, arguments: &[Cow<'_, [u8]>]) -> Result<Vec<u8>, SubstitutionError> {
        let number = |at: usize| {
            let text = std::str::from_utf8(arguments.get(at)?).ok()?;
            text.parse::<i64>().ok()
        };
        let value = self.value;
        let size = i64::try_from(value.len()).unwrap_or(i64::MAX);
        let Some(offset) = number(0) else {
            return Ok(value.to_vec());
        };
        let start = match offset {
            0.. => offset,
            _ => size.saturating_add(offset).max(0),
        };
        let length = match arguments.len() {
            1 => i64::MAX,
            _ => match number(1) {
                Some(length) => length,
                None => return Ok(value.to_vec()),
            },
        };
        if length < 0 && start.saturating_add(length) < size {
            return Err(SubstitutionError::NegativeLength(self.name.to_owned()));
        }
        let index = |at: i64| usize::try_from(at.min(size)).unwrap_or_default();
        let (start, end) = (index(start), index(start.saturating_add(length)));
        Ok(value.get(start..end.max(start)).unwrap_or_default().to_vec())
    }

    /// Replaces a string, which is not a pattern. Without a replacement, it is removed; at the start and the end, nothing is done then.
    fn replaced(
        &self,
        operator: &str,
        pattern: &[u8],
        replacement: Option<&[u8]>,
    ) -> Result<Vec<u8>, SubstitutionError> {
        let (value, new) = (self.value, replacement.unwrap_or_default());
        let is_at_edge = match operator {
            "/#" => value.starts_with(pattern),
            "/%" => value.ends_with(pattern),
            _ => true,
        };
        let positions: Vec<usize> = match operator {
            "/#" | "/%" if replacement.is_none() || !is_at_edge => Vec::new(),
            "/%" => vec![value.len() - pattern.len()],
            _ => {
                let most = if operator == "//" { usize::MAX } else { 1 };
                self.budget.step(value.len() as u64)?;
                occurrences(value, pattern, most)
            }
        };
        let added = (positions.len() as u64).saturating_mul(new.len() as u64);
        self.budget.output((value.len() as u64).saturating_add(added))?;
        let mut result = Vec::with_capacity(value.len());
        let mut end = 0;
        for at in positions {
            result.extend_from_slice(value.get(end..at).unwrap_or_default());
            result.extend_from_slice(new);
            end = at + pattern.len();
        }
        result.extend_from_slice(value.get(end..).unwrap_or_default());
        Ok(result)
    }
}

/// Returns the positions of a string that is not empty, without overlaps.
fn occurrences(value: &[u8], pattern: &[u8], most: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while found.len() < most
        && !pattern.is_empty()
        && let Some(rest) = value.get(at..).filter(|rest| rest.len() >= pattern.len())
    {
        if rest.starts_with(pattern) {
            found.push(at);
            at += pattern.len();
        } else {
            at += 1;
        }
    }
    found
}

/// Returns a letter in lower case if that is one letter, as in Go.
fn lower(c: char) -> char {
    let mut mapped = c.to_lowercase();
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

fn upper(c: char) -> char {
    let mut mapped = c.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

fn all(value: &[u8], map: fn(char) -> char) -> Vec<u8> {
    let text: String = String::from_utf8_lossy(value).chars().map(map).collect();
    text.into_bytes()
}

fn first(value: &[u8], map: fn(char) -> char) -> Vec<u8> {
    let text = String::from_utf8_lossy(value);
    let mut chars = text.chars();
    let first = chars.next().map(map);
    first.into_iter().chain(chars).collect::<String>().into_bytes()
}
