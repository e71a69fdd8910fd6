//! The mini-language of format specifications, as in `'{:>10.2f}'.format(x)`.

use num_bigint::{BigInt, Sign};

use super::repr;
use crate::{
    exc::{R, raise, value_error},
    methods::format_date,
    rt::Rt,
    value::{
        Object, Value, char_count,
        compare::full_name,
        number::{Number, big_to_float},
    },
};

const MAX_WIDTH: usize = 10_000_000;

#[derive(Debug, Clone, Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    zero: bool,
    width: usize,
    group: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

pub(crate) fn format(rt: &Rt, value: &Value, spec: &str) -> R<String> {
    if spec.is_empty() {
        return repr::text(rt, value);
    }
    if value.is_undefined() {
        return not_formatted(value);
    }
    if let Value::Object(object) = value {
        return match &**object {
            Object::Date(date) => format_date(rt, date, spec),
            _ => not_formatted(value),
        };
    }
    let parsed = parse(rt, value, spec)?;
    match value {
        Value::Str(text) | Value::Markup(text) => {
            rt.read(text.len())?;
            of_text(text, &parsed, value)
        }
        _ => match Number::of(value) {
            Some(number) => of_number(rt, &number, &parsed, value),
            None => not_formatted(value),
        },
    }
}

fn not_formatted<T>(value: &Value) -> R<T> {
    raise(
        "TypeError",
        format!(
            "unsupported format string passed to {}.__format__",
            full_name(value)
        ),
    )
}

fn number_of(rt: &Rt, letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> R<Option<usize>> {
    let mut found = None;
    while let Some(digit) = letters.peek().and_then(|letter| letter.to_digit(10)) {
        letters.next();
        let digit = usize::try_from(digit).unwrap_or_default();
        found = Some(found.unwrap_or(0usize).saturating_mul(10).saturating_add(digit));
    }
    if let Some(number) = found {
        check_width(rt, number)?;
    }
    Ok(found)
}

/// Fails if a field is wider than a value may be.
pub(crate) fn check_width(rt: &Rt, width: usize) -> R<()> {
    rt.fits(width)?;
    if width > MAX_WIDTH {
        return value_error(format!("a width in a format is over the limit of {MAX_WIDTH}"));
    }
    rt.alloc(width)?;
    rt.step(width as u64 / 64)
}

fn parse(rt: &Rt, value: &Value, text: &str) -> R<Spec> {
    let mut spec = Spec::default();
    let is_align = |letter: char| matches!(letter, '<' | '>' | '=' | '^');
    let mut letters = text.chars().peekable();
    let mut ahead = text.chars();
    let (first, second) = (ahead.next(), ahead.next());
    if second.is_some_and(is_align) {
        spec.fill = first;
        spec.align = second;
        letters.next();
        letters.next();
    } else if first.is_some_and(is_align) {
        spec.align = first;
        letters.next();
    }
    spec.sign = letters.next_if(|letter| matches!(letter, '+' | '-' | ' '));
    letters.next_if_eq(&'z');
    spec.alternate = letters.next_if_eq(&'#').is_some();
    spec.zero = letters.next_if_eq(&'0').is_some();
    spec.width = number_of(rt, &mut letters)?.unwrap_or(0);
    spec.group = letters.next_if(|letter| matches!(letter, ',' | '_'));
    if letters.next_if_eq(&'.').is_some() {
        spec.precision = number_of(rt, &mut letters)?;
        if spec.precision.is_none() {
            return value_error("Format specifier missing precision");
        }
    }
    spec.kind = letters.next();
    if letters.next().is_some() {
        return value_error(format!(
            "Invalid format specifier '{text}' for object of type '{}'",
            value.type_name()
        ));
    }
    if spec.zero && spec.align.is_none() {
        spec.fill = spec.fill.or(Some('0'));
        if value.as_str().is_none() {
            spec.align = Some('=');
        }
    }
    Ok(spec)
}

fn unknown<T>(kind: char, value: &Value) -> R<T> {
    value_error(format!(
        "Unknown format code '{kind}' for object of type '{}'",
        value.type_name()
    ))
}

fn pad(text: &str, width: usize, fill: char, align: char) -> String {
    let margin = width.saturating_sub(char_count(text));
    let left = match align {
        '>' | '=' => margin,
        '^' => margin / 2,
        _ => 0,
    };
    let fills = |count: usize| std::iter::repeat_n(fill, count);
    fills(left)
        .chain(text.chars())
        .chain(fills(margin - left))
        .collect()
}

fn of_text(text: &str, spec: &Spec, value: &Value) -> R<String> {
    match spec.kind {
        None | Some('s') => {}
        Some(kind) => return unknown(kind, value),
    }
    if spec.sign.is_some() {
        return value_error("Sign not allowed in string format specifier");
    }
    if spec.alternate {
        return value_error("Alternate form (#) not allowed in string format specifier");
    }
    if spec.align == Some('=') {
        return value_error("'=' alignment not allowed in string format specifier");
    }
    if let Some(group) = spec.group {
        return value_error(format!("Cannot specify '{group}' with 's'."));
    }
    let cut: String = match spec.precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text.to_owned(),
    };
    Ok(pad(
        &cut,
        spec.width,
        spec.fill.unwrap_or(' '),
        spec.align.unwrap_or('<'),
    ))
}

