//! Methods of strings.

use std::rc::Rc;

use crate::{
    eval::context::Cx,
    exc::{R, raise, type_error, value_error},
    format::{fields, repr::is_printable},
    rt::{ENTRY, Rt},
    text as letters,
    value::{
        Value,
        args::{Args, Bound, to_text},
        char_count, iter,
    },
};

pub(super) fn call(cx: &Cx<'_>, on: &Value, text: &str, name: &str, args: Args) -> R<Value> {
    let rt = cx.rt;
    rt.step(text.len() as u64 / 64)?;
    match name {
        "format" => return rt.text(fields::format(cx, on, &args)?),
        "format_map" => {
            let map = args.plain::<1>("format_map", 1)?.value(0);
            let Value::Dict(dict) = &map else {
                return type_error("format_map() needs a mapping");
            };
            rt.alloc(dict.len().saturating_mul(ENTRY * 2))?;
            rt.step(dict.len() as u64 / 8)?;
            let named = dict
                .pairs()
                .into_iter()
                .filter_map(|(key, value)| Some((key.as_str()?.clone(), value)));
            let args = Args {
                plain: Vec::new(),
                named: named.collect(),
            };
            return rt.text(fields::format_map(cx, on, &args)?);
        }
        "split" | "rsplit" => return split(rt, text, name, args),
        "splitlines" => {
            let keep = args.bind("splitlines", ["keepends"], 0)?.flag(0, false)?;
            count_parts(rt, text, text.matches(letters::is_line_end).count())?;
            let lines = letters::lines(text, keep);
            return rt.list(lines.into_iter().map(Value::str).collect());
        }
        "encode" => return encode(rt, text, args),
        "replace" => {
            let args = args.plain::<3>("str.replace", 2)?;
            let (old, new) = (args.text(0, "")?, args.text(1, "")?);
            return rt.text(replaced(rt, text, &old, &new, args.int(2, -1)?)?);
        }
        "join" => return join(rt, text, &args.plain::<1>("join", 1)?.value(0)),
        "startswith" | "endswith" => return affix(rt, text, name, args),
        "find" | "rfind" | "index" | "rindex" | "count" => return find(text, name, args),
        "partition" | "rpartition" => {
            let separator = args.plain::<1>(name, 1)?.text(0, "")?;
            return partition(rt, text, &separator, name == "partition");
        }
        "translate" => return translate(cx, text, args),
        _ => {}
    }
    if name.starts_with("is") {
        args.none(name)?;
        return Ok(Value::Bool(is(text, name)));
    }
    changed(rt, text, name, args)
}

fn changed(rt: &Rt, text: &str, name: &str, args: Args) -> R<Value> {
    let made = match name {
        "strip" | "lstrip" | "rstrip" => {
            let set = args.plain::<1>(name, 0)?.optional_text(0)?;
            rt.step(set.as_ref().map_or(0, |set| set.len() as u64 / 16))?;
            let set = set.as_deref().map(letters::CharSet::of);
            let strips = |letter: char| match &set {
                Some(set) => set.contains(letter),
                None => letters::is_space(letter),
            };
            let mut stripped = text;
            if name != "rstrip" {
                stripped = stripped.trim_start_matches(strips);
            }
            if name != "lstrip" {
                stripped = stripped.trim_end_matches(strips);
            }
            stripped.to_owned()
        }
        "removeprefix" | "removesuffix" => {
            let part = args.plain::<1>(name, 1)?.text(0, "")?;
            let cut = if name == "removeprefix" {
                text.strip_prefix(&*part)
            } else {
                text.strip_suffix(&*part)
            };
            cut.unwrap_or(text).to_owned()
        }
        "ljust" | "rjust" | "center" => {
            let args = args.plain::<2>(name, 1)?;
            let width = width(rt, &args)?;
            let fill = args.text(1, " ")?;
            let mut fills = fill.chars();
            let (Some(fill), None) = (fills.next(), fills.next()) else {
                return type_error("The fill character must be exactly one character long");
            };
            letters::justified(text, width, fill, name)
        }
        "zfill" => {
            let args = args.plain::<1>(name, 1)?;
            letters::zero_filled(text, width(rt, &args)?)
        }
        "expandtabs" => {
            let size = args.bind("expandtabs", ["tabsize"], 0)?.int(0, 8)?;
            expand_tabs(rt, text, usize::try_from(size).unwrap_or(0))?
        }
        _ => {
            args.none(name)?;
            match name {
                "upper" => text.to_uppercase(),
                "lower" => text.to_lowercase(),
                "casefold" => letters::folded(text),
                "capitalize" => letters::capitalized(text),
                "title" => letters::titled(text),
                "swapcase" => letters::swapped(text),
                "striptags" => letters::without_tags(text),
                _ => text.to_owned(),
            }
        }
    };
    rt.text(made)
}

/// Returns the requested width of a string.
fn width<const N: usize>(rt: &Rt, args: &Bound<N>) -> R<usize> {
    let width = usize::try_from(args.int(0, 0)?).unwrap_or(0);
    crate::format::spec::check_width(rt, width)?;
    Ok(width)
}

