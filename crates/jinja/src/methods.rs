//! Methods of Python's values.

use minijinja::{
    Error, ErrorKind, State, Value as Dynamic,
    value::{Tuple, ValueKind},
};
use minijinja_contrib::pycompat;

use crate::{
    account,
    filters::items,
    format,
    functions::{fail, no_attribute},
    operators, python, shape,
    signature::bind_values,
    text::{centered, replaced},
};

/// Methods that change their value; the engine's values can't change.
const CHANGING: &[&str] = &[
    "__setitem__",
    "append",
    "extend",
    "insert",
    "remove",
    "pop",
    "popitem",
    "clear",
    "update",
    "setdefault",
    "sort",
    "reverse",
];

/// Calls a method that the engine itself doesn't know.
pub(crate) fn call(
    state: &mut State<'_, '_>,
    value: &Dynamic,
    method: &str,
    args: &[Dynamic],
) -> Result<Dynamic, Error> {
    if method == operators::SLICED {
        return operators::sliced(value);
    }
    args.iter().try_for_each(shape::whole)?;
    let own = match value.kind() {
        ValueKind::String => of_text(value.as_str().unwrap_or_default(), method, args),
        ValueKind::Seq => of_list(value, method, args),
        ValueKind::Map => of_map(value, method),
        ValueKind::Number => of_number(value, method),
        _ => None,
    };
    let result = match own {
        Some(result) => result,
        None => match pycompat::unknown_method_callback(state, value, method, args) {
            // A callable item of a map is found by the engine.
            Err(error) if error.kind() == ErrorKind::UnknownMethod && value.kind() != ValueKind::Map => {
                Err(no_attribute(value, method))
            }
            other => other,
        },
    };
    account::made_value(result?)
}

fn changing(method: &str) -> Result<Dynamic, Error> {
    let advice = "values can't be changed in place: make a new one";
    Err(fail(format!(
        "NotImplementedError: .{method}() is not supported yet, {advice}"
    )))
}

fn of_map(value: &Dynamic, method: &str) -> Option<Result<Dynamic, Error>> {
    match method {
        "copy" => Some(Ok(value.clone())),
        // An item of that name would be hidden by the method.
        method if CHANGING.contains(&method) => Some(changing(method)),
        _ => None,
    }
}

fn of_list(value: &Dynamic, method: &str, args: &[Dynamic]) -> Option<Result<Dynamic, Error>> {
    match method {
        "copy" => Some(Ok(value.clone())),
        "index" => Some(index(value, args)),
        "count" => Some(count(value, args)),
        method if CHANGING.contains(&method) && !value.is_tuple() => Some(changing(method)),
        _ => None,
    }
}

fn index(value: &Dynamic, args: &[Dynamic]) -> Result<Dynamic, Error> {
    let wanted = bind_values("index", ["value"], args.to_vec())?.required("value")?;
    match shape::place_of(value, &wanted)? {
        Some(place) => Ok(Dynamic::from(place)),
        None => Err(fail(format!(
            "ValueError: {} is not in list",
            python::repr(&wanted)?
        ))),
    }
}

fn count(value: &Dynamic, args: &[Dynamic]) -> Result<Dynamic, Error> {
    let wanted = bind_values("count", ["value"], args.to_vec())?.required("value")?;
    let mut count = 0;
    for item in value.try_iter()?.checked() {
        count += usize::from(shape::equal(&item?, &wanted)?);
    }
    Ok(Dynamic::from(count))
}

fn of_number(value: &Dynamic, method: &str) -> Option<Result<Dynamic, Error>> {
    match method {
        "is_integer" => {
            let number = f64::try_from(value.clone());
            Some(number.map(|number| Dynamic::from(number.fract() == 0.0)))
        }
        "bit_length" if value.is_integer() => {
            let number = i128::try_from(value.clone());
            Some(number.map(|number| Dynamic::from(128 - number.unsigned_abs().leading_zeros())))
        }
        _ => None,
    }
}

fn of_text(text: &str, method: &str, args: &[Dynamic]) -> Option<Result<Dynamic, Error>> {
    let args = args.to_vec();
    Some(match method {
        "swapcase" => Ok(Dynamic::from(swapcase(text))),
        "casefold" => Ok(Dynamic::from(text.to_lowercase())),
        "removeprefix" => bind_values("removeprefix", ["prefix"], args)
            .and_then(|args| args.text("prefix"))
            .map(|prefix| Dynamic::from(text.strip_prefix(&prefix).unwrap_or(text))),
        "removesuffix" => bind_values("removesuffix", ["suffix"], args)
            .and_then(|args| args.text("suffix"))
            .map(|suffix| Dynamic::from(text.strip_suffix(&suffix).unwrap_or(text))),
        "replace" => bind_values("replace", ["old", "new", "count"], args).and_then(|args| {
            let (old, new) = (args.text("old")?, args.text("new")?);
            replaced(text, &old, &new, args.number("count")?).map(Dynamic::from)
        }),
        "zfill" => zfill(text, args),
        "center" | "ljust" | "rjust" => padded(text, method, args),
        "partition" => partition(text, args, false),
        "rpartition" => partition(text, args, true),
        "rsplit" => rsplit(text, args),
        "expandtabs" => bind_values("expandtabs", ["tabsize"], args)
            .and_then(|args| args.size("tabsize", 8))
            .and_then(|size| {
                let tabs = text.matches('\t').count();
                account::fits(text.len().saturating_add(tabs.saturating_mul(size)))?;
                Ok(Dynamic::from(expandtabs(text, size)))
            }),
        "index" | "rindex" => find(text, method, args),
        "istitle" => Ok(Dynamic::from(istitle(text))),
        "isidentifier" => Ok(Dynamic::from(isidentifier(text))),
        _ => return prepare(text, method, &args).err().map(Err),
    })
}

