//! Filters on lists and maps where the engine's own differ.

use std::{cmp::Ordering, collections::HashSet, sync::Arc};

use minijinja::{
    Environment, Error, Value as Dynamic,
    value::{Enumerator, Object, ObjectRepr, Tuple, ValueKind},
};

use crate::{
    account,
    filters::{attribute_of, items},
    functions::{fail, type_name},
    shape,
    signature::{Args, bind, defined},
};

pub(crate) fn register(env: &mut Environment<'_>) {
    env.add_filter("sort", sort);
    env.add_filter("groupby", groupby);
    env.add_filter("unique", unique);
    env.add_filter("dictsort", dictsort);
    env.add_filter("min", |value: &Dynamic, args: Args| {
        extreme("min", Ordering::Less, value, args)
    });
    env.add_filter("max", |value: &Dynamic, args: Args| {
        extreme("max", Ordering::Greater, value, args)
    });
}

/// What values are compared by: text without case, unless case counts.
fn comparable(value: Dynamic, case_sensitive: bool) -> Result<Dynamic, Error> {
    match value.as_str() {
        Some(text) if !case_sensitive => account::made(text.to_lowercase()).map(Dynamic::from),
        _ => Ok(value),
    }
}

/// Compares as Python does: values of different types have no order.
pub(crate) fn compare(a: &Dynamic, b: &Dynamic) -> Result<Ordering, Error> {
    let class = |value: &Dynamic| match value.kind() {
        ValueKind::Bool | ValueKind::Number => 1,
        ValueKind::String => 2,
        ValueKind::Seq => 3,
        _ => 0,
    };
    for value in [a, b] {
        defined(value)?;
    }
    if class(a) != class(b) || class(a) == 0 {
        let (a, b) = (type_name(a), type_name(b));
        return Err(fail(format!(
            "TypeError: '<' not supported between instances of '{a}' and '{b}'"
        )));
    }
    if class(a) == 3 {
        let (a, b) = (items(a)?, items(b)?);
        for (a, b) in a.iter().zip(&b) {
            if !shape::equal(a, b)? {
                return compare(a, b);
            }
        }
        return Ok(a.len().cmp(&b.len()));
    }
    shape::order(a, b)
}

/// An item with what it is sorted by.
type Keyed<T> = (Vec<Dynamic>, T);

/// Sorts by keys, equal ones in their order, and tells the first pair that has no order. The sort of the standard
/// library wants a total order, which values of templates don't have.
fn sort_by_keys<T>(pairs: Vec<Keyed<T>>, reverse: bool) -> Result<Vec<Keyed<T>>, Error> {
    if pairs.len() < 2 {
        return Ok(pairs);
    }
    let mut left = pairs;
    let right = left.split_off(left.len() / 2);
    let left = sort_by_keys(left, reverse)?;
    let right = sort_by_keys(right, reverse)?;
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some((a, _)), Some((b, _))) = (left.peek(), right.peek()) {
        let order = compare_keys(a, b)?;
        let order = if reverse { order.reverse() } else { order };
        merged.extend(if order == Ordering::Greater {
            right.next()
        } else {
            left.next()
        });
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}