fn expand_tabs(rt: &Rt, text: &str, size: usize) -> R<String> {
    let mut out = String::new();
    let mut column = 0usize;
    for letter in text.chars() {
        match letter {
            '\t' => {
                let count = if size == 0 { 0 } else { size - column % size };
                rt.fits(out.len().saturating_add(count))?;
                rt.step(count as u64 / 64)?;
                out.extend(std::iter::repeat_n(' ', count));
                column += count;
            }
            '\n' | '\r' => {
                out.push(letter);
                column = 0;
            }
            other => {
                out.push(other);
                column += 1;
            }
        }
    }
    Ok(out)
}

fn split(rt: &Rt, text: &str, name: &str, args: Args) -> R<Value> {
    let args = args.bind(name, ["sep", "maxsplit"], 0)?;
    let separator = args.optional_text(0)?;
    let limit = usize::try_from(args.int(1, -1)?).unwrap_or(usize::MAX);
    let from_end = name == "rsplit";
    let count = match &separator {
        Some(separator) if separator.is_empty() => return value_error("empty separator"),
        Some(separator) => text.matches(&**separator).take(limit).count(),
        None => text
            .split(letters::is_space)
            .filter(|word| !word.is_empty())
            .take(limit)
            .count(),
    };
    count_parts(rt, text, count)?;
    let parts = match &separator {
        Some(separator) => letters::split(text, separator, limit, from_end),
        None => letters::split_space(text, limit, from_end),
    };
    rt.list(parts.into_iter().map(Value::str).collect())
}

/// Counts the parts before a string is split: they take more memory than the string.
fn count_parts(rt: &Rt, text: &str, parts: usize) -> R<()> {
    let size = text.len().saturating_add(parts.saturating_mul(ENTRY));
    rt.fits(size)?;
    rt.alloc(size)?;
    rt.step(parts as u64)
}

/// Replaces the first occurrences, or all if the count is negative.
pub(crate) fn replaced(rt: &Rt, text: &str, old: &str, new: &str, count: i64) -> R<String> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let times = text.matches(old).take(count).count();
    let size = text.len().saturating_add(times.saturating_mul(new.len()));
    rt.fits(size)?;
    rt.step(text.len() as u64 / 64)?;
    Ok(text.replacen(old, new, count))
}

fn encode(rt: &Rt, text: &str, args: Args) -> R<Value> {
    rt.alloc(text.len())?;
    let args = args.bind("encode", ["encoding", "errors"], 0)?;
    let encoding = args.text(0, "utf-8")?.to_lowercase().replace('_', "-");
    match encoding.as_str() {
        "utf-8" | "utf8" => Ok(Value::Bytes(Rc::from(text.as_bytes()))),
        "ascii" | "us-ascii" | "latin-1" | "latin1" | "iso-8859-1" => {
            let limit = if encoding.contains("ascii") { 128 } else { 256 };
            let bytes: Option<Vec<u8>> = text
                .chars()
                .map(|letter| {
                    u8::try_from(u32::from(letter))
                        .ok()
                        .filter(|byte| u32::from(*byte) < limit)
                })
                .collect();
            match bytes {
                Some(bytes) => Ok(Value::Bytes(bytes.into())),
                None => raise(
                    "UnicodeEncodeError",
                    format!("'{encoding}' codec can't encode a character: ordinal not in range({limit})"),
                ),
            }
        }
        _ => raise("LookupError", format!("unknown encoding: {encoding}")),
    }
}

/// Returns Python's message for invalid UTF-8.
pub(crate) fn decode_message(bytes: &[u8], error: std::str::Utf8Error) -> String {
    let at = error.valid_up_to();
    let byte = bytes.get(at).copied().unwrap_or_default();
    match error.error_len() {
        None => {
            format!("'utf-8' codec can't decode byte 0x{byte:02x} in position {at}: unexpected end of data")
        }
        Some(_) if (0xc2..=0xf4).contains(&byte) => {
            format!(
                "'utf-8' codec can't decode byte 0x{byte:02x} in position {at}: invalid continuation byte"
            )
        }
        Some(_) => {
            format!("'utf-8' codec can't decode byte 0x{byte:02x} in position {at}: invalid start byte")
        }
    }
}

fn join(rt: &Rt, separator: &str, items: &Value) -> R<Value> {
    let mut out = String::new();
    let Ok(mut items) = iter::of(items.defined()?) else {
        return type_error("can only join an iterable");
    };
    let mut index = 0;
    while let Some(item) = items.next(rt)? {
        let Some(text) = item.defined()?.as_str() else {
            return type_error(format!(
                "sequence item {index}: expected str instance, {} found",
                item.type_name()
            ));
        };
        if index > 0 {
            out.push_str(separator);
        }
        out.push_str(text);
        rt.fits(out.len())?;
        rt.step((text.len() + separator.len()) as u64 / 64)?;
        index += 1;
    }
    rt.text(out)
}

