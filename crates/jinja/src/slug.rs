//! `slugify`, for ASCII text.

use minijinja::{Error, value::Kwargs};

use crate::functions::fail;

/// Lower-case words of letters and digits, joined by dashes.
pub(crate) fn slugify(text: &str, kwargs: Kwargs) -> Result<String, Error> {
    let max_length: Option<usize> = kwargs.get("max_length")?;
    let separator: Option<String> = kwargs.get("separator")?;
    let lowercase: Option<bool> = kwargs.get("lowercase")?;
    if let Some(unknown) = kwargs.args().find(|name| !["max_length", "separator", "lowercase"].contains(name)) {
        return Err(fail(format!("NotImplementedError: slugify({unknown}=) is not supported yet")));
    }
    if !text.is_ascii() {
        return Err(fail("NotImplementedError: slugify of text that is not ASCII is not supported yet"));
    }
    if text.contains('&') && text.contains(';') {
        return Err(fail("NotImplementedError: slugify of character entities is not supported yet"));
    }
    let mut slug = words(text, lowercase.unwrap_or(true));
    if let Some(length) = max_length.filter(|length| *length > 0) {
        slug.truncate(length);
        slug.truncate(slug.trim_end_matches('-').len());
    }
    Ok(match separator {
        Some(separator) if separator != "-" => slug.replace('-', &separator),
        _ => slug,
    })
}

fn words(text: &str, lowercase: bool) -> String {
    let text = if lowercase { text.to_ascii_lowercase() } else { text.to_owned() };
    let letters: Vec<char> = text.chars().collect();
    let digit = |index: Option<usize>| {
        index.and_then(|index| letters.get(index)).is_some_and(char::is_ascii_digit)
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