/// Checks the size of what a method of the engine will give.
fn prepare(text: &str, method: &str, args: &[Dynamic]) -> Result<(), Error> {
    match method {
        "format" => account::fits(format::size_of_format(text, args)?),
        "join" => {
            let mut size = 0usize;
            for item in args.first().map(items).transpose()?.unwrap_or_default() {
                size = size
                    .saturating_add(text.len())
                    .saturating_add(python::size(&item)?);
                account::fits(size)?;
            }
            Ok(())
        }
        "split" | "splitlines" => {
            let by = args.first().and_then(Dynamic::as_str).filter(|by| !by.is_empty());
            let parts = match by {
                Some(by) => text.matches(by).count(),
                None => text.matches(char::is_whitespace).count(),
            };
            account::fits(parts.saturating_mul(account::ITEM))
        }
        _ => Ok(()),
    }
}

fn swapcase(text: &str) -> String {
    let swap = |letter: char| -> String {
        if letter.is_uppercase() {
            letter.to_lowercase().collect()
        } else {
            letter.to_uppercase().collect()
        }
    };
    text.chars().map(swap).collect()
}

fn zfill(text: &str, args: Vec<Dynamic>) -> Result<Dynamic, Error> {
    let width = bind_values("zfill", ["width"], args)?.size("width", 0)?;
    let missing = width.saturating_sub(text.chars().count());
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => text.split_at(text.len() - digits.len()),
        None => ("", text),
    };
    Ok(Dynamic::from(format!("{sign}{}{digits}", "0".repeat(missing))))
}

fn padded(text: &str, method: &str, args: Vec<Dynamic>) -> Result<Dynamic, Error> {
    let args = bind_values("center", ["width", "fillchar"], args)?;
    let width = args.size("width", 0)?;
    let fill = args.optional_text("fillchar")?.unwrap_or_else(|| " ".to_owned());
    let mut fill = fill.chars();
    let (Some(fill), None) = (fill.next(), fill.next()) else {
        return Err(fail(
            "TypeError: The fill character must be exactly one character long",
        ));
    };
    let missing = width.saturating_sub(text.chars().count());
    let padding: String = std::iter::repeat_n(fill, missing).collect();
    Ok(Dynamic::from(match method {
        "ljust" => format!("{text}{padding}"),
        "rjust" => format!("{padding}{text}"),
        _ => centered(text, width, fill),
    }))
}

fn partition(text: &str, args: Vec<Dynamic>, from_end: bool) -> Result<Dynamic, Error> {
    let separator = bind_values("partition", ["sep"], args)?.text("sep")?;
    if separator.is_empty() {
        return Err(fail("ValueError: empty separator"));
    }
    let parts = if from_end {
        text.rsplit_once(&separator)
    } else {
        text.split_once(&separator)
    };
    let parts = match parts {
        Some((before, after)) => [before, &separator, after],
        None if from_end => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Dynamic::from(Tuple::from(parts.map(Dynamic::from))))
}

fn rsplit(text: &str, args: Vec<Dynamic>) -> Result<Dynamic, Error> {
    let args = bind_values("rsplit", ["sep", "maxsplit"], args)?;
    let limit = args.number("maxsplit")?.unwrap_or(-1);
    let limit = usize::try_from(limit).map_or(usize::MAX, |limit| limit.saturating_add(1));
    let mut parts: Vec<&str> = match args.optional_text("sep")? {
        Some(separator) if separator.is_empty() => return Err(fail("ValueError: empty separator")),
        Some(separator) => text.rsplitn(limit, &separator).collect(),
        None => words_from_end(text, limit),
    };
    parts.reverse();
    Ok(Dynamic::from(
        parts.into_iter().map(Dynamic::from).collect::<Vec<_>>(),
    ))
}

/// The words of a text from its end; the last of `limit` parts holds all that is left.
fn words_from_end(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_end();
    while !rest.is_empty() {
        match rest.rfind(char::is_whitespace) {
            Some(space) if parts.len() + 1 < limit => {
                parts.push(rest.get(space..).unwrap_or_default().trim_start());
                rest = rest.get(..space).unwrap_or_default().trim_end();
            }
            _ => {
                parts.push(rest.trim_start());
                break;
            }
        }
    }
    parts
}

fn find(text: &str, method: &str, args: Vec<Dynamic>) -> Result<Dynamic, Error> {
    let part = bind_values("index", ["sub"], args)?.text("sub")?;
    let place = if method == "index" {
        text.find(&part)
    } else {
        text.rfind(&part)
    };
    let before = place.and_then(|place| text.get(..place));
    let place = before.map(|before| before.chars().count());
    place
        .map(Dynamic::from)
        .ok_or_else(|| fail("ValueError: substring not found"))
}

fn expandtabs(text: &str, size: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for letter in text.chars() {
        match letter {
            '\t' if size > 0 => {
                let spaces = size - column % size;
                out.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            '\t' => {}
            other => {
                out.push(other);
                column = if matches!(other, '\n' | '\r') {
                    0
                } else {
                    column + 1
                };
            }
        }
    }
    out
}

fn istitle(text: &str) -> bool {
    let mut in_word = false;
    let mut any = false;
    for letter in text.chars() {
        if letter.is_uppercase() {
            if in_word {
                return false;
            }
            (in_word, any) = (true, true);
        } else if letter.is_lowercase() {
            if !in_word {
                return false;
            }
        } else {
            in_word = false;
        }
    }
    any
}

fn isidentifier(text: &str) -> bool {
    let mut letters = text.chars();
    letters
        .next()
        .is_some_and(|letter| letter.is_alphabetic() || letter == '_')
        && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
}
