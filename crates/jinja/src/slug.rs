//! `slugify`, for ASCII text.

use minijinja::{Error, Value as Dynamic};

use crate::{
    account,
    functions::{fail, no_attribute},
    signature::{Args, bind, defined},
};

/// The arguments of the original; the first three are obeyed.
const NAMES: [&str; 12] = [
    "separator",
    "max_length",
    "lowercase",
    "entities",
    "decimal",
    "hexadecimal",
    "word_boundary",
    "save_order",
    "stopwords",
    "regex_pattern",
    "replacements",
    "allow_unicode",
];

/// Lower-case words of letters and digits, joined by dashes.
pub(crate) fn slugify(value: &Dynamic, args: Args) -> Result<String, Error> {
    let args = bind("slugify", NAMES, args)?;
    if let Some(name) = NAMES.iter().skip(3).find(|name| args.get(name).is_some()) {
        return Err(fail(format!(
            "NotImplementedError: slugify({name}=) is not supported yet"
        )));
    }
    let text = defined(value)?
        .as_str()
        .ok_or_else(|| no_attribute(value, "replace"))?;
    let max_length = args.size("max_length", 0)?;
    let separator = args.optional_text("separator")?;
    let lowercase = args.flag("lowercase", true)?;
    if !text.is_ascii() {
        return Err(fail(
            "NotImplementedError: slugify of text that is not ASCII is not supported yet",
        ));
    }
    if text.contains('&') && text.contains(';') {
        return Err(fail(
            "NotImplementedError: slugify of character entities is not supported yet",
        ));
    }
    let mut slug = words(text, lowercase);
    if max_length > 0 {
        slug.truncate(max_length);
        slug.truncate(slug.trim_end_matches('-').len());
    }
    account::made(match separator {
        Some(separator) if separator != "-" => {
            let dashes = slug.matches('-').count();
            account::fits(slug.len().saturating_add(dashes.saturating_mul(separator.len())))?;
            slug.replace('-', &separator)
        }
        _ => slug,
    })
}

fn words(text: &str, lowercase: bool) -> String {
    let text = if lowercase {
        text.to_ascii_lowercase()
    } else {
        text.to_owned()
    };
    let letters: Vec<char> = text.chars().collect();
    let digit = |index: Option<usize>| {
        index
            .and_then(|index| letters.get(index))
            .is_some_and(char::is_ascii_digit)
    };
    let mut slug = String::with_capacity(letters.len());
    for (index, letter) in letters.iter().enumerate() {
        // A comma between digits groups them.
        if *letter == ',' && digit(index.checked_sub(1)) && digit(Some(index + 1)) {
            continue;
        }
        if letter.is_ascii_alphanumeric() {
            slug.push(*letter);
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}
