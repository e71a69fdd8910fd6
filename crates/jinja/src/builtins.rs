//! The engine's own filters and functions, with what they make counted.

use minijinja::{
    Environment, Error, State, Value as Dynamic, filters as engine, functions,
    value::{Kwargs, Rest, StringInput, ValueKind, ValueOrKwargs},
};

use crate::{
    account::{self, ENTRY, ITEM, made_value},
    filters::items,
    format,
    signature::defined,
};

pub(crate) fn register(env: &mut Environment<'_>) {
    env.add_filter("upper", |text: StringInput<'_>| made_value(engine::upper(text)));
    env.add_filter("lower", |text: StringInput<'_>| made_value(engine::lower(text)));
    env.add_filter("capitalize", |text: StringInput<'_>| {
        made_value(engine::capitalize(text))
    });
    env.add_filter("title", |text: std::borrow::Cow<'_, str>| {
        account::made(engine::title(text))
    });
    env.add_filter(
        "trim",
        |text: StringInput<'_>, letters: Option<std::borrow::Cow<'_, str>>| {
            made_value(engine::trim(text, letters))
        },
    );
    env.add_filter("reverse", |value: &Dynamic| made_value(engine::reverse(value)?));
    env.add_filter("safe", |text: String| {
        account::made(text).map(Dynamic::from_safe_string)
    });
    env.add_filter("striptags", |text: String| {
        account::made(minijinja_contrib::filters::striptags(text))
    });
    env.add_filter("list", |value: &Dynamic| items(defined(value)?));
    env.add_filter("format", format);
    env.add_filter("batch", batch);
    env.add_filter("slice", slice);
    env.add_filter("sum", sum);
    register_selecting(env);
    env.add_function("dict", |value: Option<Dynamic>, named: Kwargs| {
        copied(value.as_ref())?;
        functions::dict(value, named)
    });
    env.add_function("namespace", |value: Option<ValueOrKwargs>| {
        let value = value.map(ValueOrKwargs::into_value);
        copied(value.as_ref())?;
        functions::namespace(value.map(ValueOrKwargs::from))
    });
}

type More = Rest<ValueOrKwargs>;
type Text<'a> = std::borrow::Cow<'a, str>;

fn register_selecting(env: &mut Environment<'_>) {
    env.add_filter("map", |state: &mut State<'_, '_>, value: Dynamic, args: More| {
        account::list(&value)?;
        engine::map(state, value, args)
    });
    env.add_filter(
        "select",
        |state: &mut State<'_, '_>, value: Dynamic, test: Option<Text<'_>>, args: More| {
            account::list(&value)?;
            engine::select(state, value, test, args)
        },
    );
    env.add_filter(
        "reject",
        |state: &mut State<'_, '_>, value: Dynamic, test: Option<Text<'_>>, args: More| {
            account::list(&value)?;
            engine::reject(state, value, test, args)
        },
    );
    env.add_filter(
        "selectattr",
        |state: &mut State<'_, '_>, value: Dynamic, name: Text<'_>, test: Option<Text<'_>>, args: More| {
            account::list(&value)?;
            engine::selectattr(state, value, name, test, args)
        },
    );
    env.add_filter(
        "rejectattr",
        |state: &mut State<'_, '_>, value: Dynamic, name: Text<'_>, test: Option<Text<'_>>, args: More| {
            account::list(&value)?;
            engine::rejectattr(state, value, name, test, args)
        },
    );
}

/// Counts the copy of a map.
fn copied(value: Option<&Dynamic>) -> Result<(), Error> {
    account::charge(
        value
            .and_then(Dynamic::len)
            .unwrap_or_default()
            .saturating_mul(ENTRY),
    )
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
    engine::batch(state, cut(value, count)?, count, fill)
}

fn slice(
    state: &State<'_, '_>,
    value: &Dynamic,
    count: usize,
    fill: Option<Dynamic>,
) -> Result<Dynamic, Error> {
    engine::slice(state, cut(value, count)?, count, fill)
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
