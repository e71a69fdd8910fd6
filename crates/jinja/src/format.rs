//! How large a formatted text can get, told before it is made.

use minijinja::{Error, Value as Dynamic};

use crate::{functions::fail, python};

/// The largest width and precision of a field.
const MAX_WIDTH: usize = 10_000;

/// An upper bound of what `text | format(values)` gives.
pub(crate) fn size_of_printf(text: &str, values: &[Dynamic]) -> Result<usize, Error> {
    let mut fields = 0usize;
    let mut widths = 0usize;
    let mut starred = false;
    for field in text.split('%').skip(1) {
        fields = fields.saturating_add(1);
        // A key in parentheses may hold anything.
        let spec = match field.strip_prefix('(') {
            Some(rest) => rest.split_once(')').map_or(rest, |(_, spec)| spec),
            None => field,
        };
        let end = spec.find(|letter: char| !" #+-.*0123456789".contains(letter));
        let spec = spec.get(..end.unwrap_or(spec.len())).unwrap_or_default();
        starred |= spec.contains('*');
        widths = widths.saturating_add(width(spec)?);
    }
    if starred {
        for value in values {
            let number = value.as_i64().unwrap_or_default().unsigned_abs();
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            widths = widths.saturating_add(checked(number)?.saturating_mul(fields));
        }
    }
    bound(text, fields, widths, values)
}

/// An upper bound of what `text.format(values)` gives.
pub(crate) fn size_of_format(text: &str, values: &[Dynamic]) -> Result<usize, Error> {
    let mut fields = 0usize;
    let mut widths = 0usize;
    for field in text.split('{').skip(1) {
        fields = fields.saturating_add(1);
        let field = field.split('}').next().unwrap_or_default();
        if let Some((_, spec)) = field.split_once(':') {
            widths = widths.saturating_add(width(spec)?);
        }
    }
    bound(text, fields, widths, values)
}

fn bound(text: &str, fields: usize, widths: usize, values: &[Dynamic]) -> Result<usize, Error> {
    let mut longest = 64;
    for value in values {
        longest = longest.max(python::size(value)?);
    }
    let values = fields.saturating_mul(longest);
    Ok(text.len().saturating_add(widths).saturating_add(values))
}

/// The sum of all numbers in a format specification.
fn width(spec: &str) -> Result<usize, Error> {
    let mut sum = 0usize;
    for digits in spec.split(|letter: char| !letter.is_ascii_digit()) {
        if !digits.is_empty() {
            sum = sum.saturating_add(checked(digits.parse().unwrap_or(usize::MAX))?);
        }
    }
    Ok(sum)
}

fn checked(width: usize) -> Result<usize, Error> {
    if width > MAX_WIDTH {
        return Err(fail(format!(
            "ValueError: a width in a format is over the limit of {MAX_WIDTH}"
        )));
    }
    Ok(width)
}
