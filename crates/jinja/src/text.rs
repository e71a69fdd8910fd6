//! Filters on text where the engine's own are missing or differ.

use minijinja::{Environment, Error, Value as Dynamic, value::ValueKind};

use crate::{
    account,
    filters::items,
    functions::fail,
    python,
    signature::{Args, bind, defined},
    wrap,
};

pub(crate) fn register(env: &mut Environment<'_>) {
    env.add_filter("indent", indent);
    env.add_filter("replace", replace);
    env.add_filter("truncate", truncate);
    env.add_filter("wordwrap", wrap::wordwrap);
    env.add_filter("wordcount", wordcount);
    env.add_filter("center", center);
    env.add_filter("escape", escape);
    env.add_filter("e", escape);
    env.add_filter("forceescape", force_escape);
    env.add_filter("urlencode", urlencode);
    env.add_filter("xmlattr", xmlattr);
    env.add_filter("pprint", pprint);
    env.add_filter("filesizeformat", filesizeformat);
}

/// The input of a filter as text; other values are printed, as the original does.
fn text_of(value: &Dynamic) -> Result<String, Error> {
    python::text(defined(value)?)
}

fn indent(value: &Dynamic, args: Args) -> Result<String, Error> {
    let args = bind("indent", ["width", "first", "blank"], args)?;
    let text = text_of(value)?;
    let space = match args.get("width").as_ref().and_then(Dynamic::as_str) {
        Some(text) => text.to_owned(),
        None => " ".repeat(args.size("width", 4)?),
    };
    let (first, blank) = (args.flag("first", false)?, args.flag("blank", false)?);
    let mut out = String::with_capacity(text.len() + space.len() * 8);
    for (index, line) in text.split('\n').enumerate() {
        account::fits(out.len().saturating_add(line.len()).saturating_add(space.len()))?;
        if index > 0 {
            out.push('\n');
        }
        if if index == 0 {
            first
        } else {
            blank || !line.is_empty()
        } {
            out.push_str(&space);
        }
        out.push_str(line);
    }
    account::made(out)
}

fn replace(value: &Dynamic, args: Args) -> Result<String, Error> {
    let args = bind("replace", ["old", "new", "count"], args)?;
    let text = text_of(value)?;
    let old = python::text(defined(&args.required("old")?)?)?;
    let new = python::text(defined(&args.required("new")?)?)?;
    replaced(&text, &old, &new, args.number("count")?)
}

/// Replaces the first `count` occurrences, or all.
pub(crate) fn replaced(text: &str, old: &str, new: &str, count: Option<i64>) -> Result<String, Error> {
    let count = count
        .and_then(|count| usize::try_from(count).ok())
        .unwrap_or(usize::MAX);
    let times = text.matches(old).take(count).count();
    account::fits(text.len().saturating_add(times.saturating_mul(new.len())))?;
    account::made(text.replacen(old, new, count))
}

fn truncate(value: &Dynamic, args: Args) -> Result<String, Error> {
    let args = bind("truncate", ["length", "killwords", "end", "leeway"], args)?;
    let text = text_of(value)?;
    let (length, leeway) = (args.size("length", 255)?, args.size("leeway", 5)?);
    let end = args.optional_text("end")?.unwrap_or_else(|| "...".to_owned());
    account::fits(text.len().saturating_mul(4))?;
    let letters: Vec<char> = text.chars().collect();
    let Some(kept) = length.checked_sub(end.chars().count()) else {
        return Err(fail(format!(
            "AssertionError: expected length >= {}, got {length}",
            end.chars().count()
        )));
    };
    if letters.len() <= length + leeway {
        return Ok(text);
    }
    let mut cut: String = letters.iter().take(kept).collect();
    if !args.flag("killwords", false)? {
        cut.truncate(cut.rfind(' ').unwrap_or(cut.len()));
    }
    account::made(cut + &end)
}

fn wordcount(value: &Dynamic) -> Result<usize, Error> {
    let text = text_of(value)?;
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Ok(words.filter(|word| !word.is_empty()).count())
}

fn center(value: &Dynamic, args: Args) -> Result<String, Error> {
    let width = bind("center", ["width"], args)?.size("width", 80)?;
    account::made(centered(&text_of(value)?, width, ' '))
}

