//! The words between backquotes.

use crate::{
    exc::{R, raise, type_error},
    format::repr,
    rt::Rt,
    value::{Str, Value, sort},
};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Word {
    This,
    Parent,
    Len,
    Keys,
    Sorted,
    Str,
    Split {
        separator: String,
        /// `None` for all parts.
        part: Option<i64>,
        /// Maximum number of splits; negative for no limit.
        limit: i64,
    },
    Sub {
        pattern: String,
        by: String,
    },
}

/// Parses a word. Returns `None` for an unknown one.
pub(super) fn parse(text: &str) -> Result<Option<Word>, String> {
    let invalid = || format!("{text} is not valid");
    Ok(Some(match text {
        "this" => Word::This,
        "parent" => Word::Parent,
        "len" => Word::Len,
        "keys" => Word::Keys,
        "sorted" => Word::Sorted,
        "path" => return Err("the operator `path` is not supported".to_owned()),
        text if text.starts_with("str()") => Word::Str,
        text if text.starts_with("str(") => return Err(invalid()),
        text if text.starts_with("split(") => split(text).ok_or_else(invalid)?,
        text if text.starts_with("sub(") => sub(text).ok_or_else(invalid)?,
        _ => return Ok(None),
    }))
}

/// Parses `split(SEPARATOR, PART, LIMIT)`.
fn split(text: &str) -> Option<Word> {
    let (inner, _) = text.strip_prefix("split(")?.rsplit_once(')')?;
    let (inner, limit) = inner.rsplit_once(',')?;
    let (separator, part) = inner.rsplit_once(',')?;
    let separator = separator.trim_start();
    let quoted = ['\'', '"'].into_iter().find_map(|quote| {
        let inner = separator.trim_end().strip_prefix(quote)?;
        inner.strip_suffix(quote)
    });
    let separator = quoted.unwrap_or(separator);
    let part = match part.trim() {
        "*" => None,
        number => Some(number.parse().ok()?),
    };
    Some(Word::Split {
        separator: (!separator.is_empty()).then(|| separator.to_owned())?,
        part,
        limit: limit.trim().parse().ok()?,
    })
}

/// Parses `sub(/PATTERN/, REPLACEMENT)`.
fn sub(text: &str) -> Option<Word> {
    let (inner, _) = text.strip_prefix("sub(/")?.rsplit_once(')')?;
    let (pattern, by) = inner.rsplit_once("/,")?;
    by.starts_with(char::is_whitespace).then(|| Word::Sub {
        pattern: pattern.trim().to_owned(),
        by: by.trim().to_owned(),
    })
}

/// Applies a word that makes a new value, which has no parent; `None` if nothing is found.
pub(super) fn apply(rt: &Rt, word: &Word, value: &Value) -> R<Option<Value>> {
    match word {
        Word::Sorted => sorted(rt, value).map(Some),
        Word::Str => repr::text(rt, value).and_then(|text| rt.text(text)).map(Some),
        Word::Split {
            separator,
            part,
            limit,
        } => match value.as_str() {
            Some(text) => parts(rt, text, separator, *part, *limit),
            None => Ok(None),
        },
        Word::Sub { pattern, by } => match value.as_str() {
            Some(text) => replaced(rt, text, pattern, by),
            None => type_error(format!(
                "expected string or bytes-like object, got '{}'",
                value.type_name()
            )),
        },
        Word::This | Word::Parent | Word::Len | Word::Keys => Ok(Some(value.clone())),
    }
}

fn sorted(rt: &Rt, value: &Value) -> R<Value> {
    let items = match value {
        Value::List(list) => list.to_vec(),
        Value::Dict(dict) => dict.keys(),
        _ => return type_error("'DatumInContext' object is not iterable"),
    };
    let keyed = items.into_iter().map(|item| (item.clone(), item)).collect();
    rt.list(sort::sort_keyed(rt, keyed, false)?)
}

fn parts(rt: &Rt, text: &Str, separator: &str, part: Option<i64>, limit: i64) -> R<Option<Value>> {
    rt.step(text.len() as u64)?;
    let most = usize::try_from(limit).map_or(usize::MAX, |limit| limit.saturating_add(1));
    let parts: Vec<&str> = text.splitn(most, separator).collect();
    let Some(part) = part else {
        let parts: R<Vec<Value>> = parts.into_iter().map(|part| rt.text(part.to_owned())).collect();
        return rt.list(parts?).map(Some);
    };
    let at = if part < 0 { part + parts.len() as i64 } else { part };
    match usize::try_from(at).ok().and_then(|at| parts.get(at)) {
        Some(part) => rt.text((*part).to_owned()).map(Some),
        None => Ok(None),
    }
}

fn replaced(rt: &Rt, text: &Str, pattern: &str, by: &str) -> R<Option<Value>> {
    if by.contains('\\') {
        return raise("error", "a replacement with a backslash is not supported");
    }
    let pattern = match rt.pattern(&pattern.into())? {
        Ok(pattern) => pattern,
        Err(error) => return raise("error", format!("the pattern can't be used: {error}")),
    };
    let (mut out, mut end) = (String::new(), 0);
    let mut search = pattern.search(text, |visits| rt.visits(visits));
    while let Some(found) = search.next()? {
        out.push_str(text.get(end..found.start).unwrap_or_default());
        out.push_str(by);
        rt.fits(out.len())?;
        rt.alloc(by.len())?;
        end = found.end;
    }
    out.push_str(text.get(end..).unwrap_or_default());
    if out == **text {
        return Ok(None);
    }
    rt.text(out).map(Some)
}
