//! Slices of sequences.

use crate::{
    exc::{R, type_error, value_error},
    rt::{ENTRY, Rt},
    value::{Range, Value, args::to_int, char_count},
};
use std::rc::Rc;

/// The indices of a slice.
pub(crate) struct SliceIndices {
    start: i64,
    stop: i64,
    step: i64,
    count: usize,
}

impl SliceIndices {
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

/// Returns the indices in a sequence of this length.
pub(crate) fn indices(parts: &[Value; 3], len: usize) -> R<SliceIndices> {
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
    Ok(SliceIndices {
        start,
        stop,
        step,
        count: usize::try_from(count).unwrap_or_default(),
    })
}

/// Evaluates `value[start:stop:step]`; `None` if the type can't be sliced.
pub(crate) fn slice(rt: &Rt, value: &Value, parts: &[Value; 3]) -> R<Option<Value>> {
    Ok(Some(match value {
        Value::List(list) => {
            let indices = indices(parts, list.len())?;
            rt.alloc(indices.count.saturating_mul(ENTRY) + ENTRY)?;
            rt.step(indices.count as u64 / 8)?;
            let items = list.items();
            Value::list(indices.each().filter_map(|at| items.get(at).cloned()).collect())
        }
        Value::Tuple(tuple) => {
            let indices = indices(parts, tuple.items.len())?;
            rt.alloc(indices.count.saturating_mul(ENTRY) + ENTRY)?;
            rt.step(indices.count as u64 / 8)?;
            Value::tuple(
                indices
                    .each()
                    .filter_map(|at| tuple.items.get(at).cloned())
                    .collect(),
            )
        }
        Value::Str(text) | Value::Markup(text) => {
            rt.step(text.len() as u64 / 64)?;
            let indices = indices(parts, char_count(text))?;
            let text: String = if text.is_ascii() {
                let bytes = text.as_bytes();
                indices
                    .each()
                    .filter_map(|at| bytes.get(at).copied().map(char::from))
                    .collect()
            } else {
                rt.alloc(text.len().saturating_mul(4))?;
                let letters: Vec<char> = text.chars().collect();
                indices.each().filter_map(|at| letters.get(at)).collect()
            };
            let text = rt.made(text)?;
            if matches!(value, Value::Markup(_)) {
                Value::Markup(text)
            } else {
                Value::Str(text)
            }
        }
        Value::Bytes(bytes) => {
            let indices = indices(parts, bytes.len())?;
            rt.alloc(indices.count)?;
            rt.read(indices.count)?;
            Value::Bytes(indices.each().filter_map(|at| bytes.get(at).copied()).collect())
        }
        Value::Range(range) => {
            let indices = indices(parts, usize::try_from(range.len()).unwrap_or(usize::MAX))?;
            let step = range.step.saturating_mul(indices.step);
            let at = |offset: i64| range.start.saturating_add(range.step.saturating_mul(offset));
            let (start, stop) = (at(indices.start), at(indices.stop));
            Value::Range(Rc::new(Range { start, stop, step }))
        }
        _ => return Ok(None),
    }))
}
