//! The differences of the YAML printers.

use super::number;
use crate::read;

pub(super) const INDENT: usize = 2;
/// Longer keys need the explicit form.
pub(super) const KEY_BYTES: usize = 128;

pub(super) struct Dialect {
    /// Returns true if a plain scalar with this content would not be a string.
    pub(super) resolves: fn(&str) -> bool,
    pub(super) float: fn(f64) -> String,
    /// The quote for strings that would have another type without it.
    pub(super) ambiguous: char,
    /// PyYAML's differences: ASCII only, another folding of double quotes, `...` after a plain document.
    pub(super) python: bool,
    /// Keys in their natural order.
    pub(super) sorted: bool,
    /// Blanks beyond this column become line breaks if the style can fold.
    pub(super) width: usize,
    /// Blocks may contain tabs.
    pub(super) tabs: bool,
    /// Strings are in the form of [`go::bytes`].
    pub(super) bytes: bool,
    /// The indentation of a list below its key.
    pub(super) list_indent: usize,
}

pub(super) const GO: Dialect = Dialect {
    resolves: read::goyaml_resolves,
    float: number::go_yaml,
    ambiguous: '"',
    python: false,
    sorted: true,
    width: 80,
    tabs: false,
    bytes: false,
    list_indent: 0,
};

pub(super) const PYTHON: Dialect = Dialect {
    resolves: read::pyyaml_resolves,
    float: number::python_yaml,
    ambiguous: '\'',
    python: true,
    sorted: false,
    width: 80,
    tabs: false,
    bytes: false,
    list_indent: 0,
};

impl Dialect {
    pub(super) fn printable(&self) -> fn(char) -> bool {
        if self.python {
            |c| matches!(c, '\n' | ' '..='~')
        } else {
            go_printable
        }
    }

    pub(super) fn is_ambiguous(&self, text: &str) -> bool {
        (self.resolves)(text) || (!self.python && is_base_sixty(text))
    }
}

pub(super) fn go_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

/// Returns true for numbers like `1:30` that other readers count in base 60.
fn is_base_sixty(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some((head, rest)) = unsigned.split_once(':') else {
        return false;
    };
    let (rest, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let below_sixty = |part: &str| match part.as_bytes() {
        [b'0'..=b'9'] => true,
        [tens, ones] => (b'0'..=b'5').contains(tens) && ones.is_ascii_digit(),
        _ => false,
    };
    head.starts_with(|c: char| c.is_ascii_digit())
        && digits(head)
        && rest.split(':').all(below_sixty)
        && digits(fraction)
}
