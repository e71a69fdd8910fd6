//! Number literals of templates.

use go::strconv::{QuoteError, parse_float, parse_int, quote, unquote_char_literal};

/// A number literal with its possible values: `1` is an integer or a float, `1.5` a float only.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Number {
    pub(super) int: Option<i64>,
    pub(super) float: Option<f64>,
    /// True if the notation makes it a float when the type is open.
    pub(super) is_float: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum NumberError {
    #[error(transparent)]
    Character(#[from] QuoteError),
    #[error("complex numbers are not supported: {}", quote(.0))]
    Complex(String),
    #[error("illegal number syntax: {}", quote(.0))]
    Syntax(String),
    #[error("integer overflow: {}", quote(.0))]
    Overflow(String),
}

impl Number {
    pub(super) fn character(text: &str) -> Result<Self, NumberError> {
        let number = unquote_char_literal(text)?;
        Ok(Self {
            int: Some(number.into()),
            float: Some(number.into()),
            is_float: false,
        })
    }

    pub(super) fn parse(text: &str) -> Result<Self, NumberError> {
        if text.ends_with('i') && !is_hex(text) {
            return Err(NumberError::Complex(text.to_owned()));
        }
        let integer = parse_int(text);
        let int = integer.and_then(|number| i64::try_from(number).ok());
        // Only an unsigned type can hold it.
        let huge = int.is_none()
            && integer.is_some_and(|number| !text.starts_with('+') && u64::try_from(number).is_ok());
        let mut number = Self {
            int,
            float: None,
            is_float: is_float(text),
        };
        if let (Some(value), true) = (integer, int.is_some() || huge) {
            number.float = Some(value as f64);
            return Ok(number);
        }
        // Templates have no literals for infinities and NaN.
        let Some(float) = parse_float(text).filter(|float| float.is_finite()) else {
            return Err(NumberError::Syntax(text.to_owned()));
        };
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(NumberError::Overflow(text.to_owned()));
        }
        number.float = Some(float);
        if (float as i64) as f64 == float {
            number.int = Some(float as i64);
        }
        Ok(number)
    }
}

fn is_float(text: &str) -> bool {
    let exponent = text.contains(['p', 'P']);
    let hex_int = is_hex(text) && text.len() > 2 && !exponent;
    !hex_int && text.contains(['.', 'e', 'E', 'p', 'P'])
}

fn is_hex(text: &str) -> bool {
    text.starts_with("0x") || text.starts_with("0X")
}
