//! Sorting, grouping and other filters that compare items.

use std::rc::Rc;

use super::attributes::{self, Getter};
use crate::{
    eval::context::Cx,
    exc::{R, raise},
    rt::ENTRY,
    value::{
        Tuple, Value,
        args::Args,
        compare, iter,
        sort::{sort_by, sort_keyed},
    },
};

/// Returns items with their sort keys.
fn keyed(cx: &Cx<'_>, items: Vec<Value>, getters: &[Getter]) -> R<Vec<(Value, Value)>> {
    let mut keyed = Vec::with_capacity(items.len());
    for item in items {
        cx.rt.alloc(ENTRY * 2)?;
        let mut keys = Vec::with_capacity(getters.len());
        for getter in getters {
            keys.push(getter.get(cx, &item)?);
        }
        let key = match keys.pop() {
            Some(only) if getters.len() == 1 => only,
            last => {
                keys.extend(last);
                Value::tuple(keys)
            }
        };
        keyed.push((key, item));
    }
    Ok(keyed)
}

pub(super) fn sort(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_sort", ["reverse", "case_sensitive", "attribute"], 0)?;
    let folds = !args.flag(1, false)?;
    let getters = attributes::several(cx.rt, &args.value(2), folds)?;
    let items = iter::collect(cx.rt, &value)?;
    let keyed = keyed(cx, items, &getters)?;
    let reverse = args.flag(0, false)?;
    cx.rt.list(sort_keyed(cx.rt, keyed, reverse)?)
}

pub(super) fn dictsort(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_dictsort", ["case_sensitive", "by", "reverse"], 0)?;
    let index = match &*args.text(1, "key")? {
        "key" => 0,
        "value" => 1,
        _ => {
            return raise(
                "FilterArgumentError",
                "You can only sort by either \"key\" or \"value\"",
            );
        }
    };
    let Value::Dict(dict) = value.defined()? else {
        return raise(
            "AttributeError",
            format!("'{}' object has no attribute 'items'", value.type_name()),
        );
    };
    let pairs = dict
        .pairs()
        .into_iter()
        .map(|(key, value)| Value::tuple(vec![key, value]))
        .collect();
    let getter = Getter::new(cx.rt, &Value::Int(index), None, !args.flag(0, false)?)?;
    let keyed = keyed(cx, pairs, &[getter])?;
    cx.rt.list(sort_keyed(cx.rt, keyed, args.flag(2, false)?)?)
}

pub(super) fn groupby(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_groupby", ["attribute", "default", "case_sensitive"], 1)?;
    let folds = !args.flag(2, false)?;
    let default = args
        .get(1)
        .filter(|default| !matches!(default, Value::None))
        .cloned();
    let getter = Getter::new(cx.rt, &args.value(0), default.clone(), folds)?;
    let name_getter = Getter::new(cx.rt, &args.value(0), default, false)?;
    let items = iter::collect(cx.rt, &value)?;
    let keyed = keyed(cx, items, std::slice::from_ref(&getter))?;
    let sorted = sort_by(cx.rt, keyed, |rt, a, b| compare::sorts_before(rt, &a.0, &b.0))?;
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for (key, item) in sorted {
        match groups.last_mut() {
            Some((last, group)) if last.same(&key) || compare::equal(cx.rt, last, &key)? => group.push(item),
            _ => groups.push((key, vec![item])),
        }
    }
    let mut out = Vec::with_capacity(groups.len());
    for (key, group) in groups {
        // A group has the name of its first item, with its case.
        let name = match group.first() {
            Some(first) if folds => name_getter.get(cx, first)?,
            _ => key,
        };
        out.push(Value::Tuple(Rc::new(Tuple {
            items: vec![name, cx.rt.list(group)?],
            group: true,
        })));
    }
    cx.rt.list(out)
}

pub(super) fn unique(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("sync_do_unique", ["case_sensitive", "attribute"], 0)?;
    let getter = Getter::new(cx.rt, &args.value(1), None, !args.flag(0, false)?)?;
    let items = match iter::of(&value) {
        Ok(items) => items,
        Err(_) => return super::lists::failing(cx, "sync_do_unique", value),
    };
    let ctx = cx.ctx.clone();
    #[allow(clippy::mutable_key_type, reason = "what can change is no key")]
    let mut seen = std::collections::HashSet::new();
    iter::generator(cx.rt, "sync_do_unique", items, move |rt, item| {
        let key = getter.get(&Cx { rt, ctx: &ctx }, &item)?;
        rt.alloc(ENTRY)?;
        Ok(seen.insert(rt.key(&key)?).then_some(item))
    })
}

pub(super) fn extreme(cx: &Cx<'_>, value: Value, args: Args, largest: bool) -> R<Value> {
    let args = args.bind("_min_or_max", ["case_sensitive", "attribute"], 0)?;
    let getter = Getter::new(cx.rt, &args.value(1), None, !args.flag(0, false)?)?;
    let mut items = iter::of(&value)?;
    let Some(mut best) = items.next(cx.rt)? else {
        return Ok(Value::hint("No aggregated item, sequence was empty."));
    };
    let mut key = getter.get(cx, &best)?;
    while let Some(item) = items.next(cx.rt)? {
        let other = getter.get(cx, &item)?;
        let op = if largest {
            crate::value::operator::Comparison::Gt
        } else {
            crate::value::operator::Comparison::Lt
        };
        if compare::compare(cx.rt, op, &other, &key)? {
            best = item;
            key = other;
        }
    }
    Ok(best)
}
