//! Python's operator `%` of strings.

use num_bigint::{BigInt, Sign};

use super::{repr, spec};
use crate::{
    exc::{R, raise, type_error, value_error},
    format::escape::escape,
    rt::Rt,
    value::{
        Key, Value,
        args::to_int,
        char_count,
        number::{Number, truncated},
    },
};

#[derive(Debug, Default)]
struct Field {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    escapes: bool,
}

struct Values<'a> {
    all: &'a [Value],
    at: usize,
    whole: &'a Value,
    /// True if a field has a name.
    by_name: bool,
    /// If set, inserted values are escaped.
    escapes: bool,
}

impl Values<'_> {
    fn next(&mut self) -> R<Value> {
        match self.all.get(self.at) {
            Some(value) => {
                self.at += 1;
                Ok(value.clone())
            }
            None => type_error("not enough arguments for format string"),
        }
    }
}

pub(crate) fn format(rt: &Rt, text: &str, value: &Value, escapes: bool) -> R<String> {
    let single = [value.clone()];
    let all = match value {
        Value::Tuple(tuple) => tuple.items.as_slice(),
        _ => single.as_slice(),
    };
    let mut values = Values {
        all,
        at: 0,
        whole: value,
        by_name: false,
        escapes,
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        rt.step(1)?;
        out.push_str(rest.get(..at).unwrap_or_default());
        rest = field(rt, rest.get(at + 1..).unwrap_or_default(), &mut values, &mut out)?;
        rt.fits(out.len())?;
    }
    out.push_str(rest);
    // A value with items may remain unused as a whole.
    let whole = matches!(
        value,
        Value::Dict(_) | Value::List(_) | Value::Undefined(_) | Value::Range(_) | Value::Bytes(_)
    );
    if values.at < all.len() && !values.by_name && !whole {
        value.defined()?;
        return type_error("not all arguments converted during string formatting");
    }
    Ok(out)
}

/// Writes one field, and returns the rest of the format.
fn field<'t>(rt: &Rt, text: &'t str, values: &mut Values<'_>, out: &mut String) -> R<&'t str> {
    let mut rest = text;
    let mut named = None;
    if let Some(after) = rest.strip_prefix('(') {
        let Some(end) = closing(after) else {
            return value_error("incomplete format key");
        };
        let key = after.get(..end).unwrap_or_default();
        rest = after.get(end + 1..).unwrap_or_default();
        let Value::Dict(dict) = values.whole.defined()? else {
            return type_error("format requires a mapping");
        };
        values.by_name = true;
        named = Some(match dict.get(&Key::from(key)) {
            Some(value) => value,
            None => return raise("KeyError", repr::quoted(key)),
        });
    }
    let mut field = Field {
        escapes: values.escapes,
        ..Field::default()
    };
    while let Some(flag) = rest.chars().next().filter(|letter| "#0- +".contains(*letter)) {
        match flag {
            '#' => field.alternate = true,
            '0' => field.zero = true,
            '-' => field.left = true,
            ' ' => field.space = true,
            _ => field.plus = true,
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    let (width, after) = number(rt, rest, values)?;
    rest = after;
    if let Some(width) = width {
        field.left |= width < 0;
        field.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
    }
    if let Some(after) = rest.strip_prefix('.') {
        let (precision, after) = number(rt, after, values)?;
        field.precision = Some(usize::try_from(precision.unwrap_or(0)).unwrap_or(0));
        rest = after;
    }
    rest = rest.strip_prefix(['h', 'l', 'L']).unwrap_or(rest);
    let Some(kind) = rest.chars().next() else {
        return value_error("incomplete format");
    };
    rest = rest.get(kind.len_utf8()..).unwrap_or_default();
    if kind == '%' {
        out.push('%');
        return Ok(rest);
    }
    let value = match named {
        Some(value) => value,
        None => values.next()?,
    };
    write(rt, kind, &field, &value, out)?;
    Ok(rest)
}

fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.char_indices().find_map(|(at, letter)| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

fn number<'t>(rt: &Rt, text: &'t str, values: &mut Values<'_>) -> R<(Option<i64>, &'t str)> {
    if let Some(rest) = text.strip_prefix('*') {
        let value = values.next()?;
        if !matches!(value, Value::Int(_) | Value::Bool(_) | Value::Big(_)) {
            return type_error("* wants int");
        }
        let width = to_int(&value)?;
        spec::check_width(rt, usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX))?;
        return Ok((Some(width), rest));
    }
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    if digits.is_empty() {
        return Ok((None, rest));
    }
    let width = digits.parse().unwrap_or(i64::MAX);
    spec::check_width(rt, usize::try_from(width).unwrap_or(usize::MAX))?;
    Ok((Some(width), rest))
}

fn write(rt: &Rt, kind: char, field: &Field, value: &Value, out: &mut String) -> R<()> {
    let (sign, prefix, digits) = match kind {
        's' | 'r' | 'a' => {
            let mut text = String::new();
            if kind == 's' {
                repr::write_str(rt, value, &mut text)?;
            } else {
                repr::write_repr(rt, value, &mut text)?;
            }
            if kind == 'a' {
                text = repr::ascii(rt, &text)?;
            }
            if field.escapes && !(kind == 's' && matches!(value, Value::Markup(_))) {
                let mut escaped = String::new();
                escape(rt, &text, &mut escaped)?;
                text = escaped;
            }
            if let Some(precision) = field.precision {
                text = text.chars().take(precision).collect();
            }
            pad(field, "", &text, false, out);
            return Ok(());
        }
        'c' => {
            pad(field, "", &letter(value)?, false, out);
            return Ok(());
        }
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => integer(rt, kind, field, value)?,
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
            let Some(number) = Number::of(value.defined()?) else {
                return type_error(format!("must be real number, not {}", value.type_name()));
            };
            let number = number.float();
            let text = spec::float_text(number.abs(), kind, field.precision, field.alternate);
            (number.is_sign_negative() && !number.is_nan(), "", text)
        }
        other => {
            return value_error(format!(
                "unsupported format character '{other}' (0x{:x})",
                u32::from(other)
            ));
        }
    };
    let sign = match sign {
        true => "-",
        false if field.plus => "+",
        false if field.space => " ",
        false => "",
    };
    pad(field, &format!("{sign}{prefix}"), &digits, true, out);
    Ok(())
}

