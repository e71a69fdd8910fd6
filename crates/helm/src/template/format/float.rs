//! Go's strconv: floats as text.

use super::printer::Printer;

/// More digits than this are zeros, in any float.
const MAX_DIGITS: usize = 1100;

/// Prints a float; not when the verb isn't for floats.
pub(super) fn format_float(printer: &mut Printer<'_>, value: f64, verb: char) -> bool {
    let (style, default) = match verb {
        'v' => ('g', None),
        'b' | 'g' | 'G' | 'x' | 'X' => (verb, None),
        'f' | 'e' | 'E' => (verb, Some(6)),
        'F' => ('f', Some(6)),
        _ => return false,
    };
    let flags = printer.flags;
    let precision = flags.precision.or(default);
    let text = float_text(value, style, precision);
    let mut digits = text.trim_start_matches(['-', '+']).to_owned();
    let sign = match (text.starts_with('-'), flags.space && !flags.plus) {
        (true, _) => '-',
        (false, true) => ' ',
        (false, false) => '+',
    };
    if !value.is_finite() {
        if value.is_infinite() || sign != '+' || flags.plus {
            digits.insert(0, sign);
        }
        printer.pad_with_spaces(&digits);
        return true;
    }
    if flags.sharp && style != 'b' {
        digits = with_point(&digits, style, precision);
    }
    if !flags.plus && sign == '+' {
        printer.pad(&digits);
    } else if flags.zero && !flags.minus && flags.width.is_some_and(|width| width > digits.len() + 1) {
        printer.pad_number(sign, &digits);
    } else {
        digits.insert(0, sign);
        printer.pad(&digits);
    }
    true
}

/// The flag `#`: always with a decimal point, and with the zeros that `%g` drops.
fn with_point(digits: &str, style: char, precision: Option<usize>) -> String {
    let mut missing = match style {
        'g' | 'G' | 'x' => precision.unwrap_or(6),
        _ => 0,
    };
    let hex = matches!(style, 'x' | 'X');
    let exponent = |c: char| matches!(c, 'p' | 'P') || (!hex && matches!(c, 'e' | 'E'));
    let (number, tail) = digits.split_at(digits.find(exponent).unwrap_or(digits.len()));
    let mut text = number.to_owned();
    let mut counting = false;
    for c in number.chars().filter(|c| *c != '.') {
        counting |= c != '0';
        missing = missing.saturating_sub(usize::from(counting));
    }
    if !number.contains('.') {
        if number == "0" {
            missing = missing.saturating_sub(1);
        }
        text.push('.');
    }
    text.push_str(&"0".repeat(missing));
    text.push_str(tail);
    text
}

/// `strconv.FormatFloat` with verb (`e`, `E`, `f`, `g`, `G`, `x`, `X`, `b`) and precision; without one, as many digits as
/// tell the number from others.
#[must_use]
pub fn float_text(value: f64, verb: char, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let size = value.abs();
    let text = match verb {
        'b' => binary(size),
        'x' | 'X' => hexadecimal(size, precision),
        'f' => fixed(size, precision),
        'g' | 'G' => general(size, precision),
        _ => exponential(size, precision),
    };
    let text = if verb.is_ascii_uppercase() {
        text.to_uppercase()
    } else {
        text
    };
    if value.is_sign_negative() {
        format!("-{text}")
    } else {
        text
    }
}

/// The digits of a number, of which there are so many or as many as needed, and its decimal exponent.
fn decimal(value: f64, count: Option<usize>) -> (String, i32) {
    let text = match count {
        Some(count) => format!("{value:.*e}", count.saturating_sub(1).min(MAX_DIGITS)),
        None => yaml::print::shortest(value),
    };
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.replace('.', ""), exponent.parse().unwrap_or_default())
}

fn exponential(value: f64, precision: Option<usize>) -> String {
    let (mut digits, exponent) = decimal(value, precision.map(|precision| precision.saturating_add(1)));
    if let Some(precision) = precision {
        let missing = (precision + 1).saturating_sub(digits.len());
        digits.push_str(&"0".repeat(missing));
    }
    let fraction = digits.get(1..).unwrap_or_default();
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    let first = digits.get(..1).unwrap_or_default();
    format!("{first}{point}{fraction}e{sign}{:02}", exponent.unsigned_abs())
}

fn fixed(value: f64, precision: Option<usize>) -> String {
    let Some(precision) = precision else {
        return format!("{value}");
    };
    let mut text = format!("{value:.*}", precision.min(MAX_DIGITS));
    text.push_str(&"0".repeat(precision.saturating_sub(MAX_DIGITS)));
    text
}

fn general(value: f64, precision: Option<usize>) -> String {
    let precision = precision.map(|precision| precision.max(1));
    let (digits, exponent) = decimal(value, precision);
    let digits = digits.trim_end_matches('0');
    let count = digits.len().max(1);
    let point = exponent.saturating_add(1);
    let limit = match precision {
        None => 6,
        // A number without a fraction is not cut short by the precision.
        Some(precision) if precision > count && count as i32 >= point => count,
        Some(precision) => precision,
    };
    if exponent < -4 || i64::from(exponent) >= limit as i64 {
        return exponential(value, Some(count - 1));
    }
    let fraction = (count as i64 - i64::from(point)).max(0);
    fixed(value, Some(usize::try_from(fraction).unwrap_or_default()))
}

/// The bits of a number: mantissa and binary exponent, so that the number is one times two to the power of the other.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let mantissa = bits & ((1 << 52) - 1);
    let exponent = i32::try_from(bits >> 52 & 0x7ff).unwrap_or_default();
    match exponent {
        0 => (mantissa, -1074),
        _ => (mantissa | 1 << 52, exponent - 1075),
    }
}

fn binary(value: f64) -> String {
    let (mantissa, exponent) = parts(value);
    format!("{mantissa}p{exponent:+}")
}

fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let (mut mantissa, mut exponent) = parts(value);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // The first bit stands before the point, sixty behind it.
        let shift = mantissa.leading_zeros().saturating_sub(3);
        mantissa <<= shift;
        exponent += 60 - i32::try_from(shift).unwrap_or_default();
    }
    if let Some(digits) = precision.filter(|digits| *digits < 15) {
        let drop = 60 - 4 * digits as u32;
        let (half, rest) = (1_u64 << (drop - 1), mantissa & ((1 << drop) - 1));
        mantissa >>= drop;
        if rest > half || (rest == half && mantissa & 1 == 1) {
            mantissa += 1;
        }
        mantissa <<= drop;
        if mantissa >> 61 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let mut fraction = format!("{:015x}", mantissa & ((1 << 60) - 1));
    match precision {
        None => fraction.truncate(fraction.trim_end_matches('0').len()),
        Some(digits) if digits <= 15 => fraction.truncate(digits),
        Some(digits) => fraction.push_str(&"0".repeat(digits - 15)),
    }
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!(
        "0x{}{point}{fraction}p{sign}{:02}",
        mantissa >> 60,
        exponent.unsigned_abs()
    )
}