fn compare_keys(a: &[Dynamic], b: &[Dynamic]) -> Result<Ordering, Error> {
    for (a, b) in a.iter().zip(b) {
        let order = compare(a, b)?;
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

fn keyed(
    value: &Dynamic,
    attribute: Option<&Dynamic>,
    case_sensitive: bool,
) -> Result<Vec<Keyed<Dynamic>>, Error> {
    let keys = |item: &Dynamic| -> Result<Vec<Dynamic>, Error> {
        let Some(attribute) = attribute else {
            return Ok(vec![item.clone()]);
        };
        match attribute.as_str() {
            Some(names) => names
                .split(',')
                .map(|name| attribute_of(item, &Dynamic::from(name)))
                .collect(),
            None => Ok(vec![attribute_of(item, attribute)?]),
        }
    };
    let key = |item: Dynamic| {
        let keys = keys(&item)?
            .into_iter()
            .map(|key| comparable(key, case_sensitive))
            .collect::<Result<_, Error>>()?;
        Ok((keys, item))
    };
    items(defined(value)?)?.into_iter().map(key).collect()
}

fn given(attribute: Option<Dynamic>) -> Option<Dynamic> {
    attribute.filter(|attribute| !attribute.is_none())
}

fn sort(value: &Dynamic, args: Args) -> Result<Vec<Dynamic>, Error> {
    let args = bind("sort", ["reverse", "case_sensitive", "attribute"], args)?;
    let attribute = given(args.get("attribute"));
    let pairs = keyed(value, attribute.as_ref(), args.flag("case_sensitive", false)?)?;
    let sorted = sort_by_keys(pairs, args.flag("reverse", false)?)?;
    Ok(sorted.into_iter().map(|(_, item)| item).collect())
}

fn unique(value: &Dynamic, args: Args) -> Result<Vec<Dynamic>, Error> {
    let args = bind("unique", ["case_sensitive", "attribute"], args)?;
    let attribute = given(args.get("attribute"));
    let mut seen = HashSet::new();
    let pairs = keyed(value, attribute.as_ref(), args.flag("case_sensitive", false)?)?;
    let mut kept = Vec::new();
    for (keys, item) in pairs {
        keys.iter().try_for_each(shape::whole)?;
        if seen.insert(keys) {
            kept.push(item);
        }
    }
    Ok(kept)
}

fn extreme(name: &'static str, wanted: Ordering, value: &Dynamic, args: Args) -> Result<Dynamic, Error> {
    let args = bind(name, ["case_sensitive", "attribute"], args)?;
    let attribute = given(args.get("attribute"));
    let mut best: Option<(Vec<Dynamic>, Dynamic)> = None;
    for (keys, item) in keyed(value, attribute.as_ref(), args.flag("case_sensitive", false)?)? {
        let better = match &best {
            None => true,
            Some((best, _)) => match (keys.first(), best.first()) {
                (Some(key), Some(best)) => compare(key, best)? == wanted,
                _ => false,
            },
        };
        if better {
            best = Some((keys, item));
        }
    }
    best.map(|(_, item)| item)
        .ok_or_else(|| fail("UndefinedError: No aggregated item, sequence was empty."))
}

fn dictsort(value: &Dynamic, args: Args) -> Result<Vec<Dynamic>, Error> {
    let args = bind("dictsort", ["case_sensitive", "by", "reverse"], args)?;
    let case_sensitive = args.flag("case_sensitive", false)?;
    let by = args.optional_text("by")?;
    let by_value = match by.as_deref() {
        None | Some("key") => false,
        Some("value") => true,
        Some(_) => {
            return Err(fail(
                "FilterArgumentError: You can only sort by either \"key\" or \"value\"",
            ));
        }
    };
    if defined(value)?.kind() != ValueKind::Map {
        return Err(crate::functions::no_attribute(value, "items"));
    }
    let mut pairs = Vec::new();
    for key in items(value)? {
        let item = value.get_item(&key)?;
        let by = comparable(if by_value { item.clone() } else { key.clone() }, case_sensitive)?;
        pairs.push((vec![by], Dynamic::from(Tuple::from([key, item]))));
    }
    let sorted = sort_by_keys(pairs, args.flag("reverse", false)?)?;
    Ok(sorted.into_iter().map(|(_, pair)| pair).collect())
}

fn groupby(value: &Dynamic, args: Args) -> Result<Vec<Dynamic>, Error> {
    let args = bind("groupby", ["attribute", "default", "case_sensitive"], args)?;
    let attribute = args.required("attribute")?;
    let default = args.get("default");
    let case_sensitive = args.flag("case_sensitive", false)?;
    let mut pairs = Vec::new();
    for item in items(defined(value)?)? {
        let found = attribute_of(&item, &attribute)?;
        let key = if found.is_undefined() {
            default.clone().unwrap_or(found)
        } else {
            found
        };
        defined(&key)?;
        pairs.push((vec![comparable(key.clone(), case_sensitive)?], (key, item)));
    }
    let mut groups: Vec<(Vec<Dynamic>, Group)> = Vec::new();
    for (keys, (key, item)) in sort_by_keys(pairs, false)? {
        match groups.last_mut() {
            Some((last, group)) if compare_keys(last, &keys)? == Ordering::Equal => group.list.push(item),
            _ => groups.push((
                keys,
                Group {
                    grouper: key,
                    list: vec![item],
                },
            )),
        }
    }
    Ok(groups
        .into_iter()
        .map(|(_, group)| Dynamic::from_object(group))
        .collect())
}

/// A pair whose parts have names.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) grouper: Dynamic,
    pub(crate) list: Vec<Dynamic>,
}

impl Object for Group {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Dynamic) -> Option<Dynamic> {
        match (key.as_str(), key.as_i64()) {
            (Some("grouper"), _) | (None, Some(0 | -2)) => Some(self.grouper.clone()),
            (Some("list"), _) | (None, Some(1 | -1)) => Some(
                account::charge(self.list.len() * account::ITEM)
                    .map_or_else(Dynamic::from, |()| Dynamic::from(self.list.clone())),
            ),
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(2)
    }
}
