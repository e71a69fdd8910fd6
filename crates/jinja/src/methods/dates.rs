//! Methods of dates and times.

use crate::{
    eval::context::Cx,
    exc::{R, type_error, value_error},
    rt::Rt,
    value::{
        Object, Value,
        args::{Args, to_int},
        date::{Date, Precision},
        delta::Delta,
    },
};

fn of(date: Date) -> Value {
    Value::object(Object::Date(date))
}

pub(super) fn call(cx: &Cx<'_>, date: &Date, name: &str, args: Args) -> R<Value> {
    match name {
        "strftime" => {
            let pattern = args.bind("strftime", ["format"], 1)?.text(0, "")?;
            cx.rt.text(formatted(cx.rt, date, &pattern)?)
        }
        "isoformat" => cx.rt.text(isoformat(date, args)?),
        "replace" => replaced(date, args).map(of),
        "astimezone" => {
            args.none("astimezone")?;
            date.in_utc().map(of)
        }
        _ => {
            args.none(name)?;
            property(cx, date, name)
        }
    }
}

/// Returns the result of a method without arguments.
fn property(cx: &Cx<'_>, date: &Date, name: &str) -> R<Value> {
    Ok(match name {
        "date" => of(date.day()),
        "toordinal" => Value::Int(date.ordinal()),
        "weekday" => Value::Int(date.weekday()),
        "isoweekday" => Value::Int(date.weekday() + 1),
        "ctime" => {
            return cx
                .rt
                .text(date.formatted("%a %b %e %H:%M:%S ") + &date.year_text());
        }
        "isocalendar" => Value::tuple(date.iso_week().map(Value::Int).to_vec()),
        "timestamp" => Value::Float(date.timestamp()),
        "utcoffset" => match date.offset() {
            Some(seconds) => Value::object(Object::Delta(Delta::new(i128::from(seconds) * 1_000_000)?)),
            None => Value::None,
        },
        "tzname" => match date.zone_name() {
            Some(zone) => return cx.rt.text(zone),
            None => Value::None,
        },
        // Fixed offsets have no daylight saving time.
        _ => Value::None,
    })
}

/// Formats a date by `strftime`.
pub(crate) fn formatted(rt: &Rt, date: &Date, pattern: &str) -> R<String> {
    rt.step(pattern.len() as u64)?;
    // Longer results are empty.
    rt.fits(pattern.len().saturating_mul(512))?;
    Ok(date.formatted(pattern))
}

fn isoformat(date: &Date, args: Args) -> R<String> {
    if date.is_day() {
        args.none("date.isoformat")?;
        return Ok(date.text('T'));
    }
    let args = args.bind("isoformat", ["sep", "timespec"], 0)?;
    let separator = args.text(0, "T")?;
    let mut letters = separator.chars();
    let (Some(separator), None) = (letters.next(), letters.next()) else {
        return type_error("isoformat() argument 1 must be a unicode character, not str");
    };
    match Precision::named(&args.text(1, "auto")?) {
        Some(precision) => Ok(date.text_to(separator, precision)),
        None => value_error("Unknown timespec value"),
    }
}

/// Replaces fields. An offset can be removed only.
fn replaced(date: &Date, mut args: Args) -> R<Date> {
    let count = if date.is_day() { 3 } else { Date::FIELDS.len() };
    let zone = if date.is_day() {
        None
    } else {
        args.take_named("tzinfo")
    };
    let mut fields = [None; Date::FIELDS.len()];
    if args.plain.len() > count {
        let given = args.plain.len();
        return type_error(format!(
            "replace() takes at most {count} arguments ({given} given)"
        ));
    }
    for (field, value) in fields.iter_mut().zip(&args.plain) {
        *field = Some(to_int(value)?);
    }
    for (name, value) in &args.named {
        let index = Date::FIELDS.iter().position(|field| **field == **name);
        let Some(field) = index
            .filter(|index| *index < count)
            .and_then(|index| fields.get_mut(index))
        else {
            return type_error(format!("'{name}' is an invalid keyword argument for replace()"));
        };
        *field = Some(to_int(value)?);
    }
    let made = date.replaced(fields)?;
    match zone {
        None => Ok(made),
        Some(Value::None) => Ok(made.naive()),
        Some(other) => type_error(format!(
            "tzinfo argument must be None or of a tzinfo subclass, not type '{}'",
            other.type_name()
        )),
    }
}