fn letter(value: &Value) -> R<String> {
    match value.defined()? {
        Value::Str(text) if text.chars().count() == 1 => Ok(text.to_string()),
        Value::Int(number) => match u32::try_from(*number).ok().and_then(char::from_u32) {
            Some(letter) => Ok(letter.to_string()),
            None => raise("OverflowError", "%c arg not in range(0x110000)"),
        },
        _ => type_error("%c requires int or char"),
    }
}

fn integer(rt: &Rt, kind: char, field: &Field, value: &Value) -> R<(bool, &'static str, String)> {
    let whole: Option<BigInt> = match Number::of(value.defined()?) {
        Some(Number::Float(number)) if matches!(kind, 'd' | 'i' | 'u') => {
            truncated(number).and_then(|whole| Number::of(&whole)?.big())
        }
        Some(number) => number.big(),
        None => None,
    };
    let Some(whole) = whole else {
        let wanted = if matches!(kind, 'd' | 'i' | 'u') {
            "a real number is required"
        } else {
            "an integer is required"
        };
        return type_error(format!("%{kind} format: {wanted}, not {}", value.type_name()));
    };
    rt.step(whole.bits().saturating_mul(whole.bits()) / 65_536)?;
    let magnitude = whole.magnitude();
    let (prefix, mut digits) = match kind {
        'x' => ("0x", magnitude.to_str_radix(16)),
        'X' => ("0X", magnitude.to_str_radix(16).to_uppercase()),
        'o' => ("0o", magnitude.to_str_radix(8)),
        _ => ("", magnitude.to_string()),
    };
    if let Some(missing) = field
        .precision
        .and_then(|precision| precision.checked_sub(digits.len()))
    {
        digits.insert_str(0, &"0".repeat(missing));
    }
    let prefix = if field.alternate { prefix } else { "" };
    Ok((whole.sign() == Sign::Minus, prefix, digits))
}

fn pad(field: &Field, head: &str, body: &str, is_number: bool, out: &mut String) {
    let missing = field.width.saturating_sub(char_count(head) + char_count(body));
    let fill = |letter: char, out: &mut String| out.extend(std::iter::repeat_n(letter, missing));
    if field.left {
        out.push_str(head);
        out.push_str(body);
        fill(' ', out);
    } else if field.zero && is_number {
        out.push_str(head);
        fill('0', out);
        out.push_str(body);
    } else {
        fill(' ', out);
        out.push_str(head);
        out.push_str(body);
    }
}
