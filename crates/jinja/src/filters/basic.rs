//! Basic filters.

use super::attributes::Getter;
use crate::{
    eval::{attr as attrs, context::Cx},
    exc::{R, raise, type_error},
    format::{escape, pprint as pretty, printf, repr},
    methods,
    text::{CharSet, capitalized, is_space},
    value::{DictMap, Iter, Key, Value, args::Args, iter},
};

pub(super) fn default(_: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_default", ["default_value", "boolean"], 0)?;
    let missing = value.is_undefined() || args.flag(1, false)? && !value.truth()?;
    Ok(if missing {
        args.get(0).cloned().unwrap_or_else(|| Value::str(""))
    } else {
        value
    })
}

pub(super) fn string(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("soft_str")?;
    match value {
        Value::Str(_) | Value::Markup(_) => Ok(value),
        _ => cx.text_of(&value).map(Value::Str),
    }
}

pub(super) fn upper(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_upper")?;
    let text = cx.text_of(&value)?;
    Ok(Value::like(&value, cx.rt.made(text.to_uppercase())?))
}

pub(super) fn lower(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_lower")?;
    let text = cx.text_of(&value)?;
    Ok(Value::like(&value, cx.rt.made(text.to_lowercase())?))
}

pub(super) fn capitalize(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_capitalize")?;
    let text = cx.text_of(&value)?;
    Ok(Value::like(&value, cx.rt.made(capitalized(&text))?))
}

pub(super) fn trim(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let set = args.bind("do_trim", ["chars"], 0)?.optional_text(0)?;
    let text = cx.text_of(&value)?;
    let trimmed = match &set {
        Some(set) => {
            cx.rt.step(set.len() as u64 / 16)?;
            let set = CharSet::of(set);
            text.trim_matches(|letter| set.contains(letter))
        }
        None => text.trim_matches(is_space),
    };
    Ok(Value::like(&value, cx.rt.made(trimmed.to_owned())?))
}

pub(super) fn length(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("len")?;
    cx.rt.length(&value).map(Value::int)
}

pub(super) fn list(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_list")?;
    cx.rt.list(iter::collect(cx.rt, &value)?)
}

pub(super) fn first(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_first")?;
    let first = iter::of(&value)?.next(cx.rt)?;
    Ok(first.unwrap_or_else(|| Value::hint("No first item, sequence was empty.")))
}

/// Returns the last item of a reversible value.
pub(super) fn last(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_last")?;
    value.defined()?;
    if matches!(value, Value::Iter(_)) {
        return type_error(format!("'{}' object is not reversible", value.type_name()));
    }
    let last = match &value {
        Value::List(list) => list.len().checked_sub(1).and_then(|at| list.get(at)),
        Value::Tuple(tuple) => tuple.items.last().cloned(),
        Value::Str(text) | Value::Markup(text) => text.chars().next_back().map(|letter| cx.rt.letter(letter)),
        Value::Range(range) => range.get(range.len() - 1).map(Value::Int),
        _ => iter::collect(cx.rt, &value)?.pop(),
    };
    Ok(last.unwrap_or_else(|| Value::hint("No last item, sequence was empty.")))
}

pub(super) fn join(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_join", ["d", "attribute"], 0)?;
    let rt = cx.rt;
    let separator = match args.get(0) {
        Some(separator) => cx.text_of(separator)?,
        None => "".into(),
    };
    let path = args.value(1);
    let getter = Getter::new(rt, &path, None, false)?;
    let mut items = iter::of(&value)?;
    let mut out = String::new();
    let mut first = true;
    while let Some(item) = items.next(rt)? {
        if !std::mem::take(&mut first) {
            out.push_str(&separator);
        }
        let item = if matches!(path, Value::None) {
            item
        } else {
            getter.get(cx, &item)?
        };
        rt.step(separator.len() as u64 / 64)?;
        if rt.escapes.get() {
            escape::write_escaped(rt, &item, &mut out)?;
        } else {
            repr::write_str(rt, &item, &mut out)?;
        }
        rt.fits(out.len())?;
    }
    let text = rt.made(out)?;
    Ok(if rt.escapes.get() {
        Value::Markup(text)
    } else {
        Value::Str(text)
    })
}