/// Returns the part of a string between two optional indices, with its offset in characters.
fn part<'t, const N: usize>(text: &'t str, args: &Bound<N>) -> R<Option<(&'t str, usize)>> {
    if args.get(1).is_none() && args.get(2).is_none() {
        return Ok(Some((text, 0)));
    }
    let len = char_count(text);
    let bound = |value: Option<i64>, default: usize| match value {
        None => default,
        Some(at) => {
            let len = i64::try_from(len).unwrap_or(i64::MAX);
            usize::try_from(if at < 0 { at.saturating_add(len).max(0) } else { at }).unwrap_or_default()
        }
    };
    let (start, stop) = (
        bound(args.optional_int(1)?, 0),
        bound(args.optional_int(2)?, len).min(len),
    );
    if start > stop || start > len {
        return Ok(None);
    }
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    Ok(text.get(byte(start)..byte(stop)).map(|part| (part, start)))
}

fn affix(rt: &Rt, text: &str, name: &str, args: Args) -> R<Value> {
    let args = args.plain::<3>(name, 1)?;
    let part = part(text, &args)?;
    let text = part.map_or("", |(text, _)| text);
    let has = |affix: &str| {
        if name == "startswith" {
            text.starts_with(affix)
        } else {
            text.ends_with(affix)
        }
    };
    match &args.value(0) {
        Value::Str(affix) | Value::Markup(affix) => Ok(Value::Bool(part.is_some() && has(affix))),
        Value::Tuple(tuple) => {
            for affix in &tuple.items {
                let affix = to_text(affix)?;
                rt.step(1 + affix.len().min(text.len()) as u64 / 256)?;
                if has(&affix) && part.is_some() {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        other => type_error(format!(
            "{name} first arg must be str or a tuple of str, not {}",
            other.type_name()
        )),
    }
}

fn find(text: &str, name: &str, args: Args) -> R<Value> {
    let args = args.plain::<3>(name, 1)?;
    let Some(wanted) = args.value(0).as_str().cloned() else {
        return type_error(format!("must be str, not {}", args.value(0).type_name()));
    };
    let range = part(text, &args)?;
    if name == "count" {
        let count = range.map_or(0, |(part, _)| {
            if wanted.is_empty() {
                char_count(part) + 1
            } else {
                part.matches(&*wanted).count()
            }
        });
        return Ok(Value::int(count));
    }
    let found = range.and_then(|(part, offset)| {
        let at = if name.starts_with('r') {
            part.rfind(&*wanted)
        } else {
            part.find(&*wanted)
        };
        Some(offset + char_count(part.get(..at?)?))
    });
    match found {
        Some(at) => Ok(Value::int(at)),
        None if name.ends_with("index") => value_error("substring not found"),
        None => Ok(Value::Int(-1)),
    }
}

fn partition(rt: &Rt, text: &str, separator: &str, first: bool) -> R<Value> {
    if separator.is_empty() {
        return value_error("empty separator");
    }
    let found = if first {
        text.split_once(separator)
    } else {
        text.rsplit_once(separator)
    };
    rt.alloc(text.len())?;
    let parts = match found {
        Some((before, after)) => [before, separator, after],
        None if first => [text, "", ""],
        None => ["", "", text],
    };
    Ok(Value::tuple(parts.into_iter().map(Value::str).collect()))
}

fn translate(cx: &Cx<'_>, text: &str, args: Args) -> R<Value> {
    let table = args.plain::<1>("translate", 1)?.value(0);
    let Value::Dict(dict) = &table else {
        return type_error("translate() needs a dictionary");
    };
    let mut out = String::new();
    for letter in text.chars() {
        cx.rt.step(1)?;
        let code = Value::Int(i64::from(u32::from(letter)));
        match dict.get(&cx.rt.key(&code)?) {
            None => out.push(letter),
            Some(Value::None) => {}
            Some(Value::Int(code)) => {
                out.extend(u32::try_from(code).ok().and_then(char::from_u32));
            }
            Some(other) => out.push_str(&to_text(&other)?),
        }
        cx.rt.fits(out.len())?;
    }
    cx.rt.text(out)
}

fn is(text: &str, name: &str) -> bool {
    let every = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    match name {
        "isalnum" => every(char::is_alphanumeric),
        "isalpha" => every(char::is_alphabetic),
        "isascii" => text.is_ascii(),
        "isdecimal" => every(letters::is_decimal),
        "isdigit" => every(letters::is_digit),
        "isnumeric" => every(char::is_numeric),
        "isidentifier" => {
            let mut all = text.chars();
            all.next()
                .is_some_and(|first| first == '_' || first.is_alphabetic())
                && all.all(|letter| letter == '_' || letter.is_alphanumeric())
        }
        "islower" => text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase),
        "isupper" => text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase),
        "isprintable" => text.chars().all(is_printable),
        "isspace" => every(letters::is_space),
        _ => letters::is_titled(text),
    }
}
