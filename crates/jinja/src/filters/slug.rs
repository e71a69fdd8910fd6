//! `slugify`: strings for names and URLs.

use unicode_normalization::UnicodeNormalization as _;

use crate::{
    eval::context::Cx,
    exc::{R, raise, type_error},
    methods::replaced,
    rt::Rt,
    text::{reference, semicolon},
    value::{
        Str, Value,
        args::{Args, Bound, to_text},
        char_count, iter,
    },
};

const NAMES: [&str; 12] = [
    "entities",
    "decimal",
    "hexadecimal",
    "max_length",
    "word_boundary",
    "separator",
    "save_order",
    "stopwords",
    "regex_pattern",
    "lowercase",
    "replacements",
    "allow_unicode",
];

pub(super) fn slugify(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("slugify", NAMES, 0)?;
    let rt = cx.rt;
    let Some(text) = value.defined()?.as_str() else {
        return type_error("decoding to str: need a bytes-like object");
    };
    let unicode = args.flag(11, false)?;
    rt.alloc(text.len().saturating_mul(8))?;
    rt.step(text.len() as u64)?;
    let replacements = pairs(cx, &args)?;
    let mut text = replace_all(cx, text.to_string(), &replacements)?;
    text = squeezed(&text, |letter| letter == '\'', '-');
    text = plain(rt, &text, unicode)?;
    text = references(&text, &args)?;
    text = if unicode {
        collected(rt, text.nfkc())?
    } else {
        collected(rt, text.nfkd())?
    };
    if args.flag(9, true)? {
        text = text.to_lowercase();
    }
    text.retain(|letter| letter != '\'');
    text = without_group_commas(&text);
    text = disallowed(rt, &text, &args, unicode)?;
    text = squeezed(&text, |letter| letter == '-', '-')
        .trim_matches('-')
        .to_owned();
    text = without_stopwords(cx, &text, &args)?;
    text = replace_all(cx, text, &replacements)?;
    let limit = usize::try_from(args.int(3, 0)?).unwrap_or_default();
    if limit > 0 {
        text = shortened(&text, limit, args.flag(4, false)?, args.flag(6, false)?);
    }
    let separator = args.text(5, "-")?;
    if &*separator != "-" {
        text = replaced(rt, &text, "-", &separator, -1)?;
    }
    rt.text(text)
}

fn pairs(cx: &Cx<'_>, args: &Bound<12>) -> R<Vec<(Str, Str)>> {
    let Some(given) = args.get(10) else {
        return Ok(Vec::new());
    };
    let mut pairs = Vec::new();
    for pair in iter::collect(cx.rt, given)? {
        match iter::collect(cx.rt, &pair)?.as_slice() {
            [old, new] => pairs.push((to_text(old)?, to_text(new)?)),
            _ => return raise("ValueError", "replacements are pairs"),
        }
    }
    Ok(pairs)
}

fn replace_all(cx: &Cx<'_>, mut text: String, pairs: &[(Str, Str)]) -> R<String> {
    for (old, new) in pairs {
        cx.rt.step(1)?;
        text = replaced(cx.rt, &text, old, new, -1)?;
        cx.rt.alloc(text.len())?;
    }
    Ok(text)
}

/// Converts to ASCII, or to the composed form of Unicode.
fn plain(rt: &Rt, text: &str, unicode: bool) -> R<String> {
    if text.is_ascii() {
        return Ok(text.to_owned());
    }
    if unicode {
        return collected(rt, text.nfkc());
    }
    let mut out = String::new();
    let mut counted = 0;
    for letter in text.nfkd() {
        if letter.is_ascii() {
            out.push(letter);
        } else {
            out.push_str(spelled(letter));
        }
        if out.len() - counted >= PART {
            count(rt, out.len(), out.len() - counted)?;
            counted = out.len();
        }
    }
    Ok(out)
}

/// Returns the ASCII spelling of a letter. The names of emojis are left out: the original's table has none, and ends at
/// U+FFFF.
fn spelled(letter: char) -> &'static str {
    let spelled = deunicode::deunicode_char(letter).unwrap_or_default();
    let is_name = spelled.len() > 2 && matches!(letter, '\u{2600}'..='\u{27bf}');
    if is_name || letter > '\u{ffff}' {
        ""
    } else {
        spelled
    }
}

/// Length in bytes of the pieces that are counted.
const PART: usize = 16 << 10;

/// Counts the last bytes of a string that grows.
fn count(rt: &Rt, length: usize, added: usize) -> R<()> {
    rt.fits(length)?;
    rt.alloc(added)?;
    rt.step(added as u64 / 8)
}

