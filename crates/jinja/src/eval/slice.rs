//! Slices of sequences.

use crate::{
    exc::{R, type_error, value_error},
    rt::{ENTRY, Rt},
    value::{Range, Value, args::to_int, char_count},
};
use std::rc::Rc;

/// The places that a slice takes.
pub(crate) struct Places {
    start: i64,
    stop: i64,
    step: i64,
    count: usize,
}

impl Places {
    pub(crate) fn each(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.count).filter_map(|index| {
            let offset = i64::try_from(index).ok()?.checked_mul(self.step)?;
            usize::try_from(self.start.checked_add(offset)?).ok()
        })
    }
}

fn part(value: &Value) -> R<Option<i64>> {
    match value {
        Value::None => Ok(None),
        Value::Int(_) | Value::Bool(_) | Value::Big(_) => to_int(value).map(Some),
        _ => type_error("slice indices must be integers or None or have an __index__ method"),
    }
}

/// The places of a sequence of this length.
pub(crate) fn places(parts: &[Value; 3], len: usize) -> R<Places> {
    let [start, stop, step] = parts;
    let step = part(step)?.unwrap_or(1).max(-i64::MAX);
    if step == 0 {
        return value_error("slice step cannot be zero");
    }
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let (lowest, highest) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |value: Option<i64>, default: i64| match value {
        None => default,
        Some(at) if at < 0 => at.saturating_add(len).max(lowest),
        Some(at) => at.min(highest),
    };
    let (first, last) = if step > 0 {
        (lowest, highest)
    } else {
        (highest, lowest)
    };
    let start = clamp(part(start)?, first);
    let stop = clamp(part(stop)?, last);
    let count = Range { start, stop, step }.len();
    Ok(Places {
        start,
        stop,
        step,
        count: usize::try_from(count).unwrap_or_default(),
    })
}

/// `value[start:stop:step]`; nothing when it can't be sliced.
pub(crate) fn slice(rt: &Rt, value: &Value, parts: &[Value; 3]) -> R<Option<Value>> {
    Ok(Some(match value {
        Value::List(list) => {
            let places = places(parts, list.len())?;
            rt.alloc(places.count.saturating_mul(ENTRY) + ENTRY)?;
            rt.step(places.count as u64 / 8)?;
            let items = list.items();
            Value::list(places.each().filter_map(|at| items.get(at).cloned()).collect())
        }
        Value::Tuple(tuple) => {
            let places = places(parts, tuple.items.len())?;
            rt.alloc(places.count.saturating_mul(ENTRY) + ENTRY)?;
            rt.step(places.count as u64 / 8)?;
            Value::tuple(
                places
                    .each()
                    .filter_map(|at| tuple.items.get(at).cloned())
                    .collect(),
            )
        }
        Value::Str(text) | Value::Markup(text) => {
            rt.step(text.len() as u64 / 64)?;
            let places = places(parts, char_count(text))?;
            let text: String = if text.is_ascii() {
                let bytes = text.as_bytes();
                places
                    .each()
                    .filter_map(|at| bytes.get(at).copied().map(char::from))
                    .collect()
            } else {
                rt.alloc(text.len().saturating_mul(4))?;
                let letters: Vec<char> = text.chars().collect();
                places.each().filter_map(|at| letters.get(at)).collect()
            };
            let text = rt.made(text)?;
            if matches!(value, Value::Markup(_)) {
                Value::Markup(text)
            } else {
                Value::Str(text)
            }
        }
        Value::Bytes(bytes) => {
            let places = places(parts, bytes.len())?;
            rt.alloc(places.count)?;
            Value::Bytes(places.each().filter_map(|at| bytes.get(at).copied()).collect())
        }
        Value::Range(range) => {
            let places = places(parts, usize::try_from(range.len()).unwrap_or(usize::MAX))?;
            let step = range.step.saturating_mul(places.step);
            let at = |place: i64| range.start.saturating_add(range.step.saturating_mul(place));
            let (start, stop) = (at(places.start), at(places.stop));
            Value::Range(Rc::new(Range { start, stop, step }))
        }
        _ => return Ok(None),
    }))
}
