//! Package `strconv`: numbers and strings as literals.

mod decimal;
mod float;
mod number;
mod quote;

pub use decimal::Decimal;
pub use float::format_float;
pub use number::{parse_digits, parse_float, parse_int};
pub(crate) use quote::quote_with;
pub use quote::{
    QuoteError, can_backquote, is_print, quote, quote_to_ascii, unicode_point, unquote, unquote_char_literal,
};
