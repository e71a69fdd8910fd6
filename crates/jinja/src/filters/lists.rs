//! Filters that combine and split lists.

use super::attributes::Getter;
use crate::{
    eval::{context::Cx, ops},
    exc::{R, type_error},
    rt::ENTRY,
    value::{
        Iter, Value,
        args::{Args, to_int},
        compare, iter,
        number::Number,
        operator::{Comparison, Operator},
    },
};

pub(super) fn sum(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_sum", ["attribute", "start"], 0)?;
    let getter = Getter::new(cx.rt, &args.value(0), None, false)?;
    let mut total = args.get(1).cloned().unwrap_or(Value::Int(0));
    if total.as_str().is_some() {
        return type_error("sum() can't sum strings [use ''.join(seq) instead]");
    }
    let mut items = iter::of(&value)?;
    while let Some(item) = items.next(cx.rt)? {
        let item = getter.get(cx, &item)?;
        total = ops::binary(cx.rt, Operator::Add, &total, &item)?;
    }
    Ok(total)
}

/// Returns a generator over finished lists.
fn lists(cx: &Cx<'_>, function: &'static str, lists: Vec<Vec<Value>>) -> R<Value> {
    let lists: Vec<Value> = lists.into_iter().map(Value::list).collect();
    iter::generator(cx.rt, function, Iter::Owned(lists.into_iter()), |_, list| {
        Ok(Some(list))
    })
}

/// Returns a generator that fails at its first item, for values that can't be iterated.
pub(super) fn failing(cx: &Cx<'_>, function: &'static str, value: Value) -> R<Value> {
    iter::generator(
        cx.rt,
        function,
        Iter::Owned(vec![value].into_iter()),
        |rt, value| iter::collect(rt, &value).map(|_| None),
    )
}

pub(super) fn batch(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_batch", ["linecount", "fill_with"], 1)?;
    // A row is full when its length equals the count, of any type.
    let count = match Number::of(args.value(0).defined()?) {
        Some(Number::Int(count)) => usize::try_from(count).ok(),
        Some(Number::Float(count)) if count.fract() == 0.0 && count >= 0.0 => Some(count as usize),
        _ => None,
    };
    if iter::of(&value).is_err() {
        return failing(cx, "do_batch", value);
    }
    let items = iter::collect(cx.rt, &value)?;
    let mut rows: Vec<Vec<Value>> = Vec::new();
    let mut row = Vec::new();
    for item in items {
        if Some(row.len()) == count {
            rows.push(std::mem::take(&mut row));
        }
        row.push(item);
    }
    if !row.is_empty() {
        rows.push(row);
    }
    let fill = args.get(1).filter(|fill| !matches!(fill, Value::None));
    if let (Some(fill), Some(row)) = (fill, rows.last_mut()) {
        let length = Value::int(row.len());
        if !compare::compare(cx.rt, Comparison::Lt, &length, &args.value(0))? {
            return lists(cx, "do_batch", rows);
        }
        let Some(count) = count else {
            return type_error("can't multiply sequence by non-int of type 'float'");
        };
        let missing = count.saturating_sub(row.len());
        cx.rt.fits(missing.saturating_mul(ENTRY))?;
        cx.rt.alloc(missing.saturating_mul(ENTRY))?;
        row.extend(std::iter::repeat_n(fill.clone(), missing));
    }
    lists(cx, "do_batch", rows)
}

pub(super) fn slice(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_slice", ["slices", "fill_with"], 1)?;
    if iter::of(&value).is_err() {
        return failing(cx, "sync_do_slice", value);
    }
    let count = args.value(0);
    let Ok(slices @ (..=-1 | 1..)) = to_int(&count) else {
        // A count that can't divide fails when the first part is computed.
        let count = Iter::Owned(vec![count].into_iter());
        return iter::generator(cx.rt, "sync_do_slice", count, |rt, count| {
            ops::binary(rt, Operator::FloorDiv, &Value::Int(1), &count)?;
            to_int(&count).map(|_| None)
        });
    };
    let mut items = iter::collect(cx.rt, &value)?.into_iter();
    let Ok(slices) = usize::try_from(slices) else {
        return lists(cx, "sync_do_slice", Vec::new());
    };
    cx.rt.fits(slices.saturating_mul(ENTRY))?;
    cx.rt.alloc(slices.saturating_mul(ENTRY * 2))?;
    let (each, longer) = (items.len() / slices, items.len() % slices);
    let fill = args.get(1).filter(|fill| !matches!(fill, Value::None));
    let mut parts = Vec::with_capacity(slices);
    for index in 0..slices {
        cx.rt.step(1)?;
        let mut part: Vec<Value> = items.by_ref().take(each + usize::from(index < longer)).collect();
        if let (Some(fill), true) = (fill, index >= longer) {
            part.push(fill.clone());
        }
        parts.push(part);
    }
    lists(cx, "sync_do_slice", parts)
}
