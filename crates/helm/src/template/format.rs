//! Formatting of values as in Go's package fmt.

mod printer;
mod verbs;

use tree::{Budget, Exceeded};

use self::{printer::Printer, verbs::run};
use super::{FunctionError, types::kind_name};
use crate::Value;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A string longer than the limit of the budget.
    #[error("the text is too long")]
    TooLong,
    #[error("the value nests too deep")]
    TooDeep,
    /// A map is printed while a function changes it.
    #[error("the map is being changed")]
    Borrowed,
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

impl From<FormatError> for FunctionError {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::Exceeded(error) => error.into(),
            error => Self::Failed(error.to_string()),
        }
    }
}

/// Returns a copy of the string that an object prints.
pub(crate) fn printed(text: &str, budget: &Budget) -> Result<String, FormatError> {
    budget.step(text.len() as u64 / 64)?;
    Ok(text.to_owned())
}

/// Prints values as `fmt.Sprint` does: with `%v`, and spaces between operands of which neither is a string.
/// Fails if values nest deeper than 2000 levels, or a limit is reached.
pub fn print(values: &[Value], budget: &Budget) -> Result<String, FormatError> {
    let mut printer = Printer::new(budget);
    let mut after_text = true;
    for value in values {
        let text = kind_name(value) == "string";
        if !text && !after_text {
            printer.write(" ");
        }
        printer.value(value, 'v', 0);
        after_text = text;
    }
    printer.finish()
}

/// Prints as `fmt.Sprintln` does: with spaces between all operands, and a newline. Fails as [`print`].
pub(super) fn println(values: &[Value], budget: &Budget) -> Result<String, FormatError> {
    let mut printer = Printer::new(budget);
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            printer.write(" ");
        }
        printer.value(value, 'v', 0);
    }
    printer.write("\n");
    printer.finish()
}

/// Prints as `fmt.Sprintf` does. Fails as [`print`].
pub fn printf(format: &str, values: &[Value], budget: &Budget) -> Result<String, FormatError> {
    let mut printer = Printer::new(budget);
    run(&mut printer, format, values);
    printer.finish()
}

/// Writes a value as templates print it: with `%v`, or by its method `String` or `Error`. Fails as [`print`].
pub(super) fn write_value(out: &mut String, value: &Value, budget: &Budget) -> Result<(), FormatError> {
    let mut printer = Printer::new(budget);
    match value {
        Value::Object(object) if object.members().is_some() => printer.write(&object.print(budget)?),
        _ => printer.value(value, 'v', 0),
    }
    out.push_str(&printer.finish()?);
    Ok(())
}
