//! The evaluation of paths.

use std::{cmp::Ordering, collections::HashSet, rc::Rc};

use yaml::Value;

use super::{Comparison, Filter, JsonPathError, Meter, Operand, Segment, Selector};
use crate::path::{Key, Path};

pub(super) fn find(
    segments: &[Segment],
    root: &Value,
    meter: &mut Meter,
) -> Result<Vec<Path>, JsonPathError> {
    let mut evaluation = Evaluation { root, meter };
    let found = evaluation.walk(segments, vec![(None, root)])?;
    found
        .into_iter()
        .map(|(steps, _)| evaluation.path(steps.as_ref()))
        .collect()
}

/// The last step to a value. Values below it share it.
#[derive(Debug)]
struct Step<'v> {
    key: Member<'v>,
    above: Option<Rc<Step<'v>>>,
}

#[derive(Debug, Clone, Copy)]
enum Member<'v> {
    Field(&'v str),
    Index(usize),
}

type Steps<'v> = Option<Rc<Step<'v>>>;
type Matches<'v> = Vec<(Steps<'v>, &'v Value)>;

struct Evaluation<'v, 'm> {
    root: &'v Value,
    meter: &'m mut Meter,
}

impl<'v> Evaluation<'v, '_> {
    fn walk(&mut self, segments: &'v [Segment], start: Matches<'v>) -> Result<Matches<'v>, JsonPathError> {
        let mut found = start;
        for segment in segments {
            let mut next = Vec::new();
            for (steps, value) in found {
                match segment {
                    Segment::Descendants => self.descend(steps, value, &mut next)?,
                    Segment::Children(selectors) => {
                        for selector in selectors {
                            self.select(selector, &steps, value, &mut next)?;
                        }
                    }
                }
            }
            // A value of a tree has one path.
            let mut seen = HashSet::new();
            next.retain(|(_, value)| seen.insert(std::ptr::from_ref(*value)));
            found = next;
        }
        Ok(found)
    }

    /// Returns the keys of steps, whose strings are copied.
    fn path(&mut self, mut steps: Option<&Rc<Step<'v>>>) -> Result<Path, JsonPathError> {
        let mut path = Path::new();
        while let Some(step) = steps {
            path.push(match step.key {
                Member::Field(name) => {
                    self.meter.text(name.len())?;
                    Key::from(name)
                }
                Member::Index(index) => Key::Index(index),
            });
            steps = step.above.as_ref();
        }
        path.reverse();
        Ok(path)
    }

    fn descend(
        &mut self,
        steps: Steps<'v>,
        value: &'v Value,
        into: &mut Matches<'v>,
    ) -> Result<(), JsonPathError> {
        self.meter.visit(1)?;
        for (key, member) in members(value) {
            self.descend(below(key, &steps), member, into)?;
        }
        into.push((steps, value));
        Ok(())
    }

    fn select(
        &mut self,
        selector: &'v Selector,
        steps: &Steps<'v>,
        value: &'v Value,
        into: &mut Matches<'v>,
    ) -> Result<(), JsonPathError> {
        let mut push = |key: Member<'v>, member: &'v Value| into.push((below(key, steps), member));
        match selector {
            Selector::Name(name) => {
                self.meter.visit(1)?;
                if let Some(member) = value.get(name) {
                    push(Member::Field(name), member);
                }
            }
            Selector::Index(index) => {
                self.meter.visit(1)?;
                let items = value.as_seq().unwrap_or_default();
                if let Some((index, member)) =
                    absolute(*index, items.len()).and_then(|i| Some((i, items.get(i)?)))
                {
                    push(Member::Index(index), member);
                }
            }
            Selector::Wildcard => {
                for (key, member) in members(value) {
                    self.meter.visit(1)?;
                    push(key, member);
                }
            }
            Selector::Slice { start, end, step } => {
                let items = value.as_seq().unwrap_or_default();
                for index in slice(*start, *end, *step, items.len()) {
                    self.meter.visit(1)?;
                    if let Some(member) = items.get(index) {
                        push(Member::Index(index), member);
                    }
                }
            }
            Selector::Filter(filter) => {
                for (key, member) in members(value) {
                    self.meter.visit(1)?;
                    if self.holds(filter, member)? {
                        push(key, member);
                    }
                }
            }
        }
        Ok(())
    }

    fn holds(&mut self, filter: &'v Filter, value: &'v Value) -> Result<bool, JsonPathError> {
        Ok(match filter {
            Filter::Or(left, right) => self.holds(left, value)? || self.holds(right, value)?,
            Filter::And(left, right) => self.holds(left, value)? && self.holds(right, value)?,
            Filter::Not(inner) => !self.holds(inner, value)?,
            Filter::Exists(operand) => self.operand(operand, value)?.is_some(),
            Filter::Matches(operand, pattern) => {
                match self.operand(operand, value)?.and_then(Value::as_str) {
                    Some(text) => self.meter.is_match(pattern, text)?,
                    None => false,
                }
            }
            Filter::Compare(left, comparison, right) => {
                let (left, right) = (self.operand(left, value)?, self.operand(right, value)?);
                self.compares(left, *comparison, right)?
            }
        })
    }

    /// Returns the first value of an operand.
    fn operand(
        &mut self,
        operand: &'v Operand,
        value: &'v Value,
    ) -> Result<Option<&'v Value>, JsonPathError> {
        self.meter.visit(1)?;
        let (segments, start) = match operand {
            Operand::Literal(literal) => return Ok(Some(literal)),
            Operand::Current(segments) => (segments, value),
            Operand::Root(segments) => (segments, self.root),
        };
        let found = self.walk(segments, vec![(None, start)])?;
        Ok(found.first().map(|(_, value)| *value))
    }

    fn compares(
        &mut self,
        left: Option<&Value>,
        comparison: Comparison,
        right: Option<&Value>,
    ) -> Result<bool, JsonPathError> {
        let order = match (left, right) {
            (Some(left), Some(right)) => {
                match (left.as_f64(), right.as_f64(), left.as_str(), right.as_str()) {
                    (Some(a), Some(b), ..) => a.partial_cmp(&b),
                    (.., Some(a), Some(b)) => {
                        self.meter.text(a.len().min(b.len()))?;
                        Some(a.cmp(b))
                    }
                    _ if self.meter.equal(left, right)? => Some(Ordering::Equal),
                    _ => None,
                }
            }
            (None, None) => Some(Ordering::Equal),
            _ => None,
        };
        Ok(match comparison {
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::NotEqual => order != Some(Ordering::Equal),
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        })
    }
}

fn below<'v>(key: Member<'v>, steps: &Steps<'v>) -> Steps<'v> {
    let above = steps.clone();
    Some(Rc::new(Step { key, above }))
}

fn members(value: &Value) -> impl Iterator<Item = (Member<'_>, &Value)> {
    let fields = value.as_map().into_iter().flatten();
    let items = value.as_seq().into_iter().flatten().enumerate();
    let fields = fields.map(|(name, member)| (Member::Field(name), member));
    fields.chain(items.map(|(index, item)| (Member::Index(index), item)))
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