/// The text in the middle; of an odd remainder Python puts the larger part to the left when the width is odd.
pub(crate) fn centered(text: &str, width: usize, fill: char) -> String {
    let length = text.chars().count();
    let Some(margin) = width.checked_sub(length) else {
        return text.to_owned();
    };
    let left = margin / 2 + (margin & width & 1);
    let pad = |count: usize| std::iter::repeat_n(fill, count);
    pad(left).chain(text.chars()).chain(pad(margin - left)).collect()
}

fn escape(value: &Dynamic) -> Result<Dynamic, Error> {
    if value.is_safe() {
        Ok(value.clone())
    } else {
        force_escape(value)
    }
}

fn force_escape(value: &Dynamic) -> Result<Dynamic, Error> {
    let text = account::made(escaped(&text_of(value)?)?)?;
    Ok(Dynamic::from_safe_string(text))
}

fn escaped(text: &str) -> Result<String, Error> {
    let special = text.matches(['&', '<', '>', '"', '\'']).count();
    account::fits(text.len().saturating_add(special.saturating_mul(4)))?;
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    Ok(out)
}

fn urlencode(value: &Dynamic) -> Result<String, Error> {
    let value = defined(value)?;
    let pair = |key: &Dynamic, value: &Dynamic| -> Result<String, Error> {
        account::made(format!(
            "{}={}",
            quoted(&python::text(key)?, true),
            quoted(&python::text(value)?, true)
        ))
    };
    let mut pairs = Vec::new();
    match value.kind() {
        ValueKind::Map => {
            for key in items(value)? {
                pairs.push(pair(&key, &value.get_item(&key)?)?);
            }
        }
        ValueKind::Seq | ValueKind::Iterable => {
            for item in items(value)? {
                match items(&item)?.as_slice() {
                    [key, value] => pairs.push(pair(key, value)?),
                    _ => return Err(fail("ValueError: urlencode needs pairs")),
                }
            }
        }
        _ => return account::made(quoted(&python::text(value)?, false)),
    }
    account::made(pairs.join("&"))
}

fn quoted(text: &str, in_query: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => out.push(char::from(byte)),
            b'/' if !in_query => out.push('/'),
            b' ' if in_query => out.push('+'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

fn xmlattr(value: &Dynamic, args: Args) -> Result<Dynamic, Error> {
    let autospace = bind("xmlattr", ["autospace"], args)?.flag("autospace", true)?;
    let value = defined(value)?;
    let mut attributes = Vec::new();
    let mut size = 0usize;
    for key in items(value)? {
        let item = value.get_item(&key)?;
        if item.is_none() || item.is_undefined() {
            continue;
        }
        let name = python::text(&key)?;
        if name.contains(|letter: char| letter.is_whitespace() || "/>=".contains(letter)) {
            return Err(fail(format!(
                "ValueError: Invalid character in attribute name: '{name}'"
            )));
        }
        size = size
            .saturating_add(name.len())
            .saturating_add(python::size(&item)?.saturating_mul(6));
        account::fits(size)?;
        attributes.push(format!(
            "{}=\"{}\"",
            escaped(&name)?,
            escaped(&python::text(&item)?)?
        ));
    }
    let space = if autospace && !attributes.is_empty() {
        " "
    } else {
        ""
    };
    let text = account::made(format!("{space}{}", attributes.join(" ")))?;
    Ok(Dynamic::from_safe_string(text))
}

fn pprint(value: &Dynamic) -> Result<String, Error> {
    let line = python::sorted_repr(defined(value)?)?;
    if line.len() > 80 {
        return Err(fail(
            "NotImplementedError: pprint of more than one line is not supported yet",
        ));
    }
    Ok(line)
}

fn filesizeformat(value: &Dynamic, args: Args) -> Result<String, Error> {
    let binary = bind("filesizeformat", ["binary"], args)?.flag("binary", false)?;
    let bytes = match defined(value)?.as_str() {
        Some(text) => text.trim().parse().ok(),
        None => f64::try_from(value.clone()).ok(),
    };
    let bytes: f64 = bytes.ok_or_else(|| fail("ValueError: could not convert string to float"))?;
    let (base, units) = if binary {
        (1024.0, ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"])
    } else {
        (1000.0, ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"])
    };
    if bytes == 1.0 {
        return Ok("1 Byte".to_owned());
    }
    if bytes < base {
        return Ok(format!("{} Bytes", bytes.trunc()));
    }
    let mut size = bytes;
    let mut unit = "";
    for name in units {
        size /= base;
        unit = name;
        if size < base {
            break;
        }
    }
    Ok(format!("{size:.1} {unit}"))
}
