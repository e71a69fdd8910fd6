//! The attributes of values: the names of their methods, and their data attributes.

use std::{collections::HashSet, sync::LazyLock};

use super::{Object, Value, object::ViewKind};

const TEXT: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
    "__mod__",
];

const LIST: &[&str] = &[
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort",
];

const TUPLE: &[&str] = &["count", "index"];

const DICT: &[&str] = &[
    "clear",
    "copy",
    "fromkeys",
    "get",
    "items",
    "keys",
    "pop",
    "popitem",
    "setdefault",
    "update",
    "values",
];

const INT: &[&str] = &[
    "bit_length",
    "bit_count",
    "conjugate",
    "as_integer_ratio",
    "is_integer",
];

const FLOAT: &[&str] = &["is_integer", "as_integer_ratio", "conjugate", "hex"];

const BYTES: &[&str] = &["decode", "hex", "__len__", "__str__", "__repr__"];

/// Of strings and bytes.
const BYTES_AS_TEXT: &[&str] = &[
    "capitalize",
    "center",
    "count",
    "endswith",
    "expandtabs",
    "find",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdigit",
    "islower",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
];

const MARKUP: &[&str] = &["striptags", "unescape", "escape"];

const DATE: &[&str] = &[
    "ctime",
    "isocalendar",
    "isoformat",
    "isoweekday",
    "replace",
    "strftime",
    "toordinal",
    "weekday",
];

/// Of dates with a time.
const DATE_TIME: &[&str] = &["astimezone", "date", "dst", "timestamp", "tzname", "utcoffset"];

const DELTA: &[&str] = &["total_seconds"];

const TIME: &[&str] = &["as_timezone", "weekday", "hour", "minute", "second", "nanosecond"];

/// Of containers.
const HOLDING: &[&str] = &["__len__", "__contains__", "__getitem__"];

/// Of values that can be concatenated.
const JOINED: &[&str] = &["__add__", "__mul__"];

/// Of mutable values.
const CHANGED: &[&str] = &["__setitem__", "__delitem__"];

/// Of nearly all.
const PRINTED: &[&str] = &["__str__", "__repr__"];

/// Of values with equality.
const EQUAL: &[&str] = &["__eq__", "__ne__"];

const NUMBER: &[&str] = &[
    "__add__",
    "__sub__",
    "__mul__",
    "__mod__",
    "__floordiv__",
    "__truediv__",
    "__pow__",
    "__neg__",
    "__abs__",
];

/// Of ordered values.
const ORDERED: &[&str] = &["__lt__", "__le__", "__gt__", "__ge__"];

const RANGE: &[&str] = &["count", "index", "__len__", "__getitem__"];

const ITERATOR: &[&str] = &["__next__", "__iter__"];

const GENERATOR: &[&str] = &["send", "throw", "close", "__next__", "__iter__"];

const CYCLER: &[&str] = &["next", "reset", "__next__"];

const VIEW: &[&str] = &["isdisjoint", "__len__"];

const LIBRARY: &[&str] = &[
    "now",
    "utcnow",
    "parse_iso",
    "get_image",
    "semver",
    "prefix",
    "number",
    "regex",
];

/// The names of all methods.
pub(crate) const ALL: &[&[&str]] = &[
    TEXT, LIST, TUPLE, DICT, INT, FLOAT, BYTES, MARKUP, DATE, DATE_TIME, DELTA, TIME, HOLDING, JOINED,
    CHANGED, PRINTED, EQUAL, NUMBER, ORDERED, RANGE, ITERATOR, GENERATOR, CYCLER, VIEW, LIBRARY,
];

static NAMES: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| ALL.iter().copied().flatten().copied().collect());

/// Finds a method of a value by its name.
pub(crate) fn method(value: &Value, name: &str) -> Option<&'static str> {
    // Most names are keys and no methods: one lookup is cheaper than comparing them with all methods of a string.
    if !matches!(value, Value::Object(_)) && !NAMES.contains(name) {
        return None;
    }
    let search = |names: &'static [&'static str]| names.iter().copied().find(|known| *known == name);
    let among = |groups: &[&'static [&'static str]]| groups.iter().find_map(|names| search(names));
    match value {
        Value::Str(_) => among(&[TEXT, HOLDING, JOINED, PRINTED, EQUAL]),
        Value::Markup(_) => search(MARKUP).or_else(|| among(&[TEXT, HOLDING, JOINED, PRINTED, EQUAL])),
        Value::Bytes(_) => among(&[BYTES, BYTES_AS_TEXT]),
        Value::List(_) => among(&[LIST, HOLDING, JOINED, CHANGED, PRINTED, EQUAL]),
        Value::Tuple(_) => among(&[TUPLE, HOLDING, JOINED, PRINTED, EQUAL]),
        Value::Dict(_) => among(&[DICT, HOLDING, CHANGED, PRINTED, EQUAL]),
        Value::Int(_) | Value::Big(_) | Value::Bool(_) => among(&[INT, NUMBER, PRINTED, EQUAL, ORDERED]),
        Value::Float(_) => among(&[FLOAT, NUMBER, PRINTED, EQUAL, ORDERED]),
        Value::Range(_) => search(RANGE),
        Value::Iter(iter) if iter.function.is_empty() => search(ITERATOR),
        Value::Iter(_) => search(GENERATOR),
        Value::Object(object) => match &**object {
            Object::Time(_) => search(TIME),
            Object::Date(date) if !date.is_day() => among(&[DATE, DATE_TIME]),
            Object::Date(_) => search(DATE),
            Object::Delta(_) => search(DELTA),
            Object::Cycler { .. } => search(CYCLER),
            Object::Runtime(own) => search(own.methods()),
            Object::View(view) if view.kind == ViewKind::Values => search(&["__len__"]),
            Object::View(_) => search(VIEW),
            Object::Library(name) => search(match *name {
                "time" => &["now", "utcnow", "parse_iso"],
                "images" => &["get_image"],
                _ => &["semver", "prefix", "number", "regex"],
            }),
            Object::Type("dict") => search(&["fromkeys"]),
            _ => None,
        },
        _ => None,
    }
}

/// Returns an attribute of a Python value that is not a method.
pub(crate) fn data_attribute(value: &Value, name: &str) -> Option<Value> {
    match (value, name) {
        (Value::Int(_) | Value::Big(_), "real" | "numerator") | (Value::Float(_), "real") => {
            Some(value.clone())
        }
        (Value::Bool(flag), "real" | "numerator") => Some(Value::Int(i64::from(*flag))),
        (Value::Int(_) | Value::Big(_) | Value::Bool(_), "imag") => Some(Value::Int(0)),
        (Value::Int(_) | Value::Big(_) | Value::Bool(_), "denominator") => Some(Value::Int(1)),
        (Value::Float(_), "imag") => Some(Value::Float(0.0)),
        (Value::Range(range), "start") => Some(Value::Int(range.start)),
        (Value::Range(range), "stop") => Some(Value::Int(range.stop)),
        (Value::Range(range), "step") => Some(Value::Int(range.step)),
        _ => None,
    }
}

/// Returns a constant of a library.
pub(crate) fn constant(library: &str, name: &str) -> Option<Value> {
    match (library, name) {
        ("time", "second") => Some(Value::Int(1_000_000)),
        ("time", "minute") => Some(Value::Int(60 * 1_000_000)),
        ("time", "hour") => Some(Value::Int(3_600 * 1_000_000)),
        _ => None,
    }
}