fn of_number(rt: &Rt, number: &Number, spec: &Spec, value: &Value) -> R<String> {
    let kind = spec.kind;
    let whole = match kind {
        None | Some('n') => number.big(),
        Some('b' | 'c' | 'd' | 'o' | 'x' | 'X') => match number.big() {
            Some(whole) => Some(whole),
            None => return unknown(kind.unwrap_or('d'), value),
        },
        Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%') => None,
        Some(kind) => return unknown(kind, value),
    };
    let (negative, prefix, digits) = match whole {
        Some(whole) => of_integer(rt, &whole, spec)?,
        None => of_float(number, spec),
    };
    let sign = match (negative, spec.sign) {
        (true, _) => "-",
        (false, Some('+')) => "+",
        (false, Some(' ')) => " ",
        _ => "",
    };
    let digits = grouped(&digits, spec, sign.len() + prefix.len());
    let fill = spec.fill.unwrap_or(' ');
    if spec.align == Some('=') {
        let head = sign.len() + prefix.len();
        let body = pad(&digits, spec.width.saturating_sub(head), fill, '>');
        return Ok(format!("{sign}{prefix}{body}"));
    }
    let text = format!("{sign}{prefix}{digits}");
    Ok(pad(&text, spec.width, fill, spec.align.unwrap_or('>')))
}

fn of_integer(rt: &Rt, number: &BigInt, spec: &Spec) -> R<(bool, &'static str, String)> {
    if spec.precision.is_some() {
        return value_error("Precision not allowed in integer format specifier");
    }
    let negative = number.sign() == Sign::Minus;
    let magnitude = number.magnitude();
    rt.step(number.bits().saturating_mul(number.bits()) / 65_536)?;
    let prefix = |prefix: &'static str| if spec.alternate { prefix } else { "" };
    Ok(match spec.kind {
        Some('b') => (negative, prefix("0b"), magnitude.to_str_radix(2)),
        Some('o') => (negative, prefix("0o"), magnitude.to_str_radix(8)),
        Some('x') => (negative, prefix("0x"), magnitude.to_str_radix(16)),
        Some('X') => (negative, prefix("0X"), magnitude.to_str_radix(16).to_uppercase()),
        Some('c') => {
            let letter = u32::try_from(number).ok().and_then(char::from_u32);
            match letter {
                Some(letter) => (false, "", letter.to_string()),
                None => return raise("OverflowError", "%c arg not in range(0x110000)"),
            }
        }
        _ => (negative, "", magnitude.to_string()),
    })
}

