//! Go's fmt: values as text.

use tree::Budget;

use crate::Value;

/// `fmt.Sprint`: spaces between operands when neither is a string; one value as `%v` prints it.
///
/// # Errors
/// When the text is longer, or the values nest deeper, than the budget allows.
pub fn print(values: &[Value], budget: &Budget) -> Result<String, String> {
    let _ = (values, budget);
    Ok(String::new())
}

/// `fmt.Sprintf`.
///
/// # Errors
/// When the text is longer, or the values nest deeper, than the budget allows.
pub fn printf(format: &str, values: &[Value], budget: &Budget) -> Result<String, String> {
    let _ = (format, values, budget);
    Ok(String::new())
}

/// `strconv.Quote`, as `%q` prints a string.
#[must_use]
pub fn quote(text: &str) -> String {
    format!("{text:?}")
}

/// `strconv.FormatFloat` with verb (`e`, `E`, `f`, `g`, `G`, `x`, `X`, `b`) and precision; without one, as many digits as
/// tell the number from others.
#[must_use]
pub fn float_text(value: f64, verb: char, precision: Option<usize>) -> String {
    let _ = (verb, precision);
    value.to_string()
}
