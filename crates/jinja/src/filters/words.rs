//! Filters on words and lines.

use crate::{
    eval::{context::Cx, ops},
    exc::{R, raise, type_error},
    text::{is_line_end, justified, lines},
    value::{
        Value,
        args::{Args, to_int},
        compare,
        operator::{Comparison, Operator},
    },
};

/// Capitalizes the first letter of each word; words end at space, hyphens and opening brackets.
pub(super) fn title(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_title")?;
    let text = cx.text_of(&value)?;
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
    cx.rt.text(out)
}

pub(super) fn indent(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_indent", ["width", "first", "blank"], 0)?;
    let Some(text) = value.defined()?.as_str().cloned() else {
        return if matches!(value, Value::List(_)) {
            raise("AttributeError", "'list' object has no attribute 'splitlines'")
        } else {
            type_error(format!(
                "unsupported operand type(s) for +=: '{}' and 'str'",
                value.type_name()
            ))
        };
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
    cx.rt.read(text.len())?;
    cx.rt.fits(text.len())?;
    let text = format!("{text}\n");
    let mut out = String::new();
    let count = text.chars().filter(|c| is_line_end(*c)).count();
    cx.rt.fits(count.saturating_mul(size_of::<&str>()))?;
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
    Ok(Value::like(&value, cx.rt.made(out)?))
}

pub(super) fn truncate(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_truncate", ["length", "killwords", "end", "leeway"], 0)?;
    let length = args.get(0).cloned().unwrap_or(Value::Int(255));
    let end = args.get(2).cloned().unwrap_or_else(|| Value::str("..."));
    let leeway = args.get(3).filter(|leeway| !matches!(leeway, Value::None));
    let leeway = leeway.cloned().unwrap_or(Value::Int(5));
    let end_length = Value::int(cx.rt.length(&end)?);
    at_least(cx, "length", &length, &end_length)?;
    at_least(cx, "leeway", &leeway, &Value::Int(0))?;
    let most = ops::binary(cx.rt, Operator::Add, &length, &leeway)?;
    if compare::compare(cx.rt, Comparison::Le, &Value::int(cx.rt.length(&value)?), &most)? {
        return Ok(value);
    }
    let length_left = ops::binary(cx.rt, Operator::Sub, &length, &end_length)?;
    let Ok(length_left) = to_int(&length_left) else {
        return type_error("slice indices must be integers or None or have an __index__ method");
    };
    let Some(text) = value.as_str() else {
        return raise(
            "AttributeError",
            format!("'{}' object has no attribute 'rsplit'", value.type_name()),
        );
    };
    let length_left = usize::try_from(length_left).unwrap_or_default();
    let mut cut: String = text.chars().take(length_left).collect();
    if !args.flag(1, false)? {
        cut.truncate(cut.rfind(' ').unwrap_or(cut.len()));
    }
    let cut = Value::like(&value, cx.rt.made(cut)?);
    ops::binary(cx.rt, Operator::Add, &cut, &end)
}

fn at_least(cx: &Cx<'_>, what: &str, value: &Value, least: &Value) -> R<()> {
    if compare::compare(cx.rt, Comparison::Ge, value, least)? {
        return Ok(());
    }
    let text = |value: &Value| crate::format::repr::text(cx.rt, value);
    let message = format!("expected {what} >= {}, got {}", text(least)?, text(value)?);
    raise("AssertionError", message)
}

pub(super) fn wordcount(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_wordcount")?;
    let text = cx.text_of(&value)?;
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Ok(Value::int(words.filter(|word| !word.is_empty()).count()))
}

pub(super) fn center(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_center", ["width"], 0)?;
    let text = cx.text_of(&value)?;
    let width = usize::try_from(args.int(0, 80)?).unwrap_or(0);
    crate::format::spec::check_width(cx.rt, width)?;
    Ok(Value::like(
        &value,
        cx.rt.made(justified(&text, width, ' ', "center"))?,
    ))
}
