//! Prints floats. All printers start from the shortest digits that read back as the same number.

/// Digits and the decimal exponent of the first one; digits without trailing zeros, empty for zero.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i32,
}

impl Decimal {
    fn new(scientific: &str) -> Self {
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        Self {
            negative: mantissa.starts_with('-'),
            digits: digits.trim_end_matches('0').to_owned(),
            exponent: exponent.parse().unwrap_or(0),
        }
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    /// `1.5e+20`, with at least `width` digits in the exponent.
    fn scientific(&self, width: usize) -> String {
        let (first, rest) = self.digits.split_at_checked(1).unwrap_or(("0", ""));
        let dot = if rest.is_empty() { "" } else { "." };
        let sign = if self.exponent < 0 { '-' } else { '+' };
        let exponent = self.exponent.unsigned_abs();
        format!("{}{first}{dot}{rest}e{sign}{exponent:0width$}", self.sign())
    }

    /// `150` or `0.015`, without a point when there is no fraction.
    fn plain(&self) -> String {
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
}

/// The shortest digits that read back as the same number, such as `1.5e20`; of two that are equally near, those with an even
/// end, as Go and Python have it.
#[must_use]
pub fn shortest(float: f64) -> String {
    let text = format!("{float:e}");
    let digits = text.bytes().take_while(|byte| *byte != b'e');
    let digits = digits.filter(u8::is_ascii_digit).count();
    // No two of fewer digits are equally near.
    if digits < 15 {
        return text;
    }
    let even = format!("{float:.*e}", digits - 1);
    if even.parse() == Ok(float) { even } else { text }
}

/// Go's `'g'` with the shortest digits.
fn go_g(decimal: &Decimal) -> String {
    if (-4..6).contains(&decimal.exponent) {
        decimal.plain()
    } else {
        decimal.scientific(2)
    }
}

/// Prints a float as go-yaml does.
pub(crate) fn go_yaml(float: f64) -> String {
    match words(float, ".nan", "+.inf", "-.inf") {
        Some(word) => word.to_owned(),
        None => go_g(&Decimal::new(&shortest(float))),
    }
}

/// Prints a float as Go's `%v` does.
#[must_use]
pub fn go_float(float: f64) -> String {
    match words(float, "NaN", "+Inf", "-Inf") {
        Some(word) => word.to_owned(),
        None => go_g(&Decimal::new(&shortest(float))),
    }
}

/// Prints a float that is a map key as Go does.
pub(crate) fn go_shortest_f32(float: f32) -> String {
    go_g(&Decimal::new(&format!("{float:e}")))
}

/// Prints a float as Go's encoding/json does.
pub(super) fn go_json(float: f64) -> String {
    if !float.is_finite() {
        return "null".to_owned();
    }
    let decimal = Decimal::new(&shortest(float));
    if float == 0.0 || (-6..21).contains(&decimal.exponent) {
        decimal.plain()
    } else {
        decimal.scientific(if decimal.exponent < 0 { 1 } else { 2 })
    }
}

/// Prints a float as Python's `repr` does.
pub(crate) fn python_float(float: f64) -> String {
    if let Some(word) = words(float, "nan", "inf", "-inf") {
        return word.to_owned();
    }
    let decimal = Decimal::new(&shortest(float));
    if !(-4..16).contains(&decimal.exponent) {
        return decimal.scientific(2);
    }
    let plain = decimal.plain();
    if plain.contains('.') { plain } else { plain + ".0" }
}

/// Prints a float as Python's json module does.
pub(super) fn python_json(float: f64) -> String {
    words(float, "NaN", "Infinity", "-Infinity").map_or_else(|| python_float(float), str::to_owned)
}

/// Prints a float as PyYAML does: without a point, its own reader would take an exponent for a string.
pub(super) fn python_yaml(float: f64) -> String {
    if let Some(word) = words(float, ".nan", ".inf", "-.inf") {
        return word.to_owned();
    }
    let text = python_float(float);
    if text.contains('.') {
        text
    } else {
        text.replacen('e', ".0e", 1)
    }
}

fn words<'w>(float: f64, nan: &'w str, infinity: &'w str, minus: &'w str) -> Option<&'w str> {
    if float.is_finite() {
        return None;
    }
    Some(if float.is_nan() {
        nan
    } else if float > 0.0 {
        infinity
    } else {
        minus
    })
}
