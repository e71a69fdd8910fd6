//! `lipsum`: placeholder text.

use super::random::random;
use crate::{
    eval::context::Cx,
    exc::{R, value_error},
    rt::Rt,
    value::{Value, args::Args},
};

const WORDS: &str = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et \
                     dolore magna aliqua enim ad minim veniam quis nostrud exercitation ullamco laboris nisi aliquip ex ea \
                     commodo consequat duis aute irure in reprehenderit voluptate velit esse cillum fugiat nulla pariatur";

fn between(rt: &Rt, low: i64, high: i64) -> R<i64> {
    if low >= high {
        return value_error(format!("empty range in randrange({low}, {high})"));
    }
    let width = u64::try_from(high.saturating_sub(low)).unwrap_or(1);
    let offset = i64::try_from(random(rt)? % width).unwrap_or_default();
    Ok(low.saturating_add(offset))
}

fn paragraph(rt: &Rt, low: i64, high: i64) -> R<String> {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let count = between(rt, low, high)?;
    let mut text = String::new();
    let (mut capital, mut comma, mut stop) = (true, 0, 0);
    let mut last = "";
    for index in 0..count.max(0) {
        rt.step(4)?;
        rt.fits(text.len())?;
        let mut word = last;
        while word == last {
            let at =
                usize::try_from(between(rt, 0, i64::try_from(words.len()).unwrap_or(1))?).unwrap_or_default();
            word = words.get(at).copied().unwrap_or("lorem");
        }
        last = word;
        if index > 0 {
            text.push(' ');
        }
        text.push_str(&if capital {
            crate::text::capitalized(word)
        } else {
            word.to_owned()
        });
        capital = false;
        if index - between(rt, 3, 8)? > comma {
            comma = index;
            stop += 2;
            text.push(',');
        }
        if index - between(rt, 10, 20)? > stop {
            (comma, stop) = (index, index);
            text.push('.');
            capital = true;
        }
    }
    let trimmed = text.trim_end_matches(',').len();
    text.truncate(trimmed);
    if !text.ends_with('.') {
        text.push('.');
    }
    Ok(text)
}

pub(super) fn lipsum(cx: &Cx<'_>, args: Args) -> R<Value> {
    let args = args.bind("generate_lorem_ipsum", ["n", "html", "min", "max"], 0)?;
    let (low, high) = (args.int(2, 20)?, args.int(3, 100)?);
    let html = args.flag(1, true)?;
    let mut out = String::new();
    for index in 0..args.int(0, 5)?.max(0) {
        cx.rt.step(4)?;
        let paragraph = paragraph(cx.rt, low, high)?;
        if html {
            out.push_str(if index > 0 { "\n<p>" } else { "<p>" });
            out.push_str(&paragraph);
            out.push_str("</p>");
        } else {
            out.push_str(if index > 0 { "\n\n" } else { "" });
            out.push_str(&paragraph);
        }
        cx.rt.fits(out.len())?;
    }
    let text = cx.rt.made(out)?;
    Ok(if html {
        Value::Markup(text)
    } else {
        Value::Str(text)
    })
}