/// Collects characters of which there may be many more than in their source.
fn collected(rt: &Rt, letters: impl Iterator<Item = char>) -> R<String> {
    let (mut out, mut counted) = (String::new(), 0);
    for letter in letters {
        out.push(letter);
        if out.len() - counted >= PART {
            counted = out.len();
            count(rt, counted, PART)?;
        }
    }
    Ok(out)
}

/// Replaces character references of the requested kinds.
fn references(text: &str, args: &Bound<12>) -> R<String> {
    let (entities, decimal, hexadecimal) = (args.flag(0, true)?, args.flag(1, true)?, args.flag(2, true)?);
    if !text.contains('&') {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(before);
        let end = semicolon(after, 16);
        let name = end.and_then(|end| after.get(1..end)).unwrap_or_default();
        let wanted = match name.strip_prefix('#') {
            Some(number) if number.starts_with('x') => hexadecimal,
            Some(_) => decimal,
            None => entities && name != "apos",
        };
        match (end, reference(name)) {
            (Some(end), Some(letter)) if wanted => {
                out.push(letter);
                rest = after.get(end + 1..).unwrap_or_default();
            }
            _ => {
                out.push('&');
                rest = after.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Removes commas between digits.
fn without_group_commas(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let digit = |at: Option<usize>| {
        at.and_then(|at| letters.get(at))
            .is_some_and(|letter| letter.is_numeric())
    };
    let remaining = letters
        .iter()
        .enumerate()
        .filter(|(at, letter)| **letter != ',' || !digit(at.checked_sub(1)) || !digit(Some(at + 1)));
    remaining.map(|(_, letter)| letter).collect()
}

/// Replaces each run of disallowed characters by a dash.
fn disallowed(rt: &Rt, text: &str, args: &Bound<12>, unicode: bool) -> R<String> {
    if let Some(pattern) = args.optional_text(8)? {
        let pattern = match rt.pattern(&pattern)? {
            Ok(pattern) => pattern,
            Err(error) => return raise("error", format!("the pattern can't be used: {error}")),
        };
        let (mut out, mut end) = (String::new(), 0);
        let mut search = pattern.search(text, |visits| rt.visits(visits));
        while let Some(found) = search.next()? {
            out.push_str(text.get(end..found.start).unwrap_or_default());
            out.push('-');
            end = found.end;
        }
        return Ok(out + text.get(end..).unwrap_or_default());
    }
    Ok(squeezed(
        text,
        |letter| match letter {
            '-' => false,
            '_' => true,
            letter if unicode => !letter.is_alphanumeric(),
            letter => !letter.is_ascii_alphanumeric(),
        },
        '-',
    ))
}

fn squeezed(text: &str, part_of_row: impl Fn(char) -> bool, by: char) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        let row = part_of_row(letter);
        if !row {
            out.push(letter);
        } else if !inside {
            out.push(by);
        }
        inside = row;
    }
    out
}

fn without_stopwords(cx: &Cx<'_>, text: &str, args: &Bound<12>) -> R<String> {
    let Some(given) = args.get(7) else {
        return Ok(text.to_owned());
    };
    let lower = args.flag(9, true)?;
    let mut words = std::collections::HashSet::new();
    for word in iter::collect(cx.rt, given)? {
        let word = to_text(&word)?;
        cx.rt.alloc(word.len())?;
        cx.rt.step(word.len() as u64 / 8)?;
        words.insert(if lower {
            word.to_lowercase()
        } else {
            word.to_string()
        });
    }
    if words.is_empty() {
        return Ok(text.to_owned());
    }
    let remaining: Vec<&str> = text.split('-').filter(|word| !words.contains(*word)).collect();
    Ok(remaining.join("-"))
}

/// Truncates a slug, optionally between words.
fn shortened(text: &str, limit: usize, word_boundary: bool, save_order: bool) -> String {
    let text = text.trim_matches('-');
    let cut = |text: &str| -> String { text.chars().take(limit).collect() };
    if char_count(text) < limit {
        return text.to_owned();
    }
    if !word_boundary {
        return cut(text).trim_matches('-').to_owned();
    }
    if !text.contains('-') {
        return cut(text);
    }
    let (mut short, mut count) = (String::new(), 0);
    for word in text.split('-').filter(|word| !word.is_empty()) {
        let next = count + char_count(word);
        if next < limit {
            short.push_str(word);
            short.push('-');
            count = next + 1;
        } else if next == limit {
            short.push_str(word);
            break;
        } else if save_order {
            break;
        }
    }
    if short.is_empty() {
        short = cut(text);
    }
    short.trim_matches('-').to_owned()
}
