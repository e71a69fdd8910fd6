//! Formatting floats.

use super::Decimal;

/// All further digits of any float are zeros.
const MAX_DIGITS: usize = 1100;

/// Formats as `strconv.FormatFloat` does. The verb is one of `e`, `E`, `f`, `g`, `G`, `x`, `X` and `b`; any other counts as
/// `e`. Without a precision (-1 in Go) the digits are the fewest that parse back to the same float.
#[must_use]
pub fn format_float(value: f64, verb: char, precision: Option<usize>) -> String {
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

fn decimal(value: f64, count: usize) -> (String, i32) {
    let text = format!("{value:.*e}", count.saturating_sub(1).min(MAX_DIGITS));
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.replace('.', ""), exponent.parse().unwrap_or_default())
}

fn exponential(value: f64, precision: Option<usize>) -> String {
    let Some(precision) = precision else {
        return Decimal::shortest(value).scientific(2);
    };
    let (mut digits, exponent) = decimal(value, precision.saturating_add(1));
    let missing = (precision + 1).saturating_sub(digits.len());
    digits.push_str(&"0".repeat(missing));
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
    let Some(precision) = precision else {
        return Decimal::shortest(value).general();
    };
    let precision = precision.max(1);
    let (digits, exponent) = decimal(value, precision);
    let digits = digits.trim_end_matches('0');
    let count = digits.len().max(1);
    let point = exponent.saturating_add(1);
    // A number without a fraction is not cut short by the precision.
    let limit = if precision > count && count as i32 >= point {
        count
    } else {
        precision
    };
    if exponent < -4 || i64::from(exponent) >= limit as i64 {
        return exponential(value, Some(count - 1));
    }
    let fraction = (count as i64 - i64::from(point)).max(0);
    fixed(value, Some(usize::try_from(fraction).unwrap_or_default()))
}

/// Returns mantissa and binary exponent: the number is the mantissa times two to the power of the exponent.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_formatted_as_by_go() {
        for (value, verb, precision, expected) in [
            (1e6, 'g', None, "1e+06"),
            (123_456.0, 'g', None, "123456"),
            (0.000_01, 'g', None, "1e-05"),
            (0.1, 'g', None, "0.1"),
            (-0.0, 'g', None, "-0"),
            (1e23, 'g', None, "1e+23"),
            (100.0, 'g', Some(2), "1e+02"),
            (400.0, 'g', Some(17), "400"),
            (1.5, 'e', None, "1.5e+00"),
            (1.5, 'E', Some(3), "1.500E+00"),
            (0.0, 'e', None, "0e+00"),
            (2.5, 'f', Some(0), "2"),
            (1.0, 'x', None, "0x1p+00"),
            (1.0, 'b', None, "4503599627370496p-52"),
            (f64::NAN, 'g', None, "NaN"),
            (f64::NEG_INFINITY, 'f', Some(2), "-Inf"),
        ] {
            assert_eq!(
                format_float(value, verb, precision),
                expected,
                "{value} {verb} {precision:?}"
            );
        }
    }
}
