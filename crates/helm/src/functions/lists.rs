//! Functions on lists. The functions with the prefix `must` fail as the others do.

use super::{
    arguments::{NIL_POINTER, any, int, rest},
    cast,
    context::Context,
    equal::equal,
    table::{Answer, Entry, fixed, variadic},
};
use crate::template::FunctionError;
use crate::{
    List, Value,
    template::{Type, kind_name, truth, weight::STRING},
};

const ONE: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

pub(super) const TABLE: &[Entry] = &[
    variadic("list", ONE, list),
    variadic("tuple", ONE, list),
    fixed("append", TWO, append),
    fixed("push", TWO, append),
    fixed("mustAppend", TWO, append),
    fixed("mustPush", TWO, append),
    fixed("prepend", TWO, prepend),
    fixed("mustPrepend", TWO, prepend),
    fixed("first", ONE, first),
    fixed("mustFirst", ONE, first),
    fixed("last", ONE, last),
    fixed("mustLast", ONE, last),
    fixed("rest", ONE, tail),
    fixed("mustRest", ONE, tail),
    fixed("initial", ONE, initial),
    fixed("mustInitial", ONE, initial),
    fixed("reverse", ONE, reverse),
    fixed("mustReverse", ONE, reverse),
    fixed("compact", ONE, compact),
    fixed("mustCompact", ONE, compact),
    fixed("uniq", ONE, uniq),
    fixed("mustUniq", ONE, uniq),
    variadic("without", TWO, without),
    variadic("mustWithout", TWO, without),
    fixed("has", TWO, has),
    fixed("mustHas", TWO, has),
    variadic("slice", TWO, slice),
    variadic("mustSlice", TWO, slice),
    variadic("concat", ONE, concat),
    fixed("chunk", &[Type::Int, Type::Any], chunk),
    fixed("mustChunk", &[Type::Int, Type::Any], chunk),
];

/// Returns the items of an argument; the error begins with `what` and the kind of the value.
fn items(context: &Context<'_>, value: &Value, what: &str) -> Result<List, FunctionError> {
    match value {
        Value::Nil | Value::Missing => Err(NIL_POINTER.into()),
        Value::Bytes(bytes) => {
            context.items(bytes.len())?;
            let item = |byte: &u8| Value::Int(i128::from(*byte), crate::IntKind::Uint8);
            Ok(bytes.iter().map(item).collect::<Vec<_>>().into())
        }
        value => value
            .as_list()
            .ok_or_else(|| format!("{what} {}", kind_name(value)).into()),
    }
}

fn list(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.items(arguments.len())?;
    Ok(Value::list(arguments.to_vec()))
}

fn append(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let items = items(context, any(arguments, 0), "Cannot push on type")?;
    context.items(items.len())?;
    let added = items.iter().chain([any(arguments, 1)]);
    Ok(Value::list(added.cloned().collect()))
}

fn prepend(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let items = items(context, any(arguments, 0), "Cannot prepend on type")?;
    context.items(items.len())?;
    let added = [any(arguments, 1)].into_iter().chain(items.iter());
    Ok(Value::list(added.cloned().collect()))
}

fn first(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let items = items(context, any(arguments, 0), "Cannot find first on type")?;
    Ok(items.first().cloned().unwrap_or_default())
}

fn last(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let items = items(context, any(arguments, 0), "Cannot find last on type")?;
    Ok(items.last().cloned().unwrap_or_default())
}

fn tail(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let items = items(context, any(arguments, 0), "Cannot find rest on type")?;
    context.items(items.len())?;
    Ok(items
        .split_first()
        .map_or_else(Value::nil_list, |(_, rest)| Value::list(rest.to_vec())))
}

fn initial(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let items = items(context, any(arguments, 0), "Cannot find initial on type")?;
    context.items(items.len())?;
    Ok(items
        .split_last()
        .map_or_else(Value::nil_list, |(_, rest)| Value::list(rest.to_vec())))
}

fn reverse(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let items = items(context, any(arguments, 0), "Cannot find reverse on type")?;
    context.items(items.len())?;
    Ok(Value::list(items.iter().rev().cloned().collect()))
}

fn compact(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let items = items(context, any(arguments, 0), "Cannot compact on type")?;
    context.items(items.len())?;
    Ok(Value::list(
        items.iter().filter(|item| truth(item)).cloned().collect(),
    ))
}

fn contains(context: &Context<'_>, items: &[Value], wanted: &Value) -> Result<bool, FunctionError> {
    for item in items {
        if equal(context, item, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let items = items(context, any(arguments, 0), "Cannot find uniq on type")?;
    let mut remaining: Vec<Value> = Vec::new();
    context.items(items.len())?;
    for item in items.iter() {
        if !contains(context, &remaining, item)? {
            remaining.push(item.clone());
        }
    }
    Ok(Value::list(remaining))
}

fn without(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let items = items(context, any(arguments, 0), "Cannot find without on type")?;
    let mut remaining = Vec::new();
    context.items(items.len())?;
    for item in items.iter() {
        if !contains(context, rest(arguments, 1), item)? {
            remaining.push(item.clone());
        }
    }
    Ok(Value::list(remaining))
}

fn has(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let haystack = any(arguments, 1);
    if matches!(haystack, Value::Nil | Value::Missing) {
        return Ok(Value::Bool(false));
    }
    let items = items(context, haystack, "Cannot find has on type")?;
    contains(context, &items, any(arguments, 0)).map(Value::Bool)
}

fn slice(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let whole = any(arguments, 0);
    let items = items(context, whole, "list should be type of slice or array but")?;
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    context.items(items.len())?;
    let at = |index: usize| arguments.get(index).map(cast::to_i64);
    let (start, end) = (at(1).unwrap_or(0), at(2).unwrap_or(items.len() as i64));
    let bounds = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = bounds.and_then(|(start, end)| items.get(start..end));
    let part = part
        .ok_or("reflect.Value.Slice: slice index out of bounds")?
        .to_vec();
    Ok(match whole {
        Value::Strings(_) => Value::Strings(part.into()),
        Value::Ints(_) => Value::Ints(part.into()),
        _ => Value::list(part),
    })
}

fn concat(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let mut all = Vec::new();
    for argument in arguments {
        let cannot = |kind| format!("Cannot concat type {kind} as list");
        let items = match argument {
            Value::Nil | Value::Missing => return Err(NIL_POINTER.into()),
            argument => items(context, argument, "").map_err(|_| cannot(kind_name(argument)))?,
        };
        context.items(items.len())?;
        all.extend(items.iter().cloned());
    }
    Ok(if all.is_empty() {
        Value::nil_list()
    } else {
        Value::list(all)
    })
}

fn chunk(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let items = items(context, any(arguments, 1), "Cannot chunk type")?;
    context.items(items.len())?;
    let size = int(arguments, 0);
    let magnitude = usize::try_from(size.unsigned_abs()).unwrap_or(usize::MAX);
    let size = match (size, items.len()) {
        (1.., _) => magnitude,
        // quirk: the original's arithmetic for a negative number.
        (..=-2, 1) => 1,
        (..=-1, 2..) if items.len() - 1 <= magnitude => return Ok(Value::list(Vec::new())),
        _ => return Err("runtime error: makeslice: len out of range".into()),
    };
    // Each chunk is a list of its own.
    context.memory(items.len().div_ceil(size).saturating_mul(2 * STRING))?;
    let chunks = items.chunks(size).map(|chunk| Value::list(chunk.to_vec()));
    Ok(Value::list(chunks.collect()))
}
