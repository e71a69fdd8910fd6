//! Dates of `from_yaml`, and the durations between them, as in Python's `datetime`.

use std::sync::Arc;

use jinja::{Renderer, Vars};
use tree::{Budget, Mem};
use yaml::Map;

const DATES: &str = "{% set v = '{a: 2024-03-01, b: 2024-02-27, t: 2024-03-01 12:00:00.5, u: 2024-02-29 13:30:00, \
                     z: 2024-03-01T12:00:00Z, y: 2024-03-01T14:00:00+02:00}' | from_yaml %}\
                     {% set d = v.a - v.b %}{% set h = v.t - v.u %}";

fn render(expression: &str) -> Result<String, String> {
    let files: [(&str, String); 0] = [];
    let mut renderer = Renderer::new(
        Arc::new(Mem::from_files(files).unwrap()),
        &[],
        &Vars::sorted(&Map::new()),
    );
    let template = format!("{DATES}{{{{ {expression} }}}}");
    renderer
        .render_str(&template, &Budget::default())
        .map_err(|error| error.to_string())
}

#[test]
fn differences_of_dates_are_durations() {
    for (expression, expected) in [
        ("d", "3 days, 0:00:00"),
        ("[d]", "[datetime.timedelta(days=3)]"),
        ("v.b - v.a", "-3 days, 0:00:00"),
        ("h", "22:30:00.500000"),
        ("-h", "-1 day, 1:29:59.500000"),
        ("+h", "22:30:00.500000"),
        ("(-h) | abs", "22:30:00.500000"),
        ("v.a - v.a", "0:00:00"),
        ("[v.a - v.a]", "[datetime.timedelta(0)]"),
        ("'yes' if v.a - v.a else 'no'", "no"),
        ("v.z - v.y", "0:00:00"),
        ("v.z == v.y", "True"),
        ("d.days", "3"),
        (
            "(d.seconds, h.seconds, h.microseconds, (-h).days)",
            "(0, 81000, 500000, -1)",
        ),
        ("d.total_seconds()", "259200.0"),
        ("h.total_seconds()", "81000.5"),
        ("d + h", "3 days, 22:30:00.500000"),
        ("d - h", "2 days, 1:29:59.500000"),
        ("d * 2", "6 days, 0:00:00"),
        ("2 * d", "6 days, 0:00:00"),
        ("d * 0.1", "7:12:00"),
        ("d * true", "3 days, 0:00:00"),
        ("d / 7", "10:17:08.571429"),
        ("d // 7", "10:17:08.571428"),
        ("d / 2.5", "1 day, 4:48:00"),
        ("d / h", "3.199980247035512"),
        ("d // h", "3"),
        ("d % h", "4:29:58.500000"),
        ("(-d) // h", "-4"),
        ("(-d) % h", "18:00:02"),
        ("d // (-h)", "-4"),
        ("v.a + d", "2024-03-04"),
        ("d + v.a", "2024-03-04"),
        ("v.a - d", "2024-02-27"),
        ("v.a + h", "2024-03-01"),
        ("v.a - h", "2024-03-01"),
        ("v.t + h", "2024-03-02 10:30:01"),
        ("v.t - d", "2024-02-27 12:00:00.500000"),
        ("v.z + d", "2024-03-04 12:00:00+00:00"),
        ("d > h", "True"),
        ("d == h + h", "False"),
        (
            "[d, h] | sort",
            "[datetime.timedelta(seconds=81000, microseconds=500000), datetime.timedelta(days=3)]",
        ),
        ("[d, h] | max", "3 days, 0:00:00"),
        ("{d: 1}[v.a - v.b]", "1"),
        ("v.t.date()", "2024-03-01"),
        ("v.t.date() - v.b", "3 days, 0:00:00"),
        ("v.a.toordinal()", "738946"),
        ("d ~ ''", "3 days, 0:00:00"),
        ("[v.a, v.b] | min - v.a", "-3 days, 0:00:00"),
        ("d == 3", "False"),
    ] {
        assert_eq!(render(expression), Ok(expected.to_owned()), "{expression}");
    }
}

#[test]
fn operators_of_dates_fail_as_in_python() {
    for (expression, expected) in [
        (
            "v.a - v.t",
            "TypeError: unsupported operand type(s) for -: 'datetime.date' and 'datetime.datetime'",
        ),
        (
            "v.a + 1",
            "TypeError: unsupported operand type(s) for +: 'datetime.date' and 'int'",
        ),
        (
            "v.a + v.b",
            "TypeError: unsupported operand type(s) for +: 'datetime.date' and 'datetime.date'",
        ),
        (
            "d - v.a",
            "TypeError: unsupported operand type(s) for -: 'datetime.timedelta' and 'datetime.date'",
        ),
        (
            "d + 1",
            "TypeError: unsupported operand type(s) for +: 'datetime.timedelta' and 'int'",
        ),
        (
            "d // 1.5",
            "TypeError: unsupported operand type(s) for //: 'datetime.timedelta' and 'float'",
        ),
        (
            "d < 1",
            "TypeError: '<' not supported between instances of 'datetime.timedelta' and 'int'",
        ),
        (
            "v.t - v.z",
            "TypeError: can't subtract offset-naive and offset-aware datetimes",
        ),
        (
            "v.t < v.z",
            "TypeError: can't compare offset-naive and offset-aware datetimes",
        ),
        ("d / 0", "ZeroDivisionError"),
        ("d % (v.a - v.a)", "ZeroDivisionError"),
        ("d * 1000000000", "OverflowError"),
        ("v.a + d * 1000000", "OverflowError: date value out of range"),
        ("d | to_yaml", "RepresenterError"),
        (
            "d | to_json",
            "TypeError: Object of type timedelta is not JSON serializable",
        ),
    ] {
        let error = render(expression).unwrap_err();
        assert!(error.contains(expected), "{expression}: {error}");
    }
}

