//! Decimal digits and exponent of a float.

/// Digits and decimal exponent of a float: `1.5e20` has the digits `15` and the exponent 20.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// Without trailing zeros; empty for zero.
    digits: String,
    /// Of the first digit.
    exponent: i32,
}

impl Decimal {
    /// Returns the shortest digits that parse back to the same float; of two that are equally near, the one with an even
    /// end, as Go and Python do. Infinities and NaN have no digits: the caller handles them before.
    #[must_use]
    pub fn shortest(float: f64) -> Self {
        let text = format!("{float:e}");
        let digits = text.bytes().take_while(|byte| *byte != b'e');
        let digits = digits.filter(u8::is_ascii_digit).count();
        // No two of fewer digits are equally near.
        if digits < 15 {
            return Self::parse(&text);
        }
        let even = format!("{float:.*e}", digits - 1);
        Self::parse(if even.parse() == Ok(float) { &even } else { &text })
    }

    #[must_use]
    pub fn shortest_f32(float: f32) -> Self {
        Self::parse(&format!("{float:e}"))
    }

    /// Parses Rust's scientific notation, such as `-1.5e20`.
    pub(super) fn parse(scientific: &str) -> Self {
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        Self {
            negative: mantissa.starts_with('-'),
            digits: digits.trim_end_matches('0').to_owned(),
            exponent: exponent.parse().unwrap_or(0),
        }
    }

    #[must_use]
    pub fn exponent(&self) -> i32 {
        self.exponent
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    /// Formats as `1.5e+20`, with at least `width` digits in the exponent.
    #[must_use]
    pub fn scientific(&self, width: usize) -> String {
        let (first, rest) = self.digits.split_at_checked(1).unwrap_or(("0", ""));
        let dot = if rest.is_empty() { "" } else { "." };
        let sign = if self.exponent < 0 { '-' } else { '+' };
        let exponent = self.exponent.unsigned_abs();
        format!("{}{first}{dot}{rest}e{sign}{exponent:0width$}", self.sign())
    }

    /// Formats as `150` or `0.015`, without a decimal point for integers.
    #[must_use]
    pub fn plain(&self) -> String {
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        let text = match usize::try_from(self.exponent) {
            Err(_) => {
                let zeros = self.exponent.unsigned_abs() as usize - 1;
                format!("0.{}{digits}", "0".repeat(zeros))
            }
            Ok(exponent) => match digits.split_at_checked(exponent + 1) {
                Some((whole, "")) => whole.to_owned(),
                Some((whole, fraction)) => format!("{whole}.{fraction}"),
                None => format!("{digits}{}", "0".repeat(exponent + 1 - digits.len())),
            },
        };
        format!("{}{text}", self.sign())
    }

    /// Formats as verb `g` without a precision does: scientific below 1e-4 and from 1e+06 on.
    #[must_use]
    pub fn general(&self) -> String {
        if (-4..6).contains(&self.exponent) {
            self.plain()
        } else {
            self.scientific(2)
        }
    }
}
