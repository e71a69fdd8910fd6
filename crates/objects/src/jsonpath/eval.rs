//! The evaluation of paths.

use std::{cmp::Ordering, collections::HashSet};

use yaml::Value;

use super::{Comparison, Filter, JsonPathError, MAX_VISITS, Operand, Segment, Selector};
use crate::path::{Key, Path};

pub(super) fn find(segments: &[Segment], root: &Value) -> Result<Vec<Path>, JsonPathError> {
    let mut evaluation = Evaluation { root, visits: 0 };
    let found = evaluation.walk(segments, vec![(Path::new(), root)])?;
    Ok(found.into_iter().map(|(path, _)| path).collect())
}

type Matches<'v> = Vec<(Path, &'v Value)>;

struct Evaluation<'v> {
    root: &'v Value,
    visits: usize,
}

impl<'v> Evaluation<'v> {
    fn visit(&mut self) -> Result<(), JsonPathError> {
        self.visits += 1;
        if self.visits > MAX_VISITS {
            return Err(JsonPathError::TooManyValues);
        }
        Ok(())
    }

    fn walk(&mut self, segments: &[Segment], start: Matches<'v>) -> Result<Matches<'v>, JsonPathError> {
        let mut found = start;
        for segment in segments {
            let mut next = Vec::new();
            for (path, value) in found {
                match segment {
                    Segment::Descendants => self.descend(path, value, &mut next)?,
                    Segment::Children(selectors) => {
                        for selector in selectors {
                            self.select(selector, &path, value, &mut next)?;
                        }
                    }
                }
            }
            let mut seen = HashSet::new();
            next.retain(|(path, _)| seen.insert(path.clone()));
            found = next;
        }
        Ok(found)
    }

    fn descend(&mut self, path: Path, value: &'v Value, into: &mut Matches<'v>) -> Result<(), JsonPathError> {
        self.visit()?;
        for (key, member) in members(value) {
            let mut below = path.clone();
            below.push(key);
            self.descend(below, member, into)?;
        }
        into.push((path, value));
        Ok(())
    }

    fn select(
        &mut self,
        selector: &Selector,
        path: &Path,
        value: &'v Value,
        into: &mut Matches<'v>,
    ) -> Result<(), JsonPathError> {
        let mut push = |key: Key, member: &'v Value| {
            let mut below = path.clone();
            below.push(key);
            into.push((below, member));
        };
        match selector {
            Selector::Name(name) => {
                self.visit()?;
                if let Some(member) = value.get(name) {
                    push(Key::from(name.as_str()), member);
                }
            }
            Selector::Index(index) => {
                self.visit()?;
                let items = value.as_seq().unwrap_or_default();
                if let Some((index, member)) =
                    absolute(*index, items.len()).and_then(|i| Some((i, items.get(i)?)))
                {
                    push(Key::Index(index), member);
                }
            }
            Selector::Wildcard => {
                for (key, member) in members(value) {
                    self.visit()?;
                    push(key, member);
                }
            }
            Selector::Slice { start, end, step } => {
                let items = value.as_seq().unwrap_or_default();
                for index in slice(*start, *end, *step, items.len()) {
                    self.visit()?;
                    if let Some(member) = items.get(index) {
                        push(Key::Index(index), member);
                    }
                }
            }
            Selector::Filter(filter) => {
                for (key, member) in members(value) {
                    self.visit()?;
                    if self.holds(filter, member)? {
                        push(key, member);
                    }
                }
            }
        }
        Ok(())
    }

    fn holds(&mut self, filter: &Filter, value: &'v Value) -> Result<bool, JsonPathError> {
        Ok(match filter {
            Filter::Or(left, right) => self.holds(left, value)? || self.holds(right, value)?,
            Filter::And(left, right) => self.holds(left, value)? && self.holds(right, value)?,
            Filter::Not(inner) => !self.holds(inner, value)?,
            Filter::Exists(operand) => self.operand(operand, value)?.is_some(),
            Filter::Matches(operand, pattern) => self
                .operand(operand, value)?
                .as_ref()
                .and_then(Value::as_str)
                .is_some_and(|text| pattern.is_match(text)),
            Filter::Compare(left, comparison, right) => {
                let (left, right) = (self.operand(left, value)?, self.operand(right, value)?);
                compares(left.as_ref(), *comparison, right.as_ref())
            }
        })
    }

    /// Returns the first value of an operand.
    fn operand(&mut self, operand: &Operand, value: &'v Value) -> Result<Option<Value>, JsonPathError> {
        let (segments, start) = match operand {
            Operand::Literal(literal) => return Ok(Some(literal.clone())),
            Operand::Current(segments) => (segments, value),
            Operand::Root(segments) => (segments, self.root),
        };
        let found = self.walk(segments, vec![(Path::new(), start)])?;
        Ok(found.first().map(|(_, value)| (*value).clone()))
    }
}

fn members(value: &Value) -> Vec<(Key, &Value)> {
    match value {
        Value::Map(map) => map
            .iter()
            .map(|(name, member)| (Key::from(name), member))
            .collect(),
        Value::Seq(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| (Key::Index(index), item))
            .collect(),
        _ => Vec::new(),
    }
}

fn absolute(index: i64, len: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

fn slice(start: Option<i64>, end: Option<i64>, step: i64, len: usize) -> Vec<usize> {
    let clamp = |index: i64| {
        let index = if index < 0 {
            index.saturating_add(i64::try_from(len).unwrap_or(i64::MAX))
        } else {
            index
        };
        usize::try_from(index).unwrap_or(0).min(len)
    };
    let Ok(step) = usize::try_from(step) else {
        return Vec::new();
    };
    let range = clamp(start.unwrap_or(0))..end.map_or(len, clamp);
    if step == 0 {
        Vec::new()
    } else {
        range.step_by(step).collect()
    }
}

fn compares(left: Option<&Value>, comparison: Comparison, right: Option<&Value>) -> bool {
    let order = match (left, right) {
        (Some(left), Some(right)) => match (left.as_f64(), right.as_f64(), left.as_str(), right.as_str()) {
            (Some(a), Some(b), ..) => a.partial_cmp(&b),
            (.., Some(a), Some(b)) => Some(a.cmp(b)),
            _ if left == right => Some(Ordering::Equal),
            _ => None,
        },
        (None, None) => Some(Ordering::Equal),
        _ => None,
    };
    match comparison {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}
