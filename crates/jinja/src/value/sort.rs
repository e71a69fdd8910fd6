//! Sorting by comparisons that can fail.

use super::{Value, compare};
use crate::{exc::R, rt::Rt};

/// A stable sort by a comparison that can fail: items are merged as in Python, so the same comparison fails first.
pub(crate) fn sort_by<T>(rt: &Rt, items: Vec<T>, before: impl Fn(&Rt, &T, &T) -> R<bool>) -> R<Vec<T>> {
    rt.step(items.len() as u64)?;
    let mut runs: Vec<Vec<T>> = Vec::new();
    let mut rest = items.into_iter().peekable();
    // Short runs are sorted by insertion, from the front.
    while rest.peek().is_some() {
        let mut run: Vec<T> = Vec::new();
        for item in rest.by_ref().take(32) {
            let (mut low, mut high) = (0, run.len());
            // Most often it belongs to the end.
            if let Some(last) = run.last()
                && !before(rt, &item, last)?
            {
                low = high;
            }
            while low < high {
                let middle = (low + high) / 2;
                match run.get(middle) {
                    Some(other) if before(rt, &item, other)? => high = middle,
                    _ => low = middle + 1,
                }
            }
            run.insert(low, item);
        }
        runs.push(run);
    }
    while runs.len() > 1 {
        let mut merged = Vec::new();
        let mut pairs = runs.into_iter();
        while let Some(left) = pairs.next() {
            merged.push(match pairs.next() {
                Some(right) => merge(rt, left, right, &before)?,
                None => left,
            });
        }
        runs = merged;
    }
    Ok(runs.pop().unwrap_or_default())
}

fn merge<T>(rt: &Rt, left: Vec<T>, right: Vec<T>, before: &impl Fn(&Rt, &T, &T) -> R<bool>) -> R<Vec<T>> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = if before(rt, b, a)? {
            right.next()
        } else {
            left.next()
        };
        out.extend(next);
    }
    out.extend(left);
    out.extend(right);
    Ok(out)
}

pub(crate) fn sort_keyed(rt: &Rt, mut keyed: Vec<(Value, Value)>, reverse: bool) -> R<Vec<Value>> {
    if reverse {
        keyed.reverse();
    }
    let mut sorted = sort_by(rt, keyed, |rt, a, b| compare::sorts_before(rt, &a.0, &b.0))?;
    if reverse {
        sorted.reverse();
    }
    Ok(sorted.into_iter().map(|(_, item)| item).collect())
}