fn of_float(number: &Number, spec: &Spec) -> (bool, &'static str, String) {
    let number = match number {
        Number::Big(number) => big_to_float(number),
        other => other.float(),
    };
    let negative = number.is_sign_negative() && !number.is_nan();
    let number = number.abs();
    let kind = spec.kind.unwrap_or('r');
    let text = match kind {
        '%' => format!(
            "{}%",
            float_text(number * 100.0, 'f', spec.precision, spec.alternate)
        ),
        'r' => match spec.precision {
            None => repr::float(number),
            Some(precision) => shortest(number, precision),
        },
        kind => float_text(number, kind, spec.precision, spec.alternate),
    };
    (negative, "", text)
}

/// Like `g`, but an integral number keeps a digit after its point.
fn shortest(number: f64, precision: usize) -> String {
    let text = float_text(number, 'g', Some(precision), false);
    if text.bytes().all(|byte| byte.is_ascii_digit()) && number.is_finite() {
        return text + ".0";
    }
    text
}

/// Formats `%e`, `%f` and `%g` of a number that is not negative.
pub(crate) fn float_text(number: f64, kind: char, precision: Option<usize>, alternate: bool) -> String {
    let upper = kind.is_ascii_uppercase();
    if !number.is_finite() {
        let text = if number.is_nan() { "nan" } else { "inf" };
        return if upper {
            text.to_uppercase()
        } else {
            text.to_owned()
        };
    }
    let precision = precision.unwrap_or(6);
    let text = match kind.to_ascii_lowercase() {
        'e' => exponent(number, precision),
        'f' => fixed(number, precision),
        _ => general(number, precision.max(1), alternate),
    };
    if upper { text.to_uppercase() } else { text }
}

/// The number of digits after the point that a float can have at most; all further ones are zero.
const MAX_FRACTION: usize = 1100;

fn fixed(number: f64, precision: usize) -> String {
    let zeros = precision.saturating_sub(MAX_FRACTION);
    format!("{number:.*}", precision.min(MAX_FRACTION)) + &"0".repeat(zeros)
}

fn exponent(number: f64, precision: usize) -> String {
    let text = format!("{number:.*e}", precision.min(MAX_FRACTION));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let zeros = "0".repeat(precision.saturating_sub(MAX_FRACTION));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}{zeros}e{sign}{digits:0>2}")
}

fn general(number: f64, precision: usize, alternate: bool) -> String {
    let scientific = exponent(number, precision - 1);
    let power = scientific
        .split_once('e')
        .and_then(|(_, power)| power.parse::<i64>().ok())
        .unwrap_or(0);
    let limit = i64::try_from(precision).unwrap_or(i64::MAX);
    let text = if power < -4 || power >= limit {
        scientific
    } else {
        let digits = usize::try_from(limit - 1 - power).unwrap_or_default();
        fixed(number, digits)
    };
    if alternate {
        return text;
    }
    let (mantissa, tail) = match text.split_once('e') {
        Some((mantissa, tail)) => (mantissa, format!("e{tail}")),
        None => (text.as_str(), String::new()),
    };
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    format!("{mantissa}{tail}")
}

/// Separates groups of digits; leading zeros of the field are grouped too.
fn grouped(digits: &str, spec: &Spec, head: usize) -> String {
    let Some(separator) = spec.group else {
        return digits.to_owned();
    };
    let size = if matches!(spec.kind, Some('b' | 'o' | 'x' | 'X')) {
        4
    } else {
        3
    };
    let end = digits.find(['.', 'e', '%']).unwrap_or(digits.len());
    let (whole, tail) = digits.split_at_checked(end).unwrap_or((digits, ""));
    if !whole.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return digits.to_owned();
    }
    let mut whole = whole.to_owned();
    if spec.align == Some('=') && spec.fill == Some('0') {
        let digits_width = spec.width.saturating_sub(head + tail.len());
        // A group and its separator have one character more than digits; a separator is never first.
        let is_separator_first = digits_width > 0 && digits_width.is_multiple_of(size + 1);
        let wanted = digits_width - digits_width / (size + 1) + usize::from(is_separator_first);
        whole.insert_str(0, &"0".repeat(wanted.saturating_sub(whole.len())));
    }
    let mut out = String::new();
    for (index, letter) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(size) {
            out.push(separator);
        }
        out.push(letter);
    }
    out + tail
}
