//! Prints floats. All printers start from the shortest digits that read back as the same number.

use go::strconv::Decimal;

pub(crate) fn go_yaml(float: f64) -> String {
    match words(float, ".nan", "+.inf", "-.inf") {
        Some(word) => word.to_owned(),
        None => Decimal::shortest(float).general(),
    }
}

/// Prints a float that is a map key as Go does.
pub(crate) fn go_shortest_f32(float: f32) -> String {
    Decimal::shortest_f32(float).general()
}

pub(super) fn go_json(float: f64) -> String {
    if !float.is_finite() {
        return "null".to_owned();
    }
    // Whole numbers, whose digits an integer has exactly; zero may be negative.
    if float != 0.0 && float.abs() < 1e15 && float.fract() == 0.0 {
        return (float as i64).to_string();
    }
    let decimal = Decimal::shortest(float);
    if float == 0.0 || (-6..21).contains(&decimal.exponent()) {
        decimal.plain()
    } else {
        decimal.scientific(if decimal.exponent() < 0 { 1 } else { 2 })
    }
}

/// Prints as Python's `repr` does.
pub(crate) fn python_float(float: f64) -> String {
    if let Some(word) = words(float, "nan", "inf", "-inf") {
        return word.to_owned();
    }
    let decimal = Decimal::shortest(float);
    if !(-4..16).contains(&decimal.exponent()) {
        return decimal.scientific(2);
    }
    let plain = decimal.plain();
    if plain.contains('.') { plain } else { plain + ".0" }
}

pub(super) fn python_json(float: f64) -> String {
    words(float, "NaN", "Infinity", "-Infinity").map_or_else(|| python_float(float), str::to_owned)
}

/// Prints as PyYAML does: its reader would take an exponent without a point for a string.
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
