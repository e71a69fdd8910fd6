//! Verbs of floats.

use super::Formatter;
use crate::strconv::format_float;

impl Formatter {
    /// Writes a float. Returns false, and writes nothing, if the verb is not one for floats.
    pub fn float(&mut self, value: f64, verb: char) -> bool {
        let (style, default) = match verb {
            'v' => ('g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => (verb, None),
            'f' | 'e' | 'E' => (verb, Some(6)),
            'F' => ('f', Some(6)),
            _ => return false,
        };
        let flags = self.flags;
        let precision = flags.precision.or(default);
        let text = format_float(value, style, precision);
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
            self.pad_with_spaces(&digits);
            return true;
        }
        if flags.sharp && style != 'b' {
            digits = with_point(&digits, style, precision);
        }
        if !flags.plus && sign == '+' {
            self.pad(&digits);
        } else if flags.zero && !flags.minus && flags.width.is_some_and(|width| width > digits.len() + 1) {
            self.pad_number(sign, &digits);
        } else {
            digits.insert(0, sign);
            self.pad(&digits);
        }
        true
    }
}

/// Applies the flag `#`: always a decimal point, and the zeros that `%g` drops.
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
