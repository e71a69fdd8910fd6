//! Filters on words and lines.

use super::{like, text_of};
use crate::{
    eval::call::{Args, Cx},
    exc::{R, raise, type_error},
    text::{justified, lines},
    value::{Value, char_count},
};

/// The first letter of each word is a capital; words end at space, hyphens and opening brackets.
pub(super) fn title(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_title")?;
    let text = text_of(cx, &value)?;
    let ends = |letter: char| crate::text::is_space(letter) || "-({[<".contains(letter);
    let mut out = String::with_capacity(text.len());
    let mut first = true;
    for letter in text.chars() {
        if ends(letter) {
            out.push(letter);
            first = true;
        } else if first {
            out.extend(letter.to_uppercase());
            first = false;
        } else {
            out.extend(letter.to_lowercase());
        }
    }
    Ok(like(&value, cx.rt.made(out)?))
}

pub(super) fn indent(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_indent", ["width", "first", "blank"], 0)?;
    let Some(text) = value.defined()?.as_str().cloned() else {
        return type_error(format!("can't indent a value of type {}", value.type_name()));
    };
    let space = match args.get(0) {
        Some(Value::Str(space) | Value::Markup(space)) => space.to_string(),
        _ => {
            let width = usize::try_from(args.int(0, 4)?).unwrap_or(0);
            crate::format::spec::check_width(cx.rt, width)?;
            " ".repeat(width)
        }
    };
    let (first, blank) = (args.flag(1, false)?, args.flag(2, false)?);
    let text = format!("{text}\n");
    let mut out = String::new();
    let all = lines(&text, false);
    for (index, line) in all.iter().enumerate() {
        cx.rt
            .fits(out.len().saturating_add(line.len()).saturating_add(space.len()))?;
        if index > 0 {
            out.push('\n');
        }
        let indented = if index == 0 {
            first
        } else {
            blank || !line.is_empty()
        };
        if indented {
            out.push_str(&space);
            cx.rt.step(space.len() as u64 / 64)?;
        }
        out.push_str(line);
    }
    Ok(like(&value, cx.rt.made(out)?))
}

pub(super) fn truncate(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_truncate", ["length", "killwords", "end", "leeway"], 0)?;
    let text = value.defined()?;
    let length = args.int(0, 255)?;
    let end = args.text(2, "...")?;
    let leeway = args.optional_int(3)?.unwrap_or(5);
    let end_length = i64::try_from(char_count(&end)).unwrap_or(i64::MAX);
    if length < end_length {
        return raise(
            "AssertionError",
            format!("expected length >= {end_length}, got {length}"),
        );
    }
    if leeway < 0 {
        return raise("AssertionError", format!("expected leeway >= 0, got {leeway}"));
    }
    let count = i64::try_from(text.len()?).unwrap_or(i64::MAX);
    if count <= length.saturating_add(leeway) {
        return Ok(value);
    }
    let Some(text) = text.as_str() else {
        return type_error(format!("can't truncate a value of type {}", value.type_name()));
    };
    let kept = usize::try_from(length - end_length).unwrap_or_default();
    let mut cut: String = text.chars().take(kept).collect();
    if !args.flag(1, false)? {
        cut.truncate(cut.rfind(' ').unwrap_or(cut.len()));
    }
    Ok(like(&value, cx.rt.made(cut + &end)?))
}

pub(super) fn wordcount(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_wordcount")?;
    let text = text_of(cx, &value)?;
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Ok(Value::int(words.filter(|word| !word.is_empty()).count()))
}

pub(super) fn center(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let width = args.bind("do_center", ["width"], 0)?.int(0, 80)?;
    let width = usize::try_from(width).unwrap_or(0);
    crate::format::spec::check_width(cx.rt, width)?;
    let text = text_of(cx, &value)?;
    Ok(like(&value, cx.rt.made(justified(&text, width, ' ', "center"))?))
}
