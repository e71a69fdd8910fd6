//! The engine's own filters and functions, with what they make counted.

use minijinja::{
    Environment, Error, State, Value as Dynamic, filters as engine, functions,
    value::{Kwargs, Rest, StringInput, ValueKind, ValueOrKwargs},
};

use crate::{
    account::{self, ENTRY, ITEM, made_value},
    filters::items,
    format, shape,
    signature::defined,
};

pub(crate) fn register(env: &mut Environment<'_>) {
    env.add_filter("upper", |state: &State<'_, '_>, text: &Dynamic| {
        made_value(engine::upper(input(state, text)?))
    });
    env.add_filter("lower", |state: &State<'_, '_>, text: &Dynamic| {
        made_value(engine::lower(input(state, text)?))
    });
    env.add_filter("capitalize", |state: &State<'_, '_>, text: &Dynamic| {
        made_value(engine::capitalize(input(state, text)?))
    });
    env.add_filter("title", |state: &State<'_, '_>, text: &Dynamic| {
        account::made(engine::title(input(state, text)?.as_str().into()))
    });
    env.add_filter(
        "trim",
        |state: &State<'_, '_>, text: &Dynamic, letters: Option<&str>| {
            made_value(engine::trim(input(state, text)?, letters.map(Into::into)))
        },
    );
    env.add_filter("reverse", |value: &Dynamic| made_value(engine::reverse(value)?));
    env.add_filter("safe", |state: &State<'_, '_>, text: &Dynamic| {
        account::made(input(state, text)?.as_str().to_owned()).map(Dynamic::from_safe_string)
    });
    env.add_filter("striptags", |state: &State<'_, '_>, text: &Dynamic| {
        account::made(minijinja_contrib::filters::striptags(
            input(state, text)?.as_str().to_owned(),
        ))
    });
    env.add_filter("list", |value: &Dynamic| items(defined(value)?));
    env.add_filter("format", format);
    env.add_filter("batch", batch);
    env.add_filter("slice", slice);
    env.add_filter("sum", sum);
    register_selecting(env);
    env.add_function("dict", |value: Option<Dynamic>, named: Kwargs| {
        copied(value.as_ref())?;
        deepened(functions::dict(value, named)?)
    });
    env.add_function("namespace", |value: Option<ValueOrKwargs>| {
        let value = value.map(ValueOrKwargs::into_value);
        copied(value.as_ref())?;
        functions::namespace(value.map(ValueOrKwargs::from))
    });
}

/// Text that the engine makes of a value; what it takes is known before.
fn input<'a>(state: &State<'_, '_>, value: &'a Dynamic) -> Result<StringInput<'a>, Error> {
    shape::whole(value)?;
    StringInput::new(state, value)
}

type More = Rest<ValueOrKwargs>;
type Text<'a> = &'a str;

/// Counts a list and what a filter is called with for each of its items.
fn selecting(value: &Dynamic, args: &More) -> Result<(), Error> {
    account::list(value)?;
    let mut args = args.0.iter().cloned().map(ValueOrKwargs::into_value);
    args.try_for_each(|arg| shape::whole(&arg))
}

fn register_selecting(env: &mut Environment<'_>) {
    env.add_filter("map", |state: &mut State<'_, '_>, value: Dynamic, args: More| {
        selecting(&value, &args)?;
        deepened(engine::map(state, value, args)?)
    });
    env.add_filter(
        "select",
        |state: &mut State<'_, '_>, value: Dynamic, test: Option<Text<'_>>, args: More| {
            selecting(&value, &args)?;
            engine::select(state, value, test.map(Into::into), args)
        },
    );
    env.add_filter(
        "reject",
        |state: &mut State<'_, '_>, value: Dynamic, test: Option<Text<'_>>, args: More| {
            selecting(&value, &args)?;
            engine::reject(state, value, test.map(Into::into), args)
        },
    );
    env.add_filter(
        "selectattr",
        |state: &mut State<'_, '_>, value: Dynamic, name: Text<'_>, test: Option<Text<'_>>, args: More| {
            selecting(&value, &args)?;
            engine::selectattr(state, value, name.into(), test.map(Into::into), args)
        },
    );
    env.add_filter(
        "rejectattr",
        |state: &mut State<'_, '_>, value: Dynamic, name: Text<'_>, test: Option<Text<'_>>, args: More| {
            selecting(&value, &args)?;
            engine::rejectattr(state, value, name.into(), test.map(Into::into), args)
        },
    );
}

/// Counts the copy of a map, whose values become parts of another one.
fn copied(value: Option<&Dynamic>) -> Result<(), Error> {
    value.map_or(Ok(()), |value| shape::held(value, &[]))?;
    account::charge(
        value
            .and_then(Dynamic::len)
            .unwrap_or_default()
            .saturating_mul(ENTRY),
    )
}

/// Checks a list whose items a filter put into other ones.
fn deepened(value: impl Into<Dynamic>) -> Result<Dynamic, Error> {
    let value = value.into();
    shape::whole(&value)?;
    Ok(value)
}

fn format(state: &mut State<'_, '_>, text: &Dynamic, args: More) -> Result<Dynamic, Error> {
    if let Some(text) = text.as_str() {
        let values: Vec<Dynamic> = args.0.iter().cloned().map(ValueOrKwargs::into_value).collect();
        account::fits(format::size_of_printf(text, &values)?)?;
    }
    made_value(engine::format(state, text, args)?)
}

/// Counts the items of a list that is cut into `count` parts, or into parts of that length.
fn cut(value: &Dynamic, count: usize) -> Result<Dynamic, Error> {
    let size = count.saturating_mul(ITEM);
    account::fits(size)?;
    account::charge(size)?;
    Ok(Dynamic::from(items(defined(value)?)?))
}

fn batch(
    state: &State<'_, '_>,
    value: &Dynamic,
    count: usize,
    fill: Option<Dynamic>,
) -> Result<Dynamic, Error> {
    deepened(engine::batch(state, cut(value, count)?, count, fill)?)
}

fn slice(
    state: &State<'_, '_>,
    value: &Dynamic,
    count: usize,
    fill: Option<Dynamic>,
) -> Result<Dynamic, Error> {
    deepened(engine::slice(state, cut(value, count)?, count, fill)?)
}

fn sum(
    state: &State<'_, '_>,
    values: Dynamic,
    attribute: Option<&str>,
    start: Option<Dynamic>,
    named: Kwargs,
) -> Result<Dynamic, Error> {
    let values = if values.is_undefined() {
        values
    } else {
        Dynamic::from(items(&values)?)
    };
    // Lists are joined; how long they are under an attribute is not known before.
    for value in items(&values).unwrap_or_default() {
        if matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
            account::list(&value)?;
        }
    }
    made_value(engine::sum(state, values, attribute, start, named)?)
}
