//! Escapes strings for HTML, JavaScript and URLs.

use std::fmt::Write as _;

use go::{
    bytes::{invalid_byte, of_str},
    strconv::is_print,
};
use tree::Budget;

use crate::template::FormatError;

pub(super) fn html(text: &str, budget: &Budget) -> Result<String, FormatError> {
    budget.step(text.len() as u64 / 8 + 1)?;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        fits(&out, budget)?;
        match c {
            '\0' => out.push('\u{fffd}'),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    Ok(out)
}

pub(super) fn js(text: &str, budget: &Budget) -> Result<String, FormatError> {
    budget.step(text.len() as u64 / 8 + 1)?;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        fits(&out, budget)?;
        match c {
            '\\' | '\'' | '"' => {
                out.push('\\');
                out.push(c);
            }
            '<' | '>' | '&' | '=' | '\0'..=' ' if c != ' ' => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c if c.is_ascii() || is_print(c) || invalid_byte(c).is_some() => out.push(c),
            c => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
        }
    }
    Ok(out)
}

pub(super) fn url_query(text: &str, budget: &Budget) -> Result<String, FormatError> {
    budget.step(text.len() as u64 / 8 + 1)?;
    let mut out = String::with_capacity(text.len());
    for byte in of_str(text).iter().copied() {
        fits(&out, budget)?;
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            b' ' => out.push('+'),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    Ok(out)
}

fn fits(out: &str, budget: &Budget) -> Result<(), FormatError> {
    if out.len() as u64 > budget.limits().bytes {
        return Err(FormatError::TooLong);
    }
    Ok(())
}
