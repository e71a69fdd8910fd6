//! Reads TOML 1.1, and TOML 1.0 for Helm 3. Dates and times are Go's `time.Time`.

use go::bytes;
use toml::value::{Datetime, Offset};

use super::first;
use crate::{
    HelmVersion, Value,
    functions::time::{ClockZone, LOCAL_CLOCK, LOCAL_DATE, LOCAL_DATE_TIME, Time},
    template::FunctionError,
};

pub(in crate::functions) fn read(text: &str, helm: HelmVersion) -> Result<Value, FunctionError> {
    let raw = bytes::of_str(text);
    let text = str::from_utf8(&raw).map_err(|error| {
        let (before, after) = raw.split_at_checked(error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let byte = after.first().copied().unwrap_or_default();
        format!("toml: line {line}: invalid UTF-8 byte: {byte:#04x}")
    })?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let before = text
            .get(..error.span().map_or(0, |span| span.start))
            .unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        format!("toml: line {line}: {}", error.message())
    })?;
    if helm == HelmVersion::V3 {
        first::check(text)?;
    }
    of_table(&table)
}

fn of_table(table: &toml::Table) -> Result<Value, FunctionError> {
    let entries = table
        .iter()
        .map(|(key, value)| Ok((bytes::of_utf8(key).into_owned(), of_value(value)?)));
    Ok(Value::dict(entries.collect::<Result<Vec<_>, FunctionError>>()?))
}

fn of_value(value: &toml::Value) -> Result<Value, FunctionError> {
    Ok(match value {
        toml::Value::String(text) => Value::utf8(text),
        toml::Value::Integer(value) => Value::int64(*value),
        toml::Value::Float(value) => Value::Float(*value),
        toml::Value::Boolean(value) => Value::Bool(*value),
        toml::Value::Datetime(moment) => time(moment)?.object(),
        toml::Value::Array(items) => Value::list(items.iter().map(of_value).collect::<Result<_, _>>()?),
        toml::Value::Table(table) => of_table(table)?,
    })
}

/// Returns the time of a date or a clock; the other half is zero. Those without an offset have a zone that says so.
fn time(moment: &Datetime) -> Result<Time, FunctionError> {
    let date = moment.date.map_or((0, 1, 1), |date| {
        (date.year.into(), date.month.into(), date.day.into())
    });
    let clock = moment.time;
    let second = clock.and_then(|clock| clock.second).unwrap_or(0);
    if second > 59 {
        return Err(format!("toml: invalid datetime: \"{moment}\"").into());
    }
    let minutes = clock.map_or(0, |clock| i64::from(clock.hour) * 60 + i64::from(clock.minute));
    let nanos = clock.and_then(|clock| clock.nanosecond).unwrap_or(0);
    let zone = match (moment.offset, moment.date, clock) {
        (Some(Offset::Z), ..) => ClockZone::Utc,
        (Some(Offset::Custom { minutes }), ..) => ClockZone::Offset(i32::from(minutes) * 60),
        (None, Some(_), Some(_)) => ClockZone::Named(LOCAL_DATE_TIME),
        (None, Some(_), None) => ClockZone::Named(LOCAL_DATE),
        (None, None, _) => ClockZone::Named(LOCAL_CLOCK),
    };
    Ok(Time::of_clock(
        date,
        minutes * 60 + i64::from(second),
        nanos,
        zone,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str, helm: HelmVersion) -> String {
        match read(text, helm) {
            Ok(value) => yaml::print::json(&value.to_yaml(&tree::Budget::default()).unwrap()),
            Err(error) => error.into_message(),
        }
    }

    #[test]
    fn helm_four_reads_toml_that_helm_three_refuses() {
        for (text, four, three) in [
            (
                "a = {b = 1,\n c = 2}",
                r#"{"a":{"b":1,"c":2}}"#,
                "newlines not allowed within inline tables",
            ),
            (
                "a = {b = 1,}",
                r#"{"a":{"b":1}}"#,
                "trailing comma not allowed in inline tables",
            ),
            (
                "a = { # x\n}",
                r#"{"a":{}}"#,
                "newlines not allowed within inline tables",
            ),
            (
                "a = [{b = 1,\n}]",
                r#"{"a":[{"b":1}]}"#,
                "newlines not allowed within inline tables",
            ),
            (
                r#"a = "\e[0m""#,
                r#"{"a":"\u001b[0m"}"#,
                r"invalid escape in string '\e'",
            ),
            (
                r#"a = """\x41""""#,
                r#"{"a":"A"}"#,
                r"invalid escape in string '\x'",
            ),
            (
                "a = 12:30",
                r#"{"a":"0000-01-01T12:30:00Z"}"#,
                "invalid datetime: \"12:30\"",
            ),
            (
                "a = [2020-01-01T12:30Z]",
                r#"{"a":["2020-01-01T12:30:00Z"]}"#,
                "invalid datetime: \"2020-01-01T12:30Z\"",
            ),
            (
                "a = 2020-01-01 12:30+01:00",
                r#"{"a":"2020-01-01T12:30:00+01:00"}"#,
                "invalid datetime: \"12:30+01:00\"",
            ),
        ] {
            assert_eq!(json(text, HelmVersion::V4), four, "{text}");
            assert_eq!(
                json(text, HelmVersion::V3),
                format!("toml: line 1: {three}"),
                "{text}"
            );
        }
    }

    #[test]
    fn both_versions_read_the_same_toml_1_0() {
        for (text, expected) in [
            ("a = { b = [ # x, {\n1,\n2,\n] }", r#"{"a":{"b":[1,2]}}"#),
            (r"a = '\e'", r#"{"a":"\\e"}"#),
            (r#"a = "\\e, }""#, r#"{"a":"\\e, }"}"#),
            ("a = \"\"\"\"12:30,\n{\n}\"\"\"\"", r#"{"a":"\"12:30,\n{\n}\""}"#),
            ("a = '''\n'x, }\n''''\nb = 1", r#"{"a":"'x, }\n'","b":1}"#),
            ("[[a]]\n'12:30' = 1 # {\n[[a]]", r#"{"a":[{"12:30":1},{}]}"#),
            ("a = 12:30:15.25", r#"{"a":"0000-01-01T12:30:15.25Z"}"#),
            ("a = 2020-01-01", r#"{"a":"2020-01-01T00:00:00Z"}"#),
            (
                "a = 2020-01-01 12:30:15.5-03:30",
                r#"{"a":"2020-01-01T12:30:15.5-03:30"}"#,
            ),
            ("a = 12:30:60", "toml: invalid datetime: \"12:30:60\""),
        ] {
            assert_eq!(json(text, HelmVersion::V3), expected, "{text}");
            assert_eq!(json(text, HelmVersion::V4), expected, "{text}");
        }
    }
}