pub(super) fn reverse(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_reverse")?;
    value.defined()?;
    if let Value::Str(text) | Value::Markup(text) = &value {
        cx.rt.read(text.len())?;
        return Ok(Value::like(&value, cx.rt.made(text.chars().rev().collect())?));
    }
    if matches!(value, Value::Iter(_)) {
        let mut items = iter::collect(cx.rt, &value)?;
        items.reverse();
        return cx.rt.list(items);
    }
    let Ok(items) = iter::of(&value) else {
        return raise("FilterArgumentError", "argument must be iterable");
    };
    let mut items = items.collect(cx.rt)?;
    items.reverse();
    let label = match &value {
        Value::List(_) => "list_reverseiterator",
        Value::Dict(_) => "dict_reversekeyiterator",
        Value::Range(_) => "range_iterator",
        _ => "reversed",
    };
    Ok(Value::Iter(std::rc::Rc::new(crate::value::IterObj::plain(
        label,
        Iter::Owned(items.into_iter()),
    ))))
}

pub(super) fn replace(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_replace", ["old", "new", "count"], 2)?;
    let text = cx.text_of(&value)?;
    let (old, new) = (cx.text_of(&args.value(0))?, cx.text_of(&args.value(1))?);
    let count = args.optional_int(2)?.unwrap_or(-1);
    let made = methods::replaced(cx.rt, &text, &old, &new, count)?;
    if cx.rt.escapes.get() {
        return Ok(Value::like(&value, cx.rt.made(made)?));
    }
    cx.rt.text(made)
}

pub(super) fn format(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    if !args.plain.is_empty() && !args.named.is_empty() {
        return raise(
            "FilterArgumentError",
            "can't handle positional and keyword arguments at the same time",
        );
    }
    let text = cx.text_of(&value)?;
    let values = if args.named.is_empty() {
        Value::tuple(args.plain)
    } else {
        let map: DictMap = args
            .named
            .into_iter()
            .map(|(key, value)| (Key::from(key), value))
            .collect();
        Value::dict(map)
    };
    Ok(Value::like(
        &value,
        cx.rt.made(printf::format(
            cx.rt,
            &text,
            &values,
            matches!(value, Value::Markup(_)),
        )?)?,
    ))
}

pub(super) fn attr(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let name = args.bind("do_attr", ["name"], 1)?.value(0);
    let name = cx.text_of(&name)?;
    value.defined()?;
    match attrs::own_attribute(cx.rt, &value, &name)? {
        Some(found) => Ok(found),
        None => Ok(Value::undefined(crate::value::Undef::Attr {
            of: value.described(),
            key: name,
        })),
    }
}

pub(super) fn items(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_items")?;
    if value.is_undefined() {
        return iter::generator(
            cx.rt,
            "do_items",
            Iter::Owned(Vec::new().into_iter()),
            |_, item| Ok(Some(item)),
        );
    }
    let Value::Dict(dict) = &value else {
        return iter::generator(cx.rt, "do_items", Iter::Owned(vec![value].into_iter()), |_, _| {
            type_error("Can only get item pairs from a mapping.")
        });
    };
    let view = Value::object(crate::value::Object::View(crate::value::object::View {
        dict: dict.clone(),
        kind: crate::value::object::ViewKind::Items,
    }));
    iter::generator(cx.rt, "do_items", iter::of(&view)?, |_, item| Ok(Some(item)))
}

pub(super) fn random(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_random")?;
    let len = cx.rt.length(&value)?;
    if len == 0 {
        return Ok(Value::hint("No random item, sequence was empty."));
    }
    let at = crate::functions::random::random(cx.rt)? % (len as u64);
    attrs::item(cx.rt, &value, &Value::Int(i64::try_from(at).unwrap_or_default()))
}

pub(super) fn pprint(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_pprint")?;
    cx.rt.text(pretty::format(cx.rt, &value)?)
}