#[test]
fn dates_have_the_members_of_python() {
    for (expression, expected) in [
        ("v.t.replace(year=2023)", "2023-03-01 12:00:00.500000"),
        ("v.t.replace(2023, 4)", "2023-04-01 12:00:00.500000"),
        ("v.t.replace(hour=5, microsecond=0)", "2024-03-01 05:00:00"),
        ("v.y.replace(tzinfo=none)", "2024-03-01 14:00:00"),
        ("v.a.replace(day=6)", "2024-03-06"),
        ("v.t.timestamp()", "1709294400.5"),
        ("v.y.timestamp()", "1709294400.0"),
        (
            "(v.t.utcoffset(), v.t.tzinfo, v.t.tzname(), v.t.dst(), v.t.fold)",
            "(None, None, None, None, 0)",
        ),
        ("v.y.utcoffset()", "2:00:00"),
        ("v.y.tzname() ~ ' ' ~ v.z.tzname()", "UTC+02:00 UTC"),
        ("v.y.astimezone()", "2024-03-01 12:00:00+00:00"),
        ("v.t.astimezone()", "2024-03-01 12:00:00.500000+00:00"),
        (
            "v.t.ctime() ~ '; ' ~ v.a.ctime()",
            "Fri Mar  1 12:00:00 2024; Fri Mar  1 00:00:00 2024",
        ),
        ("v.t.isocalendar()[1]", "9"),
        ("v.t.isoformat(timespec='hours')", "2024-03-01T12"),
        ("v.y.isoformat(timespec='minutes')", "2024-03-01T14:00+02:00"),
        ("v.t.isoformat(' ', 'milliseconds')", "2024-03-01 12:00:00.500"),
        (
            "v.y.isoformat(timespec='microseconds')",
            "2024-03-01T14:00:00.000000+02:00",
        ),
        (
            "v.a.min ~ ' ' ~ v.a.max ~ ' ' ~ v.a.resolution",
            "0001-01-01 9999-12-31 1 day, 0:00:00",
        ),
        (
            "v.t.min ~ ' ' ~ v.t.max ~ ' ' ~ v.t.resolution",
            "0001-01-01 00:00:00 9999-12-31 23:59:59.999999 0:00:00.000001",
        ),
        (
            "d.min ~ ' ' ~ d.max ~ ' ' ~ d.resolution",
            "-999999999 days, 0:00:00 999999999 days, 23:59:59.999999 0:00:00.000001",
        ),
        (
            "'{:%Y-%m}|{}|{:>3}'.format(v.t, v.a, v.t)",
            "2024-03|2024-03-01|>3",
        ),
        ("v.y.strftime('%z %Z %f')", "+0200 UTC+02:00 000000"),
        (
            "v.t.strftime('[%z%Z] %f %c %x %q %')",
            "[] 500000 Fri Mar  1 12:00:00 2024 03/01/24 %q %",
        ),
    ] {
        assert_eq!(render(expression).as_deref(), Ok(expected), "{expression}");
    }
}

#[test]
fn invalid_members_of_dates_are_refused() {
    for (expression, problem) in [
        ("v.t.replace(month=13)", "month must be in 1..12"),
        ("v.t.replace(day=32)", "day is out of range for month"),
        ("v.t.replace(hour=24)", "hour must be in 0..23"),
        (
            "v.t.replace(microsecond=1000000)",
            "microsecond must be in 0..999999",
        ),
        ("v.t.replace(year=10000)", "year 10000 is out of range"),
        (
            "v.a.replace(hour=5)",
            "'hour' is an invalid keyword argument for replace()",
        ),
        (
            "v.t.replace(year='x')",
            "'str' object cannot be interpreted as an integer",
        ),
        (
            "v.t.replace(tzinfo=5)",
            "tzinfo argument must be None or of a tzinfo subclass, not type 'int'",
        ),
        ("v.t.isoformat(timespec='foo')", "Unknown timespec value"),
        (
            "v.t.isoformat('ab')",
            "isoformat() argument 1 must be a unicode character, not str",
        ),
        ("v.a.isoformat(' ')", "date.isoformat() takes at most 0 arguments"),
        (
            "'{:x}'.format(d)",
            "unsupported format string passed to datetime.timedelta.__format__",
        ),
        ("v.a.timestamp()", "timestamp"),
    ] {
        let error = render(expression).unwrap_err();
        assert!(error.contains(problem), "{expression}: {error}");
    }
}

#[test]
fn simple_times_have_a_date() {
    for (expression, expected) in [
        ("time.parse_iso('2024-03-05T01:02:03').t.year", "2024"),
        (
            "time.parse_iso('2024-03-05T01:02:03+02:00').t.strftime('%d.%m. %z')",
            "05.03. +0200",
        ),
        (
            "time.parse_iso('2024-03-05T01:02:03') == time.parse_iso('2024-03-05T01:02:03Z')",
            "False",
        ),
        (
            "time.parse_iso('2024-03-05T03:02:03+02:00') == time.parse_iso('2024-03-05T01:02:03Z')",
            "True",
        ),
    ] {
        assert_eq!(render(expression).as_deref(), Ok(expected), "{expression}");
    }
}
