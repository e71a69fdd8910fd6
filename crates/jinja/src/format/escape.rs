//! Escaping for HTML.

use super::repr;
use crate::{exc::R, rt::Rt, value::Value};

/// Appends a value and escapes it unless it is escaped already.
pub(crate) fn write_escaped(rt: &Rt, value: &Value, out: &mut String) -> R<()> {
    if let Value::Markup(text) = value {
        rt.fits(out.len().saturating_add(text.len()))?;
        out.push_str(text);
        return Ok(());
    }
    let mut text = String::new();
    repr::write_str(rt, value, &mut text)?;
    escape(rt, &text, out)
}

pub(crate) fn escape(rt: &Rt, text: &str, out: &mut String) -> R<()> {
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
    rt.fits(out.len())?;
    rt.step(text.len() as u64 / 64)
}
