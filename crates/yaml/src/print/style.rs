//! The style of a scalar: plain, quoted, or a block.

use super::{
    analysis::{analyse, is_break},
    dialect::{Dialect, PYTHON},
};

#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    /// The column of continuation lines.
    pub(super) indent: usize,
    /// A key before its colon, which can't be folded.
    pub(super) key: bool,
    /// The whole document.
    pub(super) root: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

impl Style {
    /// Chooses the style of `text`; a `key` must stay on its line.
    pub(super) fn of(text: &str, key: bool, dialect: &Dialect) -> Self {
        let analysis = analyse(text, dialect.printable());
        let block = || {
            analysis.block || (dialect.tabs && analyse(&text.replace('\t', "x"), dialect.printable()).block)
        };
        if !key && text.contains('\n') && block() {
            return Self::Literal;
        }
        // As a key this would be a merge, whatever the tools print.
        let ambiguous = dialect.is_ambiguous(text) || (key && text == "<<");
        let quote_ambiguous = if ambiguous { dialect.ambiguous } else { '\'' };
        if analysis.plain && !ambiguous {
            Self::Plain
        } else if analysis.single_quoted && quote_ambiguous == '\'' && !text.contains('\n') {
            Self::Single
        } else {
            Self::Double
        }
    }
}

impl Style {
    /// Chooses the style that PyYAML gives to `text`; a `key` must stay on its line. Only strings of several lines are
    /// blocks; a break at the end alone doesn't count.
    pub(super) fn python(text: &str, key: bool) -> Self {
        let analysis = analyse(text, PYTHON.printable());
        let breaks = text.contains(is_break);
        let several = lines(text) > 1;
        let ambiguous = PYTHON.is_ambiguous(text);
        if several {
            return if analysis.block && !key {
                Self::Literal
            } else {
                Self::Double
            };
        }
        if analysis.plain && !ambiguous && !(key && (breaks || text.is_empty())) {
            Self::Plain
        } else if analysis.single_quoted && !(key && breaks) {
            Self::Single
        } else {
            Self::Double
        }
    }
}

/// Counts lines as Python's `splitlines` does.
fn lines(text: &str) -> usize {
    let ends = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let text = text.replace("\r\n", "\n");
    text.matches(ends).count() + usize::from(!text.is_empty() && !text.ends_with(ends))
}
